//! The final report of a team, made while its files still exist.

use super::error::OpsError;
use crate::model::board::Board;
use crate::model::record::MemberRecord;
use crate::model::report::{MemberReport, Report, TaskReport};
use crate::model::request::{self, ShutdownRequest};
use crate::model::task::{Task, TaskState};
use crate::model::text;
use crate::model::usage::{Prices, UsageTotal};
use crate::store::{StoreError, TeamStore};

/// Number of output lines of a failed task that the report repeats.
const TAIL_LINES: usize = 20;

/// Reports the outcome of members and tasks. Success means that every task was completed or
/// cancelled.
///
/// # Errors
/// [`StoreError::NoSuchTeam`] for a team that was deleted meanwhile: its board would look empty.
pub(crate) fn report(team: &TeamStore, elapsed_ms: u64) -> Result<Report, OpsError> {
    let board = team.board()?;
    let requests = request::latest(team.requests()?);
    let mut records = team.member_records()?;
    records.sort_by_key(|r| r.asked_at);
    let prices = team.settings()?.map(|settings| settings.prices).unwrap_or_default();
    let members: Vec<MemberReport> =
        records.iter().map(|r| member(r, &board, &requests, &prices)).collect();
    let tasks: Vec<TaskReport> = board.work().map(|t| task(t, &board)).collect();
    let success = tasks.iter().all(|t| t.state.frees_dependants()) && board.unreadable.is_empty();
    let deviations = requests.into_iter().filter_map(|r| r.deviations).flatten().collect();
    if !team.exists() {
        return Err(
            StoreError::NoSuchTeam { name: team.name().to_string(), known: Vec::new() }.into()
        );
    }
    let usage = UsageTotal::of(records.iter().filter_map(|r| r.usage.as_ref()), &prices);
    Ok(Report { team: team.name().clone(), success, elapsed_ms, members, tasks, deviations, usage })
}

fn member(
    record: &MemberRecord,
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
        state: record.state,
        reason: record.reason.clone(),
        shutdown: request.and_then(|r| r.outcome),
        parting: request.map(|r| r.parting.clone()).unwrap_or_default(),
        exit_code: record.exit.as_ref().and_then(|e| e.code),
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
