//! The results of checks.

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// The last run of a check on the work of a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckRun {
    /// The snapshot that was in the worktree, before the run and after it.
    pub commit: String,
    pub at: Timestamp,
    pub took_ms: u64,
    #[serde(flatten)]
    pub end: CheckEnd,
    /// The last lines that it printed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
}

/// The end of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "result")]
pub enum CheckEnd {
    Passed,
    Failed {
        /// Exit status.
        exit: i32,
    },
    Killed {
        signal: i32,
    },
    /// It was ended after its time limit.
    Late {
        after_s: u64,
    },
    /// It could not be started.
    NotRun {
        problem: String,
    },
}

impl CheckEnd {
    pub fn has_passed(&self) -> bool {
        *self == CheckEnd::Passed
    }

    /// Returns the result in a few words.
    pub fn words(&self) -> String {
        match self {
            CheckEnd::Passed => "passed".to_owned(),
            CheckEnd::Failed { exit } => format!("failed with exit code {exit}"),
            CheckEnd::Killed { signal } => format!("was ended by signal {signal}"),
            CheckEnd::Late { after_s } => format!("was ended after {after_s} s"),
            CheckEnd::NotRun { problem } => format!("could not run: {problem}"),
        }
    }
}
