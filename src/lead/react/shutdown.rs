//! Shutdown requests: asks members, handles their replies, watches the deadlines and stops the
//! runs (SD-01).

use std::time::Duration;

use super::{questions, staff};
use crate::effect::{Effect, STOP_DEADLINE_S};
use crate::state::{LeadEnd, PendingStop, Phase, State, TrackedMember};
use model::decisions::request::{ShutdownOutcome, ShutdownRequest, WorkLeft};
use model::id::{MemberName, RequestId};
use model::members::lifecycle::{Cause, MemberState};
use model::time::Timestamp;
use ops::hosts::stop_mode::StopMode;

const AGREED: &str = "as agreed";
/// Time in ms to ask all members, each of which then has its whole deadline.
const ASKED_MS: u64 = 500;
const NO_REASON: &str = "no reason given";

pub(super) fn handle_requests(
    state: &mut State,
    requests: Vec<ShutdownRequest>,
    now: Timestamp,
    effects: &mut Vec<Effect>,
) {
    state.requests_seen = true;
    state.open.retain(|id, _| requests.iter().any(|r| r.id == *id && r.is_open()));
    let rejected = requests.iter().filter(|r| r.outcome == Some(ShutdownOutcome::Rejected));
    state.rejected = rejected.map(|r| (r.id.to_string(), r.member.clone())).collect();
    for request in requests.into_iter().filter(ShutdownRequest::is_open) {
        if state.open.insert(request.id.clone(), request.clone()).is_none() {
            staff::hold(state, &request.member);
        }
        carry(state, &request, now, effects);
    }
}

/// Continues the open requests after a change of the members.
pub(super) fn carry_open(state: &mut State, now: Timestamp, effects: &mut Vec<Effect>) {
    for request in state.open.values().cloned().collect::<Vec<_>>() {
        carry(state, &request, now, effects);
    }
}

/// Takes the next step of an open request.
fn carry(state: &mut State, request: &ShutdownRequest, now: Timestamp, effects: &mut Vec<Effect>) {
    let view =
        state.members.get_mut(&request.member).filter(|v| v.incarnation == request.incarnation);
    let Some(view) = view else {
        if state.members_seen {
            effects.push(resolve(&request.id, ShutdownOutcome::Gone, None));
            state.open.remove(&request.id);
        }
        return;
    };
    let is_forced_now = request.force && request.agreed_at.is_none();
    let goes_on = |ending: &PendingStop| !is_forced_now || ending.cause != Cause::Released;
    if view.stuck || view.ending.as_ref().is_some_and(goes_on) {
        return;
    }
    let end = if request.agreed_at.is_some() {
        // An earlier lead recorded the consent and died before stopping the run.
        Some((StopMode::Agreed, Cause::Released, AGREED, ShutdownOutcome::Closed))
    } else if request.force {
        Some((StopMode::Immediate, Cause::Forced, "by force", ShutdownOutcome::Forced))
    } else if !view.reads_mail {
        // It reads no mail, so it cannot be asked for consent.
        let mode = StopMode::Graceful(grace(request, now));
        Some((mode, Cause::Released, "on request", ShutdownOutcome::Closed))
    } else {
        None
    };
    if let Some((mode, cause, reason, outcome)) = end {
        let ending = ending(cause, reason, Some((request.id.clone(), outcome)));
        begin(state, &request.member, mode, ending, effects);
    } else if view.state.is_up() && view.state != MemberState::ShutdownRequested {
        view.state = MemberState::ShutdownRequested;
        effects.push(view.move_on(&request.member, Cause::Asked, request.reason.clone()));
    }
}

/// Returns the time that a program has after SIGTERM, which ends with the deadline of the request.
fn grace(request: &ShutdownRequest, now: Timestamp) -> Duration {
    let left = Duration::from_millis(request.deadline_at.since(now));
    left.min(Duration::from_secs(request.grace_s))
}

pub(super) fn ending(
    cause: Cause,
    reason: &str,
    request: Option<(RequestId, ShutdownOutcome)>,
) -> PendingStop {
    PendingStop { cause, reason: reason.to_owned(), request }
}

pub(super) fn begin(
    state: &mut State,
    name: &MemberName,
    mode: StopMode,
    ending: PendingStop,
    effects: &mut Vec<Effect>,
) {
    let Some(view) = state.members.get_mut(name) else { return };
    view.ending = Some(ending);
    let (name, incarnation) = (name.clone(), view.incarnation.clone());
    effects.push(Effect::StopRun { name, incarnation, mode });
}

pub(super) fn resolve(
    request: &RequestId,
    outcome: ShutdownOutcome,
    answer: Option<String>,
) -> Effect {
    Effect::Resolve { request: request.clone(), outcome, answer }
}

