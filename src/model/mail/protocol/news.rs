//! The rule of the lead's mailbox: the messages that are news for the person or program that leads,
//! and the messages that the lead's loop acts on.

use super::{Message, SenderRole, may_send};
use crate::mail::envelope::Envelope;

/// The `type` of a refused shutdown.
const REFUSAL: &str = "shutdown_rejected";

/// Returns true if the message is news. News stays unread until the person or program that leads
/// was shown it. Other messages are protocol chatter: the lead's loop acts on them and marks them.
pub fn is_news(envelope: &Envelope) -> bool {
    let message = Message::parse(&envelope.text);
    if !is_permitted(envelope, &message) {
        return false;
    }
    match message {
        Message::IdleNotification(_)
        | Message::TaskCompleted(_)
        | Message::ShutdownApproved(_)
        | Message::Malformed { .. } => false,
        Message::ShutdownRejected(_)
        | Message::PlanApprovalRequest(_)
        | Message::PermissionRequest(_)
        | Message::SandboxPermissionRequest(_)
        | Message::TeammateTerminated(_)
        | Message::ShutdownRequest(_)
        | Message::PlanApprovalResponse(_)
        | Message::PermissionResponse(_)
        | Message::SandboxPermissionResponse(_)
        | Message::TaskAssignment(_)
        | Message::TeamPermissionUpdate(_)
        | Message::ModeSetRequest(_)
        | Message::Text(_)
        | Message::Unknown { .. } => true,
    }
}

/// Returns true if the lead's loop has to see the message: to act on it, or to warn of a sender
/// that may not send it. A refusal counts even if a reader has marked it before the loop saw it.
pub fn is_for_loop(envelope: &Envelope) -> bool {
    // Most of a mailbox is read; its texts need no parsing.
    if envelope.read && !envelope.text.contains(REFUSAL) {
        return false;
    }
    let message = Message::parse(&envelope.text);
    match message {
        Message::ShutdownRejected(_) => true,
        Message::ShutdownApproved(_)
        | Message::PlanApprovalRequest(_)
        | Message::PermissionRequest(_)
        | Message::SandboxPermissionRequest(_)
        | Message::IdleNotification(_)
        | Message::TaskCompleted(_)
        | Message::Malformed { .. } => !envelope.read,
        Message::TeammateTerminated(_)
        | Message::ShutdownRequest(_)
        | Message::PlanApprovalResponse(_)
        | Message::PermissionResponse(_)
        | Message::SandboxPermissionResponse(_)
        | Message::TaskAssignment(_)
        | Message::TeamPermissionUpdate(_)
        | Message::ModeSetRequest(_)
        | Message::Text(_)
        | Message::Unknown { .. } => !envelope.read && !is_permitted(envelope, &message),
    }
}

/// Returns true if the message is typed into the terminal of an agent lead. Beside the news these
/// are the notices that a member is idle or has completed a task. An agent lead gets requests in a
/// message that says how to answer them.
pub fn is_for_agent_lead(envelope: &Envelope) -> bool {
    let message = Message::parse(&envelope.text);
    match message {
        Message::IdleNotification(_) | Message::TaskCompleted(_) => {
            is_permitted(envelope, &message)
        }
        Message::PlanApprovalRequest(_)
        | Message::PermissionRequest(_)
        | Message::SandboxPermissionRequest(_) => false,
        _ => is_news(envelope),
    }
}

fn is_permitted(envelope: &Envelope, message: &Message) -> bool {
    may_send(SenderRole::from_name(&envelope.from), message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;

    /// A message with its uses: news, for the loop, for an agent lead.
    type Row = (&'static str, &'static str, [bool; 3]);

    const TABLE: [Row; 14] = [
        ("ann", "which colour?", [true, false, true]),
        ("system", "2 tasks completed.", [true, false, true]),
        (
            "system",
            r#"{"type":"teammate_terminated","message":"ann has exited."}"#,
            [true, false, true],
        ),
        ("ann", r#"{"type":"task_completed","taskId":"1"}"#, [false, true, true]),
        (
            "ann",
            r#"{"type":"shutdown_rejected","requestId":"s","reason":"busy"}"#,
            [true, true, true],
        ),
        (
            "ann",
            r#"{"type":"plan_approval_request","requestId":"p","planContent":"x"}"#,
            [true, true, false],
        ),
        (
            "ann",
            r#"{"type":"permission_request","request_id":"p","tool_name":"Bash"}"#,
            [true, true, false],
        ),
        (
            "ann",
            r#"{"type":"sandbox_permission_request","requestId":"p","host":"a.org"}"#,
            [true, true, false],
        ),
        ("ann", r#"{"type":"new_kind"}"#, [true, false, true]),
        ("ann", r#"{"type":"idle_notification"}"#, [false, true, true]),
        ("ann", r#"{"type":"shutdown_approved","requestId":"s"}"#, [false, true, false]),
        ("ann", r#"{"type":"shutdown_approved"}"#, [false, true, false]),
        // Forged: only `system` may say so, and only the lead may change a mode.
        ("ann", r#"{"type":"teammate_terminated","message":"x"}"#, [false, true, false]),
        ("ann", r#"{"type":"mode_set_request","mode":"default"}"#, [false, true, false]),
    ];

    #[test]
    fn msg_17_each_kind_of_message_has_its_reader() {
        for (from, text, expected) in TABLE {
            let mut envelope = Envelope::new(from, text, "m".to_owned(), Timestamp(1));
            let uses = |e: &Envelope| [is_news(e), is_for_loop(e), is_for_agent_lead(e)];
            assert_eq!(uses(&envelope), expected, "{from}: {text}");
            envelope.read = true;
            let is_refusal = text.contains(REFUSAL);
            assert_eq!(is_for_loop(&envelope), is_refusal, "read: {text}");
        }
    }
}
