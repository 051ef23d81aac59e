//! PTYs of our own, each held by the launcher of its member. The launcher outlives the process that
//! spawned it, logs the program's output and serves viewers on a socket.

mod attach_server;
mod broadcaster;
mod screen;
mod viewer;
mod wire;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Backend, BackendError, Launch, Mark};
use crate::model::id::MemberName;
use crate::model::placement::{BackendKind, Placement, ProcessId, PtyHold, Verdict};
use crate::model::spec::Terminal;
use crate::sys::exec::spawn_detached;
use crate::sys::proc::{self, Liveness, Process};
use crate::sys::signal::TERM;

pub(crate) use attach_server::{AttachServer, places};
pub(crate) use broadcaster::Broadcaster;
pub(crate) use screen::LIVE_SCROLLBACK;
pub(crate) use viewer::{Viewer, peek, write_input};
pub(crate) use wire::{End, Tell};

/// Size of the terminals, in character cells. The width keeps logs readable.
const ROWS: u16 = 50;
const COLS: u16 = 200;

/// Time that a launcher gets after SIGTERM to terminate its program's process tree and exit.
const LAUNCHER_END: Duration = Duration::from_secs(4);
/// Time between SIGTERM and SIGKILL for the process tree of a launcher that did not exit.
const TREE_GRACE: Duration = Duration::from_secs(1);

type LogOf = Box<dyn Fn(&MemberName) -> PathBuf + Send + Sync>;

/// The backend that needs no other program.
pub(crate) struct Pty {
    /// The launchers' environment; that of their programs is in their specs.
    env: Vec<(OsString, OsString)>,
    log_of: LogOf,
    /// True if launchers hold a terminal for their programs.
    terminal: bool,
}

impl Pty {
    /// Creates the backend. `env` is the launchers' own environment; `log_of` returns the log path
    /// of a member.
    pub(crate) fn new(
        env: Vec<(OsString, OsString)>,
        log_of: impl Fn(&MemberName) -> PathBuf + Send + Sync + 'static,
    ) -> Pty {
        Pty { env, log_of: Box::new(log_of), terminal: true }
    }

    /// Creates the backend without terminals: a placed program answers once, into its log.
    pub(crate) fn without_terminal(
        env: Vec<(OsString, OsString)>,
        log_of: impl Fn(&MemberName) -> PathBuf + Send + Sync + 'static,
    ) -> Pty {
        Pty { terminal: false, ..Pty::new(env, log_of) }
    }

    fn place_one(&self, launch: &Launch) -> Result<Placement, BackendError> {
        let gone = || BackendError::LauncherGone { member: launch.member.clone() };
        let (program, args) = launch.argv.split_first().ok_or_else(gone)?;
        let log = (self.log_of)(&launch.member);
        // stderr goes to the log too, where the launcher reports that it could not read its spec.
        let pid = spawn_detached(program, args, Some(&self.env), Path::new("/"), Some(&log))?;
        let launcher = Process::of(pid).ok_or_else(gone)?;
        let launcher = ProcessId { pid: launcher.pid, start: launcher.start };
        Ok(Placement::Pty(PtyHold { launcher, log: log.to_string_lossy().into_owned() }))
    }
}

impl Backend for Pty {
    fn kind(&self) -> BackendKind {
        BackendKind::Pty
    }

    fn terminal(&self, member: &MemberName) -> Terminal {
        let log = (self.log_of)(member).to_string_lossy().into_owned();
        match self.terminal {
            true => Terminal::Own { rows: ROWS, cols: COLS, log },
            false => Terminal::Once { log },
        }
    }

    fn place(&self, launches: &[Launch]) -> Vec<Result<Placement, BackendError>> {
        launches.iter().map(|launch| self.place_one(launch)).collect()
    }

    fn verify_all(&self, marks: &[Mark<'_>]) -> Vec<Verdict> {
        marks
            .iter()
            .map(|mark| {
                hold_of(mark.placement).map_or_else(|other| other, |hold| verdict(hold.launcher))
            })
            .collect()
    }

    fn close_all(&self, marks: &[Mark<'_>]) -> Vec<Result<Verdict, BackendError>> {
        marks.iter().map(|mark| close(mark.placement)).collect()
    }

    fn screen(
        &self,
        placement: &Placement,
        _token: &str,
        lines: usize,
    ) -> Result<String, BackendError> {
        let hold = hold_of(placement).map_err(|verdict| not_ours(placement, verdict))?;
        Ok(screen::last_lines(Path::new(&hold.log), (ROWS, COLS), lines)?)
    }

    fn how_to_watch(&self, placement: &Placement) -> String {
        let Ok(hold) = hold_of(placement) else {
            return "it has no terminal that phalanx owns".to_owned();
        };
        let member = Path::new(&hold.log).file_stem().unwrap_or_default();
        match self.terminal {
            true => format!("phalanx attach {}", member.to_string_lossy()),
            false => format!("phalanx logs {} -f", member.to_string_lossy()),
        }
    }
}

fn hold_of(placement: &Placement) -> Result<&PtyHold, Verdict> {
    match placement {
        Placement::Pty(hold) => Ok(hold),
        Placement::Tmux(_) | Placement::Iterm2(_) | Placement::Exec(_) => {
            Err(Verdict::Unknown { reason: "phalanx does not own its terminal".to_owned() })
        }
    }
}

fn not_ours(placement: &Placement, verdict: Verdict) -> BackendError {
    BackendError::NotOurs { place: placement.to_string(), verdict }
}

fn close(placement: &Placement) -> Result<Verdict, BackendError> {
    let hold = hold_of(placement).map_err(|verdict| not_ours(placement, verdict))?;
    match verdict(hold.launcher) {
        Verdict::Owned => end(hold.launcher).map(|()| Verdict::Owned),
        Verdict::Gone => Ok(Verdict::Gone),
        other @ (Verdict::Foreign { .. } | Verdict::Unknown { .. }) => {
            Err(not_ours(placement, other))
        }
    }
}

fn process(id: ProcessId) -> Process {
    Process { pid: id.pid, start: id.start }
}

fn name(launcher: ProcessId) -> String {
    format!("the launcher (process {})", launcher.pid)
}

/// Judges by pid and start time alone, because no server exists that could have assigned the id to
/// another placement.
fn verdict(launcher: ProcessId) -> Verdict {
    match proc::liveness(launcher.pid, launcher.start) {
        Liveness::Alive => Verdict::Owned,
        Liveness::Dead => Verdict::Gone,
        Liveness::Unknown => Verdict::Unknown {
            reason: format!("the system gives no information about process {}", launcher.pid),
        },
    }
}

/// Signals the launcher to terminate its program's process tree and exit; if it does not,
/// terminates the tree from here.
fn end(launcher: ProcessId) -> Result<(), BackendError> {
    proc::signal(process(launcher), TERM);
    if !proc::wait_exit(process(launcher), LAUNCHER_END) {
        proc::end_tree(process(launcher), true, TREE_GRACE);
    }
    match verdict(launcher) {
        Verdict::Gone => Ok(()),
        Verdict::Owned | Verdict::Foreign { .. } | Verdict::Unknown { .. } => {
            let waited = LAUNCHER_END + TREE_GRACE;
            let waited_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
            Err(BackendError::StillThere { place: name(launcher), waited_ms })
        }
    }
}

#[cfg(test)]
mod tests;
