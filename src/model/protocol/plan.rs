//! Messages for plan approval: a member in plan mode asks, the lead answers. An answer without a
//! boolean `approved` is malformed, so nothing is approved by default.

use serde_json::{Map, Value};

use super::fields::{Fields, Problem, Writer};
use crate::model::id::{MemberName, TeamName};
use crate::model::time::Timestamp;

/// Returns a new request id for a plan: `plan_approval-<ms>@<name>@<team>`.
pub(crate) fn plan_request_id(name: &MemberName, team: &TeamName, now: Timestamp) -> String {
    format!("plan_approval-{}@{name}@{team}", now.0)
}

const REQUEST_ID: [&str; 2] = ["requestId", "request_id"];

/// Member → lead: asks for approval of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlanApprovalRequest {
    pub(crate) from: Option<String>,
    /// RFC 3339, UTC, with milliseconds.
    pub(crate) timestamp: Option<String>,
    /// Absolute path of the plan's file on the member's machine.
    pub(crate) plan_file_path: Option<String>,
    /// The whole plan in Markdown.
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

/// Lead → member: approves the plan or asks for changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlanApprovalResponse {
    /// Id of the answered request.
    pub(crate) request_id: String,
    pub(crate) approved: bool,
    /// The requested changes, if the plan is rejected.
    pub(crate) feedback: Option<String>,
    pub(crate) timestamp: Option<String>,
    /// The permission mode to switch to, if the plan is approved. Kept as text, because an approval
    /// that names a mode of a newer release is still an approval: the recipient ignores a mode that
    /// it does not know.
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
    fn only_a_boolean_approves_or_rejects() {
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
    fn unknown_mode_does_not_invalidate_an_approval() {
        let text = r#"{"type":"plan_approval_response","requestId":"p","approved":true,"permissionMode":"auto"}"#;
        let Message::PlanApprovalResponse(answer) = Message::parse(text) else {
            panic!("not an answer")
        };
        assert!(answer.approved);
        assert_eq!(answer.permission_mode.as_deref(), Some("auto"));
    }
}
