//! The wrapper's step: a pure function of its state, an event and the time.

use super::super::effect::{MemberEffect, OutboundOp};
use super::super::event::{MemberEvent, Requests};
use super::super::outbox::Activity;
use super::super::react::mail as worker_mail;
use super::super::state::{Leaving, Pending, follow_clock};
use super::super::words::{self, AgentRole};
use super::ask;
use super::deliver;
use super::dialog::{AnswerStage, FiledDialog};
use super::effect::Effect;
use super::event::Event;
use super::lead;
use super::shutdown_prompt;
use super::state::{
    APPEAR_MS, BELIEF_MS, DeliveryStep, ForwardedRequest, LONG_PAUSE_MS, OBSERVE_MS, RETRY_MS,
    ScreenLimit, ScreenSnapshot, State, TYPING_MS,
};
use super::urgent;
use model::id::LEAD;
use model::mail::envelope::Envelope;
use model::mail::protocol::news::is_for_agent_lead;
use model::mail::protocol::{Message, ShutdownRequestBody};
use model::members::rate_limit;
use model::members::rate_limit::LimitHit;
use model::text;
use model::time::Timestamp;
use profile::{ScreenFinding, ScreenState, ShutdownPolicy};

/// Delay before a retry, in milliseconds.
const PAUSE_MS: u64 = 1000;
/// Time in milliseconds for the program to exit, by its own keys and by signals.
const LEAVE_MS: u64 = 10_000;

