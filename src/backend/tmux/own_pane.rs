//! The pane that a process was started in, known from its environment: a launcher reads its own
//! before the spawner has recorded the placement, and a lead claims those of members that another
//! program has started.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::command::{PaneId, PlainWord, Server};
use super::row::{PaneRow, rows};
use super::verb::{self, PaneGuard};
use super::{BackendError, last_lines};
use model::members::placement::{ProcessId, TmuxPane};
use sys::proc::{self, Process};

/// The pane that the environment of a process names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnPane {
    socket: PathBuf,
    /// Pid of the server.
    server: i32,
    id: PaneId,
}

impl OwnPane {
    /// Parses `$TMUX` (`socket,pid,session`) and `$TMUX_PANE`, as a server sets them for the
    /// command of a pane.
    pub fn parse(tmux: &OsStr, pane: &OsStr) -> Option<OwnPane> {
        // Split from the right, since the socket's path may contain commas.
        let mut parts = tmux.to_str()?.rsplitn(3, ',').skip(1);
        let server = parts.next()?.parse().ok()?;
        let socket = PathBuf::from(parts.next()?);
        Some(OwnPane { socket, server, id: PaneId::parse(pane.to_str()?)? })
    }

    /// Returns the last `lines` lines of the pane as plain text. `pid` is this process; the server
    /// reads the pane only if that is the pane's process.
    ///
    /// # Errors
    /// [`BackendError::Exec`] if tmux cannot be run or times out, the error of tmux if the pane is
    /// gone.
    pub fn last_lines(
        &self,
        program: &Path,
        pid: i32,
        lines: usize,
        within: Duration,
    ) -> Result<String, BackendError> {
        let capture = verb::capture_pane(self.id, lines);
        let guarded = verb::guarded(self.id, self.server, &PaneGuard::Process(pid), &capture);
        let server = Server { program, socket: Some(&self.socket) };
        let answer = server.ask_within(&guarded, within);
        Ok(last_lines(&answer.into_lines()?, lines))
    }

    /// Marks the pane with `token`, so that it can be proven from then on. `None` unless it is on
    /// `terminal`, which proves that the process of the environment runs in it, and no team has
    /// marked it.
    ///
    /// # Errors
    /// [`BackendError::Exec`] if tmux cannot be run or times out, the error of tmux otherwise.
    pub fn claim(
        &self,
        program: &Path,
        terminal: &str,
        token: &str,
    ) -> Result<Option<TmuxPane>, BackendError> {
        let Some(token) = PlainWord::parse(token) else { return Ok(None) };
        let server = Server { program, socket: Some(&self.socket) };
        let find = |lines: &[String]| {
            rows(lines).into_iter().find(|row: &PaneRow| row.id == self.id && !row.dead)
        };
        let found = server.ask(&verb::panes());
        let Some(row) = find(&found.lines).filter(|row| row.token.is_empty()) else {
            return found.problem.map_or(Ok(None), Err);
        };
        let is_there = |pid: &i32| proc::tty_of(*pid).as_deref() == Some(terminal);
        let process = row.pid.filter(is_there).and_then(Process::of);
        let (Some(pane), Some(by)) = (process, Process::of(self.server)) else { return Ok(None) };
        let mark = verb::mark_pane(self.id, &token);
        let guarded = verb::guarded(self.id, self.server, &PaneGuard::Process(pane.pid), &mark);
        let marked = server.ask(&guarded.then(verb::panes()));
        if find(&marked.lines).is_none_or(|row| row.token != token.as_str()) {
            return marked.problem.map_or(Ok(None), Err);
        }
        let id = |process: Process| ProcessId { pid: process.pid, start: process.start };
        Ok(Some(row.pane(&self.socket, id(by), id(pane))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_pane_is_parsed_only_from_complete_variables() {
        let parse = |tmux: &str, pane: &str| OwnPane::parse(tmux.as_ref(), pane.as_ref());
        let own = parse("/tmp/a,b/default,77,0", "%5").expect("a pane");
        assert_eq!((own.socket, own.server), (PathBuf::from("/tmp/a,b/default"), 77));
        for (tmux, pane) in [
            ("", "%5"),
            ("/tmp/s", "%5"),
            ("/tmp/s,77", "%5"),
            ("/tmp/s,x,0", "%5"),
            ("/tmp/s,77,0", "5"),
            ("/tmp/s,77,0", ""),
        ] {
            assert_eq!(parse(tmux, pane), None, "{tmux} {pane}");
        }
    }
}
