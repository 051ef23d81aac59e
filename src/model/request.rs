//! A request that waits for an answer: today the shutdown of a member. It is also the order by which a verb hands
//! over to a running lead: whoever leads sees it, carries it out, and writes how it ended.

use serde::{Deserialize, Serialize};

use super::id::{Incarnation, MemberName, RequestId};
use super::time::Timestamp;

/// How a shutdown ended (product.md, `shutdown`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ShutdownOutcome {
    /// The member agreed and its placement is gone.
    Closed,
    /// The member said no and lives on.
    Rejected,
    /// No answer in time; it was ended.
    TimedOut,
    /// Ended without waiting, as asked.
    Forced,
    /// It was gone already.
    Gone,
}

impl ShutdownOutcome {
    /// The word for people and for `--json`.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            ShutdownOutcome::Closed => "closed",
            ShutdownOutcome::Rejected => "rejected",
            ShutdownOutcome::TimedOut => "timed_out",
            ShutdownOutcome::Forced => "forced",
            ShutdownOutcome::Gone => "gone",
        }
    }
}

/// A shutdown that was asked of one run of one member.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ShutdownRequest {
    /// Form of this file.
    pub(crate) format: u32,
    pub(crate) id: RequestId,
    pub(crate) member: MemberName,
    /// Only this run may answer (SD-10).
    pub(crate) incarnation: Incarnation,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    pub(crate) asked_at: Timestamp,
    /// From here on it is ended without its consent.
    pub(crate) deadline_at: Timestamp,
    /// Skip the waiting.
    #[serde(default)]
    pub(crate) force: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<ShutdownOutcome>,
    /// What the member gave as reason, or what went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) answer: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ended_at: Option<Timestamp>,
    /// The journal's event of the asking: the cause of the event that tells the outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) event: Option<String>,
}

impl ShutdownRequest {
    /// Whether nobody has brought it to an end yet.
    pub(crate) fn is_open(&self) -> bool {
        self.outcome.is_none()
    }
}
