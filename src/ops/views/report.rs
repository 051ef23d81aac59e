//! The final report of a team, made while its files still exist.

use serde::Serialize;

use crate::model::assessment::Doing;
use crate::model::board::Board;
use crate::model::id::{MemberName, TaskId, TeamName};
use crate::model::lifecycle::MemberState;
use crate::model::placement::BackendKind;
use crate::model::record::MemberRecord;
use crate::model::request::{self, ShutdownFinding, ShutdownOutcome, ShutdownRequest, WorkLeft};
use crate::model::task::{Task, TaskState};
use crate::model::text;
use crate::model::usage::{Prices, UsageTotal};
use crate::ops::members::assess::TeamEvidence;
use crate::ops::members::output;
use crate::ops::members::status::ShownState;
use crate::ops::{Context, OpsError};
use crate::store::{StoreError, TeamStore};

/// Number of output lines of a failed member or task that the report repeats.
const TAIL_LINES: usize = 20;

/// The end of a member.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct MemberReport {
    pub(crate) name: MemberName,
    pub(crate) profile: String,
    pub(crate) backend: BackendKind,
    /// Its activity, flattened into `state`, `needs`, `reason`, `because` and `state_ms`.
    #[serde(flatten)]
    pub(crate) state: ShownState,
    /// Outcome of its shutdown, if one was requested.
    pub(crate) shutdown: Option<ShutdownOutcome>,
    #[serde(flatten)]
    pub(crate) work_left: WorkLeft,
    pub(crate) exit_code: Option<i32>,
    /// Last lines of output, if it failed and they were kept.
    pub(crate) tail: Option<String>,
    /// Number of tasks that it completed or failed.
    pub(crate) tasks: usize,
    /// The usage of all its runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<UsageTotal>,
}

/// The outcome of a task.
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

/// The final report of a team, which `up` prints or returns as JSON.
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

/// Reports the outcome of members and tasks. Success means that every task was completed or
/// cancelled.
///
/// # Errors
/// [`StoreError::NoSuchTeam`] for a team that was deleted meanwhile: its board would look empty.
pub(crate) fn report(ctx: &Context, team: &TeamStore, elapsed_ms: u64) -> Result<Report, OpsError> {
    let (roster, board) = (team.team()?, team.board()?);
    let requests = request::latest(team.requests()?);
    let mut records = team.member_records()?;
    records.sort_by_key(|r| r.asked_at);
    let prices = team.settings()?.map(|settings| settings.prices).unwrap_or_default();
    // No lead restarts a member after the report.
    let evidence = TeamEvidence::gather(team, &roster, &board, &records, &team.questions()?, false);
    let member = |record: &MemberRecord| {
        let state = ShownState::from(evidence.assess(&record.name, Some(record), None));
        // The output of a run for one task is that of the task.
        let has_failed = is_failure(&state.doing) && record.request.task.is_none();
        let tail = has_failed.then(|| output::last_output(ctx, team, record, TAIL_LINES)).flatten();
        member(record, state, tail, &board, &requests, &prices)
    };
    let members: Vec<MemberReport> = records.iter().map(member).collect();
    let tasks: Vec<TaskReport> = board.work().map(|t| task(t, &board)).collect();
    let deviations: Vec<ShutdownFinding> =
        requests.into_iter().filter_map(|r| r.deviations).flatten().collect();
    let has_all_tasks = tasks.iter().all(|task| task.state.frees_dependants());
    let success = has_all_tasks && board.unreadable.is_empty() && deviations.is_empty();
    if !team.exists() {
        return Err(
            StoreError::NoSuchTeam { name: team.name().to_string(), known: Vec::new() }.into()
        );
    }
    let usage = UsageTotal::of(records.iter().filter_map(|r| r.usage.as_ref()), &prices);
    Ok(Report { team: team.name().clone(), success, elapsed_ms, members, tasks, deviations, usage })
}

impl MemberReport {
    /// Returns true if its run ended with a failure.
    pub(crate) fn has_failed(&self) -> bool {
        is_failure(&self.state.doing)
    }
}

fn is_failure(doing: &Doing) -> bool {
    matches!(doing, Doing::Ended(MemberState::Failed | MemberState::Disappeared))
}

fn member(
    record: &MemberRecord,
    state: ShownState,
    tail: Option<String>,
    board: &Board,
    requests: &[ShutdownRequest],
    prices: &Prices,
) -> MemberReport {
    let request = requests.iter().find(|r| r.member == record.name && record.is(&r.incarnation));
    let ended_by = |t: &&Task| t.extra.ended_by.as_deref() == Some(record.name.as_str());
    MemberReport {
        name: record.name.clone(),
        profile: record.request.profile.clone(),
        backend: record.backend,
        state,
        shutdown: request.and_then(|r| r.outcome),
        work_left: request.map(|r| r.work_left.clone()).unwrap_or_default(),
        exit_code: record.exit.as_ref().and_then(|e| e.code),
        tail,
        tasks: board.work().filter(ended_by).count(),
        usage: UsageTotal::of(&record.usage, prices),
    }
}

fn task(task: &Task, board: &Board) -> TaskReport {
    let outcome = task.extra.outcome.as_ref();
    let tail = outcome.and_then(|outcome| match task.state {
        TaskState::Failed => Some(text::last_lines(&outcome.tail, TAIL_LINES)),
        TaskState::Completed if task.extra.show_output => Some(outcome.tail.clone()),
        TaskState::Pending
        | TaskState::Blocked
        | TaskState::InProgress
        | TaskState::Stopping
        | TaskState::InReview
        | TaskState::Completed
        | TaskState::Cancelled
        | TaskState::Stale => None,
    });
    TaskReport {
        id: task.id,
        key: task.extra.key.clone(),
        subject: task.subject.clone(),
        state: board.state(task),
        by: task.extra.ended_by.clone(),
        exit_code: outcome.and_then(|o| o.exit_code),
        elapsed_ms: outcome.map(|o| o.elapsed_ms),
        tail,
        blocked_by: if task.state == TaskState::Pending {
            board.open_blockers(task)
        } else {
            Vec::new()
        },
    }
}
