//! Handles members that start, exit and vanish.

use std::collections::{BTreeMap, BTreeSet};

use super::shutdown::{self, ask_all, begin, resolve};
use super::{questions, staff};
use crate::effect::Effect;
use crate::event::StoppedRun;
use crate::state::{PendingStop, Phase, State, TrackedMember};
use model::board::waiting::Ability;
use model::decisions::request::ShutdownOutcome;
use model::id::MemberName;
use model::members::launch::ability;
use model::members::lifecycle::MemberState;
use model::members::record::MemberRecord;
use model::time::Timestamp;
use ops::ending::remove::MemberRemoval;
use ops::hosts::stop_mode::StopMode;
use ops::members::label;

/// Time in ms within which a member that is started again has begun its next run.
const RETURN_MS: u64 = 60_000;

/// Takes over the records of all members. Only members that have proven themselves are watched: a
/// starting member can be asked to shut down (SD-03), but its spawner checks that it comes up.
pub(super) fn handle_members(
    state: &mut State,
    records: &[MemberRecord],
    now: Timestamp,
    effects: &mut Vec<Effect>,
) {
    state.members_seen = true;
    let leads = state.leads();
    let (mut runs, mut came_up) = (Vec::new(), Vec::new());
    for record in records {
        if record.state.is_over() {
            handle_over(state, record);
            continue;
        }
        if state.members.get(&record.name).is_none_or(|known| !record.is(&known.incarnation)) {
            state.members.insert(record.name.clone(), view_of(state, record));
            staff::handle_new_run(state, &record.name, effects);
            state.returning.remove(&record.name);
            // A task that was settled for the run before may be settled anew.
            state.settled.clear();
        }
        let Some(view) = state.members.get_mut(&record.name) else { continue };
        let was_up = std::mem::replace(&mut view.watched, record.state.is_up());
        view.state = record.state;
        if view.state_since != record.state_since {
            view.idle_checked_at = None;
        }
        view.state_since = record.state_since;
        view.is_ready = record.was_ready();
        view.limit = record.limit().cloned();
        view.is_blocked = record.is_blocked();
        view.is_retrying = record.retrying().is_some();
        view.has_failed = record.turn_error().is_some();
        if let Some(seen) = record.prompt.as_ref().filter(|seen| leads && !seen.is_announced)
            && view.announced_prompt.replace(seen.since) != Some(seen.since)
        {
            let (name, incarnation) = (record.name.clone(), record.incarnation.clone());
            effects.push(Effect::AnnouncePrompt { name, incarnation });
        }
        let shown = label::state_of(record, now);
        if record.placement.is_some() && view.shown.replace(shown) != Some(shown) {
            runs.push(record.clone());
        }
        if let Some(process) = record.launcher().filter(|_| view.watched && !was_up) {
            let (name, incarnation) = (record.name.clone(), record.incarnation.clone());
            effects.push(Effect::WatchExit { name, incarnation, process });
        }
        if view.watched && !was_up {
            came_up.push(record.name.clone());
        }
    }
    // Members that asked a question while starting wait from now on.
    came_up.iter().for_each(|name| questions::wait_on(state, name, effects));
    if !runs.is_empty() {
        effects.push(Effect::Label { runs });
    }
    let recorded: BTreeSet<&MemberName> = records.iter().map(|record| &record.name).collect();
    state.members.retain(|name, view| view.ending.is_some() || recorded.contains(name));
    join_stopping(state, effects);
    shutdown::carry_open(state, now, effects);
}

/// Restores running members that are missing in the team file, and notes what the others say about
/// themselves.
pub(super) fn handle_roster(
    state: &mut State,
    listed: &BTreeMap<MemberName, Option<bool>>,
    now: Timestamp,
    effects: &mut Vec<Effect>,
) {
    state.listed = listed.keys().cloned().collect();
    for (name, view) in &mut state.members {
        let says = listed.get(name).copied().flatten();
        if view.says_active.map(|(before, _)| before) != says {
            view.says_active = says.map(|is_active| (is_active, now));
        }
    }
    if !state.leads() {
        return;
    }
    let lives = |view: &TrackedMember| view.watched && view.ending.is_none();
    for (name, view) in
        state.members.iter().filter(|(name, view)| lives(view) && !listed.contains_key(*name))
    {
        effects.push(Effect::PutBack { name: name.clone(), incarnation: view.incarnation.clone() });
    }
}

/// Handles a run that is over without having been stopped by this lead.
fn handle_over(state: &mut State, record: &MemberRecord) {
    let view = state.members.get(&record.name);
    if let Some(view) = view.filter(|v| record.is(&v.incarnation) && v.ending.is_none()) {
        // `--force` ended it while this process was suspended. As after any request, it is not
        // replaced.
        let was_forced = view.watched && record.state == MemberState::Killed;
        state.members.remove(&record.name);
        staff::handle_left(state, record);
        if was_forced {
            staff::hold(state, &record.name);
        }
    }
    if !state.members.contains_key(&record.name) {
        staff::handle_past_end(state, record);
    }
}

