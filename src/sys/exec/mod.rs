//! Runs programs, to their end within a deadline or detached. Never goes through a shell.

mod detached;
mod fresh;
mod pump;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{self, Child, ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use thiserror::Error;

use super::clock::Deadline;
use super::proc;
use pump::{Pump, PumpResult};

pub(crate) use detached::spawn_detached;
pub(super) use fresh::start_fresh;

/// Time limit for reaping a killed child. A child that exceeds it is left to init, which reaps it
/// after this process has exited.
const REAPED_WITHIN: Duration = Duration::from_secs(2);

/// A program to run. A name without a slash is looked up in the PATH of `env`, or in this process's
/// PATH if `env` is `None`.
#[derive(Debug, Clone, Default)]
pub(crate) struct ExecCommand {
    pub(crate) program: OsString,
    /// Arguments, without the program itself.
    pub(crate) args: Vec<OsString>,
    /// The complete environment; `None` inherits this process's.
    pub(crate) env: Option<Vec<(OsString, OsString)>>,
    /// Working directory; `None` inherits this process's.
    pub(crate) cwd: Option<PathBuf>,
    /// Written to the program while its output is read; empty means /dev/null.
    pub(crate) stdin: Vec<u8>,
}

/// Result of a program that has ended: exactly one of `code` and `signal` is set. Each stream holds
/// at most its first 16 MiB.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExecOutput {
    /// Exit status.
    pub(crate) code: Option<i32>,
    /// Number of the signal that ended the program.
    pub(crate) signal: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

/// Failure to start a program or to run it to its end.
#[derive(Debug, Error)]
pub(crate) enum ExecError {
    /// No executable has this name, or its `#!` interpreter is missing.
    #[error("cannot find the program {}", program.display())]
    NotFound { program: OsString },
    /// The requested working directory cannot be entered.
    #[error("cannot start {} in {}", shown(argv), cwd.display())]
    Directory {
        argv: Vec<OsString>,
        cwd: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The deadline passed. The program and its process group were killed.
    #[error("{} did not end within {after_ms} ms and was killed", shown(argv))]
    Deadline { argv: Vec<OsString>, after_ms: u64 },
    /// A system call failed while the program was started or its pipes were served.
    #[error("cannot run {}", shown(argv))]
    Io {
        argv: Vec<OsString>,
        #[source]
        source: io::Error,
    },
}

impl ExecError {
    /// Classifies a failed start. The system reports ENOENT for a missing directory and for a
    /// missing program alike.
    pub(super) fn start(argv: Vec<OsString>, cwd: Option<&Path>, source: io::Error) -> ExecError {
        // Resolving `.` needs the same permissions as entering the directory.
        let cannot_enter =
            |cwd: &&Path| fs::metadata(cwd.join(".")).is_err_and(|e| e.kind() == source.kind());
        if let Some(cwd) = cwd.filter(cannot_enter) {
            return ExecError::Directory { argv, cwd: cwd.to_owned(), source };
        }
        match (source.kind(), argv.first()) {
            (io::ErrorKind::NotFound, Some(program)) => {
                ExecError::NotFound { program: program.clone() }
            }
            _ => ExecError::Io { argv, source },
        }
    }
}

/// Joins an argv for a message, cut to 200 characters because it may contain prompts.
fn shown(argv: &[OsString]) -> String {
    const LONGEST: usize = 200;
    let words: Vec<_> = argv.iter().map(|word| word.to_string_lossy()).collect();
    let line = words.join(" ");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Runs a command to its end in a process group of its own. At the deadline the whole group is
/// killed and the child is reaped. Background processes that the child leaves behind do not delay
/// the return, even if they hold the pipes open.
///
/// # Errors
/// [`ExecError::NotFound`] or [`ExecError::Directory`] if the program or its directory is missing,
/// [`ExecError::Deadline`] if it does not end in time, [`ExecError::Io`] if a system call fails.
pub(crate) fn run(cmd: &ExecCommand, deadline: Duration) -> Result<ExecOutput, ExecError> {
    let limit = Deadline::after(deadline);
    let mut child = start(cmd)?;
    let mut pump = Pump::new(&mut child, &cmd.stdin);
    match pump.run(&mut child, &limit) {
        Ok(PumpResult::Exited(status)) => Ok(pump.output(status)),
        Ok(PumpResult::TimedOut) => {
            kill_group(&mut child);
            let after_ms = u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX);
            Err(ExecError::Deadline { argv: argv(cmd), after_ms })
        }
        Err(source) => {
            kill_group(&mut child);
            Err(ExecError::Io { argv: argv(cmd), source })
        }
    }
}

/// Replaces this process with another program, which keeps its terminal, directory and environment.
/// Returns only if that fails.
pub(crate) fn become_program(program: &OsStr, args: &[OsString]) -> ExecError {
    let argv: Vec<OsString> =
        std::iter::once(program.to_owned()).chain(args.iter().cloned()).collect();
    let source = process::Command::new(program).args(args).exec();
    ExecError::start(argv, None, source)
}

fn start(cmd: &ExecCommand) -> Result<Child, ExecError> {
    let mut command = process::Command::new(&cmd.program);
    command.args(&cmd.args).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    command.stdin(if cmd.stdin.is_empty() { Stdio::null() } else { Stdio::piped() });
    if let Some(env) = &cmd.env {
        command.env_clear().envs(env.iter().map(|(name, value)| (name, value)));
    }
    if let Some(cwd) = &cmd.cwd {
        command.current_dir(cwd);
    }
    // Only where needed, as in a launcher, which blocks signals: with any hook, std forks instead
    // of using posix_spawn.
    if fresh::blocks_signals() {
        fresh::empty_signal_mask(&mut command);
    }
    command.spawn().map_err(|source| ExecError::start(argv(cmd), cmd.cwd.as_deref(), source))
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

fn output_of(status: ExitStatus, stdout: Vec<u8>, stderr: Vec<u8>) -> ExecOutput {
    ExecOutput { code: status.code(), signal: status.signal(), stdout, stderr }
}

#[cfg(test)]
mod tests;
