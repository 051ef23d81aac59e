//! Messages of the team's protocol in words for an agent: the lead's answers for a member, and
//! the messages of members for an agent lead. The lead's own loop, which runs beside that, handles
//! the others.

use model::id::LEAD;
use model::mail::envelope::Envelope;
use model::mail::protocol::{
    IdleNotification, Message, PermissionResponse, PermissionVerdict, PlanApprovalResponse,
    ShutdownRejected, TaskCompleted,
};
use model::text;

/// Maximum length of a member's report, in characters.
const WORDS: usize = 2000;
/// Maximum length of a reason, in characters.
const REASON: usize = 500;

/// The role of an agent in the team.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentRole {
    Teammate,
    /// An agent lead; the lead's own loop handles everything except mail for the agent.
    Lead,
}

/// Rewrites the lead's answers as plain text; other messages are unchanged.
pub(super) fn of_answers(envelope: Envelope) -> Envelope {
    let text = match Message::parse(&envelope.text) {
        Message::PlanApprovalResponse(answer) if envelope.from == LEAD => plan_words(&answer),
        Message::PermissionResponse(answer) if envelope.from == LEAD => permission_words(&answer),
        _ => return envelope,
    };
    Envelope { text, ..envelope }
}

fn plan_words(answer: &PlanApprovalResponse) -> String {
    let id = &answer.request_id;
    let feedback =
        answer.feedback.as_deref().map(|text| format!(": {}", one_line(text))).unwrap_or_default();
    if answer.approved {
        return format!("Your plan `{id}` is approved{feedback}. Carry it out now.");
    }
    format!(
        "Your plan `{id}` is rejected{feedback}. Change nothing yet; revise the plan and submit it again with \
         `phalanx plan submit FILE`."
    )
}

fn permission_words(answer: &PermissionResponse) -> String {
    let id = &answer.request_id;
    match &answer.verdict {
        PermissionVerdict::Allowed { updated_input, .. } => {
            let input = updated_input.as_ref().map(|input| format!(", with this input: {input}"));
            format!("Your request `{id}` is allowed{}.", input.unwrap_or_default())
        }
        PermissionVerdict::Denied { error } => {
            format!("Your request `{id}` is denied: {}. Do not do it.", one_line(error))
        }
    }
}

/// Joins the text to one line, since some programs accept no line breaks.
fn one_line(reason: &str) -> String {
    text::short(&reason.split_whitespace().collect::<Vec<_>>().join(" "), REASON)
}

/// Rewrites status messages of members as plain text; other messages are unchanged.
pub(super) fn for_lead(envelope: Envelope) -> Envelope {
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
