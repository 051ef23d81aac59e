//! The step of a member over ACP, as conversations. The stage plays the agent, the mailbox, the lead
//! and the person in the pane.

mod agent;
mod deliver;
mod ending;
mod lead;
mod properties;
mod questions;
mod turns;
mod urgent;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::super::effect::{MemberEffect, OutboundOp};
use super::super::event::{MemberEvent, Requests};
use super::super::state::Me;
use super::super::words::AgentRole;
use super::deliver::STORED_MS;
use super::effect::Effect;
use super::event::Event;
use super::face::ConversationUpdate;
use super::react::react;
use super::state::{AgentFacts, State};
use acp::{QuestionId, Session, SessionStart};
use conversation::ConversationAction;
use fixture::sample;
use model::decisions::request::ShutdownRequest;
use model::id::{LEAD, MemberName, RequestId, TeamName};
use model::mail::envelope::Envelope;
use model::mail::protocol::{
    Message, PermissionResponse, PermissionVerdict, PlanApprovalResponse, ShutdownRequestBody,
};
use model::members::lifecycle::MemberState;
use model::members::mode::Mode;
use model::team::event::EventKind;
use model::time::Timestamp;

/// The agent's id of its session.
const SESSION: &str = "s1";

/// Options of a shell command, in the order of qwen.
const SHELL: [(&str, &str); 3] =
    [("always", "allow_always"), ("once", "allow_once"), ("cancel", "reject_once")];

/// A journaled progress of messages.
type Progress = (EventKind, Vec<String>, Option<String>);

/// A member with all that surrounds it. Its outbound operations succeed at once, and messages that
/// it acknowledges are marked as read.
struct Stage {
    state: State,
    now: Timestamp,
    mailbox: Vec<Envelope>,
    requests: Requests,
    /// Messages for the agent that no test has taken.
    sent: Vec<Value>,
    /// The id of the prompt that the agent has not answered.
    prompt: Option<Value>,
    ops: Vec<OutboundOp>,
    acknowledged: Vec<String>,
    progress: Vec<Progress>,
    warnings: Vec<String>,
    shown: Vec<ConversationUpdate>,
    is_ended: bool,
    /// Outbound operations are not reported as done.
    is_stuck: bool,
}

impl Stage {
    /// A member whose agent has not answered yet.
    fn starting(role: AgentRole, start: SessionStart) -> Stage {
        let me = Me {
            name: MemberName::new("ann").expect("name"),
            incarnation: sample::run(2),
            team: TeamName::new("alpha").expect("name"),
            pane: None,
            backend: "tmux",
        };
        let facts = AgentFacts {
            needs_heading: false,
            modes: BTreeMap::from([
                (Mode::Plan, "plan".to_owned()),
                (Mode::AcceptEdits, "autoEdit".to_owned()),
                (Mode::BypassPermissions, "approval=never".to_owned()),
            ]),
            seen: Some("1.18.33".to_owned()),
            install: Some("npm i agent".to_owned()),
        };
        let mut stage = Stage {
            state: State::new(me, Session::new(start), facts, role),
            now: Timestamp(1_000_000_000),
            mailbox: Vec::new(),
            requests: Requests::new(),
            sent: Vec::new(),
            prompt: None,
            ops: Vec::new(),
            acknowledged: Vec::new(),
            progress: Vec::new(),
            warnings: Vec::new(),
            shown: Vec::new(),
            is_ended: false,
            is_stuck: false,
        };
        stage.tick(0);
        stage
    }

    /// A member that is accepted and idle, whose agent cannot steer.
    fn ready() -> Stage {
        Stage::ready_as(AgentRole::Teammate, false)
    }

    /// The same with an agent that can steer.
    fn steerable() -> Stage {
        Stage::ready_as(AgentRole::Teammate, true)
    }

    fn ready_as(role: AgentRole, can_steer: bool) -> Stage {
        let mut stage = Stage::starting(role, start());
        stage.initialize("1.18.33", can_steer);
        stage.reply("session/new", json!({"sessionId": SESSION}));
        stage.accept();
        stage.forget();
        stage
    }

