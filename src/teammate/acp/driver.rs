//! The I/O shell around the step of a member over ACP: reads the agent, the team's files and the
//! keys of the pane, and executes the resulting effects.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use tokio::runtime::Builder;

use super::super::effect::{MemberEffect, OutboundOp};
use super::super::event::MemberEvent;
use super::super::member_io::{self, MemberIo, MemberRun};
use super::super::state::Me;
use super::super::words::AgentRole;
use super::agent::{AcpInput, AgentProcess};
use super::effect::{Effect, PaneUpdate};
use super::event::Event;
use super::react::{mode_choice, react};
use super::state::{AgentFacts, State};
use super::terminal::PaneTerminal;
use acp::{AgentTraits, McpServer, Session, SessionStart, UsageBasis};
use conversation::{Conversation, ConversationAction, Options};
use event_loop::{BLIND_SWEEP, Batch, InputQueue, SWEEP};
use model::mail::protocol::{IdleNotification, Message};
use model::team::event::{EventKind, Note};
use model::text;
use model::time::Timestamp;
use model::topic::Topic;
use ops::{self, Context, JournalReader, OpsError, TeamStore};
use profile::Profile;
use sys::clock::{self, Deadline};
use sys::failpoint;
use sys::signal::{Signal, Signals};

/// Shortest time between two frames.
const FRAME: Duration = Duration::from_millis(16);
/// Names of changed files in a report.
const CHANGED: usize = 10;
/// The name of phalanx's own server of tools.
const TOOLS: &str = "phalanx";

/// Parameters for starting an agent over ACP.
pub(in super::super) struct AcpOptions {
    pub(in super::super) me: MemberRun,
    pub(in super::super) profile: Profile,
    pub(in super::super) argv: Vec<String>,
    pub(in super::super) env: Vec<(OsString, OsString)>,
    pub(in super::super) role: AgentRole,
    pub(in super::super) mode: Option<String>,
    pub(in super::super) model: Option<String>,
    /// The session of an earlier run to continue.
    pub(in super::super) load: Option<String>,
    /// The pane according to `$TMUX_PANE`.
    pub(in super::super) pane: Option<String>,
    /// The backend's name in the team file.
    pub(in super::super) backend: &'static str,
}

pub(in super::super) struct AcpDriver<'a> {
    io: MemberIo<'a>,
    state: State,
    agent: AgentProcess,
    view: Conversation,
    queue: InputQueue<AcpInput>,
    /// The start of the current turn: position in the journal, and time.
    turn_from: (JournalReader, Timestamp),
}

/// Starts the agent.
///
/// # Errors
/// The program is not found or cannot be started, or a file of the team cannot be read.
pub(in super::super) fn open<'a>(
    ctx: &'a Context,
    team: &'a TeamStore,
    options: AcpOptions,
) -> Result<AcpDriver<'a>, OpsError> {
    let AcpOptions { me, profile, argv, env, role, mode, model, load, pane, backend } = options;
    let cwd = ctx.caller.cwd.clone();
    let in_doubt = match role {
        AgentRole::Teammate => ops::mail::inbox::in_doubt(team, &me.name)?,
        AgentRole::Lead => BTreeSet::new(),
    };
    let start = SessionStart {
        cwd: cwd.to_string_lossy().into_owned(),
        mcp: vec![own_tools(ctx, &env)],
        load,
        seek: in_doubt.iter().cloned().collect(),
        mode: mode.as_deref().map(mode_choice),
        model,
        traits: traits(&profile),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let queue = InputQueue::default();
    let turn_from = (team.journal_end()?, ops::now());
    let refused = |problem: String| OpsError::Failed { problem };
    // Nothing may fail once the agent runs: no process would be left to end it.
    let agent = AgentProcess::start(&argv, &cwd, env, &queue.inputs()).map_err(refused)?;
    let (name, incarnation) = (me.name.clone(), me.incarnation.clone());
    let options = Options {
        name: name.to_string(),
        color: ctx.caller.var("NO_COLOR").is_none_or(|value| value.is_empty()),
        cwd: cwd.to_string_lossy().into_owned(),
    };
    let view = Conversation::new(options, PaneTerminal::size());
    let myself = Me { name, incarnation, team: team.name().clone(), pane, backend };
    let mut state = State::new(myself, Session::new(start), facts(&profile), role);
    state.zone = clock::local_zone();
    state.in_doubt = in_doubt;
    Ok(AcpDriver { io: MemberIo { ctx, team, me }, state, agent, view, queue, turn_from })
}

