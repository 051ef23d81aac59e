//! Notifications that a member is idle or has stopped.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fields::{lenient, text};

/// Member → lead: the member's turn is over. All fields are optional.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IdleNotification {
    #[serde(default, deserialize_with = "lenient")]
    pub from: Option<String>,
    /// RFC 3339, UTC, with milliseconds.
    #[serde(default, deserialize_with = "lenient")]
    pub timestamp: Option<String>,
    /// `available`, `interrupted` or `failed` (read in 2.1.331); other words are kept.
    #[serde(default, deserialize_with = "lenient")]
    pub idle_reason: Option<String>,
    /// Short summary of the member's last message to a peer.
    #[serde(default, deserialize_with = "lenient")]
    pub summary: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub completed_task_id: Option<String>,
    /// `resolved`, `blocked` or `failed` (read in Claude Code 2.1.331, which shows a notification
    /// with another word as raw JSON); other words are kept.
    #[serde(default, deserialize_with = "lenient")]
    pub completed_status: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub failure_reason: Option<String>,
    /// Written since Claude Code 2.1.329; passed through without being parsed.
    pub result: Option<Value>,
}

/// System → lead: a member's process is gone. The `from` of its envelope is `system`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeammateTerminated {
    /// A sentence for people, such as `alice has shut down.`. It names the member but is not
    /// parsed.
    #[serde(deserialize_with = "text")]
    pub message: String,
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
