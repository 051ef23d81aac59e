//! The conversation with the agent lead in an editor, with the members' work and their requests.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use std::sync::mpsc::{Receiver, Sender as LineSender, channel};
use std::thread;
use std::time::Duration;

use acp::{
    AgentFailure, AgentQuestion, AgentSide, AgentToolCall, ClientCall, FailureKind, Outcome,
    QuestionId, SessionReport, ToolContent, ToolKind, ToolStatus,
};
use conversation::{ConversationAction, Sender};
use event_loop::{Batch, InputQueue, Inputs, SWEEP};
use model::decisions::question::{DecisionOutcome, Question};
use model::id::{MemberName, RequestId};
use model::mail::protocol::news::is_for_agent_lead;
use model::members::assessment::Doing;
use model::members::need::Need;
use model::team::event::EventKind;
use model::text;
use model::time::Timestamp;
use model::topic::Topic;
use ops::members::status::MemberStatus;
use ops::{Context, JournalReader, TeamStore};
use serde_json::Value;
use store::TeamWatch;
use sys::clock::Deadline;
use teammate::{ConversationUpdate, Face};

use super::members::{MemberCalls, MemberWork};
use super::questions;

/// Maximum number of bytes per read.
const CHUNK: usize = 64 * 1024;
/// Shortest time between two reads of the members' states.
const STATES: Duration = Duration::from_millis(200);
/// Time for which lead and members must rest before the prompt ends: a member is at rest before its
/// report wakes the lead.
const REST: Duration = Duration::from_secs(1);
/// Time for the editor to take the last lines.
const LAST_LINES: Duration = Duration::from_secs(1);
/// Maximum length of a title, in characters.
const TITLE: usize = 120;
/// Prefix of the keys of the agent lead's questions. Those of members are ids of requests.
const OF_LEAD: &str = "lead:";

/// An input from the editor.
pub(super) enum EditorInput {
    Bytes(Vec<u8>),
    /// It has closed its side.
    Closed,
}

/// A team in an editor.
pub(super) struct EditorFace<'a> {
    ctx: &'a Context,
    team: &'a TeamStore,
    side: AgentSide,
    /// Calls that came with the one that has opened the session.
    early: Vec<ClientCall>,
    /// `None` once all is written.
    output: Option<LineSender<Vec<u8>>>,
    written: Receiver<()>,
    queue: InputQueue<EditorInput>,
    _watch: Option<TeamWatch>,
    /// The name of the first session.
    session: String,
    is_open: bool,
    journal: JournalReader,
    members: MemberCalls,
    /// Requests of members that were shown.
    shown: BTreeSet<String>,
    /// Requests whose answers have yet to reach their programs.
    answered: Vec<RequestId>,
    /// The option that rejects, of each open question of the agent lead.
    rejects: BTreeMap<QuestionId, Option<String>>,
    /// Something has changed since the members' states were read.
    is_stale: bool,
    states: Deadline,
    sweep: Deadline,
    lead: LeadWork,
    others_work: bool,
    /// The time from which all rest.
    rest: Option<Deadline>,
    /// The number of messages shown.
    mails: u64,
}

/// The work of the agent lead.
#[derive(Debug, Default)]
struct LeadWork {
    in_turn: bool,
    /// Prompts of the editor that were not sent to it.
    unsent: usize,
    /// Prompts and messages that wait for the end of its turn.
    queued: usize,
    /// The outcome of its last turn.
    outcome: Option<Outcome>,
    /// It has said something that its next turn must be set off from.
    has_spoken: bool,
    /// A turn has begun since then.
    needs_break: bool,
}

