//! What a launcher needs: start one program as its foreground child (or on a terminal of its own) and stay with it
//! until it ends. Refuses to know which program and why.

mod pty;
mod supervise;
mod terminal;
mod wait;

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command};

use nix::unistd::{self, Pid};

use super::exec::{ExecError, start_fresh};
use super::proc::Process;
use terminal::Terminal;

pub(crate) use pty::{PtyMaster, open_pty, own_size, spawn_on, spawn_on_pty};
pub(crate) use supervise::{Exit, Forward, Supervisor, supervise};
pub(crate) use wait::wait;

/// One program, completely described: nothing is added, searched or inherited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    /// An absolute path; no PATH is searched.
    pub(crate) path: PathBuf,
    /// All arguments, `argv[0]` included. Empty means just the path.
    pub(crate) argv: Vec<OsString>,
    /// Entered by the child itself; a directory that cannot be entered is an error of the start.
    pub(crate) cwd: PathBuf,
    /// The whole environment.
    pub(crate) env: Vec<(OsString, OsString)>,
}

impl Program {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        if let Some((name, args)) = self.argv.split_first() {
            command.arg0(name).args(args);
        }
        command
            .current_dir(&self.cwd)
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    fn failure(&self, source: io::Error) -> ExecError {
        let args = self.argv.iter().skip(1).cloned();
        let argv = std::iter::once(self.path.clone().into_os_string()).chain(args).collect();
        ExecError::start(argv, Some(&self.cwd), source)
    }

    fn started(&self, child: &Child) -> Result<Process, ExecError> {
        let process = i32::try_from(child.id()).ok().and_then(Process::of_child);
        process
            .ok_or_else(|| self.failure(io::Error::other("the new process is missing from /proc")))
    }
}

/// Starts the program on our standard streams in a process group of its own, with default signal handling. When our
/// group has the foreground of the controlling terminal, the child's gets it. Returns once the program has been
/// executed; that it cannot be is an error here, not a dead child. Who calls this has to wait for the child:
/// [`supervise()`] does.
pub(crate) fn spawn_foreground(program: &Program) -> Result<Process, ExecError> {
    // Only what is ours to give: started in the background of somebody's shell, we must not take its terminal.
    let terminal = Terminal::open().filter(Terminal::is_ours);
    let childs = terminal.as_ref().map(Terminal::try_clone).transpose();
    let childs = childs.map_err(|source| program.failure(source))?;
    let mut command = program.command();
    // In the child, before the exec: else the program could read before it has the terminal, and be stopped. The
    // parent need not repeat it, for spawn returns only after the exec.
    start_fresh(&mut command, move || {
        unistd::setpgid(Pid::from_raw(0), Pid::from_raw(0))?;
        childs.as_ref().map_or(Ok(()), |terminal| terminal.give_to(unistd::getpid()))
    });
    let child = command.spawn().map_err(|source| {
        // The child may have had the terminal already when its exec failed.
        if let Some(terminal) = &terminal {
            let _ = terminal.give_to(unistd::getpgrp());
        }
        program.failure(source)
    })?;
    program.started(&child)
}

#[cfg(test)]
mod tests;