/// Returns the request that a reply belongs to. Only the run that was asked may reply, and only
/// once (SD-10, SD-11).
///
/// # Errors
/// Returns the text of a warning if the reply does not belong to an open request of its sender's
/// run.
pub(super) fn answered(state: &State, from: &str, id: &str) -> Result<ShutdownRequest, String> {
    let request = state.open.values().find(|r| r.id.as_str() == id);
    let request =
        request.ok_or_else(|| format!("a reply to `{id}`, which is not an open request"))?;
    if !request.member.clashes_with(from) {
        return Err(format!(
            "a reply to `{id}` from `{from}`; the request was sent to `{}`",
            request.member
        ));
    }
    match state.members.get(&request.member) {
        Some(view) if view.incarnation != request.incarnation => Err(format!(
            "a reply to `{id}`, which was sent to an earlier run of `{}`",
            request.member
        )),
        Some(view) if view.ending.is_some() => Err(format!("a second reply to `{id}`")),
        Some(_) => Ok(request.clone()),
        None => Err(format!("a reply to `{id}` from a member that has exited")),
    }
}

/// Stops a member that consents, and records the report on its work.
pub(super) fn agree(
    state: &mut State,
    request: &ShutdownRequest,
    work_left: WorkLeft,
    effects: &mut Vec<Effect>,
) {
    let with = Some((request.id.clone(), ShutdownOutcome::Closed));
    let ending = ending(Cause::Released, AGREED, with);
    begin(state, &request.member, StopMode::Agreed, ending, effects);
    effects.push(Effect::Agree { request: request.id.clone(), work_left });
}

/// Handles a rejection. One without a reason is valid, but journaled as a warning.
pub(super) fn refuse(
    state: &mut State,
    request: &ShutdownRequest,
    reason: Option<String>,
    effects: &mut Vec<Effect>,
) {
    let reason = reason.filter(|reason| !reason.trim().is_empty());
    if reason.is_none() {
        let text = format!("it rejected `{}` without a reason", request.id);
        effects.push(Effect::Warn { member: Some(request.member.clone()), text });
    }
    let reason = Some(reason.unwrap_or_else(|| NO_REASON.to_owned()));
    state.open.remove(&request.id);
    if let Some(view) = state.members.get_mut(&request.member) {
        effects.push(view.move_on(&request.member, Cause::Refused, reason.clone()));
        view.state = MemberState::Working;
        // A rejection from before the stop does not exempt the member from being asked when the
        // team stops.
        view.refused = matches!(state.phase, Phase::Stopping { .. });
    }
    effects.push(resolve(&request.id, ShutdownOutcome::Rejected, reason));
    questions::wait_on(state, &request.member, effects);
}

/// Stops members whose requests have passed their deadline, without consent (SD-01). `now` is
/// the time at which the mailbox was read: an answer that it held at the deadline counts, however
/// late the lead runs (SD-15).
pub(super) fn pass_time(state: &mut State, now: Timestamp, effects: &mut Vec<Effect>) {
    if let Phase::Stopping { end, due: Some(due), force: false } = state.phase
        && due <= now
    {
        stop(state, end, true, now, effects);
    }
    let due: Vec<ShutdownRequest> =
        state.open.values().filter(|r| r.deadline_at <= now).cloned().collect();
    for request in due {
        let waits = |v: &&TrackedMember| {
            v.incarnation == request.incarnation && v.ending.is_none() && !v.stuck
        };
        if state.members.get(&request.member).filter(waits).is_some() {
            let with = Some((request.id.clone(), ShutdownOutcome::TimedOut));
            let ending = ending(Cause::Forced, "did not answer in time", with);
            begin(state, &request.member, StopMode::Immediate, ending, effects);
        }
    }
}

/// Stops all members. If the team is to end now, those that refuse are ended at the deadline.
pub(super) fn stop(
    state: &mut State,
    end: LeadEnd,
    force: bool,
    now: Timestamp,
    effects: &mut Vec<Effect>,
) {
    let due = (end != LeadEnd::TasksOver).then(|| now.plus_ms(STOP_DEADLINE_S * 1000 + ASKED_MS));
    let (end, force, due) = match state.phase {
        Phase::Done(_) => return,
        Phase::Leading => (end, force, due),
        Phase::Stopping { end: earlier, force: was, due: by } => {
            (earlier, force || was, by.or(due))
        }
    };
    state.phase = Phase::Stopping { end, force, due };
    let reason = match end {
        LeadEnd::TasksOver => "all tasks are done",
        LeadEnd::TimedOut => "the time limit of the team has passed",
        LeadEnd::Stopped
        | LeadEnd::Carried
        | LeadEnd::Left
        | LeadEnd::Interrupted
        | LeadEnd::TeamGone => "the team is stopped",
    };
    ask_all(state, reason, force, effects);
}

pub(super) fn ask_all(state: &State, reason: &str, force: bool, effects: &mut Vec<Effect>) {
    let wants = |(name, view): &(&MemberName, &TrackedMember)| {
        let request = state.request_for(name, &view.incarnation);
        let asked = request.is_some_and(|r| r.force || !force);
        view.ending.is_none() && !view.stuck && !asked && (force || !view.refused)
    };
    let names: Vec<MemberName> =
        state.members.iter().filter(wants).map(|(name, _)| name.clone()).collect();
    effects.extend(Effect::ask(names, reason, force));
}
