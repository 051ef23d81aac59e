//! The permission modes an agent can run in: words on the wire, nothing about what a mode allows.

/// A permission mode, as Claude Code spells it (seed 004 section 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Default,
    AcceptEdits,
    BypassPermissions,
    Plan,
    Delegate,
    DontAsk,
}

impl Mode {
    /// The mode of this exact word.
    pub(crate) fn parse(word: &str) -> Option<Mode> {
        match word {
            "default" => Some(Mode::Default),
            "acceptEdits" => Some(Mode::AcceptEdits),
            "bypassPermissions" => Some(Mode::BypassPermissions),
            "plan" => Some(Mode::Plan),
            "delegate" => Some(Mode::Delegate),
            "dontAsk" => Some(Mode::DontAsk),
            _ => None,
        }
    }

    /// The word on the wire.
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
}
