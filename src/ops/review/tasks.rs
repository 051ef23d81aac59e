//! The tasks whose owners wait for a review.

use serde::Serialize;

use crate::OpsError;
use model::board::task::TaskState;
use model::id::{MemberName, TaskId};
use store::TeamStore;

/// A task that is in review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskInReview {
    pub id: TaskId,
    pub subject: String,
    /// Its owner.
    pub owner: Option<String>,
}

/// Returns the tasks in review, oldest first.
pub(super) fn tasks_in_review(team: &TeamStore) -> Result<Vec<TaskInReview>, OpsError> {
    let board = team.board()?;
    let waits = board.work().filter(|task| task.state == TaskState::InReview);
    let mut tasks: Vec<TaskInReview> = waits
        .map(|task| TaskInReview {
            id: task.id,
            subject: task.subject.clone(),
            owner: task.owner.clone(),
        })
        .collect();
    tasks.sort_by_key(|task| task.id);
    Ok(tasks)
}

/// Returns the task of a member that is in review, the oldest if there are several.
pub fn task_in_review(
    team: &TeamStore,
    member: &MemberName,
) -> Result<Option<TaskInReview>, OpsError> {
    let is_of =
        |task: &TaskInReview| task.owner.as_deref().is_some_and(|owner| member.clashes_with(owner));
    Ok(tasks_in_review(team)?.into_iter().find(is_of))
}