    /// A member whose agent has loaded its session, after a run that had sent these messages
    /// without a receipt. They are still unread.
    fn loading(in_doubt: &[&str]) -> Stage {
        let seek = in_doubt.iter().map(|id| (*id).to_owned()).collect();
        let start = SessionStart { load: Some(SESSION.to_owned()), seek, ..start() };
        let mut stage = Stage::starting(AgentRole::Teammate, start);
        stage.state.in_doubt = in_doubt.iter().map(|id| (*id).to_owned()).collect();
        stage.accept();
        for id in in_doubt {
            stage.mail("bob", &format!("text of {id}"), id);
        }
        stage.initialize("1.18.33", true);
        stage
    }

    /// A member whose agent works on message `m1`, which it has received.
    fn working(can_steer: bool) -> Stage {
        let mut stage = Stage::ready_as(AgentRole::Teammate, can_steer);
        stage.mail("bob", "begin", "m1");
        stage.prompt();
        stage.says("on it");
        stage.tick(STORED_MS);
        stage.says("on it");
        stage.forget();
        stage
    }

    /// Forgets what has happened, except for the messages to the agent.
    fn forget(&mut self) {
        self.ops.clear();
        self.acknowledged.clear();
        self.progress.clear();
        self.warnings.clear();
        self.shown.clear();
    }

