//! Plan approval as data: a member in plan mode asks, the lead answers. Knows nothing of who is believed, and
//! approves nothing by default: an answer without a boolean `approved` is malformed.

use serde_json::{Map, Value};

use super::fields::{Fields, Problem, Writer};
use crate::model::id::{MemberName, TeamName};
use crate::model::time::Timestamp;

/// Returns a new id for a plan of this member: `plan_approval-<ms>@<name>@<team>`.
pub(crate) fn plan_request_id(name: &MemberName, team: &TeamName, now: Timestamp) -> String {
    format!("plan_approval-{}@{name}@{team}", now.0)
}

const REQUEST_ID: [&str; 2] = ["requestId", "request_id"];

/// Member → lead: may I do this? (seed 004, observed)
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlanApprovalRequest {
    pub(crate) from: Option<String>,
    /// RFC 3339, UTC, milliseconds.
    pub(crate) timestamp: Option<String>,
    /// Where the member wrote the plan, as an absolute path of its machine.
    pub(crate) plan_file_path: Option<String>,
    /// The whole plan, Markdown.
    pub(crate) plan_content: Option<String>,
    /// `plan_approval-<ms>@<name>@<team>` (observed).
    pub(crate) request_id: String,
}

impl PlanApprovalRequest {
    pub(crate) const KIND: &'static str = "plan_approval_request";

    pub(super) fn read(fields: &Fields) -> Result<Self, Problem> {
        Ok(PlanApprovalRequest {
            from: fields.text(&["from"]),
            timestamp: fields.text(&["timestamp"]),
            plan_file_path: fields.text(&["planFilePath"]),
            plan_content: fields.text(&["planContent"]),
            request_id: fields.required_text(&REQUEST_ID)?,
        })
    }

    pub(super) fn write(&self) -> Map<String, Value> {
        Writer::new(Self::KIND)
            .put_some("from", self.from.as_deref())
            .put_some("timestamp", self.timestamp.as_deref())
            .put_some("planFilePath", self.plan_file_path.as_deref())
            .put_some("planContent", self.plan_content.as_deref())
            .put("requestId", self.request_id.as_str())
            .done()
    }
}

/// Lead → member: go ahead, or revise (seeds 000, 004; observed).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlanApprovalResponse {
    /// The id of the request that is answered.
    pub(crate) request_id: String,
    pub(crate) approved: bool,
    /// What to change; on a rejection.
    pub(crate) feedback: Option<String>,
    pub(crate) timestamp: Option<String>,
    /// The mode to work in from now on; on an approval. Kept as the word it is, because an approval with a
    /// mode of a newer release is still an approval: whoever acts on it parses it and leaves the mode alone
    /// if it is unknown.
    pub(crate) permission_mode: Option<String>,
}

impl PlanApprovalResponse {
    pub(crate) const KIND: &'static str = "plan_approval_response";

    pub(super) fn read(fields: &Fields) -> Result<Self, Problem> {
        Ok(PlanApprovalResponse {
            request_id: fields.required_text(&REQUEST_ID)?,
            approved: fields.required_bool(&["approved"])?,
            feedback: fields.text(&["feedback"]),
            timestamp: fields.text(&["timestamp"]),
            permission_mode: fields.text(&["permissionMode"]),
        })
    }

    pub(super) fn write(&self) -> Map<String, Value> {
        Writer::new(Self::KIND)
            .put("requestId", self.request_id.as_str())
            .put("approved", self.approved)
            .put_some("feedback", self.feedback.as_deref())
            .put_some("timestamp", self.timestamp.as_deref())
            .put_some("permissionMode", self.permission_mode.as_deref())
            .done()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Message;

    #[test]
    fn nothing_but_a_boolean_decides() {
        for approved in ["\"true\"", "1", "null", "[]"] {
            let text = format!(
                r#"{{"type":"plan_approval_response","requestId":"p","approved":{approved}}}"#
            );
            assert!(matches!(Message::parse(&text), Message::Malformed { .. }), "{text}");
        }
        let tool_input = r#"{"type":"plan_approval_response","requestId":"p","approve":true}"#;
        let Message::Malformed { problem, .. } = Message::parse(tool_input) else {
            panic!("decided")
        };
        assert_eq!(problem, "`approved` is missing");
    }

    #[test]
    fn a_mode_of_a_newer_release_does_not_undo_the_approval() {
        let text = r#"{"type":"plan_approval_response","requestId":"p","approved":true,"permissionMode":"auto"}"#;
        let Message::PlanApprovalResponse(answer) = Message::parse(text) else {
            panic!("not an answer")
        };
        assert!(answer.approved);
        assert_eq!(answer.permission_mode.as_deref(), Some("auto"));
    }
}
