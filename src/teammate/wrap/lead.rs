//! Mail for an agent lead: which of the lead's messages are typed into its program, and how they
//! are worded. The lead's own loop, which runs beside it, handles the others.

use super::effect::Effect;
use super::state::State;
use model::mail::envelope::Envelope;
use model::mail::protocol::{IdleNotification, Message, ShutdownRejected, TaskCompleted};
use model::text;

/// Maximum length of a member's report, in characters.
const WORDS: usize = 2000;

/// Rewrites status messages of members as plain text; other messages are unchanged.
pub(super) fn in_words(envelope: Envelope) -> Envelope {
    let words = match Message::parse(&envelope.text) {
        Message::IdleNotification(notice) => idle_text(&notice),
        Message::TaskCompleted(message) => completed_text(&message),
        Message::TeammateTerminated(message) => text::short(&message.message, WORDS),
        Message::ShutdownRejected(message) => refusal_text(&message),
        Message::ShutdownRequest(_)
        | Message::ShutdownApproved(_)
        | Message::PlanApprovalRequest(_)
        | Message::PlanApprovalResponse(_)
        | Message::PermissionRequest(_)
        | Message::PermissionResponse(_)
        | Message::SandboxPermissionRequest(_)
        | Message::SandboxPermissionResponse(_)
        | Message::TaskAssignment(_)
        | Message::TeamPermissionUpdate(_)
        | Message::ModeSetRequest(_)
        | Message::Text(_)
        | Message::Unknown { .. }
        | Message::Malformed { .. } => return envelope,
    };
    Envelope { text: words, ..envelope }
}

fn idle_text(notice: &IdleNotification) -> String {
    let IdleNotification { summary, completed_task_id, completed_status, failure_reason, .. } =
        notice;
    let task = completed_task_id.as_deref().map(|id| {
        let status =
            completed_status.as_deref().map(|word| format!(" ({word})")).unwrap_or_default();
        format!(" My last task: #{id}{status}.")
    });
    let failure = failure_reason.as_deref().map(|why| format!(" I failed: {why}."));
    // On one line: some programs accept no line breaks.
    let result =
        summary.as_deref().map(|words| words.split_whitespace().collect::<Vec<_>>().join(" "));
    let result = result.map(|words| format!(" Result of my turn: {words}"));
    let whole = ["I am idle.".to_owned()].into_iter().chain(task).chain(failure).chain(result);
    text::short(&whole.collect::<String>(), WORDS)
}

fn refusal_text(message: &ShutdownRejected) -> String {
    let reason = message.reason.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
    text::short(&format!("I refuse to shut down{reason}"), WORDS)
}

fn completed_text(message: &TaskCompleted) -> String {
    let subject =
        message.task_subject.as_deref().map(|words| format!(": {words}")).unwrap_or_default();
    text::short(&format!("I completed task #{}{subject}.", message.task_id), WORDS)
}

/// Handles the end of the team: the program belongs to the user and continues, but nothing more is
/// typed.
pub(super) fn detach(state: &mut State, effects: &mut Vec<Effect>) {
    state.waiting.clear();
    if state.turn.take().is_some() {
        effects.push(Effect::Release);
    }
    state.teamless = true;
}

#[cfg(test)]
mod tests;
