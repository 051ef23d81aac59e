//! A session of an agent: a state machine between the lines of the agent and the owner's calls.

use std::collections::VecDeque;

use serde_json::json;
use serde_json::value::RawValue;

use crate::calls::CallTable;
use crate::early::EarlyUpdates;
use crate::failure::one_line;
use crate::lines::{InputLine, LONGEST_LINE, LineSplitter, readable};
use crate::questions::{QuestionTable, cancelled, selected};
use crate::replay::UserMessages;
use crate::report::{
    AgentFailure, AgentInfo, AgentQuestion, EndedTurn, Outcome, QuestionId, SessionReport,
    TokenUsage,
};
use crate::settings::SessionSettings;
use crate::start::{ModeChoice, SessionStart};
use crate::turn::Turn;
use crate::usage::UsageMeter;
use crate::wire::{PromptReply, RpcMessage, RpcResult, SteerReply, parse_or_default};
use crate::writer::{AwaitedReply, RequestWriter};

/// The most faults that are reported one by one.
const REPORTED_FAULTS: u64 = 20;

/// The longest excerpt of a line in a fault, in characters.
const EXCERPT: usize = 120;

/// A session with one agent process, which the owner starts, feeds and ends.
#[derive(Debug, Default)]
pub struct Session {
    pub(crate) start: SessionStart,
    /// The agent, as far as it has described itself.
    pub(crate) agent: AgentInfo,
    pub(crate) phase: SessionPhase,
    /// The agent's id of the session, with which a later run can continue it.
    pub(crate) id: Option<String>,
    pub(crate) is_loaded: bool,
    pub(crate) lines: LineSplitter,
    pub(crate) writer: RequestWriter<AwaitedReply>,
    /// Reports that [`Session::receive`] returns next.
    pub(crate) reports: Vec<SessionReport>,
    pub(crate) early: EarlyUpdates,
    pub(crate) settings: SessionSettings,
    /// The modes of the start that are not set yet.
    pub(crate) start_modes: VecDeque<ModeChoice>,
    /// The last mode that the owner has set before the session was ready.
    pub(crate) later_mode: Option<ModeChoice>,
    pub(crate) calls: CallTable,
    pub(crate) questions: QuestionTable,
    pub(crate) user: UserMessages,
    pub(crate) turn: Option<Turn>,
    pub(crate) usage: UsageMeter,
    faults: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum SessionPhase {
    #[default]
    Starting,
    Ready,
    /// Refused, or ended.
    Over,
}

impl Session {
    /// Begins a session: its first output initializes the agent.
    pub fn new(start: SessionStart) -> Self {
        Self::with_longest_line(start, LONGEST_LINE)
    }

    pub(crate) fn with_longest_line(start: SessionStart, limit: usize) -> Self {
        let mut session = Self {
            lines: LineSplitter::new(limit),
            start_modes: start.modes.iter().cloned().collect(),
            user: UserMessages::new(&start.seek),
            usage: UsageMeter::new(start.traits.usage),
            start,
            ..Self::default()
        };
        session.initialize();
        session
    }

    /// Takes bytes from the agent's standard output, cut anywhere, and returns what they say. First
    /// come the reports that other calls have caused; without bytes, only these.
    pub fn receive(&mut self, bytes: &[u8]) -> Vec<SessionReport> {
        // Taken out for the time of the call, because the handler needs the rest of the session.
        let mut lines = std::mem::take(&mut self.lines);
        lines.feed(bytes, |line| self.handle_line(line));
        self.lines = lines;
        std::mem::take(&mut self.reports)
    }

    /// Returns the lines to write to the agent's standard input. Any other call can add some, also
    /// [`Session::receive`].
    pub fn take_output(&mut self) -> Vec<u8> {
        self.writer.take()
    }

    /// Returns whether a prompt can be sent now.
    pub fn is_free(&self) -> bool {
        self.is_ready() && self.turn.is_none()
    }

    /// Returns whether the session has begun and has not ended.
    pub fn is_ready(&self) -> bool {
        self.phase == SessionPhase::Ready
    }

    /// Returns whether a tool call has not ended, as far as the agent reports it.
    pub fn runs_tool(&self) -> bool {
        self.calls.is_any_open()
    }

    /// The open questions, oldest first.
    pub fn questions(&self) -> impl Iterator<Item = &AgentQuestion> {
        self.questions.iter()
    }

