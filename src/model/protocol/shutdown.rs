//! Messages of the shutdown handshake: the lead requests a shutdown, the member approves or rejects
//! it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::fields::{Fields, Problem, Writer};

// The first spelling is the one that Claude Code uses for shutdowns and plans.
const REQUEST_ID: [&str; 2] = ["requestId", "request_id"];

/// Fields shared by all three messages. An approval has no reason.
struct Head {
    request_id: String,
    from: Option<String>,
    reason: Option<String>,
    timestamp: Option<String>,
}

impl Head {
    fn read(fields: &Fields) -> Result<Head, Problem> {
        Ok(Head {
            request_id: fields.required_text(&REQUEST_ID)?,
            from: fields.text(&["from"]),
            reason: fields.text(&["reason"]),
            timestamp: fields.text(&["timestamp"]),
        })
    }
}

/// Starts an object with the fields of a [`Head`], in the order that Claude Code writes.
fn begin(
    kind: &str,
    request_id: &str,
    from: &Option<String>,
    reason: &Option<String>,
    timestamp: &Option<String>,
) -> Writer {
    Writer::new(kind)
        .put("requestId", request_id)
        .put_some("from", from.as_deref())
        .put_some("reason", reason.as_deref())
        .put_some("timestamp", timestamp.as_deref())
}

/// Lead → member: asks the member to finish and exit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShutdownRequest {
    /// `shutdown-<ms>@<name>` (observed).
    pub(crate) request_id: String,
    pub(crate) from: Option<String>,
    pub(crate) reason: Option<String>,
    /// RFC 3339, UTC, with milliseconds.
    pub(crate) timestamp: Option<String>,
    /// Time that the lead waits for an answer, in seconds. A phalanx extension that native members
    /// ignore.
    pub(crate) deadline_seconds: Option<u64>,
}

impl ShutdownRequest {
    pub(crate) const KIND: &'static str = "shutdown_request";

    pub(super) fn read(fields: &Fields) -> Result<Self, Problem> {
        let Head { request_id, from, reason, timestamp } = Head::read(fields)?;
        Ok(ShutdownRequest {
            request_id,
            from,
            reason,
            timestamp,
            deadline_seconds: fields.get(&["deadline_seconds"]).and_then(Value::as_u64),
        })
    }

    pub(super) fn write(&self) -> Map<String, Value> {
        let (from, reason, timestamp) = (&self.from, &self.reason, &self.timestamp);
        begin(Self::KIND, &self.request_id, from, reason, timestamp)
            .put_some("deadline_seconds", self.deadline_seconds)
            .done()
    }
}

/// The state in which a member leaves its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ShutdownStatus {
    /// The work is done and nothing needs cleanup.
    Clean,
    /// The work is unfinished; `pending_work` lists the rest.
    InProgress,
    /// An error occurred during the shutdown.
    Error,
}

impl ShutdownStatus {
    pub(crate) const ALL: [ShutdownStatus; 3] =
        [ShutdownStatus::Clean, ShutdownStatus::InProgress, ShutdownStatus::Error];

    pub(crate) fn parse(word: &str) -> Option<ShutdownStatus> {
        match word {
            "clean" => Some(ShutdownStatus::Clean),
            "in_progress" => Some(ShutdownStatus::InProgress),
            "error" => Some(ShutdownStatus::Error),
            _ => None,
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            ShutdownStatus::Clean => "clean",
            ShutdownStatus::InProgress => "in_progress",
            ShutdownStatus::Error => "error",
        }
    }
}

/// Member → lead: agrees to exit. `status`, `pending_work` and `artifacts_committed` are phalanx
/// extensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShutdownApproved {
    /// Id of the answered request.
    pub(crate) request_id: String,
    pub(crate) from: Option<String>,
    pub(crate) timestamp: Option<String>,
    /// The pane that the member believes it runs in. For display only: it must not be used to close
    /// a pane.
    pub(crate) pane_id: Option<String>,
    /// `tmux`, `in-process`, `iterm2`.
    pub(crate) backend_type: Option<String>,
    pub(crate) status: Option<ShutdownStatus>,
    /// Remaining work in the member's words. Entries that are not strings are skipped.
    pub(crate) pending_work: Vec<String>,
    pub(crate) artifacts_committed: Option<bool>,
}

impl ShutdownApproved {
    pub(crate) const KIND: &'static str = "shutdown_approved";

    pub(super) fn read(fields: &Fields) -> Result<Self, Problem> {
        let pending = fields.list(&["pending_work"]);
        let Head { request_id, from, reason: _, timestamp } = Head::read(fields)?;
        Ok(ShutdownApproved {
            request_id,
            from,
            timestamp,
            pane_id: fields.text(&["paneId"]),
            backend_type: fields.text(&["backendType"]),
            status: fields.text(&["status"]).and_then(|word| ShutdownStatus::parse(&word)),
            pending_work: pending.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            artifacts_committed: fields.get(&["artifacts_committed"]).and_then(Value::as_bool),
        })
    }

    pub(super) fn write(&self) -> Map<String, Value> {
        let pending = Some(&self.pending_work).filter(|list| !list.is_empty());
        begin(Self::KIND, &self.request_id, &self.from, &None, &self.timestamp)
            .put_some("paneId", self.pane_id.as_deref())
            .put_some("backendType", self.backend_type.as_deref())
            .put_some("status", self.status.map(ShutdownStatus::as_str))
            .put_some("pending_work", pending.cloned())
            .put_some("artifacts_committed", self.artifacts_committed)
            .done()
    }
}

/// Member → lead: refuses to exit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShutdownRejected {
    /// Id of the answered request.
    pub(crate) request_id: String,
    pub(crate) from: Option<String>,
    /// Native members always send a reason, but a rejection without one is valid.
    pub(crate) reason: Option<String>,
    pub(crate) timestamp: Option<String>,
}

impl ShutdownRejected {
    pub(crate) const KIND: &'static str = "shutdown_rejected";

    pub(super) fn read(fields: &Fields) -> Result<Self, Problem> {
        let Head { request_id, from, reason, timestamp } = Head::read(fields)?;
        Ok(ShutdownRejected { request_id, from, reason, timestamp })
    }

    pub(super) fn write(&self) -> Map<String, Value> {
        begin(Self::KIND, &self.request_id, &self.from, &self.reason, &self.timestamp).done()
    }
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
