//! Messages of the team's protocol in words for an agent, which gets no JSON: for a member, wrapped
//! or over ACP, and for an agent lead. The lead's own loop, which runs beside that, handles the
//! others.

use model::id::LEAD;
use model::mail::envelope::Envelope;
use model::mail::protocol::{
    IdleNotification, Message, PermissionResponse, PermissionVerdict, PlanApprovalResponse,
    SandboxPermissionResponse, SenderRole, ShutdownRejected, TaskAssignment, TaskCompleted,
    may_send,
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

/// Rewrites a message for the agent of a member as plain text. Text and types that phalanx does not
/// know, such as handoffs, are unchanged.
pub(super) fn for_teammate(envelope: Envelope) -> Envelope {
    let message = Message::parse(&envelope.text);
    let is_of_lead = envelope.from == LEAD;
    let text = match &message {
        Message::PlanApprovalResponse(answer) if is_of_lead => plan_words(answer),
        Message::PermissionResponse(answer) if is_of_lead => permission_words(answer),
        Message::SandboxPermissionResponse(answer) if is_of_lead => sandbox_words(answer),
        // Only the lead may answer (SEC-04).
        Message::PlanApprovalResponse(_)
        | Message::PermissionResponse(_)
        | Message::SandboxPermissionResponse(_) => without_effect(&message),
        message if !may_send(SenderRole::from_name(&envelope.from), message) => {
            without_effect(message)
        }
        Message::TaskAssignment(assignment) => assignment_text(assignment),
        Message::TaskCompleted(completed) => completed_text(completed),
        Message::TeammateTerminated(ended) => text::short(&ended.message, WORDS),
        // phalanx handles these by itself.
        Message::ShutdownRequest(_)
        | Message::ShutdownApproved(_)
        | Message::ShutdownRejected(_)
        | Message::PlanApprovalRequest(_)
        | Message::PermissionRequest(_)
        | Message::SandboxPermissionRequest(_)
        | Message::IdleNotification(_)
        | Message::TeamPermissionUpdate(_)
        | Message::ModeSetRequest(_)
        | Message::Text(_)
        | Message::Unknown { .. }
        | Message::Malformed { .. } => return envelope,
    };
    Envelope { text, ..envelope }
}

fn without_effect(message: &Message) -> String {
    format!("A `{}` that I may not send. It has no effect.", message.kind())
}

fn sandbox_words(answer: &SandboxPermissionResponse) -> String {
    let id = &answer.request_id;
    let host = answer.host.as_deref().map(|host| format!(" to connect to {}", text::line(host)));
    let verdict = if answer.allow { "allowed" } else { "denied" };
    format!("Your request `{id}`{} is {verdict}.", host.unwrap_or_default())
}

fn assignment_text(assignment: &TaskAssignment) -> String {
    let TaskAssignment { task_id: id, subject, description, .. } = assignment;
    let subject = subject.as_deref().map(|words| format!(" \"{}\"", one_line(words, REASON)));
    let about = description.as_deref().map(|words| one_line(words, WORDS));
    let about = text::after_colon(about.filter(|about| !about.is_empty()));
    format!(
        "Task #{id}{} is assigned to you{about}. `phalanx task get {id}` shows the whole task.",
        subject.unwrap_or_default()
    )
}

fn plan_words(answer: &PlanApprovalResponse) -> String {
    let id = &answer.request_id;
    let feedback = text::after_colon(answer.feedback.as_deref().map(|why| one_line(why, REASON)));
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
            format!("Your request `{id}` is denied: {}. Do not do it.", one_line(error, REASON))
        }
    }
}

/// Joins the text to one line of at most `most` characters, since some programs accept no line
/// breaks.
fn one_line(words: &str, most: usize) -> String {
    text::short(&words.split_whitespace().collect::<Vec<_>>().join(" "), most)
}

/// Rewrites status messages of members as plain text; other messages are unchanged.
pub(super) fn for_lead(envelope: Envelope) -> Envelope {
    let words = match Message::parse(&envelope.text) {
        Message::IdleNotification(notice) => idle_text(&notice),
        Message::TaskCompleted(message) => completed_text(&message),
        Message::TeammateTerminated(message) => text::short(&message.message, WORDS),
        Message::ShutdownRejected(message) => refusal_text(&message),
        Message::TaskAssignment(_)
        | Message::PlanApprovalResponse(_)
        | Message::PermissionResponse(_)
        | Message::SandboxPermissionResponse(_) => return for_teammate(envelope),
        Message::ShutdownRequest(_)
        | Message::ShutdownApproved(_)
        | Message::PlanApprovalRequest(_)
        | Message::PermissionRequest(_)
        | Message::SandboxPermissionRequest(_)
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
    let result = summary.as_deref().map(|words| one_line(words, WORDS));
    let result = result.map(|words| format!(" Result of my turn: {words}"));
    let whole = ["I am idle.".to_owned()].into_iter().chain(task).chain(failure).chain(result);
    text::short(&whole.collect::<String>(), WORDS)
}

fn refusal_text(message: &ShutdownRejected) -> String {
    let reason = text::after_colon(message.reason.as_deref());
    text::short(&format!("I refuse to shut down{reason}"), WORDS)
}

fn completed_text(message: &TaskCompleted) -> String {
    let subject = text::after_colon(message.task_subject.as_deref());
    text::short(&format!("I completed task #{}{subject}.", message.task_id), WORDS)
}

#[cfg(test)]
pub(super) mod tests;
