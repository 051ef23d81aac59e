//! Running the command of a task on a terminal of its own: its output goes to the pane as it comes, its end into a
//! record, and nothing of it stays behind. Knows nothing of boards and mail.

mod relay;
mod screen;
mod tail;

use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use relay::Relay;
pub(crate) use screen::Screen;
#[cfg(test)]
pub(crate) use screen::tests::Film;
pub(super) use tail::Tail;

use super::context::Caller;
use crate::model::environ;
use crate::model::task::{Outcome, Task};
use crate::sys::child::{self, Program, PtyMaster};
use crate::sys::clock::Deadline;
use crate::sys::env::find_program;
use crate::sys::fs;
use crate::sys::proc::{self, Process};

/// The size of the command's terminal where ours has none: rows, columns.
const SIZE: (u16, u16) = (50, 200);
/// How long a command that is cancelled gets between TERM and KILL.
const CANCEL_GRACE: Duration = Duration::from_secs(2);
/// The same for what a command left behind.
const LEFTOVER_GRACE: Duration = Duration::from_secs(1);
/// What a keyboard sends for the end of input.
const END_OF_INPUT: &[u8] = b"\x04";

/// A command, completely described.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) argv: Vec<String>,
    pub(crate) cwd: PathBuf,
    pub(crate) env: Vec<(OsString, OsString)>,
    /// Rows and columns of its terminal.
    pub(crate) size: (u16, u16),
    /// This process has no other children and adopts orphans: then all that is below it afterwards was the
    /// command's, even what has left its session.
    pub(crate) alone: bool,
}

/// What the task asks for, seen from the caller's directory and environment.
pub(crate) fn job(caller: &Caller, task: &Task, alone: bool) -> Job {
    let cwd =
        task.extra.cwd.as_ref().map_or_else(|| caller.cwd.clone(), |cwd| caller.cwd.join(cwd));
    let mut env = caller.env.clone();
    let own = [("PHALANX_TASK_ID".to_owned(), task.id.to_string())];
    // A task file is anybody's to write: it may not take another's identity.
    let extra = task
        .extra
        .env
        .iter()
        .filter(|(name, value)| environ::may_be_set(name) && !value.contains('\0'));
    for (name, value) in extra.map(|(name, value)| (name.clone(), value.clone())).chain(own) {
        env.retain(|(known, _)| known != OsStr::new(&name));
        env.push((name.into(), value.into()));
    }
    // It names our own directory, not the command's.
    env.retain(|(name, _)| name != OsStr::new("PWD"));
    Job { argv: task.extra.run.clone(), cwd, env, size: child::own_size().unwrap_or(SIZE), alone }
}

/// A command that runs. It has to be waited for.
#[must_use]
pub(crate) struct Running {
    process: Process,
    master: PtyMaster,
    relay: Relay,
    begun: Deadline,
    cancelled: Arc<AtomicBool>,
    alone: bool,
}

/// Ends a running command, from another thread than the one that waits for it.
#[derive(Debug, Clone)]
pub(crate) struct Canceller {
    process: Process,
    cancelled: Arc<AtomicBool>,
}

impl Canceller {
    /// Ends the command's whole tree: TERM, two seconds of grace, KILL. Blocks that long. Harmless when it has ended.
    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::SeqCst);
        proc::end_tree(self.process, true, CANCEL_GRACE);
    }
}

/// Starts the command; its output goes to `screen`.
///
/// # Errors
/// Why it cannot run, for people.
pub(crate) fn start(job: &Job, screen: &Screen) -> Result<Running, String> {
    let program = program(job)?;
    let begun = Deadline::after(Duration::MAX);
    let (process, master) =
        child::spawn_on_pty(&program, job.size.0, job.size.1).map_err(|e| in_full(&e))?;
    let relay = master.reader().and_then(|reader| Relay::start(reader, screen.clone()));
    let relay = relay.map_err(|e| {
        proc::end_tree(process, true, Duration::ZERO);
        child::wait(process);
        format!("cannot read its terminal: {e}")
    })?;
    // Nobody types into it: who reads finds the end of input instead of waiting for ever.
    let _ = master.write_all(END_OF_INPUT);
    Ok(Running { process, master, relay, begun, cancelled: Arc::default(), alone: job.alone })
}

/// How a command ended that never ran.
pub(crate) fn never_ran(reason: String) -> Outcome {
    Outcome { exit_code: None, signal: None, tail: reason, elapsed_ms: 0 }
}

/// What is to be started for a job, its program found in the job's own `PATH`.
///
/// # Errors
/// Why it cannot run, for people.
pub(crate) fn program(job: &Job) -> Result<Program, String> {
    let name = job.argv.first().ok_or("the task carries no command")?;
    if !fs::is_dir(&job.cwd) {
        return Err(format!("there is no directory {}", job.cwd.display()));
    }
    let path = job.env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
    let found = find_program(OsStr::new(name), path, &job.cwd);
    Ok(Program {
        path: found.ok_or_else(|| format!("cannot find the program {name}"))?,
        argv: job.argv.iter().map(OsString::from).collect(),
        cwd: job.cwd.clone(),
        env: job.env.clone(),
    })
}

fn in_full(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}

impl Running {
    /// What ends it.
    pub(crate) fn canceller(&self) -> Canceller {
        Canceller { process: self.process, cancelled: Arc::clone(&self.cancelled) }
    }

    /// Stays until the command has ended, ends what it left behind, and gives the outcome. Blocks; not for an async
    /// runtime's thread.
    pub(crate) fn wait(self) -> Outcome {
        while !proc::wait_exit(self.process, Duration::MAX) {}
        let elapsed_ms = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        // First the tree, then the status: while the dead leader still has its number, its session can be found.
        proc::end_tree(self.process, true, LEFTOVER_GRACE);
        let exit = child::wait(self.process);
        if self.alone {
            proc::end_tree(Process::current(), false, LEFTOVER_GRACE);
        }
        let tail = self.relay.finish(&self.cancelled);
        // Until now: hanging up earlier would cost the command its last words.
        drop(self.master);
        Outcome { exit_code: exit.code, signal: exit.signal, tail, elapsed_ms }
    }
}

#[cfg(test)]
mod tests;