    /// Takes an event, with all that follows from it at once.
    fn at(&mut self, after: u64, event: Event) {
        self.now = self.now.plus_ms(after);
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            for effect in react(&mut self.state, event, self.now) {
                self.carry_out(effect, &mut events);
            }
            let next = self.state.next_tick(self.now);
            assert!(next.is_none_or(|at| at > self.now), "a busy loop: {next:?}");
        }
    }

    fn carry_out(&mut self, effect: Effect, events: &mut Vec<Event>) {
        match effect {
            Effect::Member(MemberEffect::Do(op)) => {
                let is_served = self.state.leaving.is_none() || self.state.closing.is_some();
                assert!(is_served && self.state.end.is_none(), "nothing waits for {op:?}");
                if !self.is_stuck {
                    self.ops.push(op);
                    events.push(Event::Member(MemberEvent::Done(Ok(()))));
                }
            }
            Effect::Member(MemberEffect::ReadMail) => events.push(self.unread()),
            Effect::Member(MemberEffect::Warn(text)) => self.warnings.push(text),
            Effect::Member(MemberEffect::Acknowledge(ids)) => {
                for id in &ids {
                    let unread = |one: &&mut Envelope| one.msg_id == *id && !one.read;
                    let message = self.mailbox.iter_mut().find(unread);
                    message.unwrap_or_else(|| panic!("{id} is acknowledged again")).read = true;
                }
                self.acknowledged.extend(ids);
            }
            Effect::Journal { kind, ids, reason } => self.progress.push((kind, ids, reason)),
            Effect::Write(bytes) => {
                let text = String::from_utf8(bytes).expect("UTF-8");
                for line in text.lines() {
                    let message: Value = serde_json::from_str(line).expect("JSON");
                    if message["method"] == "session/prompt" {
                        assert_eq!(self.prompt, None, "a second prompt: {}", message["id"]);
                        self.prompt = Some(message["id"].clone());
                    }
                    self.sent.push(message);
                }
            }
            Effect::Show(shown) => self.shown.push(shown),
            Effect::End => self.is_ended = true,
        }
    }

    fn tick(&mut self, after: u64) {
        self.at(after, Event::Tick);
    }

    /// Moves on to the next deadline. Returns its distance; `None` if there is no deadline.
    fn sleep(&mut self) -> Option<u64> {
        let after = self.state.next_tick(self.now)?.since(self.now);
        self.tick(after);
        Some(after)
    }

    // The mailbox and the lead.

    fn accept(&mut self) {
        self.at(0, Event::Member(MemberEvent::Accepted(MemberState::Idle)));
    }

    fn unread(&self) -> Event {
        let mail = self.mailbox.iter().filter(|envelope| !envelope.read).cloned().collect();
        Event::Member(MemberEvent::Mail { mail, requests: self.requests.clone() })
    }

    fn mail(&mut self, from: &str, text: &str, id: &str) {
        self.deliver(vec![message(from, text, id)]);
    }

    fn urgent(&mut self, id: &str) {
        self.deliver(vec![Envelope { urgent: true, ..message("bob", "stop", id) }]);
    }

    fn deliver(&mut self, mail: Vec<Envelope>) {
        self.mailbox.extend(mail);
        let event = self.unread();
        self.at(0, event);
    }

    /// The answer of `from` to a permission request; the denial with the reason, if one is given.
    fn permit(&mut self, from: &str, request: &RequestId, verdict: Result<(), &str>) {
        let verdict = match verdict {
            Ok(()) => {
                PermissionVerdict::Allowed { updated_input: None, permission_updates: Vec::new() }
            }
            Err(error) => PermissionVerdict::Denied { error: error.to_owned() },
        };
        let request_id = request.to_string();
        let answer = Message::PermissionResponse(PermissionResponse { request_id, verdict });
        let id = format!("answer-{}", self.mailbox.len());
        self.mail(from, &answer.to_text(), &id);
    }

    fn decide_plan(&mut self, request: &RequestId, approved: bool, feedback: Option<&str>) {
        self.decide_plan_with_mode(request, approved, feedback, None);
    }

    fn decide_plan_with_mode(
        &mut self,
        request: &RequestId,
        approved: bool,
        feedback: Option<&str>,
        mode: Option<&str>,
    ) {
        let answer = Message::PlanApprovalResponse(PlanApprovalResponse {
            request_id: request.to_string(),
            approved,
            feedback: feedback.map(str::to_owned),
            timestamp: None,
            permission_mode: mode.map(str::to_owned),
        });
        let id = format!("answer-{}", self.mailbox.len());
        self.mail(LEAD, &answer.to_text(), &id);
    }

    /// Asks the member to shut down, and files the request.
    fn ask_to_shut_down(&mut self, from: &str, deadline_ms: u64) -> ShutdownRequest {
        let id = RequestId::parse("shutdown-5@ann").expect("id");
        let deadline = self.now.plus_ms(deadline_ms);
        let request = sample::shutdown(id.clone(), "ann", sample::run(2), self.now, deadline);
        self.requests.insert(id.to_string(), Ok(request.clone()));
        let body = ShutdownRequestBody {
            request_id: id.to_string(),
            from: None,
            reason: None,
            timestamp: None,
            deadline_seconds: None,
        };
        self.mail(from, &Message::ShutdownRequest(body).to_text(), "down");
        request
    }

    // The agent.

    /// Feeds one line.
    fn line(&mut self, line: &Value) {
        self.at(0, Event::Output(format!("{line}\n").into_bytes()));
    }

    fn initialize(&mut self, version: &str, can_steer: bool) {
        self.reply(
            "initialize",
            json!({
                "protocolVersion": 1,
                "agentInfo": {"name": "fake", "version": version},
                "agentCapabilities": {"loadSession": true},
                "_meta": {"steering": {"supported": can_steer}},
            }),
        );
    }

    /// Answers the oldest request of a method.
    fn reply(&mut self, method: &str, result: Value) {
        let id = self.take(method)["id"].clone();
        self.line(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn update(&mut self, update: Value) {
        let params = json!({"sessionId": SESSION, "update": update});
        self.line(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
    }

    fn says(&mut self, text: &str) {
        self.update(chunk("agent_message_chunk", text));
    }

    /// Ends the turn.
    fn stops(&mut self, reason: &str) {
        let id = self.prompt.take().expect("a prompt");
        self.line(&json!({"jsonrpc": "2.0", "id": id, "result": {"stopReason": reason}}));
    }

    /// Ends the turn with an error.
    fn fails(&mut self, code: i64, text: &str) {
        let id = self.prompt.take().expect("a prompt");
        let error = json!({"code": code, "message": text});
        self.line(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
    }

    /// Asks for a permission with its request of this id.
    fn asks(&mut self, id: u64, call: &Value, options: &[(&str, &str)]) {
        let options = options
            .iter()
            .map(|(id, kind)| json!({"optionId": id, "name": format!("the {id}"), "kind": kind}));
        let options: Vec<Value> = options.collect();
        let params = json!({"sessionId": SESSION, "toolCall": call, "options": options});
        let method = "session/request_permission";
        self.line(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    /// Asks to run `ls` and returns the id of the filed request.
    fn asks_to_run(&mut self, id: u64) -> RequestId {
        self.asks(id, &json!({"toolCallId": "c", "title": "ls", "kind": "execute"}), &SHELL);
        self.filed()
    }

    /// Withdraws its request of this id.
    fn withdraws(&mut self, id: u64) {
        self.line(&json!({"method": "$/cancel_request", "params": {"requestId": id}}));
    }

    fn exits(&mut self, code: i32, said: Option<&str>) {
        self.at(0, Event::Ended { code, said: said.map(str::to_owned) });
    }

    // The pane.

    fn types(&mut self, text: &str) {
        self.at(0, Event::Person(ConversationAction::Send(text.to_owned())));
    }

    fn chooses(&mut self, id: QuestionId, option: &str) {
        let option = option.to_owned();
        self.at(0, Event::Person(ConversationAction::Answer { id, option }));
    }

    // What has happened.

    /// Takes the oldest message of a method off those to the agent.
    fn take(&mut self, method: &str) -> Value {
        self.find(method).unwrap_or_else(|| panic!("no {method} in {:?}", self.sent))
    }

    fn find(&mut self, method: &str) -> Option<Value> {
        let at = self.sent.iter().position(|message| message["method"] == method)?;
        Some(self.sent.remove(at))
    }

    /// Takes the prompt that was sent, and returns its text.
    fn prompt(&mut self) -> String {
        text_of(&self.take("session/prompt"))
    }

    fn has_prompt(&self) -> bool {
        self.sent.iter().any(|message| message["method"] == "session/prompt")
    }

    /// Takes the answer to the agent's request of this id: the chosen option, or `cancelled`.
    fn answer(&mut self, id: u64) -> Option<String> {
        let is_answer = |message: &Value| message["id"] == id && message.get("method").is_none();
        let at = self.sent.iter().position(is_answer)?;
        let answer = self.sent.remove(at);
        let outcome = &answer["result"]["outcome"];
        let option = outcome["optionId"].as_str().or(outcome["outcome"].as_str());
        Some(option.unwrap_or_else(|| panic!("no outcome: {answer}")).to_owned())
    }

    fn take_ops(&mut self) -> Vec<OutboundOp> {
        std::mem::take(&mut self.ops)
    }

    /// Returns the messages to the lead that were sent.
    fn reports(&self) -> Vec<&Message> {
        let messages = self.ops.iter().filter_map(|op| match op {
            OutboundOp::Send(message) => Some(&**message),
            _ => None,
        });
        messages.collect()
    }

    /// Returns the id of the last request to the lead.
    fn filed(&self) -> RequestId {
        let reports = self.reports();
        let id = reports.iter().rev().find_map(|message| match message {
            Message::PermissionRequest(asked) => Some(&asked.request_id),
            Message::PlanApprovalRequest(asked) => Some(&asked.request_id),
            _ => None,
        });
        RequestId::parse(id.expect("a request")).expect("id")
    }

    /// Returns the question that is open.
    fn open_question(&self) -> QuestionId {
        self.state.session.questions().next().expect("a question").id
    }

    fn is_waiting(&self, id: &str) -> bool {
        self.state.waiting.iter().any(|envelope| envelope.msg_id == id)
    }
}

fn start() -> SessionStart {
    SessionStart { cwd: "/work".to_owned(), version: "1.2.3".to_owned(), ..SessionStart::default() }
}

fn chunk(kind: &str, text: &str) -> Value {
    json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}})
}

fn text_of(prompt: &Value) -> String {
    prompt["params"]["prompt"][0]["text"].as_str().expect("a text").to_owned()
}

fn message(from: &str, text: &str, id: &str) -> Envelope {
    Envelope::new(from, text, id.to_owned(), Timestamp(1))
}

fn ids(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

fn submitted(of: &[&str], reason: Option<&str>) -> Progress {
    (EventKind::MessageSubmitted, ids(of), reason.map(str::to_owned))
}

fn interrupted(of: &[&str]) -> Progress {
    (EventKind::TurnInterrupted, ids(of), None)
}
