//! Permission modes of agent programs. A profile maps each mode to its program's flags.

use serde::{Deserialize, Serialize};

/// The six permission modes of Claude Code, in its spelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Mode {
    /// Asks about everything that is not yet allowed.
    #[serde(rename = "default")]
    Default,
    /// Allows file edits without asking.
    #[serde(rename = "acceptEdits")]
    AcceptEdits,
    /// Allows everything without asking.
    #[serde(rename = "bypassPermissions")]
    BypassPermissions,
    /// Only reads, until a plan is approved.
    #[serde(rename = "plan")]
    Plan,
    /// For leads only: allows team and task tools.
    #[serde(rename = "delegate")]
    Delegate,
    /// Denies without asking everything that is not yet allowed.
    #[serde(rename = "dontAsk")]
    DontAsk,
}

impl Mode {
    /// All modes, in the order in which they are documented.
    pub(crate) const ALL: [Mode; 6] = [
        Mode::Default,
        Mode::AcceptEdits,
        Mode::BypassPermissions,
        Mode::Plan,
        Mode::Delegate,
        Mode::DontAsk,
    ];

    /// The spelling on the wire.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Mode::Default => "default",
            Mode::AcceptEdits => "acceptEdits",
            Mode::BypassPermissions => "bypassPermissions",
            Mode::Plan => "plan",
            Mode::Delegate => "delegate",
            Mode::DontAsk => "dontAsk",
        }
    }

    /// Parses the spelling on the wire.
    pub(crate) fn parse(text: &str) -> Option<Mode> {
        Mode::ALL.into_iter().find(|m| m.as_str() == text)
    }

    /// Ranks modes by how much they allow without asking. A lead cannot grant a mode that ranks
    /// above its own (PM-06).
    pub(crate) fn reach(self) -> u8 {
        match self {
            Mode::Plan | Mode::Delegate => 0,
            Mode::DontAsk => 1,
            Mode::Default => 2,
            Mode::AcceptEdits => 3,
            Mode::BypassPermissions => 4,
        }
    }
}
