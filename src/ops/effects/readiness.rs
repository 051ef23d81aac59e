//! Ends the task that stands for the readiness of a member.

use crate::OpsError;
use crate::board::task;
use model::board::Refusal;
use model::board::task::{TaskAction, TaskState};
use model::id::{MemberName, TaskId};
use store::{StoreError, TaskStep, TeamStore};

/// Ends the task by what the record of the member's last run says: a member that was ready before
/// it ended counts, one without a record never started.
pub fn settle(team: &TeamStore, task: TaskId, member: &MemberName) -> Result<(), OpsError> {
    let is_open = team.task(task)?.is_some_and(|task| task.state == TaskState::Pending);
    if !is_open {
        return Ok(());
    }
    let record = team.member_record(member)?;
    let step = match &record {
        Some(record) if record.was_ready() => TaskStep::of(TaskAction::Complete),
        _ => {
            let ending = record.and_then(|record| record.reason.clone().or(record.ending()));
            let ending = ending.map(|ending| format!(": {ending}")).unwrap_or_default();
            let reason = Some(format!("{member} ended before it was ready{ending}"));
            TaskStep { reason, ..TaskStep::of(TaskAction::Fail) }
        }
    };
    match task::end(team, task, &MemberName::lead(), &step) {
        // Another process has ended or deleted it meanwhile.
        Err(OpsError::Store(
            StoreError::Transition { .. } | StoreError::Refused(Refusal::TaskNotFound(_)),
        )) => Ok(()),
        done => done.map(drop),
    }
}
