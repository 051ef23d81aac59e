//! Messages of the shutdown handshake: the lead requests a shutdown, the member approves or rejects
//! it.

use serde::{Deserialize, Serialize};

use super::fields::{lenient, lenient_list, text};

/// Lead → member: asks the member to finish and exit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShutdownRequestBody {
    /// `shutdown-<ms>@<name>` (observed).
    #[serde(rename = "requestId", alias = "request_id", deserialize_with = "text")]
    pub request_id: String,
    #[serde(default, deserialize_with = "lenient")]
    pub from: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub reason: Option<String>,
    /// RFC 3339, UTC, with milliseconds.
    #[serde(default, deserialize_with = "lenient")]
    pub timestamp: Option<String>,
    /// Time that the lead waits for an answer, in seconds. A phalanx extension that native members
    /// ignore.
    #[serde(default, deserialize_with = "lenient")]
    pub deadline_seconds: Option<u64>,
}

/// The state in which a member leaves its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum ShutdownStatus {
    /// The work is done and nothing needs cleanup.
    Clean,
    /// The work is unfinished; `pending_work` lists the rest.
    InProgress,
    /// An error occurred during the shutdown.
    Error,
}

impl ShutdownStatus {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Member → lead: agrees to exit. `status`, `pending_work` and `artifacts_committed` are phalanx
/// extensions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShutdownApproved {
    /// Id of the answered request.
    #[serde(rename = "requestId", alias = "request_id", deserialize_with = "text")]
    pub request_id: String,
    #[serde(default, deserialize_with = "lenient")]
    pub from: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub timestamp: Option<String>,
    /// The pane that the member believes it runs in. For display only: it must not be used to close
    /// a pane.
    #[serde(default, rename = "paneId", deserialize_with = "lenient")]
    pub pane_id: Option<String>,
    /// `tmux`, `in-process`, `iterm2`.
    #[serde(default, rename = "backendType", deserialize_with = "lenient")]
    pub backend_type: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub status: Option<ShutdownStatus>,
    /// Remaining work in the member's words. Entries that are not strings are skipped.
    #[serde(default, deserialize_with = "lenient_list", skip_serializing_if = "Vec::is_empty")]
    pub pending_work: Vec<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub artifacts_committed: Option<bool>,
}

/// Member → lead: refuses to exit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShutdownRejected {
    /// Id of the answered request.
    #[serde(rename = "requestId", alias = "request_id", deserialize_with = "text")]
    pub request_id: String,
    #[serde(default, deserialize_with = "lenient")]
    pub from: Option<String>,
    /// Native members always send a reason, but a rejection without one is valid.
    #[serde(default, deserialize_with = "lenient")]
    pub reason: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub timestamp: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::super::Message;

    #[test]
    fn both_id_spellings_are_read_and_the_observed_one_is_written() {
        let message = Message::parse(r#"{"type":"shutdown_rejected","request_id":"shutdown-1@a"}"#);
        assert_eq!(message.to_text(), r#"{"type":"shutdown_rejected","requestId":"shutdown-1@a"}"#);
    }

    #[test]
    fn optional_fields_of_unexpected_type_are_dropped() {
        let odd = r#"{"type":"shutdown_approved","requestId":"s","status":"tidy","pending_work":["a",1],
            "artifacts_committed":"yes","timestamp":17}"#;
        let Message::ShutdownApproved(approved) = Message::parse(odd) else {
            panic!("not an approval")
        };
        assert_eq!(approved.status, None);
        assert_eq!(approved.pending_work, ["a"]);
        assert_eq!(approved.artifacts_committed, None);
        assert_eq!(approved.timestamp, None);
    }

    #[test]
    fn deadline_is_whole_seconds_or_missing() {
        let deadline = |value: &str| {
            let text = format!(
                r#"{{"type":"shutdown_request","requestId":"s","deadline_seconds":{value}}}"#
            );
            match Message::parse(&text) {
                Message::ShutdownRequest(request) => request.deadline_seconds,
                other => panic!("not a request: {other:?}"),
            }
        };
        assert_eq!(deadline("30"), Some(30));
        assert_eq!(deadline("-1"), None);
        assert_eq!(deadline("1e999"), None);
        assert_eq!(deadline("\"30\""), None);
    }
}
