//! Tracks which members wait for an answer to a plan or question. The lead gives no answers; the
//! messages stay unread for those who do.

use std::collections::BTreeSet;

use crate::effect::Effect;
use crate::event::AnswerSent;
use crate::state::{OpenQuestion, State};
use model::decisions::question::{Question, QuestionKind};
use model::id::MemberName;
use model::mail::envelope::Envelope;
use model::mail::protocol::SenderRole;
use model::members::lifecycle::Cause;

/// Handles a question of a member. Idempotent.
pub(super) fn open(
    state: &mut State,
    envelope: &Envelope,
    request_id: &str,
    cause: Cause,
    effects: &mut Vec<Effect>,
) {
    let asking = state.members.iter().find(|(name, _)| name.clashes_with(&envelope.from));
    let Some((name, view)) = asking else { return };
    // The member has moved on since it asked. A later lead still finds the message unread.
    let old = envelope.timestamp < view.state_since.iso();
    if old || state.questions.contains_key(&envelope.msg_id) {
        return;
    }
    let member = name.clone();
    let question =
        OpenQuestion { member: member.clone(), request_id: request_id.to_owned(), cause };
    state.questions.insert(envelope.msg_id.clone(), question);
    wait_on(state, &member, effects);
}

/// Handles newly filed questions: the member waits even if it asked before it was ready, or if
/// another process has taken the message out of the mailbox. Questions that were filed before are
/// skipped: one may have been answered without the table showing it yet.
pub(super) fn handle_filed(state: &mut State, open: &[Question], effects: &mut Vec<Effect>) {
    let before = std::mem::replace(
        &mut state.filed,
        open.iter().map(|filed| filed.id.to_string()).collect(),
    );
    let is_decided =
        |id: &String| before.contains(id) && !open.iter().any(|filed| filed.id.as_str() == id);
    let decided = state.questions.values().filter(|question| is_decided(&question.request_id));
    let members: BTreeSet<&MemberName> = decided.map(|question| &question.member).collect();
    for name in members {
        // The keys of the decision may have to be typed into its dialog.
        if let Some(view) = state.members.get(name).filter(|view| view.native && view.watched) {
            let (name, incarnation) = (name.clone(), view.incarnation.clone());
            effects.push(Effect::CheckIdle { name, incarnation });
        }
    }
    for filed in open.iter().filter(|filed| !before.contains(filed.id.as_str())) {
        let asking = state.members.get(&filed.from);
        if asking.is_none_or(|view| {
            filed.incarnation.as_ref().is_some_and(|run| *run != view.incarnation)
        }) {
            continue;
        }
        let cause = match filed.kind {
            QuestionKind::Plan => Cause::PlanSent,
            QuestionKind::Permission | QuestionKind::Sandbox | QuestionKind::Dialog => {
                Cause::PermissionAsked
            }
        };
        let question =
            OpenQuestion { member: filed.from.clone(), request_id: filed.id.to_string(), cause };
        state.questions.insert(filed.msg_id.clone(), question);
        wait_on(state, &filed.from, effects);
    }
}

/// Moves a member with an open question into the waiting state.
pub(super) fn wait_on(state: &mut State, member: &MemberName, effects: &mut Vec<Effect>) {
    let asked = state.questions.values().find(|question| question.member == *member);
    if let Some(cause) = asked.map(|question| question.cause) {
        move_on(state, member, cause, effects);
    }
}

/// Drops questions that were read and are not filed: another process handles them, and the member's
/// next message shows whether it still waits.
pub(super) fn keep_unread(state: &mut State, unread: &[Envelope]) {
    let filed = &state.filed;
    let waits = |id: &String, question: &OpenQuestion| {
        let unread = unread.iter().any(|envelope| !envelope.read && envelope.msg_id == *id);
        unread || filed.contains(&question.request_id)
    };
    state.questions.retain(|id, question| waits(id, question));
}

/// Handles answers, which only the lead may give. A member with two open questions waits for both.
pub(super) fn handle_answers(state: &mut State, answers: &[AnswerSent], effects: &mut Vec<Effect>) {
    for answer in
        answers.iter().filter(|answer| SenderRole::from_name(&answer.from) == SenderRole::Lead)
    {
        let of_member = |question: &OpenQuestion| question.member == answer.member;
        state.questions.retain(|_, q| !of_member(q) || q.request_id != answer.request_id);
        if !state.questions.values().any(of_member) {
            move_on(state, &answer.member, Cause::Answered, effects);
        }
    }
}

/// Drops the questions of a member whose run is over.
pub(super) fn forget(state: &mut State, member: &MemberName) {
    state.questions.retain(|_, question| question.member != *member);
}

fn move_on(state: &mut State, member: &MemberName, cause: Cause, effects: &mut Vec<Effect>) {
    let Some(view) = state.members.get_mut(member) else { return };
    if let Some(next) = view.state.after(cause) {
        view.state = next;
        effects.push(view.move_on(member, cause, None));
    }
}
