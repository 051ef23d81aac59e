//! Permission messages: requests to use a tool or reach a host, rules for the whole team, and
//! changes of the permission mode.

use serde_json::{Map, Value};

use super::fields::{Fields, Problem, Writer};
use crate::model::mode::Mode;

// Requests for tools use snake case on the wire, requests for hosts camel case. Both spellings are
// read for both.
const REQUEST_ID: [&str; 2] = ["request_id", "requestId"];
const HOST_REQUEST_ID: [&str; 2] = ["requestId", "request_id"];

/// Member → lead: asks for permission to use a tool with this input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PermissionRequest {
    /// `perm-<ms>-<rand>` (observed).
    pub(crate) request_id: String,
    /// The plain name, not `name@team` (observed).
    pub(crate) agent_id: Option<String>,
    pub(crate) tool_name: String,
    pub(crate) tool_use_id: Option<String>,
    pub(crate) description: Option<String>,
    /// The tool's input; an empty object if the member did not send it.
    pub(crate) input: Value,
    /// Rules proposed by the member so that it need not ask again, in Claude Code's format.
    pub(crate) permission_suggestions: Vec<Value>,
    /// A phalanx extension: set if a wrapper read the question from its program's screen. `None` if
    /// the program itself asks.
    pub(crate) answered_by: Option<AnsweredBy>,
}

/// The way in which an answer reaches a program that asks on its screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnsweredBy {
    /// The wrapper types the keys defined in its profile.
    Keys,
    /// Only a person in the program's pane can answer.
    Pane,
}

impl AnsweredBy {
    const ALL: [(&'static str, AnsweredBy); 2] =
        [("keys", AnsweredBy::Keys), ("pane", AnsweredBy::Pane)];

    /// The name on the wire.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            AnsweredBy::Keys => "keys",
            AnsweredBy::Pane => "pane",
        }
    }
}

impl PermissionRequest {
    pub(crate) const KIND: &'static str = "permission_request";

    pub(super) fn read(fields: &Fields) -> Result<Self, Problem> {
        Ok(PermissionRequest {
            request_id: fields.required_text(&REQUEST_ID)?,
            agent_id: fields.text(&["agent_id"]),
            tool_name: fields.required_text(&["tool_name"])?,
            tool_use_id: fields.text(&["tool_use_id"]),
            description: fields.text(&["description"]),
            input: fields.get(&["input"]).cloned().unwrap_or_else(|| Value::Object(Map::new())),
            permission_suggestions: fields.list(&["permission_suggestions"]),
            answered_by: fields.text(&["answered_by"]).and_then(|word| {
                AnsweredBy::ALL.iter().find(|(known, _)| *known == word).map(|(_, by)| *by)
            }),
        })
    }

    pub(super) fn write(&self) -> Map<String, Value> {
        Writer::new(Self::KIND)
            .put("request_id", self.request_id.as_str())
            .put_some("agent_id", self.agent_id.as_deref())
            .put("tool_name", self.tool_name.as_str())
            .put_some("tool_use_id", self.tool_use_id.as_deref())
            .put_some("description", self.description.as_deref())
            .put("input", self.input.clone())
            .put("permission_suggestions", self.permission_suggestions.clone())
            .put_some("answered_by", self.answered_by.map(AnsweredBy::as_str))
            .done()
    }
}

/// Lead → member: answers a [`PermissionRequest`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PermissionResponse {
    /// Id of the answered request.
    pub(crate) request_id: String,
    pub(crate) verdict: PermissionVerdict,
}

/// The decision about one use of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PermissionVerdict {
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

impl PermissionResponse {
    pub(crate) const KIND: &'static str = "permission_response";

    pub(super) fn read(fields: &Fields) -> Result<Self, Problem> {
        let request_id = fields.required_text(&REQUEST_ID)?;
        // An older form has `decision` instead of `subtype`.
        let verdict = match fields.get(&["subtype"]) {
            None if fields.get(&["decision"]).is_some() => read_decision(fields)?,
            _ => read_subtype(fields)?,
        };
        Ok(PermissionResponse { request_id, verdict })
    }

    pub(super) fn write(&self) -> Map<String, Value> {
        let object = Writer::new(Self::KIND).put("request_id", self.request_id.as_str());
        match &self.verdict {
            PermissionVerdict::Allowed { updated_input, permission_updates } => {
                let mut response = Map::new();
                if let Some(input) = updated_input {
                    response.insert("updated_input".to_owned(), input.clone());
                }
                response.insert(
                    "permission_updates".to_owned(),
                    Value::from(permission_updates.clone()),
                );
                object.put("subtype", "success").put("response", response)
            }
            PermissionVerdict::Denied { error } => {
                object.put("subtype", "error").put("error", error.as_str())
            }
        }
        .done()
    }
}