fn traits(profile: &Profile) -> AgentTraits {
    let usage = match profile.acp.usage {
        profile::UsageCount::Turn => UsageBasis::Turn,
        profile::UsageCount::Session => UsageBasis::Session,
        profile::UsageCount::Request => UsageBasis::Request,
    };
    AgentTraits { usage, failure_prefix: profile.acp.failure.clone() }
}

fn facts(profile: &Profile) -> AgentFacts {
    let modes = profile.launch.modes.iter();
    let modes: BTreeMap<_, _> =
        modes.filter_map(|(mode, words)| Some((*mode, words.first()?.clone()))).collect();
    AgentFacts { modes, seen: profile.seen.clone(), install: profile.install.clone() }
}

/// Returns phalanx's own server of tools, which acts with the identity of this member: some agents
/// pass no variables on.
fn own_tools(ctx: &Context, env: &[(OsString, OsString)]) -> McpServer {
    let own = env.iter().filter_map(|(name, value)| {
        let (name, value) = (name.to_str()?, value.to_str()?);
        let is_own = name.starts_with("PHALANX_") || name == "HOME" || name == "TMUX_TMPDIR";
        is_own.then(|| (name.to_owned(), value.to_owned()))
    });
    McpServer {
        name: TOOLS.to_owned(),
        command: ctx.caller.exe.to_string_lossy().into_owned(),
        args: vec!["mcp".to_owned()],
        env: own.collect(),
    }
}

