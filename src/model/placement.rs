//! Where a member runs: its placement and the proof that the placement is ours (protocol.md, section 8). How
//! placements are made and asked, the backends know.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A process told apart from a later one with the same pid by its start time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct ProcessId {
    pub(crate) pid: i32,
    /// Clock ticks since boot (Linux: field 22 of `/proc/PID/stat`).
    pub(crate) start: u64,
}

/// What makes placements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum BackendKind {
    Tmux,
    Pty,
}

impl BackendKind {
    /// The word on the command line and in `--json`.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            BackendKind::Tmux => "tmux",
            BackendKind::Pty => "pty",
        }
    }

    /// The word in the team file: an own PTY is nobody's pane, so it goes as `in-process` (protocol.md, section 3).
    pub(crate) fn wire(self) -> &'static str {
        match self {
            BackendKind::Tmux => "tmux",
            BackendKind::Pty => "in-process",
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

/// Where a member runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Placement {
    Tmux(TmuxPane),
    Pty(PtyHold),
}

impl Placement {
    /// Which backend made it.
    pub(crate) fn backend(&self) -> BackendKind {
        match self {
            Placement::Tmux(_) => BackendKind::Tmux,
            Placement::Pty(_) => BackendKind::Pty,
        }
    }

    /// What stands as `tmuxPaneId` in the team file.
    pub(crate) fn pane_id(&self) -> &str {
        match self {
            Placement::Tmux(pane) => &pane.pane_id,
            Placement::Pty(_) => "",
        }
    }

    /// The launcher's process, which leads all that the member runs.
    pub(crate) fn launcher(&self) -> ProcessId {
        match self {
            Placement::Tmux(pane) => pane.pane,
            Placement::Pty(hold) => hold.launcher,
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
}
