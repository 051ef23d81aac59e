//! The messages of a client as types, and updates for it as JSON.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::report::{
    AgentCommand, AgentToolCall, PlanEntry, QuestionOption, SessionReport, ToolContent,
};
use crate::wire::{lenient, lenient_list};

#[derive(Debug, Default, Deserialize)]
pub(crate) struct OpenParams {
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) cwd: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PromptParams {
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) session_id: String,
    #[serde(default, deserialize_with = "lenient_list")]
    prompt: Vec<PromptBlock>,
}

/// A part of a prompt: a text, a link, or a resource with its text.
#[derive(Debug, Default, Deserialize)]
struct PromptBlock {
    #[serde(default, rename = "type", deserialize_with = "lenient")]
    kind: String,
    #[serde(default, deserialize_with = "lenient")]
    text: String,
    #[serde(default, deserialize_with = "lenient")]
    uri: String,
    #[serde(default, deserialize_with = "lenient")]
    resource: EmbeddedResource,
}

#[derive(Debug, Default, Deserialize)]
struct EmbeddedResource {
    #[serde(default, deserialize_with = "lenient")]
    uri: String,
    #[serde(default, deserialize_with = "lenient")]
    text: Option<String>,
}

impl PromptParams {
    /// Returns the prompt as one text; `None` if a part of it has a type that is not advertised. A
    /// link is its path, and a resource its path and its text.
    pub(crate) fn text(&self) -> Option<String> {
        self.prompt.iter().map(PromptBlock::text).collect()
    }
}

impl PromptBlock {
    /// Its types are those of `promptCapabilities`.
    fn text(&self) -> Option<String> {
        let EmbeddedResource { uri, text } = &self.resource;
        match (self.kind.as_str(), text) {
            ("text", _) => Some(self.text.clone()),
            ("resource_link", _) => Some(path_of(&self.uri).to_owned()),
            ("resource", None) => Some(path_of(uri).to_owned()),
            ("resource", Some(text)) => {
                Some(format!("\n<file path={:?}>\n{text}\n</file>\n", path_of(uri)))
            }
            _ => None,
        }
    }
}

fn path_of(uri: &str) -> &str {
    uri.strip_prefix("file://").unwrap_or(uri)
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct PermissionReply {
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) outcome: PermissionOutcome,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PermissionOutcome {
    #[serde(default, deserialize_with = "lenient")]
    outcome: String,
    #[serde(default, deserialize_with = "lenient")]
    option_id: Option<String>,
}

impl PermissionReply {
    /// Returns the chosen option; `None` if the question was cancelled.
    pub(crate) fn option(self) -> Option<String> {
        self.outcome.option_id.filter(|_| self.outcome.outcome == "selected")
    }
}

/// Returns the update for a report of a session; `None` for one that concerns its owner only. A
/// tool call is passed on by [`tool_call`].
pub(crate) fn update(report: &SessionReport) -> Option<Value> {
    Some(match report {
        SessionReport::Text { message, text } => {
            let mut update = chunk("agent_message_chunk", text);
            if let Some(id) = message {
                update["messageId"] = id.as_str().into();
            }
            update
        }
        SessionReport::Notice(text) => chunk("agent_message_chunk", text),
        SessionReport::Thought(text) => chunk("agent_thought_chunk", text),
        SessionReport::Plan(entries) => {
            let entries: Vec<Value> = entries.iter().map(plan_entry).collect();
            json!({"sessionUpdate": "plan", "entries": entries})
        }
        SessionReport::Commands(commands) => {
            let commands: Vec<Value> = commands.iter().map(command).collect();
            json!({"sessionUpdate": "available_commands_update", "availableCommands": commands})
        }
        SessionReport::Title(title) => {
            json!({"sessionUpdate": "session_info_update", "title": title})
        }
        SessionReport::Context { used, size } => {
            json!({"sessionUpdate": "usage_update", "used": used, "size": size})
        }
        SessionReport::Tool(_)
        | SessionReport::Initialized(_)
        | SessionReport::Ready { .. }
        | SessionReport::Refused(_)
        | SessionReport::User(_)
        | SessionReport::Mode { .. }
        | SessionReport::Model(_)
        | SessionReport::Received { .. }
        | SessionReport::Steered { .. }
        | SessionReport::Retries(_)
        | SessionReport::Asked(_)
        | SessionReport::Withdrawn { .. }
        | SessionReport::Ended(_)
        | SessionReport::Fault(_) => return None,
    })
}

fn chunk(kind: &str, text: &str) -> Value {
    json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}})
}

fn plan_entry(entry: &PlanEntry) -> Value {
    let status: &str = entry.state.into();
    json!({"content": entry.text, "priority": "medium", "status": status})
}

fn command(command: &AgentCommand) -> Value {
    json!({"name": command.name, "description": command.about})
}

/// Returns the whole state of a tool call.
pub(crate) fn tool_call(call: &AgentToolCall) -> Value {
    let (kind, status): (&str, &str) = (call.kind.into(), call.status.into());
    let content = call.content.iter().map(|content| match content {
        ToolContent::Text(text) => {
            json!({"type": "content", "content": {"type": "text", "text": text}})
        }
        ToolContent::Diff(diff) => {
            json!({"type": "diff", "path": diff.path, "oldText": diff.old, "newText": diff.new})
        }
    });
    let locations = call.locations.iter().map(|path| json!({"path": path}));
    json!({
        "toolCallId": call.id,
        "title": call.title,
        "kind": kind,
        "status": status,
        "content": content.collect::<Vec<_>>(),
        "locations": locations.collect::<Vec<_>>(),
        "rawInput": call.input,
    })
}

pub(crate) fn option(option: &QuestionOption) -> Value {
    let kind: &str = option.kind.into();
    json!({"optionId": option.id, "name": option.name, "kind": kind})
}