    /// Sends a prompt. Returns false without effect if the session is not free: at a second prompt,
    /// some agents cancel the first, and others queue it.
    pub fn prompt(&mut self, tag: &str, text: &str) -> bool {
        let Some(id) = self.id.as_deref().filter(|_| self.is_free()) else { return false };
        let prompt = json!([{"type": "text", "text": text}]);
        let params = json!({"sessionId": id, "prompt": prompt});
        let request = self.writer.request(AwaitedReply::Prompt, "session/prompt", params);
        self.calls.clear();
        self.usage.begin_turn();
        self.turn = Some(Turn::new(tag, request));
        true
    }

    /// Sends a text into the turn that runs. [`SessionReport::Steered`] has the result. Returns false
    /// without effect if no turn runs, it is being cancelled, or the agent cannot do it.
    pub fn steer(&mut self, tag: &str, text: &str) -> bool {
        let is_running = self.turn.as_ref().is_some_and(|turn| !turn.is_cancelled);
        let Some(id) = self.id.as_deref().filter(|_| is_running && self.agent.can_steer) else {
            return false;
        };
        let params = json!({
            "sessionId": id,
            "prompt": [{"type": "text", "text": text}],
            // Otherwise the text begins a turn without a reply if the turn ends at this moment.
            "_meta": {"steering": {"idleBehavior": "promptRequired"}},
        });
        let sent = AwaitedReply::Steer { tag: tag.to_owned() };
        self.writer.request(sent, "_session/steering", params);
        true
    }

    /// Cancels the turn that runs, and answers its open questions so; gemini waits for that. The
    /// turn ends with a later report. Returns false without effect if no turn runs.
    pub fn cancel(&mut self) -> bool {
        let (Some(turn), Some(id)) = (&mut self.turn, &self.id) else { return false };
        turn.is_cancelled = true;
        self.writer.notify("session/cancel", json!({"sessionId": id}));
        self.withdraw_questions();
        true
    }

    /// Answers a question with one of its options, or with its cancellation. Returns false without
    /// effect if the question is no longer open or has no such option.
    pub fn answer(&mut self, id: QuestionId, option: Option<&str>) -> bool {
        let Some(question) = self.questions.get(id) else { return false };
        let result = match option {
            None => cancelled(),
            Some(option) if question.options.iter().any(|other| other.id == option) => {
                selected(option)
            }
            Some(_) => return false,
        };
        if let Some(request) = self.questions.remove(id) {
            self.writer.reply(&request, result);
        }
        true
    }

    /// Asks for a mode, also while a turn runs. [`SessionReport::Mode`] confirms it, and
    /// [`SessionReport::Notice`] has the reason of a refusal. Before the session is ready, the last
    /// one is kept; it follows [`SessionStart::modes`], and [`SessionReport::Ready`] follows its reply.
    pub fn set_mode(&mut self, mode: &ModeChoice) {
        match self.phase {
            SessionPhase::Starting => self.later_mode = Some(mode.clone()),
            SessionPhase::Ready => match self.settings.change_for_mode(mode) {
                Ok(change) => self.send_setting(change, AwaitedReply::Setting),
                Err(why) => self.reports.push(SessionReport::Notice(why)),
            },
            SessionPhase::Over => {}
        }
    }

    /// Ends the session because the agent has exited: its output ends. Returns the last reports.
    pub fn end(&mut self) -> Vec<SessionReport> {
        let mut lines = std::mem::take(&mut self.lines);
        lines.finish(|line| self.handle_line(line));
        let failure = AgentFailure::other("the agent has exited");
        self.end_user_message();
        for sent in self.writer.abandon().collect::<Vec<_>>() {
            if let AwaitedReply::Steer { tag } = sent {
                self.reports
                    .push(SessionReport::Steered { tag, result: Err(failure.said.clone()) });
            }
        }
        if self.turn.is_some() {
            let usage = self.usage.end_turn(None);
            self.end_turn(Outcome::Failed(failure), usage);
        } else if self.phase == SessionPhase::Starting {
            self.refuse(failure);
        }
        self.withdraw_questions();
        if self.faults > REPORTED_FAULTS {
            let count = self.faults - REPORTED_FAULTS;
            self.reports
                .push(SessionReport::Fault(format!("{count} more faults were not reported")));
        }
        self.phase = SessionPhase::Over;
        // Nothing can be written to it.
        self.writer = RequestWriter::default();
        std::mem::take(&mut self.reports)
    }

    pub(crate) fn refuse(&mut self, failure: AgentFailure) {
        self.phase = SessionPhase::Over;
        self.reports.push(SessionReport::Refused(failure));
    }

    pub(crate) fn fault(&mut self, what: &str, excerpt: &str) {
        self.faults += 1;
        if self.faults <= REPORTED_FAULTS {
            let fault = format!("{what}: {}", one_line(excerpt, EXCERPT));
            self.reports.push(SessionReport::Fault(fault));
        }
    }