impl<'a> EditorFace<'a> {
    /// Connects to the editor on standard input and output. `early` are the calls that `side` has
    /// received after the one that opens the session.
    ///
    /// # Errors
    /// No thread can be started.
    pub(super) fn new(
        ctx: &'a Context,
        team: &'a TeamStore,
        side: AgentSide,
        early: Vec<ClientCall>,
    ) -> io::Result<EditorFace<'a>> {
        let queue = InputQueue::default();
        let (inputs, changes) = (queue.inputs(), queue.inputs());
        let watch = team.watch(move |topic| changes.send_change(topic));
        let (output, lines) = channel::<Vec<u8>>();
        let (done, written) = channel();
        let start = |name: &str, work: Box<dyn FnOnce() + Send>| {
            thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
        };
        start("editor-input", Box::new(move || read_all(&inputs)))?;
        start("editor-output", Box::new(move || write_all(&lines, &done)))?;
        Ok(EditorFace {
            ctx,
            team,
            side,
            early,
            output: Some(output),
            written,
            queue,
            _watch: watch.ok(),
            session: team.name().to_string(),
            is_open: false,
            // Without it, the members' events lack the past only.
            journal: team.journal_end().unwrap_or_else(|_| team.journal()),
            members: MemberCalls::default(),
            shown: BTreeSet::new(),
            answered: Vec::new(),
            rejects: BTreeMap::new(),
            is_stale: true,
            states: Deadline::after(Duration::ZERO),
            sweep: Deadline::after(SWEEP),
            lead: LeadWork::default(),
            others_work: false,
            rest: None,
            mails: 0,
        })
    }

    fn handle(&mut self, (topics, inputs): Batch<EditorInput>) -> Vec<ConversationAction> {
        self.is_stale |= !topics.is_empty();
        let mut actions = Vec::new();
        for input in inputs {
            match input {
                EditorInput::Bytes(bytes) => {
                    let calls = self.side.receive(&bytes);
                    actions.extend(calls.into_iter().flat_map(|call| self.handle_call(call)));
                }
                EditorInput::Closed => actions.push(ConversationAction::Leave),
            }
        }
        if topics.iter().any(|topic| matches!(topic, Topic::Journal | Topic::Everything)) {
            self.read_journal();
        }
        actions
    }

    fn handle_call(&mut self, call: ClientCall) -> Vec<ConversationAction> {
        match call {
            ClientCall::Open { cwd } if cwd == self.ctx.caller.cwd.to_string_lossy() => {
                // An agent that has refused its session is about to exit: `finish` answers.
                if self.is_open {
                    self.side.open(&self.session);
                }
                Vec::new()
            }
            ClientCall::Open { .. } => {
                let (team, cwd) = (self.team.name(), self.ctx.caller.cwd.display());
                let said = format!("this process leads team {team} in {cwd}: start another one");
                self.side.refuse(&AgentFailure { kind: FailureKind::Other, said });
                Vec::new()
            }
            ClientCall::Prompt(text) => {
                self.lead.unsent += 1;
                self.ask_again();
                vec![ConversationAction::Send(text)]
            }
            ClientCall::Cancel => {
                self.lead.unsent = 0;
                self.side.end_prompts(&Outcome::Cancelled);
                vec![ConversationAction::DropQueued, ConversationAction::Cancel]
            }
            ClientCall::Answered { key, option } => self.answer(&key, option).into_iter().collect(),
        }
    }

    /// Gives an answer to the agent lead or to a member.
    fn answer(&mut self, key: &str, option: Option<String>) -> Option<ConversationAction> {
        if let Some(id) = key.strip_prefix(OF_LEAD) {
            let id = QuestionId(id.parse().ok()?);
            let option = option.or(self.rejects.remove(&id)?)?;
            return Some(ConversationAction::Answer { id, option });
        }
        // A request that the editor takes back stays open for others.
        let (id, answer) = (RequestId::parse(key).ok()?, questions::answer(&option?)?);
        match ops::decisions::decide::answer(self.ctx, self.team, &id, &answer) {
            Ok(answered) => self.settle(&answered.question),
            Err(e) => {
                let words = format!("{e}; answer it in a terminal: phalanx answer {key}");
                self.side.settle(key, ToolStatus::Failed, &words);
            }
        }
        self.is_stale = true;
        None
    }

    /// Reads what the members do, and what they ask.
    fn read_states(&mut self) {
        self.is_stale = false;
        self.states = Deadline::after(STATES);
        let Ok(status) = ops::members::status::status(self.team) else {
            // A team that is gone has no members that work.
            self.others_work &= self.team.exists();
            return;
        };
        let works: Vec<MemberWork> = status.members.iter().map(work).collect();
        for call in self.members.observe(&works) {
            self.side.tool(&call);
        }
        let lead = self.team.mailbox(&MemberName::lead());
        let has_mail = lead.unread_where(is_for_agent_lead).is_ok_and(|mail| !mail.is_empty());
        self.others_work = has_mail || works.iter().any(|work| work.is_busy);
        let Ok(open) = ops::decisions::decide::process_requests(self.ctx, self.team) else {
            return;
        };
        self.others_work |= !open.is_empty();
        self.ask_all(&open);
        for id in std::mem::take(&mut self.answered) {
            self.team.question(&id).iter().for_each(|question| self.settle(question));
        }
        self.others_work |= !self.answered.is_empty();
    }

    /// Asks what the members ask, each request once, and takes back what was answered elsewhere.
    fn ask_all(&mut self, open: &[Question]) {
        let is_open = |key: &str| open.iter().any(|request| request.id.as_str() == key);
        for key in self.side.asked() {
            if !key.starts_with(OF_LEAD) && !is_open(&key) {
                self.side.withdraw(&key);
                let id = RequestId::parse(&key).ok();
                let question = id.and_then(|id| self.team.question(&id).ok());
                question.iter().for_each(|question| self.settle(question));
            }
        }
        self.shown.retain(|key| is_open(key));
        for request in open {
            let key = request.id.as_str();
            if !self.shown.insert(key.to_owned()) {
                continue;
            }
            let preview = ops::decisions::decide::approval_preview(self.ctx, self.team, request);
            let preview = preview.ok().flatten();
            match questions::question(request, preview.as_ref()) {
                Some(asked) => self.side.ask(key, &asked.tool, &asked.options),
                None => {
                    let summary = text::line(&request.summary());
                    let title = format!("{} asks: {summary}", request.from);
                    let text = format!("Answer it in a terminal: phalanx answer {key}");
                    self.side.tool(&remark(key, &title, &text, ToolStatus::Completed));
                }
            }
        }
    }

    /// Ends the tool call of a request that is decided, once its program has taken the answer.
    fn settle(&mut self, request: &Question) {
        if request.is_untaken() && request.reports_result() {
            return self.answered.push(request.id.clone());
        }
        let decision = request.decision.as_ref();
        let is_allowed = decision.is_some_and(|made| made.outcome == DecisionOutcome::Allowed);
        let status = if is_allowed { ToolStatus::Completed } else { ToolStatus::Failed };
        let by = decision.map(|made| format!(" by {}", made.by)).unwrap_or_default();
        let reason = decision.and_then(|made| made.reason.clone());
        let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        let words = format!("{}{by}{reason}", request.state());
        self.side.settle(request.id.as_str(), status, &text::block(&words));
    }

    /// Asks again what the editor has left open: with a cancelled turn its questions end too.
    fn ask_again(&mut self) {
        let asked = self.side.asked();
        self.shown.retain(|key| asked.contains(key));
        self.is_stale = true;
    }

    fn read_journal(&mut self) {
        let Ok(events) = self.journal.read() else { return };
        for event in &events {
            let is_own = event.member.as_ref().is_none_or(|name| *name == MemberName::lead());
            // A request is a tool call of its own.
            let is_request =
                matches!(event.event, EventKind::RequestFiled | EventKind::RequestDecided);
            let words = if is_own || is_request { None } else { ui::event_words(event) };
            let call = words.and_then(|words| self.members.note(event, &words));
            call.iter().for_each(|call| self.side.tool(call));
        }
    }

    /// Shows mail that the agent lead gets.
    fn show_mail(&mut self, from: &str, mail: &str) {
        self.mails += 1;
        let is_text = |line: &&str| !line.is_empty() && !line.starts_with('<');
        let first = mail.lines().map(str::trim).find(is_text).unwrap_or_default();
        let title = format!("✉ {from}: {}", text::line(first));
        let id = format!("mail-{}", self.mails);
        self.side.tool(&remark(&id, &title, &text::block(mail), ToolStatus::Completed));
    }

    fn handle_report(&mut self, report: &SessionReport) {
        match report {
            SessionReport::Ready { .. } => {
                self.is_open = true;
                self.side.open(&self.session);
            }
            SessionReport::Refused(failure) => self.side.refuse(failure),
            SessionReport::Asked(question) => {
                let AgentQuestion { id, tool, options, .. } = question;
                let reject = question.choose(false).map(|option| option.id.clone());
                self.rejects.insert(*id, reject);
                self.side.ask(&of_lead(*id), tool, options);
            }
            SessionReport::Withdrawn { id } => {
                self.rejects.remove(id);
                self.side.withdraw(&of_lead(*id));
            }
            SessionReport::Ended(end) => {
                self.lead.in_turn = false;
                if let Outcome::Failed(failure) = &end.outcome {
                    // If no prompt is open, no reply carries the failure.
                    let words = format!("\n\nThe turn has failed: {}\n\n", failure.said);
                    self.side.report(&SessionReport::Notice(words));
                }
                self.lead.outcome = Some(end.outcome.clone());
                self.is_stale = true;
            }
            report => {
                if matches!(report, SessionReport::Text { .. }) {
                    self.lead.has_spoken = true;
                    if std::mem::take(&mut self.lead.needs_break) {
                        self.side.report(&SessionReport::Notice("\n\n".to_owned()));
                    }
                }
                self.side.report(report);
            }
        }
    }

    /// Ends the prompts once lead and members rest, or the lead's turn has failed.
    fn end_if_over(&mut self) {
        let LeadWork { in_turn, unsent, queued, .. } = self.lead;
        if !self.side.is_prompted() || in_turn || unsent > 0 || queued > 0 {
            self.rest = None;
            return;
        }
        match &self.lead.outcome {
            Some(Outcome::Done) if self.others_work || self.is_stale => self.rest = None,
            Some(Outcome::Done) => {
                let rest = self.rest.get_or_insert_with(|| Deadline::after(REST));
                if rest.expired() {
                    self.side.end_prompts(&Outcome::Done);
                    self.rest = None;
                }
            }
            Some(outcome) => {
                let outcome = outcome.clone();
                self.side.end_prompts(&outcome);
            }
            None => {}
        }
    }
}

