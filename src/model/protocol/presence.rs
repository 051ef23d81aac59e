//! Who is there, as data: a member has nothing to do, a member is gone. Knows nothing of how that was found
//! out.

use serde_json::{Map, Value};

use super::fields::{Fields, Problem, Writer};

/// Member → lead: my turn is over (seeds 000, 003, 004; observed). No field is required.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct IdleNotification {
    pub(crate) from: Option<String>,
    /// RFC 3339, UTC, milliseconds.
    pub(crate) timestamp: Option<String>,
    /// Observed: `available`. An open set of words.
    pub(crate) idle_reason: Option<String>,
    /// What the member last told a peer, in a few words.
    pub(crate) summary: Option<String>,
    pub(crate) completed_task_id: Option<String>,
    /// An open set of words; seed 004 has `success` and `failed`.
    pub(crate) completed_status: Option<String>,
    pub(crate) failure_reason: Option<String>,
    /// Since 2.1.329; carried unread.
    pub(crate) result: Option<Value>,
}

impl IdleNotification {
    pub(crate) const KIND: &'static str = "idle_notification";

    /// Never fails; the signature is that of every other kind.
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

/// System → lead: a member's process is gone (seed 003; observed: the envelope's `from` is `system`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TeammateTerminated {
    /// A sentence for people, observed as `alice has shut down.`; it names the member but is not parsed for
    /// it.
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
    fn a_bare_idle_notification_is_one() {
        let text = r#"{"type":"idle_notification"}"#;
        assert!(matches!(Message::parse(text), Message::IdleNotification(_)));
        assert_eq!(Message::parse(text).to_text(), text);
    }
}
