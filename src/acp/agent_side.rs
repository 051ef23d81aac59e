//! The agent side of the protocol: a client, such as an editor, opens a session and sends prompts.

use std::collections::BTreeSet;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::client_wire::{OpenParams, PermissionReply, PromptParams, option, tool_call, update};
use crate::lines::{InputLine, LONGEST_LINE, LineSplitter, readable};
use crate::report::{
    AgentFailure, AgentToolCall, FailureKind, Outcome, QuestionOption, SessionReport, ToolStatus,
};
use crate::wire::{RpcMessage, parse_or_default};
use crate::writer::RequestWriter;

/// Error codes of JSON-RPC and of the protocol.
const PARSE_ERROR: i64 = -32700;
const NO_SUCH_METHOD: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const FAILED: i64 = -32603;
const LOGIN_REQUIRED: i64 = -32000;

/// Stop reasons of the protocol that a turn may end with besides `end_turn` and `cancelled`.
const STOP_REASONS: [&str; 3] = ["max_tokens", "max_turn_requests", "refusal"];

/// Something that the client wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientCall {
    /// A session in this absolute directory. [`AgentSide::open`] or [`AgentSide::refuse`] answers.
    Open { cwd: String },
    /// [`AgentSide::end_prompts`] answers.
    Prompt(String),
    /// The prompts are to end.
    Cancel,
    /// The answer to a question: one of its options, or none if the client has withdrawn it.
    Answered { key: String, option: Option<String> },
}

/// The connection to a client, as the agent, without I/O. It has one session at a time.
#[derive(Debug, Default)]
pub struct AgentSide {
    version: String,
    lines: LineSplitter,
    /// Each request asks a question; its key is kept.
    writer: RequestWriter<String>,
    /// The request that opens the session, until it is answered.
    opening: Option<Value>,
    session: Option<String>,
    /// The number of sessions so far.
    sessions: u64,
    /// Requests of the prompts that have not ended.
    prompts: Vec<Value>,
    /// Tool calls that the client knows and that have not ended.
    tools: BTreeSet<String>,
    /// The last list of commands, for the next session.
    commands: Option<SessionReport>,
}

impl AgentSide {
    /// `version` is that of this program.
    pub fn new(version: &str) -> AgentSide {
        let lines = LineSplitter::new(LONGEST_LINE);
        AgentSide { version: version.to_owned(), lines, ..AgentSide::default() }
    }

    /// Takes bytes of the client.
    pub fn receive(&mut self, bytes: &[u8]) -> Vec<ClientCall> {
        let mut calls = Vec::new();
        let mut lines = std::mem::take(&mut self.lines);
        lines.feed(bytes, |line| calls.extend(self.handle_line(line)));
        self.lines = lines;
        calls
    }

    /// Returns the bytes for the client.
    pub fn take_output(&mut self) -> Vec<u8> {
        self.writer.take()
    }

    /// Returns whether a prompt has not ended.
    pub fn is_prompted(&self) -> bool {
        !self.prompts.is_empty()
    }

    /// Answers the request for a session. Each one after the first takes the place of the one
    /// before.
    pub fn open(&mut self, name: &str) {
        let Some(request) = self.opening.take() else { return };
        self.end_prompts(&Outcome::Cancelled);
        self.sessions += 1;
        let session = match self.sessions {
            1 => name.to_owned(),
            nth => format!("{name}-{nth}"),
        };
        self.writer.reply(&request, json!({"sessionId": session}));
        self.session = Some(session);
        self.tools.clear();
        if let Some(commands) = self.commands.clone() {
            self.report(&commands);
        }
    }

    /// Refuses the request for a session.
    pub fn refuse(&mut self, failure: &AgentFailure) {
        if let Some(request) = self.opening.take() {
            self.writer.reply_error(&request, code(failure), &failure.said);
        }
    }

    /// Passes a report of another session on, as far as clients have a notion of it.
    pub fn report(&mut self, report: &SessionReport) {
        if matches!(report, SessionReport::Commands(_)) {
            self.commands = Some(report.clone());
        }
        match report {
            SessionReport::Tool(call) => self.tool(call),
            report => {
                if let Some(update) = update(report) {
                    self.send(update);
                }
            }
        }
    }

    /// Shows the state of a tool call.
    pub fn tool(&mut self, call: &AgentToolCall) {
        let is_new = !self.tools.contains(&call.id);
        let mut update = tool_call(call);
        update["sessionUpdate"] = if is_new { "tool_call" } else { "tool_call_update" }.into();
        match call.status {
            ToolStatus::Pending | ToolStatus::InProgress => {
                self.tools.insert(call.id.clone());
            }
            ToolStatus::Completed | ToolStatus::Failed => drop(self.tools.remove(&call.id)),
        }
        self.send(update);
    }

    /// Asks the client. [`ClientCall::Answered`] has the answer, with this key.
    pub fn ask(&mut self, key: &str, tool: &AgentToolCall, options: &[QuestionOption]) {
        if !self.tools.contains(&tool.id) {
            self.tool(tool);
        }
        let Some(session) = &self.session else { return };
        let params = json!({
            "sessionId": session,
            "toolCall": tool_call(tool),
            "options": options.iter().map(option).collect::<Vec<_>>(),
        });
        self.writer.request(key.to_owned(), "session/request_permission", params);
    }

