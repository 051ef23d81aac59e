//! Notifications about assigned and completed tasks. The task file is authoritative; these messages
//! only wake the recipient.

use serde::{Deserialize, Serialize};

use super::fields::{lenient, text};

/// Notifies the new owner of a task. Claude Code was observed to send it when an owner is set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskAssignment {
    /// Decimal number as a string.
    #[serde(deserialize_with = "text")]
    pub task_id: String,
    #[serde(default, deserialize_with = "lenient")]
    pub subject: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub description: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub assigned_by: Option<String>,
    /// RFC 3339, UTC, with milliseconds.
    #[serde(default, deserialize_with = "lenient")]
    pub timestamp: Option<String>,
}

/// Member → lead: the task is completed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskCompleted {
    #[serde(default, deserialize_with = "lenient")]
    pub from: Option<String>,
    /// Decimal number as a string.
    #[serde(deserialize_with = "text")]
    pub task_id: String,
    #[serde(default, deserialize_with = "lenient")]
    pub task_subject: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub timestamp: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::super::Message;

    #[test]
    fn task_id_must_be_a_string() {
        let Message::Malformed { kind, problem, .. } =
            Message::parse(r#"{"type":"task_completed","taskId":3}"#)
        else {
            panic!("taken for a message")
        };
        assert_eq!(
            (kind.as_str(), problem.as_str()),
            ("task_completed", "`taskId` is not a string")
        );
    }
}
