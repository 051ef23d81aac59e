//! A child process that is used over its pipes while it runs.

use std::io;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Stdio};

use nix::unistd;

use super::command::{ExecCommand, ExecError};
use super::{argv, command, kill_group, start_fresh};
use crate::proc::Process;

/// A child in a session of its own, whose process group is killed on drop.
#[derive(Debug)]
pub struct PipedChild {
    child: Child,
}

/// The ends of a child's standard input, output and error.
pub(crate) type ChildPipes = (ChildStdin, ChildStdout, ChildStderr);

/// Starts a command with its three streams as pipes; `stdin` of the command must be empty. It has no
/// controlling terminal: reading that of this process in the background would stop it and its whole
/// group, as interactive shells do that agents start.
///
/// # Errors
/// [`ExecError::NotFound`], [`ExecError::NoInterpreter`] or [`ExecError::Directory`] if the
/// program, its interpreter or its directory is missing; [`ExecError::Io`] if a system call fails.
pub fn start_piped(cmd: &ExecCommand) -> Result<(PipedChild, ChildPipes), ExecError> {
    let mut command = command(cmd);
    command.stdin(Stdio::piped());
    start_fresh(&mut command, || unistd::setsid().map(drop).map_err(io::Error::from));
    let spawned = command.spawn();
    let mut child =
        spawned.map_err(|source| ExecError::start(argv(cmd), cmd.cwd.as_deref(), source))?;
    let stdin = child.stdin.take().expect("it is a pipe");
    let stdout = child.stdout.take().expect("it is a pipe");
    let stderr = child.stderr.take().expect("it is a pipe");
    Ok((PipedChild { child }, (stdin, stdout, stderr)))
}

impl PipedChild {
    /// Returns the process; `None` if it has been reaped.
    pub fn process(&self) -> Option<Process> {
        Process::of(i32::try_from(self.child.id()).ok()?)
    }

    /// Waits for the child and returns its exit status; `None` if a signal ended it.
    ///
    /// # Errors
    /// The system call failed.
    pub fn wait(&mut self) -> io::Result<Option<i32>> {
        Ok(self.child.wait()?.code())
    }
}

impl Drop for PipedChild {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            kill_group(&mut self.child);
        }
    }
}
