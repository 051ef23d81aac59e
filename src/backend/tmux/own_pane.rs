//! The pane that this process was started in, read by that process itself: a launcher knows it from
//! its environment before the spawner has recorded the placement.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::command::{PaneId, Server};
use super::verb::{self, PaneGuard};
use super::{BackendError, last_lines};

/// The pane whose process is this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnPane {
    socket: PathBuf,
    /// Pid of the server.
    server: i32,
    id: PaneId,
}

impl OwnPane {
    /// Parses `$TMUX` (`socket,pid,session`) and `$TMUX_PANE`, as a server sets them for the command
    /// of a pane.
    pub(crate) fn parse(tmux: &OsStr, pane: &OsStr) -> Option<OwnPane> {
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
    pub(crate) fn last_lines(
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
        answer.problem.map_or_else(|| Ok(last_lines(&answer.lines, lines)), Err)
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
