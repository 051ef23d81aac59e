//! Permission messages: requests to use a tool or reach a host, rules for the whole team, and
//! changes of the permission mode. Requests for tools use snake case on the wire, requests for
//! hosts camel case.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::fields::{self, KeyCase, boolean, lenient, lenient_list, object, text, word};
use crate::wire::{self, Object};

/// Member → lead: asks for permission to use a tool with this input.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PermissionRequest {
    /// `perm-<ms>-<rand>` (observed).
    #[serde(alias = "requestId", deserialize_with = "text")]
    pub request_id: String,
    /// The plain name, not `name@team` (observed).
    #[serde(default, deserialize_with = "lenient")]
    pub agent_id: Option<String>,
    #[serde(deserialize_with = "text")]
    pub tool_name: String,
    #[serde(default, deserialize_with = "lenient")]
    pub tool_use_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub description: Option<String>,
    /// The tool's input; an empty object if the member did not send it.
    #[serde(default = "empty_object")]
    pub input: Value,
    /// Rules proposed by the member so that it need not ask again, in Claude Code's format.
    #[serde(default, deserialize_with = "lenient_list")]
    pub permission_suggestions: Vec<Value>,
    /// A phalanx extension: set if a wrapper read the question from its program's screen. `None` if
    /// the program itself asks.
    #[serde(default, deserialize_with = "lenient")]
    pub answered_by: Option<AnsweredBy>,
    /// A phalanx extension: true for a question of the program itself, such as whether it may trust
    /// a directory. `tool_name` is the name of the dialog.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_dialog: bool,
}

fn empty_object() -> Value {
    json!({})
}

/// The way in which an answer reaches a program that asks on its screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum AnsweredBy {
    /// The wrapper types the keys defined in its profile.
    Keys,
    /// Only a person in the program's pane can answer.
    Pane,
}

