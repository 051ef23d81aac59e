//! Errors of operations on other hosts.

use serde::{Deserialize, Serialize};

use super::kind::Kind;

/// An error of an operation on another host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RemoteFailure {
    pub(crate) kind: Kind,
    pub(crate) text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
}
