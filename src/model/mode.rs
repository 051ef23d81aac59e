//! Permission modes of an agent program. Which flag a program needs for a mode is its profile's business.

use serde::{Deserialize, Serialize};

/// The six permission modes (seed 004, section 7; the spelling is the wire's).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Mode {
    /// Asks for what is not allowed yet.
    #[serde(rename = "default")]
    Default,
    /// File edits go through unasked.
    #[serde(rename = "acceptEdits")]
    AcceptEdits,
    /// Nothing is asked.
    #[serde(rename = "bypassPermissions")]
    BypassPermissions,
    /// Reads only, until a plan is approved.
    #[serde(rename = "plan")]
    Plan,
    /// Leads only: team and task tools.
    #[serde(rename = "delegate")]
    Delegate,
    /// What is not allowed already is denied unasked.
    #[serde(rename = "dontAsk")]
    DontAsk,
}

impl Mode {
    /// All modes, in the order of the documentation.
    pub(crate) const ALL: [Mode; 6] = [
        Mode::Default,
        Mode::AcceptEdits,
        Mode::BypassPermissions,
        Mode::Plan,
        Mode::Delegate,
        Mode::DontAsk,
    ];

    /// The wire's spelling.
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

    /// Reads the wire's spelling.
    pub(crate) fn parse(text: &str) -> Option<Mode> {
        Mode::ALL.into_iter().find(|m| m.as_str() == text)
    }

    /// How much goes through unasked in it. A lead puts nobody above itself (PM-06).
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