fn view_of(state: &State, record: &MemberRecord) -> TrackedMember {
    TrackedMember {
        incarnation: record.incarnation.clone(),
        state: record.state,
        state_since: record.state_since,
        shown: None,
        reads_mail: record.reads_mail(),
        runs_commands: ability(&record.request.profile) == Ability::Commands,
        request: record.request.clone(),
        watched: false,
        ending: None,
        refused: false,
        stuck: false,
        dismissed: false,
        since: record.start.as_ref().map_or(record.asked_at, |start| start.at),
        owes_since: None,
        limit: record.limit().cloned(),
        ended_for_budget: None,
        activity: None,
        restarts: false,
        answer_checks: u64::from(record.unresponsive.is_some()),
        kind: state.maker(&record.name),
        given: state.seen.as_ref().and_then(|seen| seen.given_to(&record.name)),
        quiet: None,
        native: record.is_native(),
        is_elsewhere: record.is_elsewhere,
        says_active: None,
        is_blocked: record.is_blocked(),
        is_retrying: record.retrying().is_some(),
        has_failed: record.turn_error().is_some(),
        announced_prompt: None,
        is_ready: record.was_ready(),
        idle_checked_at: None,
        reminded: record.reminded,
    }
}

/// Stops members that join a stopping team.
fn join_stopping(state: &State, effects: &mut Vec<Effect>) {
    if let Phase::Stopping { force, .. } = state.phase {
        ask_all(state, "the team ends", force, effects);
    }
}

/// Handles the exit of a process. An exit that was not requested ends the run, which releases its
/// tasks.
pub(super) fn handle_exit(state: &mut State, record: &MemberRecord, effects: &mut Vec<Effect>) {
    let exited = MemberRemoval::of_exited(record);
    let Some(view) = state.members.get(&record.name).filter(|v| record.is(&v.incarnation)) else {
        // Its launcher was killed before the run had left the team.
        if record.state.is_over() && state.listed.contains(&record.name) {
            effects.push(Effect::Remove(vec![exited]));
        }
        return;
    };
    if view.ending.is_some() {
        return;
    }
    let request = state.request_for(&record.name, &record.incarnation);
    let request = request.map(|request| (request.id.clone(), ShutdownOutcome::Gone));
    let ending = PendingStop { cause: exited.cause, reason: exited.reason, request };
    begin(state, &record.name, StopMode::Immediate, ending, effects);
}

pub(super) fn handle_stopped(
    state: &mut State,
    ended: Vec<StoppedRun>,
    now: Timestamp,
    effects: &mut Vec<Effect>,
) {
    let (mut removals, mut rest) = (Vec::new(), Vec::new());
    for one in ended {
        removals.extend(handle_end(state, one, now, &mut rest));
    }
    if !removals.is_empty() {
        effects.push(Effect::Remove(removals));
    }
    // The requester is notified only after the run has been removed.
    effects.append(&mut rest);
}

fn handle_end(
    state: &mut State,
    ended: StoppedRun,
    now: Timestamp,
    effects: &mut Vec<Effect>,
) -> Option<MemberRemoval> {
    let StoppedRun { name, incarnation, result } = ended;
    let view = state.members.get_mut(&name).filter(|v| v.incarnation == incarnation)?;
    let ending = view.ending.take()?;
    match result {
        Ok(()) => {
            let (since, restarts) = (view.since, view.restarts);
            state.members.remove(&name);
            questions::forget(state, &name);
            staff::handle_end(state, &name, ending.cause, since, now, effects);
            // A member of a kind is restarted by its kind.
            let mut returns =
                restarts && state.maker(&name).is_none() && state.phase == Phase::Leading;
            if returns {
                effects.push(Effect::Resume(name.clone()));
            }
            if let Some((id, outcome)) = ending.request {
                returns |= state.open.remove(&id).is_some_and(|request| request.restarts);
                effects.push(resolve(&id, outcome, None));
            }
            if returns {
                state.returning.insert(name.clone(), now.plus_ms(RETURN_MS));
            }
            Some(MemberRemoval { name, incarnation, cause: ending.cause, reason: ending.reason })
        }
        Err(problem) => {
            view.stuck = true;
            let text = format!("could not be stopped: {problem}");
            effects.push(Effect::Warn { member: Some(name), text: text.clone() });
            if let Some((id, _)) = ending.request {
                state.open.remove(&id);
                effects.push(resolve(&id, ShutdownOutcome::TimedOut, Some(text)));
            }
            None
        }
    }
}
