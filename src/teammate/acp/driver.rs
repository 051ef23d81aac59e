//! The I/O shell around the step of a member over ACP: reads the agent, the team's files and the
//! keys of the pane, and executes the resulting effects.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::runtime::Builder;

use super::super::effect::MemberEffect;
use super::super::event::MemberEvent;
use super::super::member_io::{MemberIo, ProgramStart};
use super::super::words::AgentRole;
use super::agent::AgentProcess;
use super::effect::Effect;
use super::event::Event;
use super::face::Face;
use super::pane::Pane;
use super::react::{mode_choice, react};
use super::state::{AgentFacts, State};
use acp::{AgentTraits, McpServer, Session, SessionStart, UsageBasis};
use conversation::{ConversationAction, Options};
use event_loop::{BLIND_SWEEP, Batch, InputQueue, SWEEP};
use model::team::event::EventKind;
use model::text;
use model::time::Timestamp;
use model::topic::Topic;
use ops::{self, Context, JournalReader, KeptEnvironment, OpsError, TeamStore};
use profile::Profile;
use sys::clock::{self, Deadline};
use sys::failpoint;
use sys::signal::{Signal, Signals};

/// Names of changed files in a report.
const CHANGED: usize = 10;
/// The name of phalanx's own server of tools.
const TOOLS: &str = "phalanx";

/// The session of an agent over ACP.
#[derive(Default)]
pub(in super::super) struct SessionOptions {
    /// The modes of the session, one a line.
    pub(in super::super) mode: Option<String>,
    pub(in super::super) model: Option<String>,
    /// The session of an earlier run to continue.
    pub(in super::super) load: Option<String>,
}

/// A running agent; `F` is the person's view of it.
pub struct AcpDriver<'a, F = ()> {
    io: MemberIo<'a>,
    state: State,
    agent: AgentProcess,
    face: F,
    queue: InputQueue<Event>,
    _environment: KeptEnvironment,
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
    start: ProgramStart,
    session: SessionOptions,
) -> Result<AcpDriver<'a>, OpsError> {
    let myself = start.me.identity(ctx, team, start.backend);
    let ProgramStart { me, profile, argv, env, role, .. } = start;
    let cwd = ctx.caller.cwd.clone();
    let in_doubt = match role {
        AgentRole::Teammate => ops::mail::inbox::in_doubt(team, &me.name)?,
        AgentRole::Lead => BTreeSet::new(),
    };
    let environment = team.keep_environment(&me.name, &env)?;
    let start = SessionStart {
        cwd: cwd.to_string_lossy().into_owned(),
        mcp: vec![own_tools(ctx, &environment)],
        load: session.load,
        seek: in_doubt.iter().cloned().collect(),
        modes: session.mode.iter().flat_map(|words| words.lines()).map(mode_choice).collect(),
        model: session.model,
        traits: traits(&profile),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let queue = InputQueue::default();
    let turn_from = (team.journal_end()?, ops::now());
    let refused = |problem: String| OpsError::Failed { problem };
    // Nothing may fail once the agent runs: no process would be left to end it.
    let is_own = profile.program() == argv.first().cloned();
    let install_hint = if is_own { profile.install_hint() } else { String::new() };
    let agent = AgentProcess::start(&argv, &cwd, env, &queue.inputs(), &install_hint);
    let agent = agent.map_err(refused)?;
    let mut state = State::new(myself, Session::new(start), facts(&profile), role);
    state.zone = clock::local_zone();
    state.in_doubt = in_doubt;
    Ok(AcpDriver {
        io: MemberIo { ctx, team, me },
        state,
        agent,
        face: (),
        queue,
        _environment: environment,
        turn_from,
    })
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
    AgentFacts {
        needs_heading: profile.acp.heading,
        modes,
        seen: profile.seen.clone(),
        install: profile.install.clone(),
    }
}

/// Returns phalanx's own server of tools, which acts with the identity and the environment of this
/// member (AC-21): codex and gemini pass only a part of it on, and claude puts the server's own
/// variables on a command line.
fn own_tools(ctx: &Context, environment: &KeptEnvironment) -> McpServer {
    let path = environment.path().to_string_lossy().into_owned();
    let program = ctx.caller.program().unwrap_or_else(|_| ctx.caller.exe.clone());
    McpServer {
        name: TOOLS.to_owned(),
        command: program.to_string_lossy().into_owned(),
        args: vec!["mcp".to_owned(), "--env-file".to_owned(), path],
        env: Vec::new(),
    }
}

