//! The wrapper's step: a pure function of its state, an event and the time.

use super::super::effect::OutboundOp;
use super::super::event::{Failure, Requests};
use super::super::react::mail as worker_mail;
use super::super::state::{Me, Pending};
use super::ask;
use super::deliver;
use super::effect::Effect;
use super::event::Event;
use super::lead;
use super::part::{self, Put};
use super::state::{
    Activity, BELIEF_MS, LONG_PAUSE_MS, Leaving, ScreenSnapshot, Seat, State, Step,
};
use super::urgent;
use crate::model::envelope::Envelope;
use crate::model::id::LEAD;
use crate::model::lifecycle::{Cause, MemberState};
use crate::model::protocol::{
    IdleNotification, Message, ShutdownApproved, ShutdownRejected, ShutdownRequestBody,
    ShutdownStatus,
};
use crate::model::text;
use crate::model::time::Timestamp;
use crate::profile::{Finding, ShutdownPolicy};

/// Delay before a retry, in milliseconds.
const PAUSE_MS: u64 = 1000;
/// Time in milliseconds for the program to exit, by its own keys and by signals.
const LEAVE_MS: u64 = 10_000;

/// Applies an event to the state and returns the effects to execute.
pub(crate) fn react(state: &mut State, event: Event, now: Timestamp) -> Vec<Effect> {
    let mut effects = Vec::new();
    match event {
        Event::Seen { finding, shown } => see(state, finding, shown, now),
        Event::Hand => state.hand_at = Some(now),
        Event::Mail { mail, requests } => {
            state.mail_due = false;
            read(state, mail, &requests, now, &mut effects);
        }
        Event::NoMail(failure) => {
            complain(state, &failure, now, &mut effects);
            state.mail_due = true;
            state.pause_until =
                Some(now.plus_ms(if failure.lasting { LONG_PAUSE_MS } else { PAUSE_MS }));
        }
        Event::NotMarked(failure) => {
            state.mail_due |= !failure.lasting;
            complain(state, &failure, now, &mut effects);
        }
        Event::Requests(requests) => {
            state.pending.retain(|pending| !pending.is_ended(&requests));
            part::see(state, &requests);
        }
        Event::Accepted(recorded) => accept(state, recorded),
        Event::Staged(result) => deliver::see_staged(state, result, now, &mut effects),
        Event::Answered(keyed) => ask::see_answered(state, keyed, now),
        Event::Interrupted(keyed) => urgent::see_interrupted(state, keyed, now, &mut effects),
        Event::Done(result) => see_done(state, result, now, &mut effects),
        Event::Ended(code) => state.end = Some(state.leaving.map_or(code, |leaving| leaving.code)),
        Event::Over => match state.seat {
            Seat::Teammate => leave(state, 0, now, &mut effects),
            Seat::Lead => lead::let_go(state, &mut effects),
        },
        Event::Signal(signal) => leave(state, signal.exit_code(), now, &mut effects),
        Event::Tick => {}
    }
    settle(state, now, &mut effects);
    effects
}

fn see(state: &mut State, finding: Finding, shown: bool, now: Timestamp) {
    // Ignores rule and evidence: a spinner's text changes all the time without a change of state.
    let same = |old: &ScreenSnapshot| {
        old.finding.state == finding.state && old.finding.composer == finding.composer
    };
    let since = state.sight.as_ref().filter(|old| same(old)).map_or(now, |old| old.since);
    ask::see(state, &finding, now);
    state.sight = Some(ScreenSnapshot { finding, shown, since });
}

/// Adopts the recorded state as the last one reported. The spawner, and the process that handles a
/// declined shutdown, write the record too.
fn accept(state: &mut State, recorded: MemberState) {
    let first = !std::mem::replace(&mut state.accepted, true);
    if !(first || state.outbound.is_empty()) || matches!(state.told, Some(Activity::Blocked(_))) {
        return;
    }
    match recorded {
        MemberState::Working => state.told = Some(Activity::Working),
        MemberState::Idle => state.told = Some(Activity::Idle),
        MemberState::Pending
        | MemberState::Starting
        | MemberState::AwaitingPlan
        | MemberState::AwaitingPermission
        | MemberState::ShutdownRequested
        | MemberState::Completed
        | MemberState::Failed
        | MemberState::Killed
        | MemberState::Disappeared => {}
    }
}

