//! Watches whether a plain program waits at a prompt, and records it. The process evidence is read
//! first; the screen is read only while the program waits for input.
//!
//! The thread sleeps until the terminal reports output. Output through `/dev/tty`, as of `ssh` and
//! `sudo`, is not reported, so it also looks at growing intervals.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::output::ProgramOutput;
use super::run::LauncherRun;
use backend::pty::Broadcaster;
use backend::tmux;
use model::id::{Incarnation, MemberName};
use model::members::placement::Placement;
use model::members::prompt::{PromptSeen, prompt_in};
use model::team::event::{EventKind, Note};
use store::{StoreError, TeamStore, now};
use sys::child::LoopHandle;
use sys::env;
use sys::output_watch::{OutputWatch, Stopper, Wakeup};
use sys::proc::{AwaitedInput, Liveness, Process, awaited_input, liveness};

/// Time without output after which the program is looked at.
const QUIET: Duration = Duration::from_millis(500);
/// Longest interval. A look costs about 0.1 ms while the program does not wait for input.
const LONGEST: Duration = Duration::from_secs(60);
/// Interval while a prompt is shown. The answer need not cause output.
const SHOWN: Duration = Duration::from_secs(1);

/// The thread that watches.
pub(super) struct PromptThread {
    stopper: Stopper,
    thread: JoinHandle<()>,
}

/// The source of the program's screen.
enum ScreenSource {
    Own(Arc<Broadcaster>),
    /// Read by this tmux in the launcher's loop.
    Tmux(PathBuf, LoopHandle),
}

impl PromptThread {
    /// Starts the thread; `None` for a program that takes part in the team, for one whose prompts
    /// are ignored, and for one whose screen cannot be read.
    pub(super) fn start(
        run: &LauncherRun,
        program: Process,
        output: &ProgramOutput,
        handle: LoopHandle,
    ) -> Option<PromptThread> {
        if !run.asks_for_attention || run.is_one_shot() {
            return None;
        }
        let tty = PathBuf::from(output.tty_name()?);
        let screen = match output {
            ProgramOutput::Own(own) => ScreenSource::Own(own.broadcaster()),
            ProgramOutput::Pane => {
                env::var("TMUX_PANE")?;
                let path = env::var("PATH");
                let tmux = env::find_program(OsStr::new("tmux"), path.as_deref(), Path::new("/"))?;
                ScreenSource::Tmux(tmux, handle)
            }
        };
        let (mut watch, stopper) = OutputWatch::new().ok()?;
        watch.watch(&tty);
        let watcher = PromptWatcher {
            team: run.team.clone(),
            member: run.member.clone(),
            incarnation: run.incarnation.clone(),
            program,
            tty,
            screen,
            input: None,
            prompt: None,
        };
        let thread = thread::Builder::new().name("prompt".to_owned());
        let thread = thread.spawn(move || watcher.run(&watch)).ok()?;
        Some(PromptThread { stopper, thread })
    }

    /// Ends the thread. The queue of its handle must have been dropped.
    pub(super) fn finish(self) {
        drop(self.stopper);
        let _ = self.thread.join();
    }
}

struct PromptWatcher {
    team: TeamStore,
    member: MemberName,
    incarnation: Incarnation,
    program: Process,
    tty: PathBuf,
    screen: ScreenSource,
    /// The input that the program waited for at the last look.
    input: Option<AwaitedInput>,
    /// The recorded prompt.
    prompt: Option<String>,
}

impl PromptWatcher {
    fn run(mut self, watch: &OutputWatch) {
        let (mut interval, mut has_output) = (QUIET, true);
        loop {
            match watch.wait(interval) {
                Wakeup::Stopped => return,
                Wakeup::Output => {
                    if !watch.pause(QUIET) {
                        return;
                    }
                    watch.clear();
                    (interval, has_output) = (QUIET, true);
                }
                Wakeup::Timeout | Wakeup::Asked => {
                    // A terminal may draw late, so the screen is read again while intervals grow.
                    self.look(has_output, interval < LONGEST);
                    has_output = false;
                    interval = match self.prompt {
                        Some(_) => SHOWN,
                        None => (interval * 2).min(LONGEST),
                    };
                }
            }
        }
    }

    /// Looks whether the program waits at a prompt. `has_output` is true if it has written since
    /// the last look.
    fn look(&mut self, has_output: bool, is_recent: bool) {
        if liveness(self.program.pid, self.program.start) == Liveness::Dead {
            // The record of its exit clears the prompt.
            return;
        }
        let input = awaited_input(self.program, &self.tty);
        let is_same_wait = std::mem::replace(&mut self.input, input) == input;
        let Some(input) = input else { return self.show(None) };
        // The line that a person types is not output of the program, so the prompt stays.
        let is_kept = is_same_wait && (input.is_line() || !has_output);
        let needs_screen = match self.prompt {
            Some(_) => !is_kept,
            None => !is_same_wait || has_output || is_recent,
        };
        if needs_screen {
            let line = self.line();
            self.show(line.and_then(|line| prompt_in(&line, input.is_line())));
        }
    }

    /// Returns the line of the screen in which the program may ask for input.
    fn line(&self) -> Option<String> {
        match &self.screen {
            ScreenSource::Own(terminal) => terminal.prompt_line(),
            ScreenSource::Tmux(program, handle) => {
                let record = self.team.member_record(&self.member).ok()??;
                let placement = record.placement.clone()?;
                let Placement::Tmux(_) = placement else { return None };
                let (program, mark) = (program.clone(), record.mark().to_owned());
                handle.run(move || tmux::prompt_line(&program, &placement, &mark))?
            }
        }
    }

    /// Records a change of the prompt.
    fn show(&mut self, prompt: Option<String>) {
        // A failed write is repeated at the next look.
        if self.prompt != prompt && self.record(prompt.as_deref()).is_ok() {
            self.prompt = prompt;
        }
    }

    fn record(&self, line: Option<&str>) -> Result<(), StoreError> {
        // The store would recreate the directories of a deleted team.
        if !self.team.exists() {
            return Ok(());
        }
        let seen = line.map(|line| PromptSeen {
            line: line.to_owned(),
            since: now(),
            is_announced: false,
        });
        let set = |record: &mut model::members::record::MemberRecord| record.prompt = seen.clone();
        if self.team.change_record(&self.member, &self.incarnation, set)?.is_some() {
            let note = Note::of(EventKind::MemberPrompt).member(&self.member);
            self.team.record(note.with_some("text", line))?;
        }
        Ok(())
    }
}
