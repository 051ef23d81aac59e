//! Permission modes of agent programs. A profile maps each mode to its program's flags.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The permission modes of Claude Code, in its spelling. From 2.1.3xx on it has no `delegate`, and
/// calls `default` also `manual`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
#[derive(strum::EnumIter, strum::EnumString, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "camelCase")]
pub enum Mode {
    /// Asks about everything that is not yet allowed.
    #[serde(alias = "manual")]
    #[strum(to_string = "default", serialize = "manual")]
    Default,
    /// Allows file edits without asking.
    AcceptEdits,
    /// Lets a model of the program decide, instead of a person or a rule.
    Auto,
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
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Parses the spelling on the wire, and `manual`.
    pub fn parse(text: &str) -> Option<Mode> {
        text.parse().ok()
    }

    /// Ranks modes by how much they allow without asking. A lead cannot grant a mode that ranks
    /// above its own (PM-06).
    pub fn reach(self) -> u8 {
        match self {
            Mode::Plan | Mode::Delegate => 0,
            Mode::DontAsk => 1,
            Mode::Default => 2,
            Mode::AcceptEdits => 3,
            Mode::Auto => 4,
            Mode::BypassPermissions => 5,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pm_10_later_name_of_the_mode_that_asks_is_known() {
        let by_serde = serde_json::from_str::<Mode>("\"manual\"").ok();
        assert_eq!((Mode::parse("manual"), by_serde), (Some(Mode::Default), Some(Mode::Default)));
        assert_eq!(Mode::Default.as_str(), "default");
        assert_eq!(serde_json::to_string(&Mode::Auto).ok().as_deref(), Some("\"auto\""));
    }
}
