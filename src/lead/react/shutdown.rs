//! Shutdown requests: asks members, handles their replies, watches the deadlines and stops the
//! runs (SD-01).

use super::{questions, staff};
use crate::effect::Effect;
use crate::state::{LeadEnd, PendingStop, Phase, State, TrackedMember};
use model::decisions::request::{ShutdownOutcome, ShutdownRequest, WorkLeft};
use model::id::{MemberName, RequestId};
use model::members::lifecycle::{Cause, MemberState};
use model::time::Timestamp;

const AGREED: &str = "as agreed";
const NO_REASON: &str = "no reason given";

pub(super) fn handle_requests(
    state: &mut State,
    requests: Vec<ShutdownRequest>,
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
        carry(state, &request, effects);
    }
}

/// Continues the open requests after a change of the members.
pub(super) fn carry_open(state: &mut State, effects: &mut Vec<Effect>) {
    for request in state.open.values().cloned().collect::<Vec<_>>() {
        carry(state, &request, effects);
    }
}

/// Takes the next step of an open request.
fn carry(state: &mut State, request: &ShutdownRequest, effects: &mut Vec<Effect>) {
    let view =
        state.members.get_mut(&request.member).filter(|v| v.incarnation == request.incarnation);
    let Some(view) = view else {
        if state.members_seen {
            effects.push(resolve(&request.id, ShutdownOutcome::Gone, None));
            state.open.remove(&request.id);
        }
        return;
    };
    if view.ending.is_some() || view.stuck {
        return;
    }
    let end = if request.agreed_at.is_some() {
        // An earlier lead recorded the consent and died before stopping the run.
        Some((true, Cause::Released, AGREED, ShutdownOutcome::Closed))
    } else if request.force {
        Some((false, Cause::Forced, "by force", ShutdownOutcome::Forced))
    } else if !view.reads_mail {
        // It reads no mail, so it cannot be asked for consent.
        Some((false, Cause::Released, "on request", ShutdownOutcome::Closed))
    } else {
        None
    };
    if let Some((agreed, cause, reason, outcome)) = end {
        let ending = ending(cause, reason, Some((request.id.clone(), outcome)));
        begin(state, &request.member, agreed, ending, effects);
    } else if view.state.is_up() && view.state != MemberState::ShutdownRequested {
        view.state = MemberState::ShutdownRequested;
        let (name, incarnation) = (request.member.clone(), request.incarnation.clone());
        let reason = request.reason.clone();
        effects.push(Effect::MoveOn { name, incarnation, cause: Cause::Asked, reason });
    }
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
    agreed: bool,
    ending: PendingStop,
    effects: &mut Vec<Effect>,
) {
    let Some(view) = state.members.get_mut(name) else { return };
    view.ending = Some(ending);
    effects.push(Effect::StopRun {
        name: name.clone(),
        incarnation: view.incarnation.clone(),
        agreed,
    });
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
    begin(state, &request.member, true, ending(Cause::Released, AGREED, with), effects);
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
    let (name, incarnation) = (request.member.clone(), request.incarnation.clone());
    effects.push(Effect::MoveOn {
        name,
        incarnation,
        cause: Cause::Refused,
        reason: reason.clone(),
    });
    effects.push(resolve(&request.id, ShutdownOutcome::Rejected, reason));
    if let Some(view) = state.members.get_mut(&request.member) {
        view.state = MemberState::Working;
        // A rejection from before the stop does not exempt the member from being asked when the
        // team stops.
        view.refused = matches!(state.phase, Phase::Stopping { .. });
    }
    questions::wait_on(state, &request.member, effects);
}

/// Stops members whose requests have passed their deadline, without consent (SD-01). `now` is
/// the time at which the mailbox was read: an answer that it held at the deadline counts, however
/// late the lead runs (SD-15).
pub(super) fn pass_time(state: &mut State, now: Timestamp, effects: &mut Vec<Effect>) {
    let due: Vec<ShutdownRequest> =
        state.open.values().filter(|r| r.deadline_at <= now).cloned().collect();
    for request in due {
        let waits = |v: &&TrackedMember| {
            v.incarnation == request.incarnation && v.ending.is_none() && !v.stuck
        };
        if state.members.get(&request.member).filter(waits).is_some() {
            let with = Some((request.id.clone(), ShutdownOutcome::TimedOut));
            begin(
                state,
                &request.member,
                false,
                ending(Cause::Forced, "did not answer in time", with),
                effects,
            );
        }
    }
}

pub(super) fn stop(state: &mut State, end: LeadEnd, force: bool, effects: &mut Vec<Effect>) {
    let (end, force) = match state.phase {
        Phase::Done(_) => return,
        Phase::Leading => (end, force),
        Phase::Stopping { end: earlier, force: was } => (earlier, force || was),
    };
    state.phase = Phase::Stopping { end, force };
    let reason = match end {
        LeadEnd::TasksOver => "all tasks are done",
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
    if !names.is_empty() {
        effects.push(Effect::AskShutdown { names, reason: reason.to_owned(), force });
    }
}
