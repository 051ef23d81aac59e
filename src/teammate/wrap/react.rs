//! The wrapper's step: a pure function of its state, an event and the time.

use super::super::event::{MemberEvent, Requests};
use super::super::outbox::Activity;
use super::super::react::mail::accept;
use super::super::state::{Leaving, follow_clock, is_ended};
use super::super::words::{self, AgentRole};
use super::dialog::{AnswerStage, FiledDialog};
use super::effect::Effect;
use super::event::Event;
use super::state::{
    APPEAR_MS, BELIEF_MS, DeliveryStep, ForwardedRequest, HELD_MS, OBSERVE_MS, PendingDelivery,
    RETRY_MS, ScreenLimit, ScreenSnapshot, State, TYPING_MS,
};
use super::{ask, deliver, lead, shutdown_prompt, urgent};
use model::id::LEAD;
use model::mail::envelope::Envelope;
use model::mail::protocol::Message;
use model::mail::protocol::news::is_for_agent_lead;
use model::members::rate_limit;
use model::members::rate_limit::LimitHit;
use model::text;
use model::time::Timestamp;
use profile::{ScreenFinding, ScreenState, ShutdownPolicy};

/// Time in milliseconds for the program to exit, by its own keys and by signals.
const LEAVE_MS: u64 = 10_000;

impl State {
    /// The time of the next `Tick`; none while no deadline is pending.
    pub(super) fn next_tick(&self, now: Timestamp) -> Option<Timestamp> {
        let mut times: Vec<Timestamp> = self.leaving.iter().map(|leaving| leaving.by).collect();
        times.extend(self.outbox.pause_until);
        times.extend(self.rest_until.filter(|_| !self.waiting.is_empty()));
        let limited = self.screen.as_ref().and_then(|s| s.limited_until(self.outbox.refusals));
        times.extend(limited.filter(|_| !self.waiting.is_empty()));
        times.extend(
            self.typed_at.filter(|_| !self.waiting.is_empty()).map(|at| at.plus_ms(TYPING_MS)),
        );
        let spans = |from: Timestamp, spans: &[u64]| {
            spans.iter().map(|ms| from.plus_ms(*ms)).collect::<Vec<_>>()
        };
        times.extend(
            self.screen
                .iter()
                .flat_map(|screen| spans(screen.since, &[BELIEF_MS, self.paste.settle_ms])),
        );
        let held = self.screen.iter().filter(|screen| screen.obstacle().is_some());
        times.extend(held.map(|screen| screen.since.plus_ms(HELD_MS)));
        times.extend(ask::next_times(self));
        let turn = [self.paste.settle_ms, RETRY_MS, APPEAR_MS, OBSERVE_MS];
        times.extend(self.turn.iter().flat_map(|t| spans(t.at, &turn)));
        if let (Some(_), Some(screen)) = (&self.turn, &self.screen) {
            times.extend(spans(screen.since, &[RETRY_MS, OBSERVE_MS]));
        }
        times.into_iter().filter(|at| *at > now).min()
    }
}

/// Applies an event to the state and returns the effects to execute.
pub(super) fn react(state: &mut State, event: Event, now: Timestamp) -> Vec<Effect> {
    shift_times(state, now);
    match event {
        Event::Judged { finding, shown } => update_screen(state, finding, shown),
        Event::PersonTyped => state.typed_at = Some(now),
        Event::Member(MemberEvent::Mail { mail, requests }) => {
            state.outbox.mail_due = false;
            read(state, mail, &requests);
        }
        Event::Member(MemberEvent::Requests(requests)) => {
            state.pending.retain(|request| !is_ended(request, &requests));
            shutdown_prompt::update(state, &requests);
        }
        Event::Staged(result) => deliver::handle_staged(state, result),
        Event::Answered(keyed) => ask::handle_answered(state, keyed),
        Event::Interrupted(keyed) => urgent::handle_interrupted(state, keyed),
        Event::Ended(code) => state.end = Some(state.leaving.map_or(code, |leaving| leaving.code)),
        Event::Member(MemberEvent::Over(_)) => match state.role {
            AgentRole::Teammate => leave(state, 0),
            AgentRole::Lead => lead::detach(state),
        },
        Event::Member(event) => {
            state.effects.extend(state.outbox.handle(event, now).map(Effect::Member));
        }
        Event::Signal(signal) => leave(state, signal.exit_code()),
        Event::Tick => {}
    }
    advance(state);
    std::mem::take(&mut state.effects)
}