    /// Reports the user's message that is complete.
    pub(crate) fn end_user_message(&mut self) {
        self.reports.extend(self.user.end().map(SessionReport::User));
    }

    /// Answers all questions as cancelled.
    pub(crate) fn withdraw_questions(&mut self) {
        for (request, id) in self.questions.take() {
            self.writer.reply(&request, cancelled());
            self.reports.push(SessionReport::Withdrawn { id });
        }
    }

    fn handle_line(&mut self, line: InputLine<'_>) {
        if self.phase == SessionPhase::Over {
            return;
        }
        let bytes = match line {
            InputLine::Whole(bytes) => bytes,
            InputLine::TooLong => return self.fault("a line was skipped", "it is too long"),
        };
        let Some(text) = readable(bytes) else { return };
        match serde_json::from_str::<RpcMessage<'_>>(&text) {
            Ok(message) => self.handle_message(&message, &text),
            Err(_) => self.fault("a line is no message", &text),
        }
    }

    fn handle_message(&mut self, message: &RpcMessage<'_>, line: &str) {
        match (message.method.as_deref(), message.id) {
            (Some(method), Some(id)) => self.handle_request(method, id, message.params),
            (Some(method), None) => self.handle_notification(method, message.params),
            (None, Some(id)) => {
                let number = id.get().trim_matches('"').parse().ok();
                match number.and_then(|id| Some((id, self.writer.answered(id)?))) {
                    Some((id, sent)) => self.handle_reply(id, sent, message.result, message.error),
                    None => self.fault("a reply is for no request", line),
                }
            }
            (None, None) => self.fault("a line is no message", line),
        }
    }

    fn handle_reply(
        &mut self,
        id: u64,
        sent: AwaitedReply,
        result: Option<&RawValue>,
        error: Option<&RawValue>,
    ) {
        let reply = error.map_or(Ok(result), Err);
        match sent {
            AwaitedReply::Initialize => self.initialized(reply),
            AwaitedReply::Load => self.loaded(reply),
            AwaitedReply::New => self.created(reply),
            AwaitedReply::StartSetting(change) => self.start_setting_chosen(change, reply),
            AwaitedReply::LaterMode(change) => self.later_mode_chosen(change, reply),
            AwaitedReply::Setting(change) => self.mode_changed(change, reply),
            AwaitedReply::Prompt => self.prompt_answered(id, reply),
            AwaitedReply::Steer { tag } => {
                let result = match reply {
                    Ok(result) => steer_result(&parse_or_default(result)),
                    Err(error) => Err(AgentFailure::from_reply(error).said),
                };
                self.reports.push(SessionReport::Steered { tag, result });
            }
        }
    }

    fn prompt_answered(&mut self, id: u64, reply: RpcResult<'_>) {
        let Some(turn) = self.turn.as_ref().filter(|turn| turn.request == id) else { return };
        let failure_prefix = self.start.traits.failure_prefix.as_deref();
        let (outcome, usage) = match reply {
            Ok(result) => {
                let reply: PromptReply = parse_or_default(result);
                (turn.outcome(&reply, failure_prefix), self.usage.end_turn(Some(&reply)))
            }
            Err(error) => (turn.outcome_of_error(error), self.usage.end_turn(None)),
        };
        self.end_turn(outcome, usage);
    }

    fn end_turn(&mut self, outcome: Outcome, usage: Option<TokenUsage>) {
        self.end_user_message();
        self.withdraw_questions();
        if !matches!(outcome, Outcome::Failed(_)) {
            self.mark_received();
        }
        if let Some(Turn { tag, .. }) = self.turn.take() {
            self.reports.push(SessionReport::Ended(EndedTurn { tag, outcome, usage }));
        }
    }

    /// Reports, once in a turn, that the agent has received the prompt.
    pub(crate) fn mark_received(&mut self) {
        if let Some(turn) = self.turn.as_mut().filter(|turn| !turn.is_received) {
            turn.is_received = true;
            self.reports.push(SessionReport::Received { tag: turn.tag.clone() });
        }
    }
}

fn steer_result(reply: &SteerReply) -> Result<(), String> {
    match reply.outcome.as_str() {
        "injected" => Ok(()),
        "promptRequired" => Err("the turn has ended".to_owned()),
        "startedNewTurn" => Err("the agent has begun a turn of its own with it".to_owned()),
        "" => Err("the agent does not say whether it has taken the text".to_owned()),
        outcome => Err(format!("the agent has answered {outcome}")),
    }
}
