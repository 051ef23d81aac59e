//! How a team did, in the end: what `up` prints and gives as JSON.

use serde::Serialize;

use super::deviation::Deviation;
use super::id::{MemberName, TaskId, TeamName};
use super::lifecycle::MemberState;
use super::placement::BackendKind;
use super::request::{Parting, ShutdownOutcome};
use super::task::TaskState;

/// The end of one member.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct MemberReport {
    pub(crate) name: MemberName,
    pub(crate) profile: String,
    pub(crate) backend: BackendKind,
    pub(crate) state: MemberState,
    pub(crate) reason: Option<String>,
    /// How its shutdown ended, if it was asked.
    pub(crate) shutdown: Option<ShutdownOutcome>,
    #[serde(flatten)]
    pub(crate) parting: Parting,
    pub(crate) exit_code: Option<i32>,
    /// How many tasks it brought to their end.
    pub(crate) tasks: usize,
}

/// The end of one task.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct TaskReport {
    pub(crate) id: TaskId,
    pub(crate) key: Option<String>,
    pub(crate) subject: String,
    pub(crate) state: TaskState,
    pub(crate) by: Option<String>,
    pub(crate) exit_code: Option<i32>,
    pub(crate) elapsed_ms: Option<u64>,
    /// The last lines of a task that failed, and of one whose output is to be shown.
    pub(crate) tail: Option<String>,
    /// What still blocked it, for a task that never ran.
    pub(crate) blocked_by: Vec<TaskId>,
}

/// The end of a team.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Report {
    pub(crate) team: TeamName,
    pub(crate) success: bool,
    pub(crate) elapsed_ms: u64,
    pub(crate) members: Vec<MemberReport>,
    pub(crate) tasks: Vec<TaskReport>,
    /// What did not go as it should when members were shut down.
    pub(crate) deviations: Vec<Deviation>,
}