impl State {
    /// The time of the next `Tick`; none while no deadline is pending.
    pub(super) fn next_tick(&self, now: Timestamp) -> Option<Timestamp> {
        let mut times: Vec<Timestamp> = self.pending.iter().map(|p| p.answer_by).collect();
        times.extend(self.forwarded.iter().map(|forwarded| forwarded.pending.answer_by));
        times.extend(self.leaving.map(|leaving| leaving.by));
        times.extend(self.outbox.pause_until);
        times.extend(self.rest_until.filter(|_| !self.waiting.is_empty()));
        let limited = self.screen.as_ref().and_then(ScreenSnapshot::limited_until);
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
    let mut effects = Vec::new();
    shift_times(state, now);
    match event {
        Event::Judged { finding, shown } => update_screen(state, finding, shown, now),
        Event::PersonTyped => state.typed_at = Some(now),
        Event::Member(MemberEvent::Mail { mail, requests }) => {
            state.outbox.mail_due = false;
            read(state, mail, &requests, now, &mut effects);
        }
        Event::Member(MemberEvent::NoMail(failure)) => {
            effects.extend(state.outbox.complain(&failure, now).map(Effect::Member));
            state.outbox.mail_due = true;
            state.outbox.pause_until =
                Some(now.plus_ms(if failure.lasting { LONG_PAUSE_MS } else { PAUSE_MS }));
        }
        Event::Member(MemberEvent::NotMarked(failure)) => {
            state.outbox.mail_due |= !failure.lasting;
            effects.extend(state.outbox.complain(&failure, now).map(Effect::Member));
        }
        Event::Member(MemberEvent::Requests(requests)) => {
            state.pending.retain(|pending| !pending.is_ended(&requests));
            shutdown_prompt::update(state, &requests);
        }
        Event::Member(MemberEvent::Accepted(recorded)) => state.outbox.accept(recorded),
        Event::Staged(result) => deliver::handle_staged(state, result, now, &mut effects),
        Event::Answered(keyed) => ask::handle_answered(state, keyed, now),
        Event::Interrupted(keyed) => urgent::handle_interrupted(state, keyed, now, &mut effects),
        Event::Member(MemberEvent::Done(result)) => {
            effects.extend(state.outbox.handle_done(result, now).map(Effect::Member))
        }
        Event::Ended(code) => state.end = Some(state.leaving.map_or(code, |leaving| leaving.code)),
        Event::Member(MemberEvent::Over(_)) => match state.role {
            AgentRole::Teammate => leave(state, 0, now, &mut effects),
            AgentRole::Lead => lead::detach(state, &mut effects),
        },
        Event::Signal(signal) => leave(state, signal.exit_code(), now, &mut effects),
        Event::Tick => {}
    }
    advance(state, now, &mut effects);
    effects
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

fn update_screen(state: &mut State, finding: ScreenFinding, shown: bool, now: Timestamp) {
    // Ignores rule and evidence: a spinner's text changes all the time without a change of state.
    let same = |old: &ScreenSnapshot| {
        old.finding.state == finding.state && old.finding.composer == finding.composer
    };
    let since = state.screen.as_ref().filter(|old| same(old)).map_or(now, |old| old.since);
    ask::update_dialog(state, &finding, now);
    let before = state.screen.take().and_then(|screen| screen.limit);
    let limit = limit_on(&finding, before, state, now);
    state.screen = Some(ScreenSnapshot { finding, shown, since, limit });
}

/// Returns the usage limit of a screen, given that of the screen before. A screen that is not
/// recognised, for example while it is redrawn, keeps it.
fn limit_on(
    finding: &ScreenFinding,
    before: Option<ScreenLimit>,
    state: &State,
    now: Timestamp,
) -> Option<ScreenLimit> {
    match finding.state {
        ScreenState::Ready
        | ScreenState::Idle
        | ScreenState::Working
        | ScreenState::Failed { .. } => None,
        ScreenState::Blocked(_)
        | ScreenState::Dialog(_)
        | ScreenState::NeedsLogin
        | ScreenState::Unknown => before,
        ScreenState::Limited => {
            before.filter(|before| before.until == finding.until).or_else(|| {
                let until = finding.until.clone();
                let parse = |words: &String| rate_limit::parse_until(words, now, &state.zone);
                let hit = LimitHit {
                    said: finding.evidence.clone(),
                    until: until.as_ref().and_then(parse),
                };
                Some(ScreenLimit { hit, until, since: now })
            })
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
        let seen = [&state.unseen, &state.announced];
        if known || seen.into_iter().any(|seen| seen.contains(&envelope.msg_id)) {
            continue;
        }
        if state.role == AgentRole::Lead && !state.handled.contains(&envelope.msg_id) {
            // The lead's loop marks all other messages as read.
            state.waiting.extend(is_for_agent_lead(&envelope).then(|| words::for_lead(envelope)));
        } else if state.handled.contains(&envelope.msg_id)
            || !is_for_program(state, &envelope, requests, now, effects)
        {
            state.handled.insert(envelope.msg_id.clone());
            done.push(envelope.msg_id);
        } else {
            state.waiting.push(shutdown_prompt::in_words(envelope));
        }
    }
    if !done.is_empty() {
        effects.push(Effect::Member(MemberEffect::Acknowledge(done)));
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
            return !ask::handle_answer(state, &answer.request_id, &answer.verdict);
        }
        Message::PermissionResponse(_) => return true,
        Message::ShutdownRequest(asked) => {
            return handle_shutdown_request(state, envelope, asked, requests, now, effects);
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
            effects.push(Effect::Member(MemberEffect::Warn(format!(
                "ignored a {} from {from}: this program cannot handle it",
                message.kind()
            ))));
        }
    }
    false
}

/// Accepts a valid shutdown request. Returns whether the program is to be asked.
fn handle_shutdown_request(
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
                    state
                        .forwarded
                        .push(ForwardedRequest { pending, msg_id: envelope.msg_id.clone() });
                    return true;
                }
            }
        }
        Err(problem) => {
            let id = text::short(&asked.request_id, 120);
            effects.push(Effect::Member(MemberEffect::Warn(format!(
                "ignored shutdown request `{id}`: {problem}"
            ))));
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
fn advance(state: &mut State, now: Timestamp, effects: &mut Vec<Effect>) {
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
    if state.role == AgentRole::Teammate {
        ask::advance(state, now, effects);
        urgent::advance(state, now, effects);
        report_activity(state, now);
        answer_requests(state, now);
        shutdown_prompt::advance(state, now, effects);
    }
    if state.agreed && state.outbox.is_empty(now) {
        state.leaving = Some(Leaving { code: 0, by: now.plus_ms(LEAVE_MS) });
        // Anywhere else the keys would answer whatever is on the screen (PM-01).
        let keys = state.screen.as_ref().is_some_and(ScreenSnapshot::is_free);
        effects.push(Effect::End { keys });
        return;
    }
    effects.extend(state.outbox.next(now).map(Effect::Member));
}

/// Releases the keyboard when a dialog opens over a typed text, since a person has to answer it.
fn unlock_for_a_person(state: &mut State, now: Timestamp, effects: &mut Vec<Effect>) {
    let blocked = state
        .screen
        .as_ref()
        .and_then(ScreenSnapshot::activity)
        .filter(|activity| matches!(activity, Activity::Blocked(_)));
    let typed = |step| matches!(step, DeliveryStep::Staged | DeliveryStep::Submitted(_));
    if blocked.is_some() && state.turn.as_ref().is_some_and(|turn| typed(turn.step)) {
        deliver::stick(state, "a dialog opened", now, effects);
    }
}

/// Queues reports of a screen state that has lasted long enough. The lead is notified of
/// transitions to idle only (MSG-12).
fn report_activity(state: &mut State, now: Timestamp) {
    let Some(screen) = &state.screen else { return };
    if now.since(screen.since) < BELIEF_MS {
        return;
    }
    let stuck = state
        .undelivered
        .as_ref()
        .map(|why| Activity::Blocked(format!("blocked: undelivered: {why}")));
    let activity = screen.activity().map(|activity| {
        if activity == Activity::Idle { stuck.unwrap_or(activity) } else { activity }
    });
    let Some(activity) = activity else { return };
    state.outbox.report(&state.me, activity, now);
}

/// Answers shutdown requests. An idle program agrees; a busy one waits until shortly before the
/// deadline, since its turn may end in time, and then declines.
fn answer_requests(state: &mut State, now: Timestamp) {
    let Some(screen) = state.screen.as_ref().filter(|_| !state.pending.is_empty()) else { return };
    let still = now.since(screen.since) >= BELIEF_MS;
    let idle = screen.is_free()
        && still
        && state.turn.as_ref().is_none_or(|turn| turn.step == DeliveryStep::Stuck);
    let excuse = screen.excuse();
    let (due, open): (Vec<Pending>, Vec<Pending>) =
        std::mem::take(&mut state.pending).into_iter().partition(|p| idle || p.answer_by <= now);
    state.pending = open;
    for pending in due {
        let answer = if idle {
            state.agreed = true;
            pending.approval(&state.me, now)
        } else {
            pending.rejection(&state.me, excuse.clone(), now)
        };
        state.outbox.push(OutboundOp::Send(Box::new(answer)));
    }
}
