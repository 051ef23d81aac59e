//! Brings the task that stands for the readiness of a member up to date.

use crate::OpsError;
use crate::board::task;
use model::board::Refusal;
use model::board::task::{TaskAction, TaskState};
use model::id::{MemberName, TaskId};
use store::{StoreError, TaskStep, TeamStore};

/// Ends the task by what the record of the member's last run says: a member that was ready before
/// it ended counts, one without a record never started. A failed task is opened again for a member
/// that runs again.
pub fn settle(team: &TeamStore, task: TaskId, member: &MemberName) -> Result<(), OpsError> {
    let Some(found) = team.task(task)? else { return Ok(()) };
    let record = team.member_record(member)?;
    let runs = record.as_ref().is_some_and(|record| !record.state.is_over());
    let step = match (found.state, record) {
        (TaskState::Failed, _) if runs => TaskStep::of(TaskAction::Retry),
        (TaskState::Pending, Some(record)) if record.was_ready() => {
            TaskStep::of(TaskAction::Complete)
        }
        (TaskState::Pending, record) if !runs => {
            let ending = record.and_then(|record| record.reason.clone().or(record.ending()));
            let ending = ending.map(|ending| format!(": {ending}")).unwrap_or_default();
            let reason = Some(format!("{member} ended before it was ready{ending}"));
            TaskStep { reason, ..TaskStep::of(TaskAction::Fail) }
        }
        // The task has ended, or the member was started again, since the lead decided.
        (_, _) => return Ok(()),
    };
    match task::end(team, task, &MemberName::lead(), &step) {
        // Another process has ended or deleted it meanwhile.
        Err(OpsError::Store(
            StoreError::Transition { .. } | StoreError::Refused(Refusal::TaskNotFound(_)),
        )) => Ok(()),
        done => done.map(drop),
    }
}
