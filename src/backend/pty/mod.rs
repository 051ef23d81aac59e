//! PTYs of our own, each held by the launcher of its member. The launcher outlives the process that
//! spawned it, logs the program's output and serves viewers on a socket.

mod attach_server;
mod broadcaster;
mod screen;
mod viewer;
mod wire;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::proof::{
    IdentityPart, Observation, ProcessState, Proven, close_proven, judge, process_state,
};
use super::{
    Backend, BackendError, BeforeClose, CloseOutcome, Mark, PlacementRequest, ScreenImage, follow,
};
use model::id::MemberName;
use model::members::placement::{BackendKind, Placement, ProcessId, PtyHold, Verdict};
use model::members::spec::Terminal;
use sys::exec::spawn_detached;
use sys::output_watch::OutputWatch;
use sys::proc::{self, Process};

pub use attach_server::{AttachServer, places};
pub use broadcaster::Broadcaster;
pub use screen::LIVE_SCROLLBACK;
pub(crate) use screen::LiveScreen;
pub use viewer::{Viewer, peek, write_input};
pub use wire::LauncherMessage;

/// Size of the terminals, in character cells. The width keeps logs readable.
const ROWS: u16 = 50;
const COLS: u16 = 200;

type LogOf = Box<dyn Fn(&MemberName) -> PathBuf + Send + Sync>;

/// The backend that needs no other program.
pub struct Pty {
    /// Environment of the launchers. The environment of a program is in its spec.
    env: Vec<(OsString, OsString)>,
    log_of: LogOf,
    /// True if launchers hold a terminal for their programs.
    terminal: bool,
}

impl Pty {
    /// Creates the backend. `env` is the launchers' own environment; `log_of` returns the log path
    /// of a member.
    pub fn new(
        env: Vec<(OsString, OsString)>,
        log_of: impl Fn(&MemberName) -> PathBuf + Send + Sync + 'static,
    ) -> Pty {
        Pty { env, log_of: Box::new(log_of), terminal: true }
    }

    /// Creates the backend for one-shot runs: a program has no terminal and writes into its log.
    pub fn without_terminal(
        env: Vec<(OsString, OsString)>,
        log_of: impl Fn(&MemberName) -> PathBuf + Send + Sync + 'static,
    ) -> Pty {
        Pty { terminal: false, ..Pty::new(env, log_of) }
    }

    fn place_one(&self, launch: &PlacementRequest) -> Result<Placement, BackendError> {
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
        if self.terminal {
            Terminal::Own { rows: ROWS, cols: COLS, log }
        } else {
            Terminal::Once { log }
        }
    }

    fn place(&self, launches: &[PlacementRequest]) -> Vec<Result<Placement, BackendError>> {
        launches.iter().map(|launch| self.place_one(launch)).collect()
    }

    fn verify_all(&self, marks: &[Mark<'_>]) -> Vec<Verdict> {
        marks.iter().map(|mark| verdict(mark.placement)).collect()
    }

    fn close_all(&self, marks: &[Mark<'_>], before: &mut BeforeClose<'_>) -> Vec<CloseOutcome> {
        close_proven(marks, self.verify_all(marks), before, end_launchers)
    }

    fn screen(&self, mark: Mark<'_>, lines: usize) -> Result<String, BackendError> {
        let hold = pty_hold(mark.placement).map_err(|verdict| mark.not_ours(verdict))?;
        Ok(screen::last_lines(Path::new(&hold.log), (ROWS, COLS), lines)?)
    }

    /// Polls the log, which outlives the placement.
    fn follow(
        &self,
        mark: Mark<'_>,
        watch: &mut OutputWatch,
        on_screen: &mut dyn FnMut(ScreenImage),
    ) -> Result<(), BackendError> {
        let read = || match verdict(mark.placement) {
            Verdict::Owned => self.screen(mark, follow::LINES),
            other => Err(mark.not_ours(other)),
        };
        follow::poll(watch, read, on_screen)
    }

    fn how_to_watch(&self, placement: &Placement) -> String {
        let Ok(hold) = pty_hold(placement) else {
            return "it has no terminal that phalanx owns".to_owned();
        };
        let member = Path::new(&hold.log).file_stem().unwrap_or_default();
        if self.terminal {
            format!("phalanx attach {}", member.to_string_lossy())
        } else {
            format!("phalanx logs {} -f", member.to_string_lossy())
        }
    }
}

fn pty_hold(placement: &Placement) -> Result<&PtyHold, Verdict> {
    match placement {
        Placement::Pty(hold) => Ok(hold),
        Placement::Tmux(_) | Placement::Iterm2(_) => {
            Err(judge(Observation::Unclear("phalanx does not own its terminal".to_owned())))
        }
    }
}

/// Judges by pid and start time alone, because no server exists that could have assigned the id to
/// another placement.
fn verdict(placement: &Placement) -> Verdict {
    let launcher = match pty_hold(placement) {
        Ok(hold) => hold.launcher,
        Err(verdict) => return verdict,
    };
    judge(match process_state(launcher) {
        ProcessState::Running => Observation::Present(vec![IdentityPart::Same]),
        ProcessState::Ended | ProcessState::Replaced => Observation::Absent,
        ProcessState::Unknown => Observation::Unclear(format!(
            "the system gives no information about process {}",
            launcher.pid
        )),
    })
}

/// Ends the launchers, which end the process trees of their programs.
fn end_launchers(proven: &[Proven<'_>]) -> Vec<CloseOutcome> {
    let launchers = proven.iter().filter_map(|proven| proven.mark().placement.launcher());
    let launchers: Vec<Process> =
        launchers.map(|ProcessId { pid, start }| Process { pid, start }).collect();
    proc::end_supervised(&launchers, &[]);
    proven.iter().map(|proven| outcome(proven.mark().placement)).collect()
}

fn outcome(placement: &Placement) -> CloseOutcome {
    match verdict(placement) {
        Verdict::Gone => CloseOutcome::Closed,
        Verdict::Owned | Verdict::Foreign { .. } | Verdict::Unknown { .. } => {
            let pid = placement.launcher().map_or(0, |launcher| launcher.pid);
            let place = format!("the launcher (process {pid})");
            let waited_ms = u64::try_from(proc::SUPERVISED_END.as_millis()).unwrap_or(u64::MAX);
            CloseOutcome::Failed(BackendError::StillThere { place, waited_ms })
        }
    }
}

#[cfg(test)]
mod tests;