/// Shifts the times of this process if the clock was set back.
fn shift_times(state: &mut State, now: Timestamp) {
    let answered = match &mut state.dialogs.request {
        Some(FiledDialog { stage: AnswerStage::Typed(at), .. }) => Some(at),
        Some(_) | None => None,
    };
    let times = [
        state.screen.as_mut().map(|screen| &mut screen.since),
        state.typed_at.as_mut(),
        state.turn.as_mut().map(|turn| &mut turn.at),
        state.rest_until.as_mut(),
        state.outbox.pause_until.as_mut(),
        state.leaving.as_mut().map(|leaving| &mut leaving.by),
        Some(&mut state.dialogs.since),
        answered,
    ];
    follow_clock(&mut state.now, now, times.into_iter().flatten());
}

fn update_screen(state: &mut State, finding: ScreenFinding, shown: bool) {
    // Ignores rule and evidence: a spinner's text changes all the time without a change of state.
    let same = |old: &ScreenSnapshot| {
        old.finding.state == finding.state && old.finding.composer == finding.composer
    };
    let since = state.screen.as_ref().filter(|old| same(old)).map_or(state.now, |old| old.since);
    ask::update_dialog(state, &finding);
    let before = state.screen.take().and_then(|screen| screen.limit);
    let limit = limit_on(&finding, before, state);
    state.screen = Some(ScreenSnapshot { finding, shown, since, limit });
}

/// Returns the usage limit of a screen, given that of the screen before. A screen that is not
/// recognised, for example while it is redrawn, keeps it.
fn limit_on(
    finding: &ScreenFinding,
    before: Option<ScreenLimit>,
    state: &State,
) -> Option<ScreenLimit> {
    match finding.state {
        ScreenState::Ready
        | ScreenState::Idle
        | ScreenState::Working
        | ScreenState::Retrying
        | ScreenState::Failed { .. } => None,
        ScreenState::Blocked(_)
        | ScreenState::Dialog(_)
        | ScreenState::NeedsLogin
        | ScreenState::Unknown => before,
        ScreenState::Limited => {
            before.filter(|before| before.until == finding.until).or_else(|| {
                let until = finding.until.clone();
                let parse = |words: &String| rate_limit::parse_until(words, state.now, &state.zone);
                let hit = LimitHit {
                    said: finding.evidence.clone(),
                    until: until.as_ref().and_then(parse),
                };
                Some(ScreenLimit { hit, until, since: state.now })
            })
        }
    }
}

/// Sorts the mail: handles shutdown requests and answers to dialogs, queues messages for the
/// program, and marks the rest as read.
fn read(state: &mut State, mail: Vec<Envelope>, requests: &Requests) {
    let mut done = Vec::new();
    deliver::keep_unread(state, |id| mail.iter().any(|e| e.msg_id == *id && !e.read));
    for envelope in mail.into_iter().filter(|envelope| !envelope.read) {
        let known = state.waiting.iter().any(|waiting| waiting.msg_id == envelope.msg_id);
        let seen = [&state.unseen, &state.announced];
        if known || seen.into_iter().any(|seen| seen.contains(&envelope.msg_id)) {
            continue;
        }
        if state.role == AgentRole::Lead && !state.handled.contains(&envelope.msg_id) {
            // The lead's loop marks all other messages as read.
            state.waiting.extend(is_for_agent_lead(&envelope).then(|| words::for_lead(envelope)));
        } else if state.handled.contains(&envelope.msg_id)
            || !is_for_program(state, &envelope, requests)
        {
            state.handled.insert(envelope.msg_id.clone());
            done.push(envelope.msg_id);
        } else {
            state.waiting.push(shutdown_prompt::in_words(envelope));
        }
    }
    if !done.is_empty() {
        state.acknowledge(done);
    }
}