/// Journals a failure once, and delays the next attempt if a retry can help. The pane belongs to
/// the program, so nothing is printed.
fn complain(state: &mut State, failure: &Failure, now: Timestamp, effects: &mut Vec<Effect>) {
    if !failure.lasting {
        state.pause_until = Some(now.plus_ms(PAUSE_MS));
    }
    if state.complaint.as_ref() != Some(&failure.text) {
        state.complaint = Some(failure.text.clone());
        effects.push(Effect::Warn(failure.text.clone()));
    }
}

fn see_done(
    state: &mut State,
    result: Result<(), Failure>,
    now: Timestamp,
    effects: &mut Vec<Effect>,
) {
    state.asked = false;
    match result {
        Ok(()) => {
            state.complaint = None;
            state.outbound.pop_front();
        }
        Err(failure) => {
            complain(state, &failure, now, effects);
            if failure.lasting {
                state.outbound.pop_front();
            }
        }
    }
}

/// Sorts the mail: handles shutdown requests and answers to dialogs, queues messages for the
/// program, and marks the rest as read.
fn read(
    state: &mut State,
    mail: Vec<Envelope>,
    requests: &Requests,
    now: Timestamp,
    effects: &mut Vec<Effect>,
) {
    let mut done = Vec::new();
    deliver::keep_unread(state, |id| mail.iter().any(|e| e.msg_id == *id && !e.read));
    for envelope in mail.into_iter().filter(|envelope| !envelope.read) {
        let known = state.waiting.iter().any(|waiting| waiting.msg_id == envelope.msg_id);
        if known || state.unseen.contains(&envelope.msg_id) {
            continue;
        }
        if state.seat == Seat::Lead && !state.handled.contains(&envelope.msg_id) {
            // The lead's loop marks all other messages as read.
            state.waiting.extend(lead::is_for_program(&envelope).then(|| lead::in_words(envelope)));
        } else if state.handled.contains(&envelope.msg_id)
            || !is_for_program(state, &envelope, requests, now, effects)
        {
            state.handled.insert(envelope.msg_id.clone());
            done.push(envelope.msg_id);
        } else {
            state.waiting.push(part::in_words(envelope));
        }
    }
    if !done.is_empty() {
        effects.push(Effect::Acknowledge(done));
    }
}

fn is_for_program(
    state: &mut State,
    envelope: &Envelope,
    requests: &Requests,
    now: Timestamp,
    effects: &mut Vec<Effect>,
) -> bool {
    let message = Message::parse(&envelope.text);
    match &message {
        Message::Text(_)
        | Message::Unknown { .. }
        | Message::Malformed { .. }
        | Message::TaskAssignment(_)
        | Message::TaskCompleted(_)
        | Message::TeammateTerminated(_)
        | Message::PlanApprovalResponse(_)
        | Message::SandboxPermissionResponse(_) => return true,
        // Only the lead may answer (SEC-04).
        Message::PermissionResponse(answer) if envelope.from == LEAD => {
            return !ask::hear(state, &answer.request_id, &answer.verdict);
        }
        Message::PermissionResponse(_) => return true,
        Message::ShutdownRequest(asked) => {
            return hear(state, envelope, asked, requests, now, effects);
        }
        Message::ShutdownApproved(_)
        | Message::ShutdownRejected(_)
        | Message::PlanApprovalRequest(_)
        | Message::PermissionRequest(_)
        | Message::SandboxPermissionRequest(_)
        | Message::IdleNotification(_)
        | Message::TeamPermissionUpdate(_)
        | Message::ModeSetRequest(_) => {
            let from = text::short(&envelope.from, 60);
            effects.push(Effect::Warn(format!(
                "ignored a {} from {from}: wrapped programs do not handle it",
                message.kind()
            )));
        }
    }
    false
}