impl Face for EditorFace<'_> {
    async fn next(&mut self) -> Option<Vec<ConversationAction>> {
        let early = std::mem::take(&mut self.early);
        if !early.is_empty() {
            return Some(early.into_iter().flat_map(|call| self.handle_call(call)).collect());
        }
        let batch = self.queue.receive().await;
        Some(self.handle(batch))
    }

    fn show(&mut self, update: ConversationUpdate, _now: Timestamp) {
        match update {
            ConversationUpdate::Prompt { from, text } => {
                self.lead.in_turn = true;
                self.lead.outcome = None;
                self.lead.needs_break = self.lead.has_spoken;
                match from {
                    Sender::Typed => self.lead.unsent = self.lead.unsent.saturating_sub(1),
                    Sender::Mail(from) => self.show_mail(&from, &text),
                }
            }
            ConversationUpdate::Report(report) => self.handle_report(&report),
            ConversationUpdate::Decided { id, .. } => drop(self.rejects.remove(&id)),
            ConversationUpdate::Notice(text) => self.side.report(&SessionReport::Notice(text)),
            ConversationUpdate::Status(status) => self.lead.queued = status.queued,
        }
    }

    fn draw(&mut self, _now: Timestamp) {
        if self.sweep.expired() {
            self.sweep = Deadline::after(SWEEP);
            self.is_stale = true;
            self.read_journal();
        }
        if self.is_open && self.is_stale && self.states.expired() {
            self.read_states();
        }
        self.end_if_over();
        let lines = self.side.take_output();
        if let Some(output) = self.output.as_ref().filter(|_| !lines.is_empty()) {
            // The editor may have gone.
            let _ = output.send(lines);
        }
    }

    fn next_draw(&self, _now: Timestamp) -> Option<Duration> {
        let states = self.states.remaining();
        let states = Some(states).filter(|_| self.is_open && self.is_stale);
        let rest = self.rest.as_ref().map(Deadline::remaining);
        states.into_iter().chain(rest).chain([self.sweep.remaining()]).min()
    }

    fn finish(&mut self) {
        let said = "the agent that leads the team has ended".to_owned();
        let failure = AgentFailure { kind: FailureKind::Other, said };
        self.side.refuse(&failure);
        self.side.end_prompts(&Outcome::Failed(failure));
        self.draw(ops::now());
        self.output = None;
        let _ = self.written.recv_timeout(LAST_LINES);
    }
}

