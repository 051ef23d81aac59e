//! Where a member runs: its placement and the proof that the placement is ours (protocol.md, section 8). How
//! placements are made and asked, the backends know.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The word in the team file for a member without a pane that other programs know, both as its
/// backend and as its pane.
pub(crate) const IN_PROCESS: &str = "in-process";

/// A process told apart from a later one with the same pid by its start time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct ProcessId {
    pub(crate) pid: i32,
    /// Clock ticks since boot (Linux: field 22 of `/proc/PID/stat`).
    pub(crate) start: u64,
}

impl ProcessId {
    /// Proven gone, whoever has its pid now.
    pub(crate) fn of_another_boot(self) -> ProcessId {
        // No process starts that late.
        ProcessId { start: u64::MAX, ..self }
    }
}

/// What makes placements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum BackendKind {
    Tmux,
    Iterm2,
    Pty,
    /// A program of somebody else's.
    Exec,
}

impl BackendKind {
    /// The word on the command line and in `--json`.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            BackendKind::Tmux => "tmux",
            BackendKind::Iterm2 => "iterm2",
            BackendKind::Pty => "pty",
            BackendKind::Exec => "exec",
        }
    }

    /// `backendType` in the team file.
    pub(crate) fn wire(self) -> &'static str {
        match self {
            BackendKind::Tmux => "tmux",
            BackendKind::Iterm2 => "iterm2",
            BackendKind::Pty | BackendKind::Exec => IN_PROCESS,
        }
    }
}

/// A tmux pane with all that proves which one it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TmuxPane {
    /// Path of the server's socket.
    pub(crate) socket: String,
    pub(crate) server: ProcessId,
    /// `$1`
    pub(crate) session_id: String,
    pub(crate) session_name: String,
    /// `@1`
    pub(crate) window_id: String,
    pub(crate) window_name: String,
    /// `%1`
    pub(crate) pane_id: String,
    /// The process that tmux started in the pane: our launcher.
    pub(crate) pane: ProcessId,
}

/// A PTY held by the member's own launcher process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PtyHold {
    pub(crate) launcher: ProcessId,
    /// File that keeps what the program printed.
    pub(crate) log: String,
}

/// A session of iTerm2: one split of a tab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ItermSession {
    /// What the split gave back: a UUID.
    pub(crate) session_id: String,
    /// The session's terminal, e.g. `/dev/ttys003`: our launcher's, as its start record must say.
    pub(crate) tty: String,
}

/// A place that a program of somebody else's made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ExecPlace {
    /// The program's full path, so that whoever leads the team later calls the same one.
    pub(crate) program: String,
    /// Its own name for the place. It means nothing to us.
    pub(crate) id: String,
    /// Its words for how a person gets to see the place, fit to print.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) watch: Option<String>,
}

/// Where a member runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Placement {
    Tmux(TmuxPane),
    Iterm2(ItermSession),
    Pty(PtyHold),
    Exec(ExecPlace),
}

impl Placement {
    /// Which backend made it.
    pub(crate) fn backend(&self) -> BackendKind {
        match self {
            Placement::Tmux(_) => BackendKind::Tmux,
            Placement::Iterm2(_) => BackendKind::Iterm2,
            Placement::Pty(_) => BackendKind::Pty,
            Placement::Exec(_) => BackendKind::Exec,
        }
    }

    /// `tmuxPaneId` in the team file: the pane's id, or [`IN_PROCESS`].
    pub(crate) fn roster_pane(&self) -> &str {
        match self.pane_id() {
            "" => IN_PROCESS,
            id => id,
        }
    }

    /// The id of the tmux pane or iTerm2 session; empty for other places.
    pub(crate) fn pane_id(&self) -> &str {
        match self {
            Placement::Tmux(pane) => &pane.pane_id,
            Placement::Iterm2(session) => &session.session_id,
            Placement::Pty(_) | Placement::Exec(_) => "",
        }
    }

    /// The same place with processes that are proven gone.
    pub(crate) fn of_another_boot(self) -> Placement {
        match self {
            Placement::Tmux(pane) => {
                let (server, process) =
                    (pane.server.of_another_boot(), pane.pane.of_another_boot());
                Placement::Tmux(TmuxPane { server, pane: process, ..pane })
            }
            Placement::Pty(hold) => {
                Placement::Pty(PtyHold { launcher: hold.launcher.of_another_boot(), ..hold })
            }
            place @ (Placement::Iterm2(_) | Placement::Exec(_)) => place,
        }
    }

    /// The launcher's process, which leads all that the member runs; none where only its own start record tells.
    pub(crate) fn launcher(&self) -> Option<ProcessId> {
        match self {
            Placement::Tmux(pane) => Some(pane.pane),
            Placement::Pty(hold) => Some(hold.launcher),
            Placement::Iterm2(_) | Placement::Exec(_) => None,
        }
    }
}

/// For errors and reports.
impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Placement::Tmux(pane) => {
                write!(f, "pane {} of the tmux server at {}", pane.pane_id, pane.socket)
            }
            Placement::Iterm2(session) => write!(f, "iTerm2 session {}", session.session_id),
            Placement::Pty(hold) => write!(f, "the terminal of process {}", hold.launcher.pid),
            Placement::Exec(place) => write!(f, "placement {:?} of `{}`", place.id, place.program),
        }
    }
}

/// What a look at a placement said. Only [`Verdict::Owned`] permits closing it, only [`Verdict::Gone`] and
/// [`Verdict::Foreign`] permit believing that ours is no more (architecture, invariants 3 and 5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    /// Every part of the identity matches.
    Owned,
    /// Something else has its id now.
    Foreign { difference: String },
    /// It is not there any more.
    Gone,
    /// It could not be asked.
    Unknown { reason: String },
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Owned => f.write_str("owned"),
            Verdict::Foreign { difference } => write!(f, "foreign ({difference})"),
            Verdict::Gone => f.write_str("gone"),
            Verdict::Unknown { reason } => write!(f, "unknown ({reason})"),
        }
    }
}

/// How panes are arranged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Layout {
    /// Side by side in windows of the team's own.
    #[default]
    Panes,
    /// One window each.
    Windows,
    /// Beside the lead, in its own window.
    Split,
}

impl Layout {
    /// Every one, with its word in manifests and on the command line.
    pub(crate) const ALL: [(&str, Layout); 3] =
        [("panes", Layout::Panes), ("windows", Layout::Windows), ("split", Layout::Split)];
}
