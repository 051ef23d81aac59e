//! A request that waits for an answer: today the shutdown of a member. It is also the order by which a verb hands
//! over to a running lead: whoever leads sees it, carries it out, and writes how it ended.

use serde::{Deserialize, Serialize};

use super::deviation::Deviation;
use super::id::{Incarnation, MemberName, RequestId};
use super::protocol::{ShutdownApproved, ShutdownStatus};
use super::text;
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

/// So much of what a member says of its work is kept.
const MOST_PENDING: usize = 100;
/// And of each of these so many characters.
const LONGEST: usize = 500;

/// In which state a member says it leaves its work (seed 002). A member that says nothing of it leaves all three open.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Parting {
    #[serde(default)]
    pub(crate) status: Option<ShutdownStatus>,
    /// What is left to do, in its own words.
    #[serde(default)]
    pub(crate) pending_work: Vec<String>,
    #[serde(default)]
    pub(crate) artifacts_committed: Option<bool>,
}

impl From<ShutdownApproved> for Parting {
    fn from(answer: ShutdownApproved) -> Parting {
        let ShutdownApproved { status, pending_work, artifacts_committed, .. } = answer;
        let kept = pending_work.iter().take(MOST_PENDING).map(|work| text::short(work, LONGEST));
        Parting { status, pending_work: kept.collect(), artifacts_committed }
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
    /// When the lead heard that the member agrees; from then on whoever leads carries it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agreed_at: Option<Timestamp>,
    #[serde(flatten)]
    pub(crate) parting: Parting,
    /// Where the member worked: what it says of its artifacts is checked there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cwd: Option<String>,
    /// What did not go as it should; none until it was verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) deviations: Option<Vec<Deviation>>,
    /// The journal's event of the asking: the cause of the event that tells the outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) event: Option<String>,
}

/// Of each run the request that was made last, in the given order: an answer to an earlier one counts no more.
pub(crate) fn latest(requests: Vec<ShutdownRequest>) -> Vec<ShutdownRequest> {
    let mut latest: Vec<ShutdownRequest> = Vec::new();
    for request in requests {
        latest.retain(|earlier| earlier.incarnation != request.incarnation);
        latest.push(request);
    }
    latest
}

impl ShutdownRequest {
    /// Whether nobody has brought it to an end yet.
    pub(crate) fn is_open(&self) -> bool {
        self.outcome.is_none()
    }

    /// Whether it has ended, and nothing of it is left to be told.
    pub(crate) fn is_settled(&self) -> bool {
        !self.is_open() && self.deviations.as_ref().is_some_and(Vec::is_empty)
    }
}
