//! Runs a program on the terminal of this process and waits for it.

#![expect(unsafe_code, reason = "setting the action of a signal")]

use std::io::Write;
use std::process::{Command, ExitStatus, Stdio};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

use super::command::{ExecCommand, ExecError};
use super::{argv, start_fresh};

/// Runs a command on the standard streams of this process, in its process group, until the command
/// ends. Meanwhile Ctrl-Z suspends this process too. If the command has input, that replaces its
/// standard input. Callers have handlers for SIGINT and SIGQUIT, which reach both processes.
///
/// # Errors
/// [`ExecError::NotFound`], [`ExecError::NoInterpreter`] or [`ExecError::Directory`] if the
/// program, its interpreter or its directory is missing; [`ExecError::Io`] if a system call fails.
pub fn run_in_foreground(cmd: &ExecCommand) -> Result<ExitStatus, ExecError> {
    let mut command = Command::new(&cmd.program);
    command.args(&cmd.args);
    if let Some(env) = &cmd.env {
        command.env_clear().envs(env.iter().map(|(name, value)| (name, value)));
    }
    if let Some(cwd) = &cmd.cwd {
        command.current_dir(cwd);
    }
    if !cmd.stdin.is_empty() {
        command.stdin(Stdio::piped());
    }
    start_fresh(&mut command, || Ok(()));
    let failure = |source| ExecError::start(argv(cmd), cmd.cwd.as_deref(), source);
    let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    // SAFETY: no handler function is involved.
    let before = unsafe { sigaction(Signal::SIGTSTP, &default) }.map_err(|e| failure(e.into()))?;
    let done = command.spawn().and_then(|mut child| {
        if let Some(mut input) = child.stdin.take() {
            // A pager that is closed early does not read the rest.
            let _ = input.write_all(&cmd.stdin);
        }
        child.wait()
    });
    // SAFETY: restores the action from before.
    let restored = unsafe { sigaction(Signal::SIGTSTP, &before) };
    restored.map_err(|e| failure(e.into()))?;
    done.map_err(failure)
}
