//! The state of a conversation: reports change it, and frames show it.

use std::collections::VecDeque;

use acp::{
    AgentQuestion, AgentToolCall, EndedTurn, Outcome, PlanEntry, QuestionId, SessionReport,
    ToolStatus,
};

use crate::commands::CommandList;
use crate::editor::PromptEditor;
use crate::line::{Breaks, Look, StyledLine, wrap};
use crate::screen::{FrameWriter, TerminalSize};
use crate::status::SessionFacts;
use crate::stream::TextStream;
use crate::transcript::{EntryKind, Transcript};
use crate::{markdown, plan, question, tool, words};
use model::mail::protocol::parse_rendered;

/// Rows of a prompt that are printed.
const PROMPT_ROWS: usize = 12;
/// Ids of ended tool calls to remember: agents report some of them again.
const ENDED_TOOLS: usize = 256;
/// Milliseconds without a frame after a change of the size. tmux wraps the rows of a pane again at
/// once, but tells the size up to 250 ms after it has told the one before. A frame in between would
/// not find the rows that it replaces.
const SETTLE_MS: u64 = 300;
/// Bytes of the last line of a thought.
const THOUGHT: usize = 1024;

/// The looks of a conversation.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The name of the agent in the status line.
    pub name: String,
    /// Use colours and bold text.
    pub color: bool,
    /// The working directory of the agent; paths below it are shown without it. May be empty.
    pub cwd: String,
}

/// The sender of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sender {
    /// The user typed it on this terminal.
    Typed,
    /// Mail of this member.
    Mail(String),
}

/// The state that only the owner of the session knows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConversationStatus {
    /// Messages that wait for the end of the turn.
    pub queued: usize,
    /// Time in milliseconds since which the agent is silent, if the user should know.
    pub silent_since: Option<u64>,
}

/// A conversation with an agent on a terminal. All times are milliseconds of one clock.
///
/// Finished lines are printed once, into the scrollback. Below them a live region shows what is
/// unfinished, a line of status and the composer.
#[derive(Debug, Default)]
pub struct Conversation {
    pub(crate) options: Options,
    pub(crate) screen: FrameWriter,
    pub(crate) transcript: Transcript,
    pub(crate) text: TextStream,
    /// The message that `text` belongs to.
    message: Option<String>,
    pub(crate) thought: Option<RunningThought>,
    pub(crate) tools: Vec<RunningTool>,
    ended_tools: VecDeque<String>,
    pub(crate) plan: Vec<PlanEntry>,
    /// The plan has changed since it was printed.
    is_plan_new: bool,
    pub(crate) questions: VecDeque<PendingQuestion>,
    pub(crate) turn: Option<RunningTurn>,
    /// The failure of the last turn, in the words of the status line.
    pub(crate) failure: Option<String>,
    pub(crate) status: ConversationStatus,
    pub(crate) facts: SessionFacts,
    session: SessionProgress,
    pub(crate) editor: PromptEditor,
    pub(crate) commands: CommandList,
    /// The end of the time in which a second Ctrl-C leaves.
    pub(crate) leave_until: Option<u64>,
    /// No frame is drawn before this time, after a change of the size.
    settled_at: u64,
}

/// The progress of the agent's session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum SessionProgress {
    /// Reports replay an earlier conversation, if any.
    #[default]
    Starting,
    Ready,
    /// The session is loaded again. This terminal shows the conversation already.
    Restarting,
}

#[derive(Debug)]
pub(crate) struct RunningThought {
    /// The last line, as far as it has arrived.
    pub(crate) line: String,
    since: u64,
}

