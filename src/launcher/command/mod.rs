//! Runs the command of a task on its own pty: relays the output to the pane, records the outcome,
//! and ends all processes the command leaves behind.

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

use crate::model::environ;
use crate::model::task::{Outcome, Task};
use crate::ops::Caller;
use crate::sys::child::{self, Program, PtyMaster};
use crate::sys::clock::Deadline;
use crate::sys::env::find_program;
use crate::sys::fs;
use crate::sys::proc::{self, Process};

/// Rows and columns of the command's terminal if ours reports no size.
const SIZE: (u16, u16) = (50, 200);
/// Time between SIGTERM and SIGKILL for a cancelled command.
const CANCEL_GRACE: Duration = Duration::from_secs(2);
/// The same for processes that a command left behind.
const LEFTOVER_GRACE: Duration = Duration::from_secs(1);
/// Ctrl-D, which a terminal in cooked mode turns into EOF.
const END_OF_INPUT: &[u8] = b"\x04";

/// The complete description of a command.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) argv: Vec<String>,
    pub(crate) cwd: PathBuf,
    pub(crate) env: Vec<(OsString, OsString)>,
    /// Rows and columns of its terminal.
    pub(crate) size: (u16, u16),
    /// Set if this process has no other children and is a subreaper: then all its remaining
    /// descendants came from the command, even those that left its session.
    pub(crate) alone: bool,
}

/// Builds the job of a task from the caller's directory and environment.
pub(crate) fn job(caller: &Caller, task: &Task, alone: bool) -> Job {
    let cwd =
        task.extra.cwd.as_ref().map_or_else(|| caller.cwd.clone(), |cwd| caller.cwd.join(cwd));
    let mut env = caller.env.clone();
    let own = [("PHALANX_TASK_ID".to_owned(), task.id.to_string())];
    // Any program can write a task file, so it must not override the identity variables.
    let extra = task
        .extra
        .env
        .iter()
        .filter(|(name, value)| environ::may_be_set(name) && !value.contains('\0'));
    for (name, value) in extra.map(|(name, value)| (name.clone(), value.clone())).chain(own) {
        env.retain(|(known, _)| known != OsStr::new(&name));
        env.push((name.into(), value.into()));
    }
    // PWD names the caller's directory, not the command's.
    env.retain(|(name, _)| name != OsStr::new("PWD"));
    Job { argv: task.extra.run.clone(), cwd, env, size: child::own_size().unwrap_or(SIZE), alone }
}

/// A running command. Call [`Running::wait`] to reap it.
#[must_use]
pub(crate) struct Running {
    process: Process,
    master: PtyMaster,
    relay: Relay,
    begun: Deadline,
    cancelled: Arc<AtomicBool>,
    alone: bool,
}

/// Ends a running command from another thread than the waiting one.
#[derive(Debug, Clone)]
pub(crate) struct Canceller {
    process: Process,
    cancelled: Arc<AtomicBool>,
}

impl Canceller {
    /// Ends the command's process tree: SIGTERM, two seconds of grace, SIGKILL. Blocks that long.
    /// Has no effect if the command has exited.
    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::SeqCst);
        proc::end_tree(self.process, true, CANCEL_GRACE);
    }
}

/// Starts the command; its output goes to `screen`.
///
/// # Errors
///
/// A description for people if the program or its directory is missing, or the pty cannot be opened
/// or read.
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
    // The command has no input: programs that read it get EOF instead of blocking.
    let _ = master.write_all(END_OF_INPUT);
    Ok(Running { process, master, relay, begun, cancelled: Arc::default(), alone: job.alone })
}

/// Returns the outcome of a command that could not be started.
pub(crate) fn never_ran(reason: String) -> Outcome {
    Outcome { exit_code: None, signal: None, tail: reason, elapsed_ms: 0 }
}

/// Resolves a job to a program, which is looked up in the job's own `PATH`.
///
/// # Errors
///
/// A description for people if the command is empty, or its directory or program does not exist.
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
    /// Returns a handle that cancels the command.
    pub(crate) fn canceller(&self) -> Canceller {
        Canceller { process: self.process, cancelled: Arc::clone(&self.cancelled) }
    }

    /// Waits for the command to exit, ends the processes it left behind, and returns the outcome.
    /// Blocks the thread, so it must not run on an async executor.
    pub(crate) fn wait(self) -> Outcome {
        while !proc::wait_exit(self.process, Duration::MAX) {}
        let elapsed_ms = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        // End the tree before reaping: while the leader is a zombie, its pid is not reused and its
        // session can still be found.
        proc::end_tree(self.process, true, LEFTOVER_GRACE);
        let exit = child::wait(self.process);
        if self.alone {
            proc::end_tree(Process::current(), false, LEFTOVER_GRACE);
        }
        let tail = self.relay.finish(&self.cancelled);
        // Dropped only now: hanging up the terminal earlier would discard output not yet read.
        drop(self.master);
        Outcome { exit_code: exit.code, signal: exit.signal, tail, elapsed_ms }
    }
}

#[cfg(test)]
mod tests;