impl<'a> AcpDriver<'a> {
    /// Serves the agent in its pane until it exits. Returns the exit code.
    pub(in super::super) fn serve(self) -> i32 {
        let caller = &self.io.ctx.caller;
        let options = Options {
            name: self.io.me.name.to_string(),
            color: caller.var("NO_COLOR").is_none_or(|value| value.is_empty()),
            cwd: caller.cwd.to_string_lossy().into_owned(),
        };
        self.serve_in(|| Pane::enter(options))
    }

    /// Serves the agent until it exits, in a view that is opened inside the runtime. Returns the
    /// exit code, or that of the signal that ended this process.
    pub fn serve_in<F: Face>(self, open: impl FnOnce() -> io::Result<F>) -> i32 {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime needs no more than this process has");
        runtime.block_on(async {
            let Ok(face) = open() else { return 1 };
            self.in_face(face).run().await
        })
    }

    fn in_face<F: Face>(self, face: F) -> AcpDriver<'a, F> {
        let AcpDriver { io, state, agent, face: (), queue, _environment, turn_from } = self;
        AcpDriver { io, state, agent, face, queue, _environment, turn_from }
    }

    /// Returns a function that ends the agent from another thread.
    pub fn ender(&self) -> impl FnOnce() + Send + 'static {
        let inputs = self.queue.inputs();
        move || inputs.send(Event::Person(ConversationAction::Leave))
    }
}

impl<F: Face> AcpDriver<'_, F> {
    async fn run(mut self) -> i32 {
        let Ok(mut signals) = Signals::new() else { return 1 };
        let inputs = self.queue.inputs();
        // Subscribe before the first read, so that no change is missed between them.
        let MemberIo { team, me, .. } = &self.io;
        let watch = team.watch_as(&me.name, move |topic| inputs.send_change(topic));
        let interval = watch.as_ref().map_or(BLIND_SWEEP, |_| SWEEP);
        let mut sweep = Deadline::after(interval);
        self.step(Event::Tick);
        self.read(&Topic::Everything);
        loop {
            let now = ops::now();
            if let Some(code) = self.state.end {
                self.face.finish();
                return code;
            }
            self.face.draw(now);
            let tick = self.state.next_tick(now).map(|at| Duration::from_millis(at.since(now)));
            let times = tick.into_iter().chain(self.face.next_draw(now));
            let wait = times.fold(sweep.remaining(), Duration::min);
            tokio::select! {
                biased;
                signal = signals.recv() => self.step(Event::Signal(signal)),
                actions = self.face.next() => match actions {
                    Some(actions) => {
                        actions.into_iter().for_each(|action| self.step(Event::Person(action)));
                    }
                    None => self.step(Event::Signal(Signal::Hangup)),
                },
                batch = self.queue.receive() => self.handle(batch),
                () = tokio::time::sleep(wait) => self.step(Event::Tick),
            }
            if sweep.expired() {
                sweep = Deadline::after(interval);
                self.read(&Topic::Everything);
            }
        }
    }

    fn handle(&mut self, (topics, others): Batch<Event>) {
        for event in others {
            let is_output = matches!(event, Event::Output(_));
            self.step(event);
            if is_output {
                self.agent.chunk_handled();
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
            Effect::Member(MemberEffect::Do(op)) => {
                let result = || turn_result(&self.state, &self.io.ctx.caller.cwd);
                return Some(self.io.execute_in_turn(op, &mut self.turn_from, result));
            }
            Effect::Member(effect) => return self.io.carry_out(effect),
            Effect::Journal { kind, ids, reason } => {
                self.io.journal_delivery(kind, ids, reason);
                if kind == EventKind::MessageSubmitted {
                    failpoint::hit("acp.submitted");
                }
            }
            Effect::Write(bytes) => self.agent.write(bytes),
            Effect::Show(update) => self.face.show(update, ops::now()),
            Effect::End => self.agent.end(),
        }
        None
    }
}

/// Returns the result of a turn: the agent's last words and the files that it has changed.
fn turn_result(state: &State, cwd: &Path) -> String {
    let short = |path: &String| {
        let path = PathBuf::from(path);
        text::line(&path.strip_prefix(cwd).unwrap_or(&path).to_string_lossy())
    };
    let names: Vec<String> = state.changed.iter().take(CHANGED).map(short).collect();
    let changed = match (names.is_empty(), state.changed.len().saturating_sub(CHANGED)) {
        (true, _) => String::new(),
        (false, 0) => format!("Changed: {}", names.join(", ")),
        (false, more) => format!("Changed: {}, and {more} more", names.join(", ")),
    };
    let parts = [text::block(state.last_words.trim()), changed];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}
