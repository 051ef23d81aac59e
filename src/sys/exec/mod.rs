//! Runs programs: to their end within a deadline, or detached for good. Refuses to know which programs, and never
//! goes through a shell.

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
use pump::{Ended, Pump};

pub(crate) use detached::spawn_detached;
pub(super) use fresh::start_fresh;

/// How long a killed child may take to be reaped before we leave it to whoever outlives us.
const REAPED_WITHIN: Duration = Duration::from_secs(2);

/// What to run. A program without a slash is searched in the PATH of `env`, or in ours when `env` is `None`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Command {
    pub(crate) program: OsString,
    /// Without the program itself.
    pub(crate) args: Vec<OsString>,
    /// `None` inherits ours; `Some` is the whole environment.
    pub(crate) env: Option<Vec<(OsString, OsString)>>,
    /// `None` inherits ours.
    pub(crate) cwd: Option<PathBuf>,
    /// Fed while the output is read; empty means /dev/null.
    pub(crate) stdin: Vec<u8>,
}

/// How a program ended and what it said: exactly one of `code` and `signal` is there. Each stream holds at most its
/// first 16 MiB.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Output {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

/// Why a program has no result.
#[derive(Debug, Error)]
pub(crate) enum ExecError {
    /// Nothing executable of that name (or its `#!` interpreter is missing).
    #[error("cannot find the program {}", program.display())]
    NotFound { program: OsString },
    /// The working directory asked for cannot be entered.
    #[error("cannot start {} in {}", shown(argv), cwd.display())]
    Directory {
        argv: Vec<OsString>,
        cwd: PathBuf,
        #[source]
        source: io::Error,
    },
    /// Still running after its time; it and its process group have been killed.
    #[error("{} did not end within {after_ms} ms and was killed", shown(argv))]
    Deadline { argv: Vec<OsString>, after_ms: u64 },
    /// The system refused to start it or to talk to it.
    #[error("cannot run {}", shown(argv))]
    Io {
        argv: Vec<OsString>,
        #[source]
        source: io::Error,
    },
}

impl ExecError {
    /// Sorts out what a failed start means; the system says "no such file" for a directory and a program alike.
    pub(super) fn start(argv: Vec<OsString>, cwd: Option<&Path>, source: io::Error) -> ExecError {
        // Looking up "." needs just what entering needs.
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

/// An argv for people: cut to a line, since prompts may be in it.
fn shown(argv: &[OsString]) -> String {
    const LONGEST: usize = 200;
    let words: Vec<_> = argv.iter().map(|word| word.to_string_lossy()).collect();
    let line = words.join(" ");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Runs a command to its end in a process group of its own. At the deadline the whole group is killed and the child
/// reaped. What the child leaves behind in the background does not keep us, even when it holds our pipes open.
pub(crate) fn run(cmd: &Command, deadline: Duration) -> Result<Output, ExecError> {
    let limit = Deadline::after(deadline);
    let mut child = start(cmd)?;
    let mut pump = Pump::new(&mut child, &cmd.stdin);
    match pump.run(&mut child, &limit) {
        Ok(Ended::Itself(status)) => Ok(pump.output(status)),
        Ok(Ended::NotInTime) => {
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

/// Turns this process into another program, with our terminal, directory and environment. Comes back only if that
/// fails.
pub(crate) fn become_program(program: &OsStr, args: &[OsString]) -> ExecError {
    let argv: Vec<OsString> =
        std::iter::once(program.to_owned()).chain(args.iter().cloned()).collect();
    let source = process::Command::new(program).args(args).exec();
    ExecError::start(argv, None, source)
}

fn start(cmd: &Command) -> Result<Child, ExecError> {
    let mut command = process::Command::new(&cmd.program);
    command.args(&cmd.args).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    command.stdin(if cmd.stdin.is_empty() { Stdio::null() } else { Stdio::piped() });
    if let Some(env) = &cmd.env {
        command.env_clear().envs(env.iter().map(|(name, value)| (name, value)));
    }
    if let Some(cwd) = &cmd.cwd {
        command.current_dir(cwd);
    }
    // Only where it is needed (a launcher blocks signals): any hook makes std fork instead of posix_spawn.
    if fresh::blocks_signals() {
        fresh::empty_signal_mask(&mut command);
    }
    command.spawn().map_err(|source| ExecError::start(argv(cmd), cmd.cwd.as_deref(), source))
}

fn argv(cmd: &Command) -> Vec<OsString> {
    std::iter::once(&cmd.program).chain(&cmd.args).cloned().collect()
}

fn kill_group(child: &mut Child) {
    // The child is not reaped yet, so neither its pid nor its group can have become another's.
    if let Ok(pid) = i32::try_from(child.id()) {
        let _ = killpg(Pid::from_raw(pid), Signal::SIGKILL);
        // In case that it left its group.
        let _ = child.kill();
        let in_time =
            proc::Process::of_child(pid).is_none_or(|child| proc::wait_exit(child, REAPED_WITHIN));
        // Only a process stuck in the kernel is still there now; waiting for it would lose the deadline.
        if !in_time {
            return;
        }
    }
    let _ = child.wait();
}

fn output_of(status: ExitStatus, stdout: Vec<u8>, stderr: Vec<u8>) -> Output {
    Output { code: status.code(), signal: status.signal(), stdout, stderr }
}

#[cfg(test)]
mod tests;
