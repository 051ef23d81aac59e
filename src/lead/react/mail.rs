//! Handles the lead's mail: checks the sender's authority and applies each message.

use std::collections::BTreeSet;

use super::questions;
use super::shutdown::{agree, answered, refuse};
use crate::effect::Effect;
use crate::state::{Phase, State, TrackedMember};
use model::id::MemberName;
use model::mail::envelope::Envelope;
use model::mail::protocol::news::{is_for_agent_lead, is_news};
use model::mail::protocol::{Message, SenderRole, may_send};
use model::members::lifecycle::{Cause, MemberState};
use model::time::Timestamp;

/// Age of an idle notification, in ms, up to which its sender cannot have begun another turn:
/// Claude Code reads its mail once a second.
const FRESH_MS: u64 = 700;

pub(super) fn read_mail(
    state: &mut State,
    mail: Vec<Envelope>,
    now: Timestamp,
    effects: &mut Vec<Effect>,
) {
    let mut done = Vec::new();
    questions::keep_unread(state, &mail);
    let here: BTreeSet<&String> = mail.iter().map(|e| &e.msg_id).collect();
    state.handled.retain(|id| here.contains(id));
    for envelope in mail {
        let is_new = !state.handled.contains(&envelope.msg_id);
        if is_new && !act_on(state, &envelope, now, effects) {
            continue;
        }
        state.handled.insert(envelope.msg_id.clone());
        let is_shown = is_news(&envelope) || state.has_agent_lead && is_for_agent_lead(&envelope);
        if !is_shown {
            done.push(envelope.msg_id);
        }
    }
    if !done.is_empty() {
        effects.push(Effect::Acknowledge { ids: done });
    }
}

/// Acts on one message. Returns false if it is left to a reader: a text, a plan or a question.
fn act_on(
    state: &mut State,
    envelope: &Envelope,
    now: Timestamp,
    effects: &mut Vec<Effect>,
) -> bool {
    let message = Message::parse(&envelope.text);
    if !may_send(SenderRole::from_name(&envelope.from), &message) {
        effects.push(warn(
            &envelope.from,
            format!("a {} from `{}`, which may not send one", message.kind(), envelope.from),
        ));
        return true;
    }
    match message {
        Message::ShutdownApproved(answer) => {
            match answered(state, &envelope.from, &answer.request_id) {
                Ok(request) => agree(state, &request, answer.into(), effects),
                Err(problem) => effects.push(warn(&envelope.from, problem)),
            }
            true
        }
        // A refusal stays in the mailbox, so a later lead finds it again.
        Message::ShutdownRejected(answer)
            if state
                .rejected
                .get(answer.request_id.as_str())
                .is_some_and(|name| name.clashes_with(&envelope.from)) =>
        {
            true
        }
        Message::ShutdownRejected(answer) => {
            match answered(state, &envelope.from, &answer.request_id) {
                Ok(request) => refuse(state, &request, answer.reason, effects),
                Err(problem) => effects.push(warn(&envelope.from, problem)),
            }
            true
        }
        Message::IdleNotification(_) => {
            rest(state, envelope, now, effects);
            true
        }
        Message::TaskCompleted(_) | Message::TeammateTerminated(_) => true,
        Message::Malformed { kind, problem, .. } => {
            effects.push(warn(&envelope.from, format!("an invalid {kind}: {problem}")));
            true
        }
        Message::PlanApprovalRequest(plan) => {
            questions::open(state, envelope, &plan.request_id, Cause::PlanSent, effects);
            false
        }
        Message::PermissionRequest(question) => {
            questions::open(state, envelope, &question.request_id, Cause::PermissionAsked, effects);
            false
        }
        Message::SandboxPermissionRequest(question) => {
            questions::open(state, envelope, &question.request_id, Cause::PermissionAsked, effects);
            false
        }
        Message::Text(_)
        | Message::Unknown { .. }
        | Message::ShutdownRequest(_)
        | Message::PlanApprovalResponse(_)
        | Message::PermissionResponse(_)
        | Message::SandboxPermissionResponse(_)
        | Message::TaskAssignment(_)
        | Message::TeamPermissionUpdate(_)
        | Message::ModeSetRequest(_) => false,
    }
}

/// Handles an idle notification. A member that rejected its shutdown is asked again.
fn rest(state: &mut State, envelope: &Envelope, now: Timestamp, effects: &mut Vec<Effect>) {
    let of_sender =
        |(name, _): &(&MemberName, &mut TrackedMember)| name.clashes_with(&envelope.from);
    let Some((name, view)) = state.members.iter_mut().find(of_sender) else { return };
    // Beside an agent lead a handled message can stay unread; a later lead must not handle it
    // again.
    let old = state.has_agent_lead && envelope.timestamp < view.state_since.iso();
    let name = name.clone();
    // A program can be idle while its plan or question is unread: it still waits.
    let asks = state.questions.values().any(|question| question.member == name);
    let rests = view.state.is_up() && view.state.after(Cause::Rest) == Some(MemberState::Idle);
    // Workers and wrappers record their state themselves before they send this, and may have
    // started the next task since.
    if view.native && rests && !asks && !old {
        (view.state, view.state_since) = (MemberState::Idle, now);
        effects.push(view.move_on(&name, Cause::Rest, None));
        // A program that is slower to say so in the team file, or does not.
        let said_at = Timestamp::parse(&envelope.timestamp);
        if said_at.is_some_and(|at| now.since(at) < FRESH_MS) {
            effects.push(Effect::Deactivate(name.clone()));
        }
    }
    if view.refused
        && let Phase::Stopping { force, .. } = state.phase
    {
        view.refused = false;
        effects.extend(Effect::ask(vec![name], "the team ends", force));
    }
}

fn warn(from: &str, text: String) -> Effect {
    Effect::Warn { member: MemberName::existing(from).ok(), text }
}