impl AcpDriver<'_> {
    /// Serves the agent until it exits. Returns the exit code.
    pub(in super::super) fn serve(self) -> i32 {
        let runtime = Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime needs no more than this process has").block_on(self.run())
    }

    /// Returns a function that ends the agent from another thread.
    pub(in super::super) fn ender(&self) -> impl FnOnce() + Send + 'static {
        let inputs = self.queue.inputs();
        move || inputs.send(AcpInput::Left)
    }

    async fn run(mut self) -> i32 {
        let (Ok(mut signals), Ok(mut terminal)) = (Signals::new(), PaneTerminal::enter()) else {
            return 1;
        };
        let inputs = self.queue.inputs();
        // Subscribe before the first read, so that no change is missed between them.
        let watch = ops::views::events::watch_as(self.io.team, &self.io.me.name, move |topic| {
            inputs.send_change(topic)
        });
        let interval = watch.as_ref().map_or(BLIND_SWEEP, |_| SWEEP);
        let mut sweep = Deadline::after(interval);
        let mut drawn = Deadline::after(Duration::ZERO);
        // Something may have changed since the last frame.
        let mut is_due = true;
        self.step(Event::Tick);
        self.read(&Topic::Everything);
        loop {
            let now = ops::now();
            if let Some(code) = self.state.end {
                terminal.write(&self.view.finish());
                return code;
            }
            if is_due && drawn.expired() {
                is_due = false;
                let frame = self.view.frame(now.0);
                if !frame.is_empty() {
                    terminal.write(&frame);
                    drawn = Deadline::after(FRAME);
                }
            }
            let tick = self.state.next_tick(now).map(|at| Duration::from_millis(at.since(now)));
            let redraw = self.view.next_frame(now.0).map(|at| at.saturating_sub(now.0));
            let redraw = redraw.map(|ms| Duration::from_millis(ms).max(drawn.remaining()));
            let frame = is_due.then(|| drawn.remaining());
            let times = tick.into_iter().chain(redraw).chain(frame);
            let wait = times.fold(sweep.remaining(), Duration::min);
            tokio::select! {
                biased;
                signal = signals.recv() => self.step(Event::Signal(signal)),
                event = terminal.next() => match event {
                    Some(event) => self.handle_input(&event),
                    None => self.step(Event::Signal(Signal::Hangup)),
                },
                batch = self.queue.receive() => self.handle(batch),
                () = tokio::time::sleep(wait) => self.step(Event::Tick),
            }
            is_due = true;
            if sweep.expired() {
                sweep = Deadline::after(interval);
                self.read(&Topic::Everything);
            }
        }
    }

    fn handle_input(&mut self, event: &crossterm::event::Event) {
        for action in self.view.input(event, ops::now().0) {
            self.step(match action {
                ConversationAction::Send(text) => Event::Typed(text),
                ConversationAction::Cancel => Event::Cancelled,
                ConversationAction::Answer { id, option } => Event::Chosen { id, option },
                ConversationAction::Leave => Event::Left,
            });
        }
    }

    fn handle(&mut self, (topics, others): Batch<AcpInput>) {
        for input in others {
            match input {
                AcpInput::Output(bytes) => {
                    self.step(Event::Output(bytes));
                    self.agent.chunk_handled();
                }
                AcpInput::Ended { code, said } => self.step(Event::Ended { code, said }),
                AcpInput::Left => self.step(Event::Left),
            }
        }
        topics.iter().for_each(|topic| self.read(topic));
    }

    /// Reads what `topic` covers and steps with the resulting event.
    fn read(&mut self, topic: &Topic) {
        if *topic == Topic::Everything {
            return self.io.topics().iter().for_each(|part| self.read(part));
        }
        let Some(event) = self.io.read(topic, self.state.pending()) else { return };
        self.step(Event::Member(event));
    }

    fn step(&mut self, event: Event) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            for effect in react(&mut self.state, event, ops::now()) {
                events.extend(self.carry_out(effect).map(Event::Member));
            }
        }
    }

    /// Executes one effect. Returns its event if the result is known at once.
    fn carry_out(&mut self, effect: Effect) -> Option<MemberEvent> {
        match effect {
            Effect::Member(MemberEffect::Do(op)) => return Some(self.execute_outbound(op)),
            Effect::Member(effect) => return self.io.carry_out(effect),
            Effect::Journal { kind, ids, reason } => {
                let note = Note::of(kind).with("msg_ids", ids);
                self.io.journal(match reason {
                    Some(reason) => note.with("reason", reason),
                    None => note,
                });
                if kind == EventKind::MessageSubmitted {
                    failpoint::hit("acp.submitted");
                }
            }
            Effect::Write(bytes) => self.agent.write(bytes),
            Effect::Show(shown) => self.show(shown),
            Effect::End => self.agent.end(),
        }
        None
    }

    fn show(&mut self, shown: PaneUpdate) {
        let now = ops::now().0;
        match shown {
            PaneUpdate::Prompt { from, text } => self.view.prompt(from, &text, now),
            PaneUpdate::Report(report) => self.view.report(&report, now),
            PaneUpdate::Decided { id, words } => self.view.decided(id, &words),
            PaneUpdate::Notice(text) => self.view.notice(&text),
            PaneUpdate::Status(status) => self.view.set_status(status),
        }
    }

    /// Executes an outbound operation. An idle notification gets the result of the turn, and the
    /// next turn starts once it is sent.
    fn execute_outbound(&mut self, op: OutboundOp) -> MemberEvent {
        let (mut op, mut next) = (op, self.turn_from.clone());
        if let OutboundOp::Send(message) = &mut op
            && let Message::IdleNotification(notice) = &mut **message
        {
            next = match self.add_report(notice) {
                Ok(next) => next,
                Err(e) => {
                    let report = |failure| MemberEvent::Done(Err(failure));
                    return member_io::failed(self.io.team, &e, report);
                }
            };
        }
        let event = self.io.execute(op);
        if event == MemberEvent::Done(Ok(())) {
            self.turn_from = next;
        }
        event
    }

    /// Adds the result of the turn to an idle notification: the task that ended, the last message to
    /// a peer, the agent's last words and the files that it has changed. Returns the start of the
    /// next turn.
    ///
    /// # Errors
    /// The journal cannot be read.
    fn add_report(
        &self,
        notice: &mut IdleNotification,
    ) -> Result<(JournalReader, Timestamp), OpsError> {
        let words = text::block(self.state.last_words.trim());
        let changed = self.changed_words();
        let result = [words, changed].into_iter().filter(|part| !part.is_empty());
        let result = result.collect::<Vec<_>>().join("\n");
        self.io.add_report(notice, self.turn_from.clone(), || result)
    }

    fn changed_words(&self) -> String {
        let cwd = self.io.ctx.caller.cwd.clone();
        let short = |path: &String| {
            let path = PathBuf::from(path);
            let inner = path.strip_prefix(&cwd).unwrap_or(&path).to_string_lossy().into_owned();
            text::line(&inner)
        };
        let names: Vec<String> = self.state.changed.iter().take(CHANGED).map(short).collect();
        let more = self.state.changed.len().saturating_sub(CHANGED);
        match (names.is_empty(), more) {
            (true, _) => String::new(),
            (false, 0) => format!("Changed: {}", names.join(", ")),
            (false, more) => format!("Changed: {}, and {more} more", names.join(", ")),
        }
    }
}
