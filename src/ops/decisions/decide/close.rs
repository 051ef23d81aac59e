//! Closes requests: records the decision, sends the answer and ends the member's waiting state.

use crate::mail::inbox;
use crate::members::presence;
use crate::{OpsError, now};
use model::decisions::question::{BY_PANE, Decision, DecisionOutcome, Question, Typed};
use model::id::{MemberName, RequestId};
use model::mail::envelope::Envelope;
use model::members::lifecycle::Cause;
use model::members::record::MemberRecord;
use model::team::event::{EventKind, Note};
use store::TeamStore;
use sys::rand;

/// [`Decision::by`] of a request that a rule or the limit decided.
pub(super) const BY_RULE: &str = "rule";
/// [`Decision::by`] of a request that nobody answered.
pub(super) const BY_NOBODY: &str = "nobody";

/// Returns a decision made now, with a fresh id for the reply.
pub fn decision(outcome: DecisionOutcome, by: &str) -> Decision {
    let (by, reply) = (by.to_owned(), Some(rand::uuid()));
    Decision {
        outcome,
        by,
        rule: None,
        via: None,
        at: now(),
        reason: None,
        mode: None,
        updates: Vec::new(),
        input: None,
        reply,
        sent: false,
        typed: None,
    }
}

/// Returns the decision on a question whose member has left; it is not answered.
pub(super) fn gone() -> Decision {
    Decision { reply: None, ..decision(DecisionOutcome::AskerGone, BY_NOBODY) }
}

/// Returns the decision on a question that ended in its program, with the choice if it is known.
/// The program gets no answer.
pub(crate) fn in_pane(allowed: Option<bool>) -> Decision {
    let (outcome, reason) = match allowed {
        Some(true) => (DecisionOutcome::Allowed, "allowed in the pane"),
        Some(false) => (DecisionOutcome::Denied, "denied in the pane"),
        None => (DecisionOutcome::Withdrawn, "answered in the pane, or withdrawn, as by Escape"),
    };
    Decision { reply: None, reason: Some(reason.to_owned()), ..decision(outcome, BY_PANE) }
}

/// Decides a question and sends the answer, unless it is decided already. An answer that its
/// program has not taken is replaced by what happened in the pane. Returns it as it is now.
pub(crate) fn decide_question(
    team: &TeamStore,
    id: &RequestId,
    decision: &Decision,
) -> Result<Question, OpsError> {
    let mut made = false;
    let question = team.change_question(id, |question| {
        made = question.is_open() || question.is_untaken() && decision.by == BY_PANE;
        if made {
            let lost = question.decision.as_ref();
            let typed = lost.map(|lost| lost.typed.unwrap_or(Typed::Gone));
            question.decision = Some(Decision { typed, ..decision.clone() });
        }
        Ok(question.clone())
    })?;
    if made {
        // The question is no longer news. A lead that sees the reply must not find it unread.
        inbox::record_handled(team, std::slice::from_ref(&question.msg_id))?;
        team.record(decision_note(&question))?;
        send(team, id)?;
    }
    Ok(question)
}

/// Withdraws the permissions that a native run at rest has asked for. It does not report that its
/// turn has ended, as after Escape in its pane.
pub(crate) fn withdraw_at_rest(team: &TeamStore, record: &MemberRecord) -> Result<(), OpsError> {
    let MemberRecord { name, incarnation, .. } = record;
    let mut asked = team.questions()?;
    asked.retain(|q| q.is_open() && q.is_in_turn() && q.incarnation.as_ref() == Some(incarnation));
    for question in &asked {
        decide_question(team, &question.id, &in_pane(None))?;
    }
    if !asked.is_empty() {
        presence::move_on(team, name, incarnation, Cause::Rest, Some("its turn has ended"))?;
        presence::set_active(team, name, false)?;
    }
    Ok(())
}

/// Appends the answer to the member's mailbox, once, and ends the member's waiting state.
pub(super) fn send(team: &TeamStore, id: &RequestId) -> Result<(), OpsError> {
    let question = team.question(id)?;
    let reply = question.decision.as_ref().and_then(|decision| decision.reply.clone());
    let (Some(message), Some(msg_id)) = (question.reply(), reply) else { return Ok(()) };
    let lead = MemberName::lead();
    let color = team.team()?.member(&lead).and_then(|m| m.color.clone());
    let envelope = Envelope::new(lead.as_str(), &message.to_text(), msg_id, now())
        .with(None, color.as_deref());
    // Two processes that send it record one event, because it has the id of the message.
    let note = Note { id: Some(envelope.msg_id.clone()), ..Note::of(EventKind::MessageSent) };
    let note = note.because(&question.event).member(&question.from);
    let note = note.with("from", lead.as_str()).with("msg_id", envelope.msg_id.as_str());
    team.send_reply(id, &envelope, &note.with("kind", message.kind()))?;
    go_on(team, question)
}

/// Ends the waiting state of the asking member, unless another request of it is open.
pub(crate) fn go_on(team: &TeamStore, question: Question) -> Result<(), OpsError> {
    let others = team.questions()?.into_iter().any(|q| q.is_open() && q.from == question.from);
    if let Some(incarnation) = question.incarnation.filter(|_| !others) {
        presence::move_on(team, &question.from, &incarnation, Cause::Answered, None)?;
    }
    Ok(())
}

/// Returns the journal entry for the decision on a question.
pub(super) fn decision_note(question: &Question) -> Note {
    let note = Note::of(EventKind::RequestDecided).because(&question.event).member(&question.from);
    let note = note.with("request_id", question.id.as_str()).with("kind", question.kind.as_str());
    let note = note.with("summary", question.summary());
    let Some(decision) = &question.decision else { return note };
    note.with("outcome", decision.outcome.as_str())
        .with("by", decision.by.as_str())
        .with_some("rule", decision.rule.as_deref())
        .with_some("reason", decision.reason.as_deref())
        .with_some("mode", decision.mode.map(|mode| mode.as_str()))
        .with_some("via", decision.via.as_deref())
}
