//! The final report of a team, made while its files still exist.

use std::time::Duration;

use serde::Serialize;

use crate::members::assess::TeamEvidence;
use crate::members::output;
use crate::members::status::ShownState;
use crate::team::worktree::{self, Preview};
use crate::{Context, OpsError};
use ::worktree::Repository;
use model::board::task::{Task, TaskState};
use model::board::{Board, results};
use model::decisions::request::{
    self, ShutdownFinding, ShutdownOutcome, ShutdownRequest, WorkLeft,
};
use model::id::{MemberName, TaskId, TeamName};
use model::members::assessment::Doing;
use model::members::lifecycle::MemberState;
use model::members::placement::BackendKind;
use model::members::record::MemberRecord;
use model::members::usage::{Prices, UsageTotal};
use store::{Reread, StoreError, TeamStore};

/// Number of output lines of a failed member or task that the report repeats.
const TAIL_LINES: usize = 20;
/// Time for the worktrees, which a team that ends waits for.
const BRANCHES: Duration = Duration::from_secs(2);

/// The end of a member.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MemberReport {
    pub name: MemberName,
    pub profile: String,
    pub backend: BackendKind,
    /// Its activity, flattened into `state`, `needs`, `reason`, `because` and `state_ms`.
    #[serde(flatten)]
    pub state: ShownState,
    /// Outcome of its shutdown, if one was requested.
    pub shutdown: Option<ShutdownOutcome>,
    #[serde(flatten)]
    pub work_left: WorkLeft,
    pub exit_code: Option<i32>,
    /// Last lines of output, if it failed and they were kept.
    pub tail: Option<String>,
    /// Number of tasks that it completed or failed.
    pub tasks: usize,
    /// The usage of all its runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageTotal>,
}

/// The outcome of a task.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TaskReport {
    pub id: TaskId,
    /// The task's key in the manifest.
    pub key: Option<String>,
    pub subject: String,
    pub state: TaskState,
    /// The member that completed or failed the task.
    pub by: Option<String>,
    pub exit_code: Option<i32>,
    pub elapsed_ms: Option<u64>,
    /// The reason for the failure or the cancellation, if one was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What its member has found, in its words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Last lines of output, as `show_output` says.
    pub tail: Option<String>,
    /// Blockers still open, for a task that never ran.
    pub blocked_by: Vec<TaskId>,
}

/// The work in a member's worktree that is not merged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BranchReport {
    pub name: MemberName,
    /// The name by which `git merge` takes its commits.
    pub from: String,
    /// The branch that is checked out in the main working directory.
    pub into: String,
    pub commits: usize,
    /// In git's words: `3 files changed, 40 insertions(+)`.
    pub size: String,
    /// Files with uncommitted changes.
    pub uncommitted: usize,
    /// Files with conflicting changes.
    pub conflicts: Vec<String>,
}

/// The final report of a team, which `up` prints or returns as JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    pub team: TeamName,
    pub success: bool,
    pub elapsed_ms: u64,
    pub members: Vec<MemberReport>,
    pub tasks: Vec<TaskReport>,
    /// Findings of the shutdown checks.
    pub deviations: Vec<ShutdownFinding>,
    /// The unmerged work of members with a worktree on this machine; only in a last report.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub branches: Vec<BranchReport>,
    /// The usage of all members.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageTotal>,
}

/// Reports the outcome of members and tasks. Success means that every task was completed or
/// cancelled.
///
/// # Errors
/// [`StoreError::NoSuchTeam`] for a team that was deleted meanwhile: its board would look empty.
pub fn report(ctx: &Context, team: &TeamStore, elapsed_ms: u64) -> Result<Report, OpsError> {
    report_again(ctx, team, elapsed_ms, &mut KnownRuns::default())
}

/// The records and requests that a process read for its earlier reports.
#[derive(Debug, Default)]
pub struct KnownRuns {
    requests: Reread<ShutdownRequest>,
    records: Reread<MemberRecord>,
}

/// Like [`report`], for a process that has reported before.
pub fn report_again(
    ctx: &Context,
    team: &TeamStore,
    elapsed_ms: u64,
    known: &mut KnownRuns,
) -> Result<Report, OpsError> {
    let (roster, board) = (team.team()?, team.board()?);
    let requests = request::latest(team.requests_again(&mut known.requests)?);
    let mut records = team.member_records_again(&mut known.records)?;
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
    Ok(Report {
        team: team.name().clone(),
        success,
        elapsed_ms,
        members,
        tasks,
        deviations,
        branches: Vec::new(),
        usage,
    })
}

/// Returns the unmerged work in the worktrees of this machine. What git cannot tell is left out: it
/// is reported when the worktrees are removed.
pub fn branches(ctx: &Context, team: &TeamStore) -> Vec<BranchReport> {
    let report = |(name, found): (MemberName, Result<Preview, String>)| {
        let Preview { from, into, head: _, commits, size, conflicts, uncommitted } = found.ok()?;
        let has_work = commits > 0 || uncommitted > 0;
        let row = BranchReport { name, from, into, commits, size, uncommitted, conflicts };
        has_work.then_some(row)
    };
    let found = worktree::look_at_each(ctx, team, BRANCHES, Repository::preview);
    found.into_iter().flatten().filter_map(report).collect()
}

impl MemberReport {
    /// Returns true if its run ended with a failure.
    pub fn has_failed(&self) -> bool {
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
    let is_failed = task.state == TaskState::Failed;
    let lines = if is_failed { TAIL_LINES } else { results::TAIL_LINES };
    TaskReport {
        id: task.id,
        key: task.extra.key.clone(),
        subject: task.subject.clone(),
        state: board.state(task),
        by: task.extra.ended_by.clone(),
        exit_code: outcome.and_then(|o| o.exit_code),
        elapsed_ms: outcome.map(|o| o.elapsed_ms),
        reason: task.extra.reason.clone(),
        result: task.extra.result.as_ref().map(|result| results::cut(result, task.id)),
        tail: task.shown_output(lines),
        blocked_by: if task.state == TaskState::Pending {
            board.open_blockers(task)
        } else {
            Vec::new()
        },
    }
}