impl AnsweredBy {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Lead → member: answers a [`PermissionRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Object", into = "Object")]
pub struct PermissionResponse {
    /// Id of the answered request.
    pub request_id: String,
    pub verdict: PermissionVerdict,
}

/// The decision about one use of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PermissionVerdict {
    /// Wire: `subtype: "success"`.
    Allowed {
        /// The tool's input to use. Writers repeat the requested input if it is unchanged, as
        /// Claude Code does.
        updated_input: Option<Value>,
        /// Permission updates for the session, in Claude Code's format.
        permission_updates: Vec<Value>,
    },
    /// Wire: `subtype: "error"`.
    Denied {
        /// Reason for the agent; empty if the lead gave none.
        error: String,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Subtype {
    Success,
    Error,
}

#[derive(Deserialize)]
struct SubtypeForm {
    #[serde(alias = "requestId", deserialize_with = "text")]
    request_id: String,
    #[serde(deserialize_with = "word")]
    subtype: Subtype,
    #[serde(default, deserialize_with = "lenient")]
    error: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum OlderDecision {
    Approved,
    Rejected,
}

/// An older form of [`SubtypeForm`], with the fields of [`Permission`] beside the decision.
#[derive(Deserialize)]
struct DecisionForm {
    #[serde(alias = "requestId", deserialize_with = "text")]
    request_id: String,
    #[serde(deserialize_with = "word")]
    decision: OlderDecision,
    #[serde(default, deserialize_with = "lenient")]
    feedback: Option<String>,
}

#[derive(Deserialize)]
struct Permission {
    #[serde(alias = "updatedInput")]
    updated_input: Option<Value>,
    #[serde(default, alias = "permissionUpdates", deserialize_with = "lenient_list")]
    permission_updates: Vec<Value>,
}

impl TryFrom<Object> for PermissionResponse {
    type Error = String;

    fn try_from(object: Object) -> Result<PermissionResponse, String> {
        if object.contains_key("decision") && !object.contains_key("subtype") {
            let DecisionForm { request_id, decision, feedback } = fields::read(object.clone())?;
            let verdict = match decision {
                OlderDecision::Approved => allowed(object)?,
                OlderDecision::Rejected => denied(feedback),
            };
            return Ok(PermissionResponse { request_id, verdict });
        }
        let SubtypeForm { request_id, subtype, error } = fields::read(object.clone())?;
        let verdict = match (subtype, object.get("response")) {
            (Subtype::Error, _) => denied(error),
            (Subtype::Success, None) => allowed(Object::new())?,
            (Subtype::Success, Some(Value::Object(response))) => allowed(response.clone())?,
            // The lead may have changed the input, and an unreadable change must not permit the
            // original input.
            (Subtype::Success, Some(_)) => return Err("`response` is not an object".to_owned()),
        };
        Ok(PermissionResponse { request_id, verdict })
    }
}

fn allowed(mut permission: Object) -> Result<PermissionVerdict, String> {
    fields::normalize(&mut permission, KeyCase::Snake);
    let Permission { updated_input, permission_updates } = fields::read(permission)?;
    Ok(PermissionVerdict::Allowed { updated_input, permission_updates })
}

fn denied(error: Option<String>) -> PermissionVerdict {
    PermissionVerdict::Denied { error: error.unwrap_or_default() }
}

impl From<PermissionResponse> for Object {
    fn from(answer: PermissionResponse) -> Object {
        let mut object = Object::new();
        wire::put(&mut object, "request_id", answer.request_id);
        match answer.verdict {
            PermissionVerdict::Allowed { updated_input, permission_updates } => {
                let mut response = Object::new();
                wire::put_or_remove(&mut response, "updated_input", updated_input);
                wire::put(&mut response, "permission_updates", permission_updates);
                wire::put(&mut object, "subtype", "success");
                wire::put(&mut object, "response", response);
            }
            PermissionVerdict::Denied { error } => {
                wire::put(&mut object, "subtype", "error");
                wire::put(&mut object, "error", error);
            }
        }
        object
    }
}

/// Member → lead: asks for permission to reach a network host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "WireSandboxRequest")]
pub struct SandboxPermissionRequest {
    pub request_id: String,
    /// A host name, without scheme or port.
    pub host: String,
}

/// A request for a host as programs send it: the host by itself, or in a pattern (Claude Code
/// 2.1.34 to 2.1.331).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireSandboxRequest {
    #[serde(alias = "request_id", deserialize_with = "text")]
    request_id: String,
    #[serde(default)]
    host: Option<Value>,
    #[serde(default, deserialize_with = "lenient")]
    host_pattern: Option<Object>,
}

impl TryFrom<WireSandboxRequest> for SandboxPermissionRequest {
    type Error = String;

    fn try_from(wire: WireSandboxRequest) -> Result<Self, String> {
        let WireSandboxRequest { request_id, host, host_pattern } = wire;
        let in_pattern = || host_pattern?.get("host").cloned();
        match host.or_else(in_pattern) {
            Some(Value::String(host)) if host.is_empty() => Err("`host` is empty".to_owned()),
            Some(Value::String(host)) => Ok(SandboxPermissionRequest { request_id, host }),
            Some(_) => Err("`host` is not a string".to_owned()),
            None => Err("it has no `host`, also not in `hostPattern`".to_owned()),
        }
    }
}

/// Lead → member: answers a [`SandboxPermissionRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SandboxPermissionResponse {
    /// Id of the answered request.
    #[serde(alias = "request_id", deserialize_with = "text")]
    pub request_id: String,
    #[serde(default, deserialize_with = "lenient")]
    pub host: Option<String>,
    #[serde(deserialize_with = "boolean")]
    pub allow: bool,
}

/// Lead → all members: adds a permission rule for the whole team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TeamPermissionUpdate {
    /// In Claude Code's format, passed through without being parsed.
    #[serde(deserialize_with = "object")]
    pub permission_update: Object,
    #[serde(default, deserialize_with = "lenient")]
    pub tool_name: Option<String>,
}

/// Lead → member: switches to another permission mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeSetRequest {
    /// One of [`Mode`](crate::members::mode::Mode), or a mode of a later release.
    #[serde(deserialize_with = "word")]
    pub mode: String,
    #[serde(default, deserialize_with = "lenient")]
    pub from: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::super::Message;
    use super::*;

