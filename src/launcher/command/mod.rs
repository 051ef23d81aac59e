//! Runs the command of a task on its own pty: relays the output to the pane, records the outcome,
//! and ends all processes the command leaves behind.

mod relay;
mod screen;
mod tail;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use relay::OutputRelay;
#[cfg(test)]
use screen::RecordedScreen;
pub use screen::WorkerScreen;
pub use tail::Tail;

use model::board::task::{CommandOutcome, Task};
use model::causes::error_chain;
use model::members::environ;
use sys::child::{self, Program, PtyMaster};
use sys::clock::Deadline;
use sys::env::find_program;
use sys::fs;
use sys::proc::{self, Process};

/// Rows and columns of the command's terminal if ours reports no size.
const SIZE: (u16, u16) = (50, 200);
/// The same for processes that a command left behind.
const LEFTOVER_GRACE: Duration = Duration::from_secs(1);
/// Ctrl-D, which a terminal in cooked mode turns into EOF.
const END_OF_INPUT: &[u8] = b"\x04";

/// The complete description of a command.
#[derive(Debug, Clone)]
pub struct CommandSpec {
    pub argv: Vec<String>,
    pub cwd: PathBuf,
    pub env: Vec<(OsString, OsString)>,
    /// Rows and columns of its terminal.
    pub size: (u16, u16),
    /// Set if this process has no other children and is a subreaper: then all its remaining
    /// descendants came from the command, even those that left its session.
    pub alone: bool,
}

/// Builds the command of a task, which runs in `cwd` with the variables `env` unless the task sets
/// others.
pub fn for_task(task: &Task, cwd: &Path, env: &[(OsString, OsString)], alone: bool) -> CommandSpec {
    let cwd = task.extra.cwd.as_ref().map_or_else(|| cwd.to_owned(), |inner| cwd.join(inner));
    let mut env = env.to_vec();
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
    let size = child::own_size().unwrap_or(SIZE);
    CommandSpec { argv: task.extra.run.clone(), cwd, env, size, alone }
}

/// A running command. Call [`RunningCommand::wait`] to reap it.
#[must_use]
pub struct RunningCommand {
    process: Process,
    master: PtyMaster,
    relay: OutputRelay,
    begun: Deadline,
    cancelled: Arc<AtomicBool>,
    alone: bool,
}

/// Ends a running command from another thread than the waiting one.
#[derive(Debug, Clone)]
pub struct Canceller {
    process: Process,
    cancelled: Arc<AtomicBool>,
}

impl Canceller {
    /// Ends the command's process tree: SIGTERM, and SIGKILL after `grace`. Blocks until it has
    /// ended. Has no effect if the command has exited.
    pub fn cancel(&self, grace: Duration) {
        self.cancelled.store(true, Ordering::SeqCst);
        proc::end_tree(self.process, true, grace);
    }
}

/// Starts the command; its output goes to `screen`.
///
/// # Errors
///
/// A description for people if the program or its directory is missing, or the pty cannot be opened
/// or read.
pub fn start(command: &CommandSpec, screen: &WorkerScreen) -> Result<RunningCommand, String> {
    let program = program(command)?;
    let begun = Deadline::after(Duration::MAX);
    let (process, master) = child::spawn_on_pty(&program, command.size.0, command.size.1)
        .map_err(|e| error_chain(&e))?;
    let relay = master.reader().and_then(|reader| OutputRelay::start(reader, screen.clone()));
    let relay = relay.map_err(|e| {
        proc::end_tree(process, true, Duration::ZERO);
        child::wait(process);
        format!("cannot read its terminal: {e}")
    })?;
    // The command has no input: programs that read it get EOF instead of blocking.
    let _ = master.write_all(END_OF_INPUT);
    let (cancelled, alone) = (Arc::default(), command.alone);
    Ok(RunningCommand { process, master, relay, begun, cancelled, alone })
}

/// Returns the outcome of a command that could not be started.
pub fn failed_start(reason: String) -> CommandOutcome {
    CommandOutcome { exit_code: None, signal: None, tail: reason, elapsed_ms: 0 }
}

/// Resolves a command to a program, which is looked up in the command's own `PATH`.
///
/// # Errors
///
/// A description for people if the command is empty, or its directory or program does not exist.
pub fn program(command: &CommandSpec) -> Result<Program, String> {
    let name = command.argv.first().ok_or("the task carries no command")?;
    if !fs::is_dir(&command.cwd) {
        return Err(format!("there is no directory {}", command.cwd.display()));
    }
    let path =
        command.env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
    let found = find_program(OsStr::new(name), path, &command.cwd);
    Ok(Program {
        path: found.ok_or_else(|| format!("cannot find the program {name}"))?,
        argv: command.argv.iter().map(OsString::from).collect(),
        cwd: command.cwd.clone(),
        env: command.env.clone(),
    })
}

impl RunningCommand {
    /// Returns a handle that cancels the command.
    pub fn canceller(&self) -> Canceller {
        Canceller { process: self.process, cancelled: Arc::clone(&self.cancelled) }
    }

    /// Waits for the command to exit, ends the processes it left behind, and returns the outcome.
    /// Blocks the thread, so it must not run on an async executor.
    pub fn wait(self) -> CommandOutcome {
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
        CommandOutcome { exit_code: exit.code, signal: exit.signal, tail, elapsed_ms }
    }
}

#[cfg(test)]
mod tests;
