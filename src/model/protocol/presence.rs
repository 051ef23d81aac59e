//! Notifications that a member is idle or has terminated.

use serde_json::{Map, Value};

use super::fields::{Fields, Problem, Writer};

/// Member → lead: the member's turn is over. All fields are optional.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct IdleNotification {
    pub(crate) from: Option<String>,
    /// RFC 3339, UTC, with milliseconds.
    pub(crate) timestamp: Option<String>,
    /// An open set of words; `available` was observed.
    pub(crate) idle_reason: Option<String>,
    /// Short summary of the member's last message to a peer.
    pub(crate) summary: Option<String>,
    pub(crate) completed_task_id: Option<String>,
    /// An open set of words, for example `success` and `failed`.
    pub(crate) completed_status: Option<String>,
    pub(crate) failure_reason: Option<String>,
    /// Written since Claude Code 2.1.329; passed through without being parsed.
    pub(crate) result: Option<Value>,
}

impl IdleNotification {
    pub(crate) const KIND: &'static str = "idle_notification";

    /// Never fails. The signature matches that of all other kinds.
    pub(super) fn read(fields: &Fields) -> Result<Self, Problem> {
        Ok(IdleNotification {
            from: fields.text(&["from"]),
            timestamp: fields.text(&["timestamp"]),
            idle_reason: fields.text(&["idleReason"]),
            summary: fields.text(&["summary"]),
            completed_task_id: fields.text(&["completedTaskId"]),
            completed_status: fields.text(&["completedStatus"]),
            failure_reason: fields.text(&["failureReason"]),
            result: fields.get(&["result"]).cloned(),
        })
    }

    pub(super) fn write(&self) -> Map<String, Value> {
        Writer::new(Self::KIND)
            .put_some("from", self.from.as_deref())
            .put_some("timestamp", self.timestamp.as_deref())
            .put_some("idleReason", self.idle_reason.as_deref())
            .put_some("summary", self.summary.as_deref())
            .put_some("completedTaskId", self.completed_task_id.as_deref())
            .put_some("completedStatus", self.completed_status.as_deref())
            .put_some("failureReason", self.failure_reason.as_deref())
            .put_some("result", self.result.clone())
            .done()
    }
}

/// System → lead: a member's process is gone. The `from` of its envelope is `system`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TeammateTerminated {
    /// A sentence for people, such as `alice has shut down.`. It names the member but is not
    /// parsed.
    pub(crate) message: String,
}

impl TeammateTerminated {
    pub(crate) const KIND: &'static str = "teammate_terminated";

    pub(super) fn read(fields: &Fields) -> Result<Self, Problem> {
        Ok(TeammateTerminated { message: fields.required_text(&["message"])? })
    }

    pub(super) fn write(&self) -> Map<String, Value> {
        Writer::new(Self::KIND).put("message", self.message.as_str()).done()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Message;

    #[test]
    fn idle_notification_needs_no_fields() {
        let text = r#"{"type":"idle_notification"}"#;
        assert!(matches!(Message::parse(text), Message::IdleNotification(_)));
        assert_eq!(Message::parse(text).to_text(), text);
    }
}
