//! Checks whether a service is ready, and records it.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::last_output::LauncherPane;
use super::output::ProgramOutput;
use super::program::{ProgramCommand, resolve};
use super::run::LauncherRun;
use backend::pty::Broadcaster;
use model::id::{Incarnation, MemberName};
use model::members::readiness::{Readiness, ReadyCheck};
use model::members::record::{ExitRecord, MemberRecord};
use model::team::event::{EventKind, Note};
use model::time::human;
use store::{StoreError, TeamStore, now};
use sys::child::{LoopExit, LoopHandle, Program};
use sys::clock::Deadline;
use sys::output_watch::{OutputWatch, Stopper, Wakeup};
use sys::socket_probe::connect_to_port;

/// Pause between two checks: the first, and the longest. A connection costs little, a command more.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Time after output before the screen is read, so that a flood is read in few pieces.
const SETTLE: Duration = Duration::from_millis(100);
/// Number of lines in which the line is searched.
const LINES: usize = 2000;
/// Time limit of a command.
const RUN_WITHIN: Duration = Duration::from_secs(10);

/// The thread that checks.
pub(super) struct ReadinessThread {
    stopper: Stopper,
    thread: JoinHandle<()>,
}

/// A way to find out whether the member is ready.
enum ReadyProbe {
    Line {
        wanted: String,
        output: OutputText,
    },
    Port(u16),
    Run(Program, LoopHandle),
    /// It cannot be found out, for this reason.
    Impossible(String),
}

/// The source of what the program has printed.
enum OutputText {
    Own(Arc<Broadcaster>),
    /// Read by tmux in the launcher's loop.
    Pane(LauncherPane, LoopHandle),
}

impl ReadinessThread {
    /// Starts the thread; `None` for a member without a check.
    pub(super) fn start(
        run: &LauncherRun,
        output: &ProgramOutput,
        handle: LoopHandle,
    ) -> Option<ReadinessThread> {
        let check = run.ready.clone()?;
        let (mut watch, stopper) = OutputWatch::new().ok()?;
        let probe = ReadyProbe::new(&check, run, output, handle);
        if let (ReadyProbe::Line { .. }, Some(tty)) = (&probe, output.tty_name()) {
            watch.watch(tty.as_ref());
        }
        let checker = ReadinessChecker {
            team: run.team.clone(),
            member: run.member.clone(),
            incarnation: run.incarnation.clone(),
            check,
            probe,
        };
        let thread = thread::Builder::new().name("readiness".to_owned());
        let thread = thread.spawn(move || checker.run(&watch)).ok()?;
        Some(ReadinessThread { stopper, thread })
    }

    /// Ends the thread. The queue of its handle must have been dropped.
    pub(super) fn finish(self) {
        drop(self.stopper);
        let _ = self.thread.join();
    }
}

impl ReadyProbe {
    fn new(
        check: &ReadyCheck,
        run: &LauncherRun,
        output: &ProgramOutput,
        handle: LoopHandle,
    ) -> ReadyProbe {
        if let Some(line) = &check.line {
            let output = match output {
                ProgramOutput::Own(own) => Some(OutputText::Own(own.broadcaster())),
                ProgramOutput::Pane => {
                    LauncherPane::of(run).map(|pane| OutputText::Pane(pane, handle))
                }
            };
            return match output {
                Some(output) => ReadyProbe::Line { wanted: without_spaces(line), output },
                None => ReadyProbe::Impossible(
                    "the output of this terminal cannot be read; use `port` or `run`".to_owned(),
                ),
            };
        }
        if let Some(port) = &check.port {
            return match check.port_number() {
                Some(port) => ReadyProbe::Port(port),
                None => ReadyProbe::Impossible(format!("{port} is not a port")),
            };
        }
        let command = ProgramCommand {
            argv: check.run.iter().map(Into::into).collect(),
            cwd: run.command.cwd.clone(),
            env: run.command.env.clone(),
            terminal: run.command.terminal.clone(),
        };
        match resolve(&command) {
            Ok(program) => ReadyProbe::Run(program, handle),
            Err(problem) => ReadyProbe::Impossible(problem.text),
        }
    }