/// Accepts a valid shutdown request. Returns whether the program is to be asked.
fn hear(
    state: &mut State,
    envelope: &Envelope,
    asked: &ShutdownRequestBody,
    requests: &Requests,
    now: Timestamp,
    effects: &mut Vec<Effect>,
) -> bool {
    match worker_mail::valid(&state.me, &state.honoured, &envelope.from, asked, requests) {
        Ok(request) => {
            state.honoured.insert(request.id.clone());
            let pending = worker_mail::pending(request, now);
            match state.shutdown {
                ShutdownPolicy::Auto => state.pending.push(pending),
                ShutdownPolicy::Ask => {
                    state.put.push(Put { pending, msg_id: envelope.msg_id.clone() });
                    return true;
                }
            }
        }
        Err(problem) => {
            let id = text::short(&asked.request_id, 120);
            effects.push(Effect::Warn(format!("ignored shutdown request `{id}`: {problem}")));
        }
    }
    false
}

fn leave(state: &mut State, code: i32, now: Timestamp, effects: &mut Vec<Effect>) {
    if state.leaving.is_none() {
        state.leaving = Some(Leaving { code, by: now.plus_ms(LEAVE_MS) });
        effects.push(Effect::End { keys: false });
    }
}

/// Derives the next effects from the current state.
fn settle(state: &mut State, now: Timestamp, effects: &mut Vec<Effect>) {
    if let Some(leaving) = state.leaving {
        if leaving.by <= now {
            state.end.get_or_insert(leaving.code);
        }
        return;
    }
    if state.end.is_some() || state.teamless {
        return;
    }
    unlock_for_a_person(state, now, effects);
    deliver::deliver(state, now, effects);
    if state.seat == Seat::Teammate {
        ask::attend(state, now, effects);
        urgent::attend(state, now, effects);
        tell(state, now);
        answer_requests(state, now);
        part::attend(state, now, effects);
    }
    let pauses = |until: Timestamp| now < until && until.since(now) <= LONG_PAUSE_MS;
    if state.asked || state.pause_until.is_some_and(pauses) {
        return;
    }
    state.pause_until = None;
    if let Some(op) = state.outbound.front() {
        state.asked = true;
        effects.push(Effect::Do(op.clone()));
    } else if state.agreed {
        state.leaving = Some(Leaving { code: 0, by: now.plus_ms(LEAVE_MS) });
        // Anywhere else the keys would answer whatever is on the screen (PM-01).
        let keys = state.sight.as_ref().is_some_and(ScreenSnapshot::is_free);
        effects.push(Effect::End { keys });
    } else if state.mail_due {
        state.mail_due = false;
        effects.push(Effect::LookAtMail);
    }
}

/// Releases the keyboard when a dialog opens over a typed text, since a person has to answer it.
fn unlock_for_a_person(state: &mut State, now: Timestamp, effects: &mut Vec<Effect>) {
    let blocked = state
        .sight
        .as_ref()
        .and_then(ScreenSnapshot::life)
        .filter(|life| matches!(life, Activity::Blocked(_)));
    let typed = |step| matches!(step, Step::Staged | Step::Submitted(_));
    if blocked.is_some() && state.turn.as_ref().is_some_and(|turn| typed(turn.step)) {
        deliver::stick(state, "a dialog opened", now, effects);
    }
}

/// Queues reports of a screen state that has lasted long enough. The lead is notified of
/// transitions to idle only (MSG-12).
fn tell(state: &mut State, now: Timestamp) {
    let Some(sight) = &state.sight else { return };
    if now.since(sight.since) < BELIEF_MS {
        return;
    }
    let stuck = state
        .undelivered
        .as_ref()
        .map(|why| Activity::Blocked(format!("blocked: undelivered: {why}")));
    let life =
        sight.life().map(|life| if life == Activity::Idle { stuck.unwrap_or(life) } else { life });
    let Some(life) = life else { return };
    let is_new = match (&state.told, &life) {
        // The evidence beside a dialog may change while it is open.
        (Some(Activity::Blocked(before)), Activity::Blocked(now)) => head(before) != head(now),
        (before, now) => before.as_ref() != Some(now),
    };
    if is_new && (state.accepted || !state.up) {
        speak(state, &life, now);
        state.told = Some(life);
    }
    if !std::mem::replace(&mut state.up, true) {
        state.outbound.push_back(OutboundOp::Hello);
    }
}

