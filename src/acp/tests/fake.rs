//! An agent for tests: it feeds lines to a session, and looks at the lines that come out.

use serde_json::{Value, json};

use crate::{
    AgentQuestion, AgentTraits, EndedTurn, ModeChoice, Outcome, Session, SessionReport,
    SessionStart,
};

/// The id of its session.
pub(crate) const SESSION: &str = "s1";

/// A session and the agent at its other end.
pub(crate) struct FakeAgent {
    pub(crate) session: Session,
    /// All reports of the session.
    pub(crate) reports: Vec<SessionReport>,
    /// Messages of the session that no test has taken.
    sent: Vec<Value>,
}

impl FakeAgent {
    pub(crate) fn new(start: SessionStart) -> Self {
        Self { session: Session::new(start), reports: Vec::new(), sent: Vec::new() }
    }

    /// Returns an agent whose session is ready.
    pub(crate) fn ready(traits: AgentTraits) -> Self {
        Self::ready_with(SessionStart { traits, ..start() }, json!({}))
    }

    /// Returns an agent whose session is ready; `offers` is added to the reply to `session/new`.
    pub(crate) fn ready_with(start: SessionStart, offers: Value) -> Self {
        let mut agent = Self::new(start);
        agent.initialize(json!({"_meta": {"steering": {"supported": true}}}));
        let mut result = json!({"sessionId": SESSION});
        merge(&mut result, offers);
        agent.reply("session/new", result);
        assert!(agent.session.is_free());
        agent.reports.clear();
        agent
    }

    /// Answers `initialize`.
    pub(crate) fn initialize(&mut self, more: Value) -> Vec<SessionReport> {
        let mut result = json!({"protocolVersion": 1, "agentCapabilities": {}});
        merge(&mut result, more);
        self.reply("initialize", result)
    }

    /// Feeds one line and returns its reports.
    pub(crate) fn feed(&mut self, line: &Value) -> Vec<SessionReport> {
        let reports = self.session.receive(format!("{line}\n").as_bytes());
        self.reports.extend(reports.iter().cloned());
        reports
    }

    pub(crate) fn update(&mut self, update: Value) -> Vec<SessionReport> {
        self.update_of(SESSION, update)
    }

    pub(crate) fn update_of(&mut self, session: &str, update: Value) -> Vec<SessionReport> {
        let params = json!({"sessionId": session, "update": update});
        self.feed(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params}))
    }

    pub(crate) fn text(&mut self, text: &str) -> Vec<SessionReport> {
        self.update(chunk("agent_message_chunk", text))
    }

    /// Replies to the oldest request of a method that is not answered.
    pub(crate) fn reply(&mut self, method: &str, result: Value) -> Vec<SessionReport> {
        let id = self.request(method)["id"].clone();
        self.feed(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }

    pub(crate) fn reply_error(&mut self, method: &str, error: Value) -> Vec<SessionReport> {
        let id = self.request(method)["id"].clone();
        self.feed(&json!({"jsonrpc": "2.0", "id": id, "error": error}))
    }

    /// Ends the turn, and returns its end.
    pub(crate) fn end_turn(&mut self, reason: &str) -> EndedTurn {
        self.reply_prompt(json!({"stopReason": reason}))
    }

    pub(crate) fn reply_prompt(&mut self, result: Value) -> EndedTurn {
        ended(&self.reply("session/prompt", result))
    }

    /// Takes the oldest message of a method off those that were sent.
    pub(crate) fn request(&mut self, method: &str) -> Value {
        let sent = self.sent();
        let at = sent.iter().position(|message| message["method"] == method);
        sent.remove(at.unwrap_or_else(|| panic!("no {method} in {sent:?}")))
    }

    /// Returns the messages that were sent and not taken.
    pub(crate) fn sent(&mut self) -> &mut Vec<Value> {
        let output = String::from_utf8(self.session.take_output()).unwrap();
        assert!(output.is_empty() || output.ends_with('\n'));
        self.sent.extend(output.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
        &mut self.sent
    }

    /// Takes all messages that were sent.
    pub(crate) fn take_sent(&mut self) -> Vec<Value> {
        std::mem::take(self.sent())
    }

    /// Asks for a permission, and returns the question.
    pub(crate) fn ask(
        &mut self,
        id: Value,
        call: Value,
        options: &[(&str, &str)],
    ) -> AgentQuestion {
        let reports = self.request_permission(id, call, options);
        match reports.last() {
            Some(SessionReport::Asked(question)) => question.clone(),
            other => panic!("not asked: {other:?}"),
        }
    }

    pub(crate) fn request_permission(
        &mut self,
        id: Value,
        call: Value,
        options: &[(&str, &str)],
    ) -> Vec<SessionReport> {
        let options = options.iter().map(|(id, kind)| json!({"optionId": id, "kind": kind}));
        let options: Vec<Value> = options.collect();
        let params = json!({"sessionId": SESSION, "toolCall": call, "options": options});
        let method = "session/request_permission";
        self.feed(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
    }
}

pub(crate) fn start() -> SessionStart {
    SessionStart { cwd: "/work".to_owned(), version: "1.2.3".to_owned(), ..SessionStart::default() }
}

pub(crate) fn mode(id: &str) -> ModeChoice {
    ModeChoice::Mode(id.to_owned())
}

pub(crate) fn chunk(kind: &str, text: &str) -> Value {
    json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}})
}

/// Returns the end of the turn, which is the last report.
pub(crate) fn ended(reports: &[SessionReport]) -> EndedTurn {
    match reports.last() {
        Some(SessionReport::Ended(end)) => end.clone(),
        other => panic!("no end of the turn: {other:?}"),
    }
}

pub(crate) fn said(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Failed(failure) => &failure.said,
        other => panic!("no failure: {other:?}"),
    }
}

fn merge(into: &mut Value, more: Value) {
    let (Value::Object(into), Value::Object(more)) = (into, more) else { panic!("no objects") };
    into.extend(more);
}