    fn verdict(rest: &str) -> PermissionVerdict {
        match Message::parse(&format!(
            r#"{{"type":"permission_response","request_id":"perm-1-a",{rest}}}"#
        )) {
            Message::PermissionResponse(response) => response.verdict,
            other => panic!("not an answer: {other:?}"),
        }
    }

    fn problem(rest: &str) -> String {
        match Message::parse(&format!(
            r#"{{"type":"permission_response","request_id":"perm-1-a",{rest}}}"#
        )) {
            Message::Malformed { problem, .. } => problem,
            other => panic!("taken for a message: {other:?}"),
        }
    }

    #[test]
    fn older_form_of_an_answer_is_read() {
        let denied = PermissionVerdict::Denied { error: "not now".to_owned() };
        assert_eq!(verdict(r#""decision":"rejected","feedback":"not now""#), denied);
        let updated_input = Some(json!({"command": "ls"}));
        let allowed = PermissionVerdict::Allowed { updated_input, permission_updates: Vec::new() };
        assert_eq!(verdict(r#""decision":"approved","updatedInput":{"command":"ls"}"#), allowed);
    }

    #[test]
    fn written_spelling_takes_precedence_over_its_alias() {
        let allowed = PermissionVerdict::Allowed {
            updated_input: Some(json!({"command": "ls"})),
            permission_updates: vec![json!("a")],
        };
        let both = concat!(
            r#""updatedInput":{"command":"rm"},"updated_input":{"command":"ls"},"#,
            r#""permission_updates":["a"],"permissionUpdates":["b"]"#
        );
        assert_eq!(verdict(&format!(r#""subtype":"success","response":{{{both}}}"#)), allowed);
        assert_eq!(verdict(&format!(r#""decision":"approved",{both}"#)), allowed);
        for (kind, rest) in [
            ("permission_request", r#""tool_name":"T""#),
            ("permission_response", r#""subtype":"error""#),
            ("permission_response", r#""decision":"rejected""#),
        ] {
            let ids = r#""requestId":"other","request_id":"perm-1""#;
            let message = Message::parse(&format!(r#"{{"type":"{kind}",{ids},{rest}}}"#));
            assert_eq!(message.request_id(), Some("perm-1"), "{message:?}");
        }
    }

    #[test]
    fn unclear_answers_never_allow() {
        assert_eq!(problem(r#""response":{}"#), "`subtype` is missing");
        assert_eq!(problem(r#""subtype":"yes""#), "`subtype` is an unknown word: \"yes\"");
        assert_eq!(problem(r#""subtype":true,"decision":"approved""#), "`subtype` is not a string");
        assert_eq!(
            problem(r#""subtype":"success","response":"ls""#),
            "`response` is not an object"
        );
        assert_eq!(problem(r#""decision":"maybe""#), "`decision` is an unknown word: \"maybe\"");
    }

    #[test]
    fn denial_without_a_reason_is_read() {
        assert_eq!(
            verdict(r#""subtype":"error""#),
            PermissionVerdict::Denied { error: String::new() }
        );
    }

    #[test]
    fn request_keeps_numbers_and_key_order_of_its_input() {
        let text = concat!(
            r#"{"type":"permission_request","request_id":"perm-1-a","tool_name":"T","#,
            r#""input":{"z":1.10,"a":12345678901234567890123},"permission_suggestions":[]}"#
        );
        assert_eq!(Message::parse(text).to_text(), text);
    }

    #[test]
    fn unknown_mode_is_kept() {
        let text = r#"{"type":"mode_set_request","mode":"bubble"}"#;
        let message = Message::parse(text);
        assert!(matches!(&message, Message::ModeSetRequest(ask) if ask.mode == "bubble"));
        assert_eq!(message.to_text(), text);
    }
}