    /// Returns the keys of the open questions.
    pub fn asked(&self) -> Vec<String> {
        self.writer.awaited.values().cloned().collect()
    }

    /// Takes a question back: it was answered elsewhere.
    pub fn withdraw(&mut self, key: &str) {
        let found = self.writer.awaited.iter().find(|(_, other)| *other == key);
        if let Some(id) = found.map(|(id, _)| *id) {
            self.writer.awaited.remove(&id);
            self.writer.notify("$/cancel_request", json!({"requestId": id}));
        }
    }

    /// Ends a tool call with these words.
    pub fn settle(&mut self, tool: &str, status: ToolStatus, words: &str) {
        self.tools.remove(tool);
        let status: &str = status.into();
        let content = json!([{"type": "content", "content": {"type": "text", "text": words}}]);
        self.send(json!({
            "sessionUpdate": "tool_call_update",
            "toolCallId": tool,
            "status": status,
            "content": content,
        }));
    }

    /// Ends all prompts.
    pub fn end_prompts(&mut self, outcome: &Outcome) {
        for request in std::mem::take(&mut self.prompts) {
            let reason = match outcome {
                Outcome::Failed(failure) => {
                    self.writer.reply_error(&request, code(failure), &failure.said);
                    continue;
                }
                Outcome::Cancelled => "cancelled",
                Outcome::Stopped(reason) if STOP_REASONS.contains(&reason.as_str()) => reason,
                Outcome::Done | Outcome::Stopped(_) => "end_turn",
            };
            self.writer.reply(&request, json!({"stopReason": reason}));
        }
    }

    fn send(&mut self, update: Value) {
        let Some(session) = &self.session else { return };
        self.writer.notify("session/update", json!({"sessionId": session, "update": update}));
    }

    fn handle_line(&mut self, line: InputLine<'_>) -> Option<ClientCall> {
        let InputLine::Whole(bytes) = line else {
            self.writer.reply_error(&Value::Null, PARSE_ERROR, "the line is too long");
            return None;
        };
        let text = readable(bytes)?;
        let Ok(message) = serde_json::from_str::<RpcMessage<'_>>(&text) else {
            self.writer.reply_error(&Value::Null, PARSE_ERROR, "the line is no message");
            return None;
        };
        match (message.method.as_deref(), message.id) {
            (Some(method), Some(id)) => {
                let id = serde_json::from_str(id.get()).unwrap_or_default();
                self.handle_request(method, id, message.params)
            }
            (Some("session/cancel"), None) => {
                let is_open = self.session.is_some();
                is_open.then_some(ClientCall::Cancel)
            }
            (None, Some(id)) => self.handle_reply(id, message.result),
            (_, None) => None,
        }
    }

    fn handle_request(
        &mut self,
        method: &str,
        id: Value,
        params: Option<&RawValue>,
    ) -> Option<ClientCall> {
        match method {
            "initialize" => {
                let reply = self.capabilities();
                self.writer.reply(&id, reply);
                None
            }
            "authenticate" => {
                self.writer.reply(&id, json!({}));
                None
            }
            "session/new" => {
                let OpenParams { cwd } = parse_or_default(params);
                if !cwd.starts_with('/') {
                    self.writer.reply_error(&id, INVALID_PARAMS, "`cwd` is no absolute path");
                    return None;
                }
                if self.opening.is_some() {
                    self.writer.reply_error(&id, FAILED, "another session is being opened");
                    return None;
                }
                self.opening = Some(id);
                Some(ClientCall::Open { cwd })
            }
            "session/prompt" => {
                let params: PromptParams = parse_or_default(params);
                if self.session.as_deref() != Some(params.session_id.as_str()) {
                    let words = "this session is not open; another one may have taken its place";
                    self.writer.reply_error(&id, INVALID_PARAMS, words);
                    return None;
                }
                let Some(text) = params.text() else {
                    let words = "a prompt has only texts, links and resources, as \
                                 `promptCapabilities` says: link to the file of an image";
                    self.writer.reply_error(&id, INVALID_PARAMS, words);
                    return None;
                };
                self.prompts.push(id);
                Some(ClientCall::Prompt(text))
            }
            _ => {
                let words = format!("there is no method {method:?}");
                self.writer.reply_error(&id, NO_SUCH_METHOD, &words);
                None
            }
        }
    }

    fn handle_reply(&mut self, id: &RawValue, result: Option<&RawValue>) -> Option<ClientCall> {
        let id = id.get().trim_matches('"').parse().ok()?;
        let key = self.writer.answered(id)?;
        let reply: PermissionReply = parse_or_default(result);
        Some(ClientCall::Answered { key, option: reply.option() })
    }

    fn capabilities(&self) -> Value {
        json!({
            "protocolVersion": 1,
            "agentCapabilities": {
                "loadSession": false,
                "promptCapabilities": {"image": false, "audio": false, "embeddedContext": true},
                "mcpCapabilities": {"http": false, "sse": false},
            },
            "agentInfo": {"name": "phalanx", "title": "phalanx", "version": self.version},
            "authMethods": [],
        })
    }
}

fn code(failure: &AgentFailure) -> i64 {
    match failure.kind {
        FailureKind::NeedsLogin => LOGIN_REQUIRED,
        FailureKind::Limited | FailureKind::TooLong | FailureKind::Other => FAILED,
    }
}
