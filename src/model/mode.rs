//! Permission modes of agent programs. A profile maps each mode to its program's flags.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The six permission modes of Claude Code, in its spelling.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    strum::EnumIter,
    strum::EnumString,
    strum::IntoStaticStr,
    strum::VariantNames,
    JsonSchema,
)]
#[serde(rename_all = "camelCase")]
#[strum(serialize_all = "camelCase")]
pub(crate) enum Mode {
    /// Asks about everything that is not yet allowed.
    Default,
    /// Allows file edits without asking.
    AcceptEdits,
    /// Allows everything without asking.
    BypassPermissions,
    /// Only reads, until a plan is approved.
    Plan,
    /// For leads only: allows team and task tools.
    Delegate,
    /// Denies without asking everything that is not yet allowed.
    DontAsk,
}

impl Mode {
    /// The spelling on the wire.
    pub(crate) fn as_str(self) -> &'static str {
        self.into()
    }

    /// Parses the spelling on the wire.
    pub(crate) fn parse(text: &str) -> Option<Mode> {
        text.parse().ok()
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
