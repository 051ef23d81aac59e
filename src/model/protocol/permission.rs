//! What a member may do, as data: single permissions, network hosts, updates for the whole team, and the
//! permission mode. Knows nothing of who is asked, how long, or who is believed.

use serde_json::{Map, Value};

use super::fields::{Fields, Problem, Writer};
use crate::model::mode::Mode;

/// Tool permissions are written in snake case on the wire, hosts in camel case; both are read for both.
const REQUEST_ID: [&str; 2] = ["request_id", "requestId"];
const HOST_REQUEST_ID: [&str; 2] = ["requestId", "request_id"];

/// Member → lead: may I use this tool so? (seeds 000, 003, 004; observed)
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PermissionRequest {
    /// `perm-<ms>-<rand>` (observed).
    pub(crate) request_id: String,
    /// Observed to be the bare name, not `name@team`.
    pub(crate) agent_id: Option<String>,
    pub(crate) tool_name: String,
    pub(crate) tool_use_id: Option<String>,
    pub(crate) description: Option<String>,
    /// What the tool would be called with; an empty object when the member did not say.
    pub(crate) input: Value,
    /// Rules that the member proposes, so that it need not ask again; their form is Claude Code's own.
    pub(crate) permission_suggestions: Vec<Value>,
    /// Ours: a wrapper has read the question from its program's screen. None: the program asks itself.
    pub(crate) answered_by: Option<AnsweredBy>,
}

/// How an answer gets into a program that asks on its screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnsweredBy {
    /// The wrapper types the keys that its profile has for it.
    Keys,
    /// Only a person in the program's pane can answer.
    Pane,
}

impl AnsweredBy {
    const ALL: [(&'static str, AnsweredBy); 2] =
        [("keys", AnsweredBy::Keys), ("pane", AnsweredBy::Pane)];

    /// As it is written on the wire.
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

/// Lead → member: the answer to a [`PermissionRequest`] (seeds 000, 003; observed).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PermissionResponse {
    /// The id of the request that is answered.
    pub(crate) request_id: String,
    pub(crate) verdict: PermissionVerdict,
}

/// What was decided about one use of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PermissionVerdict {
    /// Wire: `subtype: "success"`.
    Allowed {
        /// What the tool is to be called with. Write the input of the request when nothing is changed, since
        /// native answers carry it.
        updated_input: Option<Value>,
        /// Rules from now on; Claude Code's own form.
        permission_updates: Vec<Value>,
    },
    /// Wire: `subtype: "error"`.
    Denied {
        /// Why, for the agent to read; empty when the lead did not say.
        error: String,
    },
}

impl PermissionResponse {
    pub(crate) const KIND: &'static str = "permission_response";

    pub(super) fn read(fields: &Fields) -> Result<Self, Problem> {
        let request_id = fields.required_text(&REQUEST_ID)?;
        // Seed 004 prints an older form that has `decision` in the place of `subtype`.
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
        // Read strictly: whoever decided may have changed the input, and an unreadable change must not turn
        // into leave to run the original.
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

/// Member → lead: may I reach this host? (seed 003, observed)
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

/// Lead → member: the answer to a [`SandboxPermissionRequest`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SandboxPermissionResponse {
    /// The id of the request that is answered.
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

/// Lead → all: a rule that holds for everybody from now on (seed 003).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TeamPermissionUpdate {
    /// Claude Code's own form, carried unread.
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

/// Lead → member: work in this permission mode from now on (seed 003, observed).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModeSetRequest {
    /// A word that is no known mode makes the message malformed: it asks for nothing that we could do.
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
    fn the_older_form_of_an_answer_is_read() {
        let denied = PermissionVerdict::Denied { error: "not now".to_owned() };
        assert_eq!(verdict(r#""decision":"rejected","feedback":"not now""#), denied);
        let updated_input = Some(serde_json::json!({"command": "ls"}));
        let allowed = PermissionVerdict::Allowed { updated_input, permission_updates: Vec::new() };
        assert_eq!(verdict(r#""decision":"approved","updatedInput":{"command":"ls"}"#), allowed);
    }

    #[test]
    fn nothing_unclear_allows_anything() {
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
    fn a_denial_needs_no_reason() {
        assert_eq!(
            verdict(r#""subtype":"error""#),
            PermissionVerdict::Denied { error: String::new() }
        );
    }

    #[test]
    fn a_request_keeps_numbers_and_key_order_of_its_input() {
        let text = concat!(
            r#"{"type":"permission_request","request_id":"perm-1-a","tool_name":"T","#,
            r#""input":{"z":1.10,"a":12345678901234567890123},"permission_suggestions":[]}"#
        );
        assert_eq!(Message::parse(text).to_text(), text);
    }

    #[test]
    fn an_unknown_mode_has_no_effect() {
        let Message::Malformed { problem, .. } =
            Message::parse(r#"{"type":"mode_set_request","mode":"root"}"#)
        else {
            panic!("taken for a message")
        };
        assert_eq!(problem, "`mode` is an unknown word: \"root\"");
    }
}