    /// Returns what is missing; `None` if the member is ready.
    fn missing(&self) -> Option<String> {
        match self {
            ReadyProbe::Line { wanted, output } => {
                let is_printed = output.text().is_some_and(|text| has_printed(&text, wanted));
                (!is_printed).then(|| "it has not been printed".to_owned())
            }
            ReadyProbe::Port(port) => connect_to_port(*port).err().map(|e| e.to_string()),
            ReadyProbe::Run(program, handle) => {
                match handle.run_program(program.clone(), RUN_WITHIN) {
                    LoopExit::Ended(exit) if exit.code == Some(0) => None,
                    LoopExit::Ended(exit) => {
                        let (code, signal) = (exit.code, exit.signal);
                        Some(ExitRecord { code, signal, ..ExitRecord::default() }.describe())
                    }
                    LoopExit::TimedOut => Some("it takes more than 10 s".to_owned()),
                    LoopExit::NotStarted(error) => Some(error.to_string()),
                    LoopExit::LoopEnded => Some("the program has ended".to_owned()),
                }
            }
            ReadyProbe::Impossible(reason) => Some(reason.clone()),
        }
    }
}

impl OutputText {
    fn text(&self) -> Option<String> {
        match self {
            OutputText::Own(terminal) => Some(terminal.lines(LINES)),
            OutputText::Pane(pane, handle) => {
                let pane = pane.clone();
                handle.run(move || pane.last_lines(LINES))?
            }
        }
    }
}

/// Returns true if the text is in the output. A terminal breaks long lines, and drops the spaces at
/// the breaks.
fn has_printed(output: &str, wanted_without_spaces: &str) -> bool {
    without_spaces(output).contains(wanted_without_spaces)
}

fn without_spaces(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

struct ReadinessChecker {
    team: TeamStore,
    member: MemberName,
    incarnation: Incarnation,
    check: ReadyCheck,
    probe: ReadyProbe,
}

impl ReadinessChecker {
    fn run(self, watch: &OutputWatch) {
        let timeout = Deadline::after(Duration::from_millis(self.check.timeout_ms()));
        let (mut pause, mut is_told) = (FIRST_PAUSE, false);
        loop {
            match self.probe.missing() {
                // A failed write is repeated at the next check.
                None if self.record_ready().is_ok() => return,
                None => {}
                Some(missing) => {
                    let is_final = matches!(self.probe, ReadyProbe::Impossible(_));
                    if !is_told && (is_final || timeout.expired()) {
                        is_told = self.record_overdue(&missing, is_final).is_ok();
                    }
                    if is_final && is_told {
                        return;
                    }
                }
            }
            let wait = if is_told { pause } else { pause.min(timeout.remaining()) };
            let wait = wait.max(FIRST_PAUSE);
            match watch.wait(wait) {
                Wakeup::Stopped => return,
                Wakeup::Output => {
                    watch.clear();
                    if !watch.pause(SETTLE) {
                        return;
                    }
                }
                Wakeup::Timeout | Wakeup::Asked => pause = (pause * 2).min(LONGEST_PAUSE),
            }
        }
    }

    fn record_ready(&self) -> Result<(), StoreError> {
        let at = now();
        let note = Note::of(EventKind::MemberServes).with("condition", self.check.condition());
        self.record(&Readiness { passed_at: Some(at), overdue: None }, note)
    }

    fn record_overdue(&self, missing: &str, is_final: bool) -> Result<(), StoreError> {
        let condition = self.check.condition();
        let overdue = match is_final {
            true => format!("cannot check that {condition}: {missing}"),
            false => {
                let span = human(self.check.timeout_ms());
                format!("not ready after {span}, until {condition}: {missing}")
            }
        };
        let note = Note::of(EventKind::Warning).with("text", overdue.as_str());
        self.record(&Readiness { passed_at: None, overdue: Some(overdue) }, note)
    }

    fn record(&self, readiness: &Readiness, note: Note) -> Result<(), StoreError> {
        // The store would recreate the directories of a deleted team.
        if !self.team.exists() {
            return Ok(());
        }
        let set = |record: &mut MemberRecord| record.readiness = readiness.clone();
        if self.team.change_record(&self.member, &self.incarnation, set)?.is_some() {
            self.team.record(note.member(&self.member))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_is_found_although_the_terminal_has_broken_it() {
        let wanted = without_spaces("listening on");
        for output in ["x listening on 80\n", "12:00 listening\non 80", "a\nlisten\ning on\nb"] {
            assert!(has_printed(output, &wanted), "{output:?}");
        }
        for output in ["", "listening", "on listening"] {
            assert!(!has_printed(output, &wanted), "{output:?}");
        }
    }
}
