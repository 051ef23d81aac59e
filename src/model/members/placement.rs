//! Placements: where a member runs, and the data that proves which place it is. Backends create and
//! probe them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The value in the team file, as backend and as pane, for members without a tmux or iTerm2 pane.
pub const IN_PROCESS: &str = "in-process";

/// A process identified by pid and start time, which tells it apart from a later process with the
/// same pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessId {
    pub pid: i32,
    /// Start time in the unit of the system: clock ticks since boot on Linux, microseconds since
    /// the epoch on macOS.
    pub start: u64,
}

impl ProcessId {
    /// Returns an id that matches no running process.
    pub fn of_another_boot(self) -> ProcessId {
        // No process can start this late.
        ProcessId { start: u64::MAX, ..self }
    }
}

/// The kind of backend that created a placement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum BackendKind {
    Tmux,
    Iterm2,
    Pty,
}

impl BackendKind {
    /// The name on the command line and in `--json`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The value of `backendType` in the team file.
    pub fn wire(self) -> &'static str {
        match self {
            BackendKind::Tmux => "tmux",
            BackendKind::Iterm2 => "iterm2",
            BackendKind::Pty => IN_PROCESS,
        }
    }
}

/// A tmux pane with the data that identifies it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TmuxPane {
    /// Path of the server's socket.
    pub socket: String,
    pub server: ProcessId,
    /// `$1`
    pub session_id: String,
    pub session_name: String,
    /// `@1`
    pub window_id: String,
    pub window_name: String,
    /// `%1`
    pub pane_id: String,
    /// The process that tmux started in the pane: the launcher.
    pub pane: ProcessId,
}

/// A PTY held by the member's launcher.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PtyHold {
    pub launcher: ProcessId,
    /// File that keeps the program's output.
    pub log: String,
}

/// An iTerm2 session: one split of a tab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItermSession {
    /// UUID returned when the split was created.
    pub session_id: String,
    /// The session's terminal, for example `/dev/ttys003`. It must match the launcher's start
    /// record.
    pub tty: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Placement {
    Tmux(TmuxPane),
    Iterm2(ItermSession),
    Pty(PtyHold),
}

impl Placement {
    pub fn backend(&self) -> BackendKind {
        match self {
            Placement::Tmux(_) => BackendKind::Tmux,
            Placement::Iterm2(_) => BackendKind::Iterm2,
            Placement::Pty(_) => BackendKind::Pty,
        }
    }

    /// Returns `tmuxPaneId` for the team file: the pane's id, or [`IN_PROCESS`].
    pub fn roster_pane(&self) -> &str {
        match self.pane_id() {
            "" => IN_PROCESS,
            id => id,
        }
    }

    /// Returns the id of the tmux pane or iTerm2 session; empty for other places.
    pub fn pane_id(&self) -> &str {
        match self {
            Placement::Tmux(pane) => &pane.pane_id,
            Placement::Iterm2(session) => &session.session_id,
            Placement::Pty(_) => "",
        }
    }

    /// Returns the placement with process ids that match no running process.
    pub fn of_another_boot(self) -> Placement {
        match self {
            Placement::Tmux(pane) => {
                let (server, process) =
                    (pane.server.of_another_boot(), pane.pane.of_another_boot());
                Placement::Tmux(TmuxPane { server, pane: process, ..pane })
            }
            Placement::Pty(hold) => {
                Placement::Pty(PtyHold { launcher: hold.launcher.of_another_boot(), ..hold })
            }
            place @ Placement::Iterm2(_) => place,
        }
    }

    /// Returns the launcher's process id if the placement holds it; otherwise only the start record
    /// does.
    pub fn launcher(&self) -> Option<ProcessId> {
        match self {
            Placement::Tmux(pane) => Some(pane.pane),
            Placement::Pty(hold) => Some(hold.launcher),
            Placement::Iterm2(_) => None,
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Placement::Tmux(pane) => {
                write!(f, "pane {} of the tmux server at {}", pane.pane_id, pane.socket)
            }
            Placement::Iterm2(session) => write!(f, "iTerm2 session {}", session.session_id),
            Placement::Pty(hold) => write!(f, "the terminal of process {}", hold.launcher.pid),
        }
    }
}

/// The result of probing a placement. Only [`Verdict::Owned`] permits closing it; only
/// [`Verdict::Gone`] and [`Verdict::Foreign`] prove that the member's placement no longer exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Verdict {
    /// Every part of the identity matches.
    Owned,
    /// Another pane or session now has its id.
    Foreign { difference: String },
    /// It no longer exists.
    Gone,
    /// The probe failed.
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

/// The arrangement of panes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[derive(strum::EnumString, strum::VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum Layout {
    /// Side by side in windows of the team.
    #[default]
    Panes,
    /// One window per member.
    Windows,
    /// Next to the lead, in the lead's own window.
    Split,
}