fn read_subtype(fields: &Fields) -> Result<PermissionVerdict, Problem> {
    let subtype = fields.required_text(&["subtype"])?;
    match subtype.as_str() {
        // Parsed strictly: the lead may have changed the input, and an unreadable change must not
        // permit the original input.
        "success" if fields.get(&["response"]).is_some() => {
            Ok(allowed(&Fields(&fields.required_object(&["response"])?)))
        }
        "success" => {
            Ok(PermissionVerdict::Allowed { updated_input: None, permission_updates: Vec::new() })
        }
        "error" => {
            Ok(PermissionVerdict::Denied { error: fields.text(&["error"]).unwrap_or_default() })
        }
        _ => Err(Problem::UnknownWord { field: "subtype", word: subtype }),
    }
}

fn read_decision(fields: &Fields) -> Result<PermissionVerdict, Problem> {
    let decision = fields.required_text(&["decision"])?;
    match decision.as_str() {
        "approved" => Ok(allowed(fields)),
        "rejected" => {
            Ok(PermissionVerdict::Denied { error: fields.text(&["feedback"]).unwrap_or_default() })
        }
        _ => Err(Problem::UnknownWord { field: "decision", word: decision }),
    }
}

fn allowed(fields: &Fields) -> PermissionVerdict {
    PermissionVerdict::Allowed {
        updated_input: fields.get(&["updated_input", "updatedInput"]).cloned(),
        permission_updates: fields.list(&["permission_updates", "permissionUpdates"]),
    }
}

/// Member → lead: asks for permission to reach a network host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SandboxPermissionRequest {
    pub(crate) request_id: String,
    /// A host name, without scheme or port.
    pub(crate) host: String,
}

impl SandboxPermissionRequest {
    pub(crate) const KIND: &'static str = "sandbox_permission_request";

    pub(super) fn read(fields: &Fields) -> Result<Self, Problem> {
        Ok(SandboxPermissionRequest {
            request_id: fields.required_text(&HOST_REQUEST_ID)?,
            host: fields.required_text(&["host"])?,
        })
    }

    pub(super) fn write(&self) -> Map<String, Value> {
        Writer::new(Self::KIND)
            .put("requestId", self.request_id.as_str())
            .put("host", self.host.as_str())
            .done()
    }
}

/// Lead → member: answers a [`SandboxPermissionRequest`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SandboxPermissionResponse {
    /// Id of the answered request.
    pub(crate) request_id: String,
    pub(crate) host: Option<String>,
    pub(crate) allow: bool,
}

impl SandboxPermissionResponse {
    pub(crate) const KIND: &'static str = "sandbox_permission_response";

    pub(super) fn read(fields: &Fields) -> Result<Self, Problem> {
        Ok(SandboxPermissionResponse {
            request_id: fields.required_text(&HOST_REQUEST_ID)?,
            host: fields.text(&["host"]),
            allow: fields.required_bool(&["allow"])?,
        })
    }

    pub(super) fn write(&self) -> Map<String, Value> {
        Writer::new(Self::KIND)
            .put("requestId", self.request_id.as_str())
            .put_some("host", self.host.as_deref())
            .put("allow", self.allow)
            .done()
    }
}

/// Lead → all members: adds a permission rule for the whole team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TeamPermissionUpdate {
    /// In Claude Code's format, passed through without being parsed.
    pub(crate) permission_update: Map<String, Value>,
    pub(crate) tool_name: Option<String>,
}

impl TeamPermissionUpdate {
    pub(crate) const KIND: &'static str = "team_permission_update";

    pub(super) fn read(fields: &Fields) -> Result<Self, Problem> {
        Ok(TeamPermissionUpdate {
            permission_update: fields.required_object(&["permissionUpdate"])?,
            tool_name: fields.text(&["toolName"]),
        })
    }

    pub(super) fn write(&self) -> Map<String, Value> {
        Writer::new(Self::KIND)
            .put("permissionUpdate", self.permission_update.clone())
            .put_some("toolName", self.tool_name.as_deref())
            .done()
    }
}

/// Lead → member: switches to another permission mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModeSetRequest {
    /// An unknown mode makes the message malformed, since it could not be applied.
    pub(crate) mode: Mode,
    pub(crate) from: Option<String>,
}

impl ModeSetRequest {
    pub(crate) const KIND: &'static str = "mode_set_request";

    pub(super) fn read(fields: &Fields) -> Result<Self, Problem> {
        let word = fields.required_text(&["mode"])?;
        let mode = Mode::parse(&word).ok_or(Problem::UnknownWord { field: "mode", word })?;
        Ok(ModeSetRequest { mode, from: fields.text(&["from"]) })
    }

    pub(super) fn write(&self) -> Map<String, Value> {
        Writer::new(Self::KIND)
            .put("mode", self.mode.as_str())
            .put_some("from", self.from.as_deref())
            .done()
    }
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
        let updated_input = Some(serde_json::json!({"command": "ls"}));
        let allowed = PermissionVerdict::Allowed { updated_input, permission_updates: Vec::new() };
        assert_eq!(verdict(r#""decision":"approved","updatedInput":{"command":"ls"}"#), allowed);
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
    fn unknown_mode_is_malformed() {
        let Message::Malformed { problem, .. } =
            Message::parse(r#"{"type":"mode_set_request","mode":"root"}"#)
        else {
            panic!("taken for a message")
        };
        assert_eq!(problem, "`mode` is an unknown word: \"root\"");
    }
}
