//! The lead's decisions: one pure function of its state, an event and the time.

mod budget;
mod followup;
mod hang;
mod health;
mod hooks;
mod idle_check;
mod limit;
mod mail;
mod members;
mod native_state;
mod offer;
mod questions;
mod readiness;
mod settings;
mod shutdown;
mod staff;
mod time_limit;

use std::collections::BTreeSet;

use super::effect::Effect;
use super::event::Event;
use super::state::{BoardView, Goal, LeadEnd, Phase, State};
use model::board::task::Task;
use model::board::{Board, external_change, results};
use model::decisions::request::ShutdownRequest;
use model::id::{MemberName, TaskId};
use model::team::settings::Finish;
use model::time::Timestamp;

impl State {
    /// Returns the time of the next required tick.
    pub(crate) fn next_tick(&self) -> Option<Timestamp> {
        let waiting = |r: &&ShutdownRequest| {
            self.members.get(&r.member).is_some_and(|v| v.ending.is_none() && !v.stuck)
        };
        let deadlines = self.open.values().filter(waiting).map(|r| r.deadline_at);
        let stop = match self.phase {
            Phase::Stopping { due, force: false, .. } => due,
            _ => None,
        };
        let results = self.results.as_ref().map(|(at, _)| *at);
        let results = results.filter(|at| !staff::awaits_runs(self, *at));
        deadlines
            .chain(staff::next_start(self))
            .chain(health::next_silence(self))
            .chain(followup::next_reminder(self))
            .chain(idle_check::next_idle_check(self))
            .chain(native_state::next_correction(self))
            .chain(hang::next_check(self))
            .chain(limit::next_limit_step(self))
            .chain(offer::next_offer(self))
            .chain(results)
            .chain(stop)
            .chain(self.returning.values().copied())
            .chain(time_limit::next_limit(self))
            .min()
    }
}

/// Applies an event to the state and returns the effects. After the end of the lead's work only
/// hooks still react; all else is left to the next lead.
pub(crate) fn react(state: &mut State, event: Event, now: Timestamp) -> Vec<Effect> {
    let mut effects = Vec::new();
    if state.end().is_some() {
        // The user's hooks still run for events up to the end.
        if let Event::Journal(events) = event {
            hooks::handle_journal(state, events, &mut effects);
        }
        return effects;
    }
    match event {
        Event::Mail(mail) => {
            followup::handle_mail(state, &mail, now, &mut effects);
            offer::handle_mail(state, &mail);
            mail::read_mail(state, mail, now, &mut effects);
            shutdown::pass_time(state, now, &mut effects);
        }
        Event::Roster(listed) => members::handle_roster(state, &listed, now, &mut effects),
        Event::Members(records) => {
            members::handle_members(state, &records, now, &mut effects);
            budget::handle_members(state, &records, &mut effects);
        }
        Event::Requests(requests) => shutdown::handle_requests(state, requests, now, &mut effects),
        Event::Board(board) => {
            followup::handle_board(state, &board, now, &mut effects);
            handle_board(state, board, now, &mut effects);
        }
        Event::Settings { before, now: new } => settings::handle_settings(state, &before, *new),
        Event::Answers(answers) => questions::handle_answers(state, &answers, &mut effects),
        Event::Exited(record) => members::handle_exit(state, &record, &mut effects),
        Event::RunsStopped(ended) => members::handle_stopped(state, ended, now, &mut effects),
        Event::Started { kind, names, failures } => {
            staff::handle_started(state, kind, &names, failures, now, &mut effects);
        }
        Event::Stop { force } => shutdown::stop(state, LeadEnd::Stopped, force, now, &mut effects),
        Event::End(end) => state.phase = Phase::Done(end),
        Event::SignsOfLife(signs) => {
            followup::handle_signs_of_life(state, &signs, now, &mut effects);
        }
        Event::Filed(open) => {
            questions::handle_filed(state, &open, &mut effects);
            followup::handle_filed(state, &open);
        }
        Event::Journal(events) => hooks::handle_journal(state, events, &mut effects),
        Event::Activity { name, incarnation, fingerprint } => {
            hang::handle_activity(state, &name, &incarnation, fingerprint, now, &mut effects);
        }
        Event::Tick => {}
    }
    state.returning.retain(|_, until| *until > now);
    staff::staff(state, now, &mut effects);
    readiness::settle(state, &mut effects);
    report(state, now, &mut effects);
    health::watch(state, now, &mut effects);
    followup::follow_up(state, now, &mut effects);
    native_state::follow_team_file(state, now, &mut effects);
    idle_check::check_idle(state, now, &mut effects);
    hang::check(state, now, &mut effects);
    limit::resume(state, now, &mut effects);
    offer::offer(state, now, &mut effects);
    time_limit::check(state, now, &mut effects);
    check_goal(state, now, &mut effects);
    effects
}

