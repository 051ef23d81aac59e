//! Messages for plan approval: a member in plan mode asks, the lead answers. An answer without a
//! boolean `approved` is malformed, so nothing is approved by default.

use serde::{Deserialize, Serialize};

use super::fields::{boolean, lenient, text};
use crate::id::{MemberName, TeamName};
use crate::time::Timestamp;

/// Returns a new request id for a plan: `plan_approval-<ms>@<name>@<team>`.
pub fn plan_request_id(name: &MemberName, team: &TeamName, now: Timestamp) -> String {
    format!("plan_approval-{}@{name}@{team}", now.0)
}

/// Member → lead: asks for approval of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanApprovalRequest {
    #[serde(default, deserialize_with = "lenient")]
    pub from: Option<String>,
    /// RFC 3339, UTC, with milliseconds.
    #[serde(default, deserialize_with = "lenient")]
    pub timestamp: Option<String>,
    /// Absolute path of the plan's file on the member's machine.
    #[serde(default, deserialize_with = "lenient")]
    pub plan_file_path: Option<String>,
    /// The whole plan in Markdown.
    #[serde(default, deserialize_with = "lenient")]
    pub plan_content: Option<String>,
    /// `plan_approval-<ms>@<name>@<team>` (observed).
    #[serde(alias = "request_id", deserialize_with = "text")]
    pub request_id: String,
}

/// Lead → member: approves the plan or asks for changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanApprovalResponse {
    /// Id of the answered request.
    #[serde(alias = "request_id", deserialize_with = "text")]
    pub request_id: String,
    #[serde(deserialize_with = "boolean")]
    pub approved: bool,
    /// The requested changes, if the plan is rejected.
    #[serde(default, deserialize_with = "lenient")]
    pub feedback: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub timestamp: Option<String>,
    /// The permission mode to switch to, if the plan is approved. Kept as text, because an approval
    /// that names a mode of a newer release is still an approval: the recipient ignores a mode that
    /// it does not know.
    #[serde(default, deserialize_with = "lenient")]
    pub permission_mode: Option<String>,
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