/// Returns the part of a reason before the rule, for example `blocked: dialog:trust`.
fn head(reason: &str) -> &str {
    reason.rsplit_once(" (rule ").map_or(reason, |(head, _)| head)
}

fn speak(state: &mut State, life: &Activity, now: Timestamp) {
    let was = state.told.clone();
    if matches!(was, Some(Activity::Blocked(_))) && !matches!(life, Activity::Blocked(_)) {
        state.outbound.push_back(OutboundOp::Remark(None));
    }
    match life {
        Activity::Blocked(reason) => {
            state.outbound.push_back(OutboundOp::Remark(Some(reason.clone())))
        }
        // Until acceptance the spawner changes the state.
        Activity::Idle | Activity::Working if !state.accepted => {}
        Activity::Working => state.outbound.push_back(OutboundOp::MoveOn(Cause::Work, None)),
        Activity::Idle => {
            state.outbound.push_back(OutboundOp::MoveOn(Cause::Rest, None));
            let notice = IdleNotification {
                from: Some(state.me.name.to_string()),
                timestamp: Some(now.iso()),
                idle_reason: Some("available".to_owned()),
                ..IdleNotification::default()
            };
            if was == Some(Activity::Working) {
                state
                    .outbound
                    .push_back(OutboundOp::Say(Box::new(Message::IdleNotification(notice))));
            }
        }
    }
}

/// Answers shutdown requests. An idle program agrees; a busy one waits until shortly before the
/// deadline, since its turn may end in time, and then declines.
fn answer_requests(state: &mut State, now: Timestamp) {
    let Some(sight) = state.sight.as_ref().filter(|_| !state.pending.is_empty()) else { return };
    let still = now.since(sight.since) >= BELIEF_MS;
    let idle =
        sight.is_free() && still && state.turn.as_ref().is_none_or(|turn| turn.step == Step::Stuck);
    let excuse = excuse(sight);
    let (due, open): (Vec<Pending>, Vec<Pending>) =
        std::mem::take(&mut state.pending).into_iter().partition(|p| idle || p.answer_by <= now);
    state.pending = open;
    for pending in due {
        let answer = if idle {
            state.agreed = true;
            Message::ShutdownApproved(ShutdownApproved {
                request_id: pending.request.id.to_string(),
                from: Some(state.me.name.to_string()),
                timestamp: Some(now.iso()),
                pane_id: state.me.pane.clone(),
                backend_type: Some(state.me.backend.to_owned()),
                status: Some(ShutdownStatus::Clean),
                pending_work: Vec::new(),
                artifacts_committed: None,
            })
        } else {
            rejection(&state.me, &pending, excuse.clone(), now)
        };
        state.outbound.push_back(OutboundOp::Say(Box::new(answer)));
    }
}

/// Returns the reason for declining a shutdown.
pub(super) fn excuse(sight: &ScreenSnapshot) -> String {
    match sight.life() {
        Some(Activity::Blocked(reason)) => reason,
        Some(Activity::Working) => format!("working: {}", sight.finding.evidence),
        Some(Activity::Idle) => "its composer contains text".to_owned(),
        None => "its screen does not show what it is doing".to_owned(),
    }
}

pub(super) fn rejection(me: &Me, pending: &Pending, reason: String, now: Timestamp) -> Message {
    Message::ShutdownRejected(ShutdownRejected {
        request_id: pending.request.id.to_string(),
        from: Some(me.name.to_string()),
        reason: Some(reason),
        timestamp: Some(now.iso()),
    })
}