fn is_for_program(state: &mut State, envelope: &Envelope, requests: &Requests) -> bool {
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
            return !ask::handle_answer(state, &answer.request_id, &answer.verdict);
        }
        Message::PermissionResponse(_) => return true,
        Message::ShutdownRequest(asked) => {
            let (me, honoured) = (&state.me, &mut state.honoured);
            match accept(me, honoured, &envelope.from, asked, requests) {
                Ok(request) if state.shutdown == ShutdownPolicy::Ask => {
                    let msg_id = envelope.msg_id.clone();
                    state.forwarded.push(ForwardedRequest { request, msg_id });
                    return true;
                }
                Ok(request) => state.pending.push(request),
                Err(text) => state.warn(text),
            }
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
            state.warn(format!(
                "ignored a {} from {from}: this program cannot handle it",
                message.kind()
            ));
        }
    }
    false
}

fn leave(state: &mut State, code: i32) {
    if state.leaving.is_none() {
        state.leaving = Some(Leaving { code, by: state.now.plus_ms(LEAVE_MS) });
        state.effects.push(Effect::End { keys: false });
    }
}

/// Derives the next effects from the current state.
fn advance(state: &mut State) {
    if let Some(leaving) = state.leaving {
        if leaving.by <= state.now {
            state.end.get_or_insert(leaving.code);
        }
        return;
    }
    if state.end.is_some() || state.teamless {
        return;
    }
    unlock_for_a_person(state);
    deliver::deliver(state);
    if state.role == AgentRole::Teammate {
        ask::advance(state);
        urgent::advance(state);
        report_activity(state);
        answer_requests(state);
    }
    if state.agreed && state.outbox.is_empty(state.now) {
        state.leaving = Some(Leaving { code: 0, by: state.now.plus_ms(LEAVE_MS) });
        // Anywhere else the keys would answer whatever is on the screen (PM-01).
        let keys = state.screen.as_ref().is_some_and(ScreenSnapshot::is_free);
        state.effects.push(Effect::End { keys });
        return;
    }
    state.effects.extend(state.outbox.next(state.now).map(Effect::Member));
}

/// Releases the keyboard when a dialog opens over a typed text, since a person has to answer it.
fn unlock_for_a_person(state: &mut State) {
    let blocked = state
        .screen
        .as_ref()
        .and_then(|screen| screen.activity(state.now, &state.zone))
        .filter(|activity| matches!(activity, Activity::Blocked(_)));
    let typed = |step| matches!(step, DeliveryStep::Staged | DeliveryStep::Submitted(_));
    if blocked.is_some() && state.turn.as_ref().is_some_and(|turn| typed(turn.step)) {
        deliver::stick(state, "a dialog opened");
    }
}

/// Queues reports of a screen state that has lasted long enough. The lead is notified of
/// transitions to idle (MSG-12), and of mail that waits (MSG-21).
fn report_activity(state: &mut State) {
    let Some(screen) = &state.screen else { return };
    let lasted = state.now.since(screen.since);
    if lasted < BELIEF_MS {
        return;
    }
    let waits = state.turn.is_none() && !state.waiting.is_empty();
    let held = screen.obstacle().filter(|_| waits && lasted >= HELD_MS);
    let undelivered = state.undelivered.clone().or(held).map(Activity::Undelivered);
    let activity = match screen.activity(state.now, &state.zone) {
        // Before its start is accepted, a program may still have to draw its screen.
        None if !state.outbox.accepted || lasted < HELD_MS => return,
        None => undelivered.unwrap_or(Activity::Unrecognised),
        Some(Activity::Idle) => undelivered.unwrap_or(Activity::Idle),
        Some(activity) => activity,
    };
    state.outbox.report(&state.me, activity, state.now);
}

/// Agrees to shutdown requests once the program waits for input: its turn may end before the
/// deadline, at which the lead ends a busy one.
fn answer_requests(state: &mut State) {
    let Some(screen) = &state.screen else { return };
    let is_stuck = |turn: &PendingDelivery| turn.step == DeliveryStep::Stuck;
    let is_idle = screen.is_free()
        && state.now.since(screen.since) >= BELIEF_MS
        && state.turn.as_ref().is_none_or(is_stuck);
    if is_idle {
        state.agreed |= state.outbox.agree(&state.me, &mut state.pending, state.now);
    }
}