#[derive(Debug)]
pub(crate) struct RunningTool {
    pub(crate) call: AgentToolCall,
    pub(crate) since: u64,
    /// The time of its end, while an unfinished block of text delays its print.
    pub(crate) ended: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct PendingQuestion {
    pub(crate) question: AgentQuestion,
    /// The user has answered; the owner confirms it.
    pub(crate) is_answered: bool,
    /// Its rows, and the width and number of other questions that they were drawn for.
    pub(crate) drawn: Option<(usize, usize, Vec<StyledLine>)>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct RunningTurn {
    pub(crate) since: u64,
    pub(crate) is_cancelled: bool,
}

impl Conversation {
    /// Begins a conversation at the cursor of the terminal, which is at the left margin.
    pub fn new(options: Options, size: TerminalSize) -> Conversation {
        let screen = FrameWriter::new(size, options.color);
        Conversation { options, screen, ..Conversation::default() }
    }

    /// Adapts to a new size of the terminal. Once it has settled, a frame draws the live region
    /// again.
    pub fn resize(&mut self, size: TerminalSize, now: u64) {
        self.screen.resize(size);
        self.settled_at = now + SETTLE_MS;
    }

    /// Returns the time of the next frame while the size may change again.
    pub(crate) fn settling(&self, now: u64) -> Option<u64> {
        // The clock may have been set back.
        let is_ahead = now < self.settled_at && self.settled_at <= now + SETTLE_MS;
        is_ahead.then_some(self.settled_at)
    }

    /// Shows a prompt that was sent to the agent. It begins a turn unless one runs.
    pub fn prompt(&mut self, from: Sender, text: &str, now: u64) {
        self.show_prompt(&from, text, now);
        self.failure = None;
        self.turn.get_or_insert(RunningTurn { since: now, is_cancelled: false });
    }

    /// Shows a report of the session.
    pub fn report(&mut self, report: &SessionReport, now: u64) {
        match report {
            SessionReport::Initialized(_) if self.session == SessionProgress::Ready => {
                self.end_blocks(now);
                self.end_tools();
                self.turn = None;
                self.questions.clear();
                self.session = SessionProgress::Restarting;
            }
            SessionReport::Ready { .. } => {
                self.end_blocks(now);
                self.end_tools();
                self.transcript.end_replay();
                self.session = SessionProgress::Ready;
                self.failure = None;
            }
            SessionReport::Refused(failure) => {
                self.end_blocks(now);
                self.transcript.end_replay();
                let words = words::failure(failure);
                let line = StyledLine::new(Look::RED, &format!("cannot start: {}", failure.said));
                self.commit_wrapped(EntryKind::EndedTurn, &line);
                self.failure = Some(words);
            }
            SessionReport::Commands(commands) => self.commands.set_commands(commands),
            SessionReport::Mode { current, available } => {
                let name = available.iter().find(|mode| mode.id == *current);
                self.facts.mode = name.map_or(current, |mode| &mode.name).clone();
            }
            SessionReport::Model(model) => self.facts.model.clone_from(model),
            SessionReport::Context { used, size } => self.facts.context = Some((*used, *size)),
            SessionReport::Notice(text) | SessionReport::Retries(text) => self.notice(text),
            SessionReport::Steered { result: Err(why), .. } => {
                self.notice(&format!("the message was not taken into the turn: {why}"));
            }
            _ if self.session == SessionProgress::Restarting => {}
            SessionReport::User(text) => {
                // Prompts of phalanx are mail.
                for (from, text) in parse_rendered(text).unwrap_or_default() {
                    self.show_prompt(&Sender::Mail(from), text, now);
                }
                if parse_rendered(text).is_none() {
                    self.show_prompt(&Sender::Typed, text, now);
                }
            }
            SessionReport::Text { message, text } => self.add_text(message.as_ref(), text, now),
            SessionReport::Thought(text) => self.add_thought(text, now),
            SessionReport::Tool(call) => self.update_tool(call, now),
            SessionReport::Plan(plan) => {
                self.is_plan_new |= *plan != self.plan;
                self.plan.clone_from(plan);
            }
            SessionReport::Asked(question) => self.ask(question, now),
            SessionReport::Withdrawn { id } => self.withdraw(*id),
            SessionReport::Ended(end) => self.end_turn(end, now),
            SessionReport::Initialized(_)
            | SessionReport::Title(_)
            | SessionReport::Received { .. }
            | SessionReport::Steered { .. }
            | SessionReport::Fault(_) => {}
        }
    }

    /// Ends a question that was answered, here or elsewhere. `words` says how, and by whom:
    /// "allowed", or "allowed by team-lead".
    pub fn decided(&mut self, id: QuestionId, words: &str) {
        if let Some(question) = self.remove_question(id) {
            let room = self.room();
            let line = question::decided(&question, words, &self.options.cwd, room);
            self.transcript.commit(EntryKind::Work, [line]);
        }
    }

    /// Prints a line of phalanx.
    pub fn notice(&mut self, text: &str) {
        self.commit_wrapped(EntryKind::Notice, &StyledLine::new(Look::DIM, text));
    }

    /// Sets what the owner knows.
    pub fn set_status(&mut self, status: ConversationStatus) {
        self.status = status;
    }

    /// Returns the bytes for the terminal: lines that have been finished, and the live region if it
    /// has changed. Empty if nothing has, or while the terminal changes its size.
    pub fn frame(&mut self, now: u64) -> Vec<u8> {
        if self.settling(now).is_some() {
            return Vec::new();
        }
        let live = self.live_region(now);
        let lines = self.transcript.take();
        self.screen.write(lines.into_iter(), live)
    }

    /// Returns the bytes that remove the live region. What was unfinished is printed first. The
    /// cursor is then below the last line.
    pub fn finish(&mut self) -> Vec<u8> {
        self.end_blocks(0);
        self.end_tools();
        self.transcript.end_replay();
        let lines = self.transcript.take();
        self.screen.write(lines.into_iter(), Default::default())
    }

    pub(crate) fn room(&self) -> usize {
        self.screen.size().room()
    }

    /// The agent shows its own work, not a replay.
    pub(crate) fn is_ready(&self) -> bool {
        self.session == SessionProgress::Ready
    }

    /// Returns the time since `start`, or `None` in a replay, which has no times.
    fn elapsed(&self, start: u64, now: u64) -> Option<u64> {
        self.is_ready().then(|| now.saturating_sub(start))
    }

    fn commit_wrapped(&mut self, kind: EntryKind, line: &StyledLine) {
        let none = StyledLine::default();
        let rows = wrap(line, &none, &none, self.room(), Breaks::Words);
        self.transcript.commit(kind, rows);
    }

    fn show_prompt(&mut self, from: &Sender, text: &str, now: u64) {
        self.end_blocks(now);
        let accent = Look { is_bold: true, ..Look::CYAN };
        let room = self.room();
        let mut rows = Vec::new();
        let mut first = StyledLine::new(accent, "> ");
        let rest = StyledLine::new(Look::PLAIN, "  ");
        if let Sender::Mail(name) = from {
            rows.push(StyledLine::new(accent, "✉ ").with(accent, name).cut(room));
            first = rest.clone();
        }
        let header = rows.len();
        let lines = text.trim_end().lines().enumerate();
        rows.extend(lines.flat_map(|(at, line)| {
            let first = if at == 0 { &first } else { &rest };
            wrap(&StyledLine::new(Look::PLAIN, line), first, &rest, room, Breaks::Words)
        }));
        let hidden = rows.len().saturating_sub(PROMPT_ROWS + header);
        if hidden > 1 {
            rows.truncate(PROMPT_ROWS + header);
            rows.push(StyledLine::new(Look::DIM, &format!("  … {hidden} more lines")).cut(room));
        }
        self.transcript.close();
        self.transcript.commit(EntryKind::Prompt, rows);
    }

    fn add_text(&mut self, message: Option<&String>, text: &str, now: u64) {
        // Some agents end a message with an empty piece.
        if text.is_empty() {
            return;
        }
        self.end_thought(now);
        if message != self.message.as_ref() {
            self.end_text();
            self.message = message.cloned();
        }
        let rows = self.text.push(text, self.room());
        let has_ended_block = !rows.is_empty();
        self.transcript.commit(EntryKind::Text, rows);
        if (has_ended_block && !self.text.is_in_code()) || self.text.is_at_boundary() {
            self.print_ended_tools();
        }
    }

    fn add_thought(&mut self, text: &str, now: u64) {
        self.end_text();
        let thought =
            self.thought.get_or_insert_with(|| RunningThought { line: String::new(), since: now });
        for part in text.split_inclusive('\n') {
            if thought.line.ends_with('\n') && !part.trim().is_empty() {
                thought.line.clear();
            }
            if thought.line.len() + part.len() <= THOUGHT {
                thought.line.push_str(part);
            }
        }
    }

    fn update_tool(&mut self, call: &AgentToolCall, now: u64) {
        if self.ended_tools.contains(&call.id) {
            return;
        }
        let at = self.tools.iter().position(|tool| tool.call.id == call.id);
        let tool = match at {
            Some(at) => {
                self.tools[at].call.clone_from(call);
                &mut self.tools[at]
            }
            None => {
                self.end_blocks(now);
                self.tools.push(RunningTool { call: call.clone(), since: now, ended: None });
                let last = self.tools.len() - 1;
                &mut self.tools[last]
            }
        };
        if matches!(call.status, ToolStatus::Completed | ToolStatus::Failed) {
            tool.ended = Some(now);
            if self.ended_tools.len() == ENDED_TOOLS {
                self.ended_tools.pop_front();
            }
            self.ended_tools.push_back(call.id.clone());
        }
        if self.text.is_at_boundary() {
            self.print_ended_tools();
        }
    }

    fn ask(&mut self, question: &AgentQuestion, now: u64) {
        self.end_blocks(now);
        if let Some(plan) = &question.plan {
            let rows = markdown::draw(plan, self.room());
            self.transcript.close();
            self.transcript.commit(EntryKind::Text, rows);
            self.transcript.close();
        }
        self.questions.retain(|pending| pending.question.id != question.id);
        let question = question.clone();
        self.questions.push_back(PendingQuestion { question, is_answered: false, drawn: None });
    }

    fn remove_question(&mut self, id: QuestionId) -> Option<AgentQuestion> {
        let at = self.questions.iter().position(|pending| pending.question.id == id)?;
        self.questions.remove(at).map(|pending| pending.question)
    }

    fn withdraw(&mut self, id: QuestionId) {
        if let Some(question) = self.remove_question(id) {
            let subject = tool::subject(&question.tool, &self.options.cwd);
            let line = StyledLine::new(Look::DIM, &format!("question withdrawn: {subject}"));
            self.transcript.commit(EntryKind::Work, [line.cut(self.room())]);
        }
    }

    fn end_turn(&mut self, end: &EndedTurn, now: u64) {
        self.end_blocks(now);
        self.end_tools();
        self.questions.clear();
        if std::mem::take(&mut self.is_plan_new) {
            let rows = plan::whole(&self.plan, self.room());
            self.transcript.commit(EntryKind::Plan, rows);
        }
        if self.plan.iter().all(|entry| entry.state == acp::PlanState::Completed) {
            self.plan.clear();
        }
        let turn = self.turn.take();
        let millis = turn.and_then(|turn| self.elapsed(turn.since, now));
        let line = words::turn_end(&end.outcome, end.usage.as_ref(), millis);
        self.commit_wrapped(EntryKind::EndedTurn, &line);
        self.facts.cost += end.usage.and_then(|usage| usage.cost).unwrap_or(0.0);
        self.failure = match &end.outcome {
            Outcome::Failed(failure) => Some(words::failure(failure)),
            Outcome::Done | Outcome::Cancelled | Outcome::Stopped(_) => None,
        };
    }

    /// Prints what has arrived of the text and of the thought.
    fn end_blocks(&mut self, now: u64) {
        self.end_thought(now);
        self.end_text();
    }

    fn end_text(&mut self) {
        let rows = self.text.finish(self.room());
        self.transcript.commit(EntryKind::Text, rows);
        if self.message.take().is_some() {
            self.transcript.close();
        }
        self.print_ended_tools();
    }

    fn end_thought(&mut self, now: u64) {
        let Some(thought) = self.thought.take() else { return };
        let words = match self.elapsed(thought.since, now).filter(|millis| *millis >= 1000) {
            Some(millis) => format!("thought for {}", words::seconds(millis)),
            None => "thought".to_owned(),
        };
        let line = StyledLine::new(Look::DIM, &words).cut(self.room());
        self.transcript.commit(EntryKind::Work, [line]);
    }

    /// Prints the tool calls that have ended.
    fn print_ended_tools(&mut self) {
        let room = self.room();
        let is_ready = self.is_ready();
        let cwd = &self.options.cwd;
        let transcript = &mut self.transcript;
        self.tools.retain(|tool| {
            let Some(ended) = tool.ended else { return true };
            let millis = is_ready.then(|| ended.saturating_sub(tool.since));
            transcript.commit(EntryKind::Work, tool::ended(&tool.call, millis, cwd, room));
            false
        });
    }

    /// Prints all tool calls. Those that run get no more updates.
    fn end_tools(&mut self) {
        self.print_ended_tools();
        let room = self.room();
        for tool in std::mem::take(&mut self.tools) {
            let rows = tool::ended(&tool.call, None, &self.options.cwd, room);
            self.transcript.commit(EntryKind::Work, rows);
        }
    }
}
