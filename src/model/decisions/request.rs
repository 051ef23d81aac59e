//! Shutdown requests of members. The file is also how a command delegates a shutdown to the running
//! lead, which carries it out and records the outcome.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::id::{Incarnation, MemberName, RequestId};
use crate::mail::protocol::{ShutdownApproved, ShutdownStatus};
use crate::team::settings::grace_s;
use crate::text;
use crate::time::Timestamp;

/// The outcome of a shutdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ShutdownOutcome {
    /// The member agreed, and its placement is gone.
    Closed,
    /// The member rejected the request and still runs.
    Rejected,
    /// The member did not answer in time and was stopped.
    TimedOut,
    /// The member was stopped at once, as requested.
    Forced,
    /// The member was already gone.
    Gone,
}

impl ShutdownOutcome {
    /// The name in tables and in `--json`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Maximum number of `pending_work` entries kept.
const MOST_PENDING: usize = 100;
/// Maximum length of an entry, in characters.
const LONGEST: usize = 500;

/// The state in which a member reports to leave its work. Each part is missing if the member does
/// not report it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkLeft {
    #[serde(default)]
    pub status: Option<ShutdownStatus>,
    /// Remaining work in the member's words.
    #[serde(default)]
    pub pending_work: Vec<String>,
    #[serde(default)]
    pub artifacts_committed: Option<bool>,
}

impl From<ShutdownApproved> for WorkLeft {
    fn from(answer: ShutdownApproved) -> WorkLeft {
        let ShutdownApproved { status, pending_work, artifacts_committed, .. } = answer;
        let kept = pending_work.iter().take(MOST_PENDING).map(|work| text::short(work, LONGEST));
        WorkLeft { status, pending_work: kept.collect(), artifacts_committed }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviationKind {
    /// The member still runs: it rejected the shutdown or could not be stopped.
    StillThere,
    /// The member did not answer in time and was stopped.
    TimedOut,
    /// The member exited with unfinished work.
    InProgress,
    /// The member reported an error during its shutdown.
    Error,
    /// The member left uncommitted changes.
    Uncommitted,
    /// The member reported its work as committed, but this could not be verified.
    Unchecked,
}

/// A finding of the check that follows the shutdown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShutdownFinding {
    pub name: MemberName,
    pub kind: DeviationKind,
    /// Readable message: lower case, no full stop.
    pub text: String,
}

/// A shutdown requested of one run of a member.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShutdownRequest {
    /// Format version of the file.
    pub format: u32,
    pub id: RequestId,
    pub member: MemberName,
    /// The run that was asked; answers from other runs are ignored (SD-10).
    pub incarnation: Incarnation,
    pub reason: Option<String>,
    pub asked_at: Timestamp,
    /// Time at which the member is stopped without its consent.
    pub deadline_at: Timestamp,
    /// Time between SIGTERM and SIGKILL for a command or a plain program. Seconds.
    #[serde(default = "grace_s")]
    pub grace_s: u64,
    /// StopRuns the member without waiting for an answer.
    #[serde(default)]
    pub force: bool,
    /// The asker starts the member again once it has ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restarts: bool,
    pub outcome: Option<ShutdownOutcome>,
    /// The reason given by the member, or the error that occurred.
    pub answer: Option<String>,
    pub ended_at: Option<Timestamp>,
    /// Time at which the lead received the member's approval. From then on any lead carries out the
    /// shutdown.
    pub agreed_at: Option<Timestamp>,
    #[serde(flatten)]
    pub work_left: WorkLeft,
    /// The member's working directory, in which its claims about committed artifacts are verified.
    pub cwd: Option<String>,
    /// Findings of the shutdown check; `None` until it was done.
    pub deviations: Option<Vec<ShutdownFinding>>,
    /// Id of the journal event for the request. The event for the outcome names it as its cause.
    pub event: Option<String>,
}

/// Returns the last request for each run, in the given order. An answer to an earlier request no
/// longer counts.
pub fn latest(requests: Vec<ShutdownRequest>) -> Vec<ShutdownRequest> {
    let mut latest: Vec<ShutdownRequest> = Vec::new();
    for request in requests {
        latest.retain(|earlier| earlier.incarnation != request.incarnation);
        latest.push(request);
    }
    latest
}

impl ShutdownRequest {
    pub fn is_open(&self) -> bool {
        self.outcome.is_none()
    }

    /// Returns true if the shutdown has ended and was verified without findings.
    pub fn is_settled(&self) -> bool {
        !self.is_open() && self.deviations.as_ref().is_some_and(Vec::is_empty)
    }
}
