//! Errors of operations on other hosts.

use serde::{Deserialize, Serialize};

use super::kind::Kind;

/// An error of an operation on another host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteFailure {
    pub kind: Kind,
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}
