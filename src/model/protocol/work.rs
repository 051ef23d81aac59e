//! Notifications about assigned and completed tasks. The task file is authoritative; these messages
//! only wake the recipient.

use serde_json::{Map, Value};

use super::fields::{Fields, Problem, Writer};

/// Notifies the new owner of a task. Claude Code was observed to send it when an owner is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskAssignment {
    /// Decimal number as a string.
    pub(crate) task_id: String,
    pub(crate) subject: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) assigned_by: Option<String>,
    /// RFC 3339, UTC, with milliseconds.
    pub(crate) timestamp: Option<String>,
}

impl TaskAssignment {
    pub(crate) const KIND: &'static str = "task_assignment";

    pub(super) fn read(fields: &Fields) -> Result<Self, Problem> {
        Ok(TaskAssignment {
            task_id: fields.required_text(&["taskId"])?,
            subject: fields.text(&["subject"]),
            description: fields.text(&["description"]),
            assigned_by: fields.text(&["assignedBy"]),
            timestamp: fields.text(&["timestamp"]),
        })
    }

    pub(super) fn write(&self) -> Map<String, Value> {
        Writer::new(Self::KIND)
            .put("taskId", self.task_id.as_str())
            .put_some("subject", self.subject.as_deref())
            .put_some("description", self.description.as_deref())
            .put_some("assignedBy", self.assigned_by.as_deref())
            .put_some("timestamp", self.timestamp.as_deref())
            .done()
    }
}

/// Member → lead: the task is completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskCompleted {
    pub(crate) from: Option<String>,
    /// Decimal number as a string.
    pub(crate) task_id: String,
    pub(crate) task_subject: Option<String>,
    pub(crate) timestamp: Option<String>,
}

impl TaskCompleted {
    pub(crate) const KIND: &'static str = "task_completed";

    pub(super) fn read(fields: &Fields) -> Result<Self, Problem> {
        Ok(TaskCompleted {
            from: fields.text(&["from"]),
            task_id: fields.required_text(&["taskId"])?,
            task_subject: fields.text(&["taskSubject"]),
            timestamp: fields.text(&["timestamp"]),
        })
    }

    pub(super) fn write(&self) -> Map<String, Value> {
        Writer::new(Self::KIND)
            .put_some("from", self.from.as_deref())
            .put("taskId", self.task_id.as_str())
            .put_some("taskSubject", self.task_subject.as_deref())
            .put_some("timestamp", self.timestamp.as_deref())
            .done()
    }
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
