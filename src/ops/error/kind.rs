//! Classes of failure.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

/// Classes of failure; each has an exit code of its own.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Kind {
    Failed,
    Usage,
    NotFound,
    Refused,
    Deadline,
    Backend,
    /// A bug in phalanx; only the command line reports it.
    Internal,
    /// A signal ended the command; only the command line reports it.
    Interrupted,
}

impl Kind {
    /// Returns the `error.kind` in JSON output.
    pub fn word(self) -> &'static str {
        self.into()
    }

    pub fn exit_code(self) -> u8 {
        match self {
            Kind::Failed => 1,
            Kind::Usage => 2,
            Kind::NotFound => 3,
            Kind::Refused => 4,
            Kind::Deadline => 5,
            Kind::Backend => 6,
            Kind::Internal => 70,
            Kind::Interrupted => 130,
        }
    }

    /// Returns the meaning of the exit code, for `--help`, the manual page and docs/cli.
    pub fn meaning(self) -> &'static str {
        match self {
            Kind::Failed => "failure: a task failed, a program did not start",
            Kind::Usage => "the command line or the manifest is invalid",
            Kind::NotFound => "no such team, member, task or request; no team at all",
            Kind::Refused => "not permitted, or not possible in this state",
            Kind::Deadline => "timed out",
            Kind::Backend => "no backend to run members, or no directory for teams",
            Kind::Internal => "a bug in phalanx",
            Kind::Interrupted => "interrupted by a person",
        }
    }
}
