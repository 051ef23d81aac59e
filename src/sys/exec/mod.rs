//! Runs programs: to their end within a deadline, over pipes, or detached. Never goes through a
//! shell.

mod cancel;
mod command;
mod detached;
mod foreground;
mod fresh;
mod piped;
mod pump;

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::process::{self, Child, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::proc;
use pump::{Pump, PumpResult};

pub use cancel::CancelToken;
pub use command::{ExecCommand, ExecError, ExecLimits, ExecOutput};
pub use detached::spawn_detached;
pub use foreground::run_in_foreground;
pub(super) use fresh::start_fresh;
pub use piped::{PipedChild, start_piped};

/// Time limit for reaping a killed child. A child that exceeds it is left to init, which reaps it
/// after this process has exited.
const REAPED_WITHIN: Duration = Duration::from_secs(2);

/// Runs a command to its end in a process group of its own. At the deadline the whole group is
/// killed and the child is reaped. Background processes that the child leaves behind do not delay
/// the return, even if they hold the pipes open.
///
/// # Errors
/// [`ExecError::NotFound`], [`ExecError::NoInterpreter`] or [`ExecError::Directory`] if the
/// program, its interpreter or its directory is missing; [`ExecError::Deadline`] if it does not end
/// in time, [`ExecError::Io`] if a system call fails.
pub fn run(cmd: &ExecCommand, deadline: Duration) -> Result<ExecOutput, ExecError> {
    run_within(cmd, &ExecLimits { deadline, output: None, cancel: None })
}

/// Runs a command as [`run`] does, within more limits than a deadline. The whole group is killed at
/// each of them.
///
/// # Errors
/// As [`run`]; [`ExecError::TooMuchOutput`]; [`ExecError::Cancelled`].
pub fn run_within(cmd: &ExecCommand, limits: &ExecLimits) -> Result<ExecOutput, ExecError> {
    let cancelled = || ExecError::Cancelled { argv: argv(cmd) };
    if limits.cancel.as_ref().is_some_and(CancelToken::is_cancelled) {
        return Err(cancelled());
    }
    let mut child = start(cmd)?;
    let mut pump = Pump::new(&mut child, &cmd.stdin, limits);
    let error = match pump.run(&mut child) {
        Ok(PumpResult::Exited(status)) => return Ok(pump.output(status)),
        Ok(PumpResult::TimedOut) => {
            let after_ms = u64::try_from(limits.deadline.as_millis()).unwrap_or(u64::MAX);
            ExecError::Deadline { argv: argv(cmd), after_ms }
        }
        Ok(PumpResult::Cancelled) => cancelled(),
        Ok(PumpResult::TooMuchOutput { limit }) => {
            ExecError::TooMuchOutput { argv: argv(cmd), limit }
        }
        Err(source) => ExecError::Io { argv: argv(cmd), source },
    };
    kill_group(&mut child);
    Err(error)
}

/// Replaces this process with another program, which keeps its terminal, directory and environment.
/// Returns only if that fails.
pub fn become_program(program: &OsStr, args: &[OsString]) -> ExecError {
    replace(process::Command::new(program), args)
}

/// The same with another environment.
pub fn become_program_in(
    program: &OsStr,
    args: &[OsString],
    env: &[(OsString, OsString)],
) -> ExecError {
    let mut command = process::Command::new(program);
    command.env_clear().envs(env.iter().map(|(name, value)| (name, value)));
    replace(command, args)
}

fn replace(mut command: process::Command, args: &[OsString]) -> ExecError {
    let program = command.get_program().to_owned();
    let argv: Vec<OsString> = std::iter::once(program).chain(args.iter().cloned()).collect();
    let source = command.args(args).exec();
    ExecError::start(argv, None, source)
}

fn start(cmd: &ExecCommand) -> Result<Child, ExecError> {
    let mut command = command(cmd);
    command.process_group(0);
    command.stdin(if cmd.stdin.is_empty() { Stdio::null() } else { Stdio::piped() });
    // Only where needed, as in a launcher, which blocks signals: with any hook, std forks instead
    // of using posix_spawn.
    if fresh::blocks_signals() {
        fresh::empty_signal_mask(&mut command);
    }
    command.spawn().map_err(|source| ExecError::start(argv(cmd), cmd.cwd.as_deref(), source))
}

/// Returns std's form of a command, whose output goes to pipes.
fn command(cmd: &ExecCommand) -> process::Command {
    let mut command = process::Command::new(&cmd.program);
    command.args(&cmd.args).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(env) = &cmd.env {
        command.env_clear().envs(env.iter().map(|(name, value)| (name, value)));
    }
    if let Some(cwd) = &cmd.cwd {
        command.current_dir(cwd);
    }
    command
}

fn argv(cmd: &ExecCommand) -> Vec<OsString> {
    std::iter::once(&cmd.program).chain(&cmd.args).cloned().collect()
}

fn kill_group(child: &mut Child) {
    // The child has not been reaped, so neither its pid nor its group can have been reused.
    if let Ok(pid) = i32::try_from(child.id()) {
        let _ = killpg(Pid::from_raw(pid), Signal::SIGKILL);
        // The child may have left its group.
        let _ = child.kill();
        let in_time =
            proc::Process::of_child(pid).is_none_or(|child| proc::wait_exit(child, REAPED_WITHIN));
        // Only a process stuck in the kernel survives; waiting for it would exceed the deadline.
        if !in_time {
            return;
        }
    }
    let _ = child.wait();
}

#[cfg(test)]
mod tests;
