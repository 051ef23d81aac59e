//! Classes of failure.

use serde::{Deserialize, Serialize};

/// Classes of failure; each has an exit code of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::VariantArray)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
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
