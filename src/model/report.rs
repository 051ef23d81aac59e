//! The final report of a team, which `up` prints or returns as JSON.

use serde::Serialize;

use super::id::{MemberName, TaskId, TeamName};
use super::lifecycle::MemberState;
use super::placement::BackendKind;
use super::request::{Parting, ShutdownFinding, ShutdownOutcome};
use super::task::TaskState;
use super::usage::UsageTotal;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct MemberReport {
    pub(crate) name: MemberName,
    pub(crate) profile: String,
    pub(crate) backend: BackendKind,
    pub(crate) state: MemberState,
    pub(crate) reason: Option<String>,
    /// Outcome of its shutdown, if one was requested.
    pub(crate) shutdown: Option<ShutdownOutcome>,
    #[serde(flatten)]
    pub(crate) parting: Parting,
    pub(crate) exit_code: Option<i32>,
    /// Number of tasks that it completed or failed.
    pub(crate) tasks: usize,
    /// The usage of all its runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<UsageTotal>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct TaskReport {
    pub(crate) id: TaskId,
    /// The task's key in the manifest.
    pub(crate) key: Option<String>,
    pub(crate) subject: String,
    pub(crate) state: TaskState,
    /// The member that completed or failed the task.
    pub(crate) by: Option<String>,
    pub(crate) exit_code: Option<i32>,
    pub(crate) elapsed_ms: Option<u64>,
    /// Last lines of output, for a failed task or one with `show_output`.
    pub(crate) tail: Option<String>,
    /// Blockers still open, for a task that never ran.
    pub(crate) blocked_by: Vec<TaskId>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Report {
    pub(crate) team: TeamName,
    pub(crate) success: bool,
    pub(crate) elapsed_ms: u64,
    pub(crate) members: Vec<MemberReport>,
    pub(crate) tasks: Vec<TaskReport>,
    /// Findings of the shutdown checks.
    pub(crate) deviations: Vec<ShutdownFinding>,
    /// The usage of all members.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<UsageTotal>,
}