fn of_lead(id: QuestionId) -> String {
    format!("{OF_LEAD}{}", id.0)
}

fn work(member: &MemberStatus) -> MemberWork {
    let is_busy = match member.state.doing {
        Doing::Starting | Doing::Working | Doing::Retrying => true,
        Doing::Stopping | Doing::Restarting(_) => true,
        Doing::Waiting(need) => matches!(need, Need::Permission | Need::Plan | Need::Question),
        Doing::Idle | Doing::Running | Doing::Unresponsive | Doing::Ended(_) => false,
    };
    MemberWork { name: member.name.clone(), is_busy, about: member.activity.clone() }
}

/// Returns a text as a tool call.
fn remark(id: &str, title: &str, text: &str, status: ToolStatus) -> AgentToolCall {
    AgentToolCall {
        id: id.to_owned(),
        title: text::short(title, TITLE),
        kind: ToolKind::Other,
        status,
        input: Value::Null,
        content: vec![ToolContent::Text(text.to_owned())],
        locations: Vec::new(),
    }
}

fn read_all(inputs: &Inputs<EditorInput>) {
    let mut buffer = vec![0; CHUNK];
    loop {
        match io::stdin().lock().read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => inputs.send(EditorInput::Bytes(buffer[..read].to_vec())),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    inputs.send(EditorInput::Closed);
}

/// Writes until the sender is dropped, and reports that.
fn write_all(lines: &Receiver<Vec<u8>>, done: &LineSender<()>) {
    for bytes in lines {
        let mut stdout = io::stdout().lock();
        if stdout.write_all(&bytes).and_then(|()| stdout.flush()).is_err() {
            break;
        }
    }
    let _ = done.send(());
}
