//! Checks of a team: commands that test the work of a member before it lands.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::{Argv, As, AtLeast, Name};

/// Seconds after which a check is ended, unless it has its own limit.
pub const CHECK_TIMEOUT_S: usize = 600;

/// A check, as a `[[check]]` and in the settings of a team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "check", deny_unknown_fields)]
pub struct TeamCheck {
    /// Name of the check.
    #[serde(with = "As::<Name>")]
    pub name: String,
    /// The command. It runs in the worktree of the member, and passes if it exits with 0.
    #[serde(with = "As::<Argv>")]
    pub run: Vec<String>,
    /// Seconds after which the command is ended.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<AtLeast<1>>>")]
    #[schemars(extend("default" = CHECK_TIMEOUT_S))]
    pub timeout: Option<usize>,
}

impl TeamCheck {
    /// Returns the time after which the command is ended.
    pub fn limit(&self) -> Duration {
        let seconds = self.timeout.unwrap_or(CHECK_TIMEOUT_S);
        Duration::from_secs(u64::try_from(seconds).unwrap_or(u64::MAX))
    }
}