/// Journals what other programs did to tasks since the last read (TK-07).
fn handle_board(state: &mut State, board: Board, now: Timestamp, effects: &mut Vec<Effect>) {
    if let Some(before) = &state.seen {
        let changes = external_change::between(&before.board, &board);
        let unblocked = external_change::freed(&before.board, &board, &changes);
        for task in changes.iter().filter_map(|change| board.tasks.get(&change.id())) {
            let was_open = before.board.tasks.get(&task.id).is_some_and(|was| !was.state.is_over());
            if was_open
                && task.state.is_over()
                && let Some(blocker) = board.open_blockers(task).first()
            {
                let text =
                    format!("task {} was completed while it still waits for {blocker}", task.id);
                effects.push(Effect::Warn { member: None, text });
            }
        }
        effects.extend(changes.into_iter().map(Effect::JournalChange));
        if !unblocked.is_empty() {
            effects.push(Effect::NotifyUnblocked(unblocked));
        }
    }
    if state.wants_reports() {
        // A task that was retried is reported again, also if it has ended since the last look.
        state.reported.retain(|id, at| {
            let is_it = |task: &Task| at.is_none_or(|at| task.extra.ended_at == Some(at));
            board.tasks.get(id).is_none_or(|task| task.state.is_over() && is_it(task))
        });
        let reported: BTreeSet<TaskId> = state.reported.keys().copied().collect();
        let end = |id: TaskId| (id, board.tasks.get(&id).and_then(|task| task.extra.ended_at));
        state.results = results::ended(&board, &reported)
            .map(|(at, ids)| (at, ids.into_iter().map(end).collect()));
    }
    if state.leads() && state.members_seen {
        release_absent(state, &board, effects);
    }
    let seen = BoardView {
        free: board.free_for_agents().map(|task| task.id).collect(),
        can_move: board.can_move(),
        given: board.given(),
        working: board.working(),
        stale: followup::stale_tasks(&board),
        reminders: followup::task_reminders(&board),
        awaited: readiness::awaited(&board),
        limits: time_limit::limits(&board),
        board,
    };
    state.settled.clear();
    offer::handle_board(state, &seen.board, &seen.free, now);
    state.awaits_tasks &= seen.board.work().next().is_none();
    state.kinds.iter_mut().for_each(|kind| kind.handle_board(&seen.board));
    for (name, view) in &mut state.members {
        view.given = seen.given_to(name);
    }
    state.seen = Some(seen);
}

/// Requests the release of open tasks whose owners have no run: another program may have written
/// any name.
fn release_absent(state: &State, board: &Board, effects: &mut Vec<Effect>) {
    let is_open = |task: &&Task| !task.state.is_over() && task.awaited_member().is_none();
    let open = board.work().filter(is_open);
    let owners: BTreeSet<MemberName> =
        open.filter_map(|task| MemberName::existing(task.owner_name()?).ok()).collect();
    let is_absent = |name: &MemberName| {
        let has_run = state.members.keys().any(|member| member.clashes_with(name.as_str()));
        !name.is_lead() && !has_run && state.maker(name).is_none()
    };
    effects.extend(owners.into_iter().filter(is_absent).map(Effect::ReleaseAbsent));
}

/// Reports the results of tasks in one message, once no member is at work and no run of another
/// task is about to begin.
fn report(state: &mut State, now: Timestamp, effects: &mut Vec<Effect>) {
    let is_due = state.results.as_ref().is_some_and(|(at, _)| *at <= now);
    if !is_due || staff::awaits_runs(state, now) {
        return;
    }
    if let Some((_, ends)) = state.results.take() {
        effects.push(Effect::Report(ends.keys().copied().collect()));
        state.reported.extend(ends);
    }
}

/// Ends the lead's work if its goal is reached.
fn check_goal(state: &mut State, now: Timestamp, effects: &mut Vec<Effect>) {
    if let (Goal::Carry(requests), Phase::Leading) = (&state.goal, state.phase) {
        if state.requests_seen && requests.iter().all(|id| !state.open.contains_key(id)) {
            state.phase = Phase::Done(LeadEnd::Carried);
        }
        return;
    }
    if state.goal == Goal::Lead(Finish::TasksDone)
        && state.phase == Phase::Leading
        && !state.awaits_tasks
        && is_work_over(state)
    {
        shutdown::stop(state, LeadEnd::TasksOver, false, now, effects);
    }
    if let Phase::Stopping { end, .. } = state.phase
        && state.members.values().all(|v| v.stuck)
        && state.kinds.iter().all(|kind| kind.starting.is_empty())
    {
        state.phase = Phase::Done(end);
    }
}

/// Returns whether no task can be started any more, or no member is left or will be started to do
/// it.
fn is_work_over(state: &State) -> bool {
    let is_empty = state.members.is_empty() && state.returning.is_empty();
    let has_no_members = is_empty && !staff::grows(state);
    let over = !staff::has_runs(state);
    over && state.members_seen
        && state.seen.as_ref().is_some_and(|seen| !seen.can_move || has_no_members)
}

#[cfg(test)]
mod tests;
