//! Starts one program as the foreground child of this process, or on a terminal of its own, and
//! supervises it until it ends.

mod program;
mod pty;
mod supervise;
mod terminal;
mod wait;

use nix::unistd::{self, Pid};

use super::exec::{ExecError, start_fresh};
use super::proc::Process;
use terminal::ControllingTerminal;

pub use program::Program;
pub use pty::{PtyMaster, open_pty, own_size, spawn_on, spawn_on_pty};
pub use supervise::{ChildExit, Forward, LoopExit, LoopHandle, Supervisor};
pub use wait::wait;

/// Starts the program on the standard streams of this process, in a process group of its own, with
/// default signal handling. If this process is in the foreground of the controlling terminal, the
/// child's group takes its place. Returns once the program has been executed. The caller must wait
/// for the child, as [`Supervisor::supervise`] does.
///
/// # Errors
/// [`ExecError::NotFound`], [`ExecError::NoInterpreter`] or [`ExecError::Directory`] if the
/// program, its interpreter or its directory is missing; [`ExecError::Io`] if it cannot be started
/// for another reason.
pub fn spawn_foreground(program: &Program) -> Result<Process, ExecError> {
    // Only if this process has the foreground: in the background of a shell, it must not take the
    // shell's terminal.
    let terminal = ControllingTerminal::open().filter(ControllingTerminal::is_ours);
    let childs = terminal.as_ref().map(ControllingTerminal::try_clone).transpose();
    let childs = childs.map_err(|source| program.failure(source))?;
    let mut command = program.command();
    // Runs in the child before the exec, because the program could otherwise read the terminal
    // before it has the foreground, and be stopped. The parent need not repeat it: spawn returns
    // only after the exec.
    start_fresh(&mut command, move || {
        unistd::setpgid(Pid::from_raw(0), Pid::from_raw(0))?;
        childs.as_ref().map_or(Ok(()), |terminal| terminal.give_to(unistd::getpid()))
    });
    let child = command.spawn().map_err(|source| {
        // The child may have taken the foreground before its exec failed.
        if let Some(terminal) = &terminal {
            let _ = terminal.give_to(unistd::getpgrp());
        }
        program.failure(source)
    })?;
    program.started(&child)
}

#[cfg(test)]
mod tests;
