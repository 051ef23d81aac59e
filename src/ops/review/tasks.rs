//! The tasks of members whose work is reviewed.

use serde::Serialize;

use crate::OpsError;
use model::board::Board;
use model::board::task::{Task, TaskAction, TaskState};
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

impl TaskInReview {
    pub(super) fn is_of(&self, member: &MemberName) -> bool {
        self.owner.as_deref().is_some_and(|owner| member.clashes_with(owner))
    }
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
    Ok(tasks_in_review(team)?.into_iter().find(|task| task.is_of(member)))
}

/// A task that is not over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OpenTask {
    pub id: TaskId,
    pub subject: String,
    pub is_in_review: bool,
}

impl OpenTask {
    /// Returns the action that ends the task once its work has landed.
    pub fn ending(&self) -> TaskAction {
        if self.is_in_review { TaskAction::Approve } else { TaskAction::Complete }
    }
}

/// Returns the task of a member that is not over: one in review, or else in progress, or else the
/// oldest.
pub fn open_task(board: &Board, member: &MemberName) -> Option<OpenTask> {
    let is_of = |task: &&Task| task.is_owned_by(member) && !task.state.is_over();
    let rank = |task: &Task| match task.state {
        TaskState::InReview => 0,
        TaskState::InProgress | TaskState::Stale => 1,
        _ => 2,
    };
    let task = board.work().filter(is_of).min_by_key(|task| (rank(task), task.id))?;
    let (subject, is_in_review) = (task.subject.clone(), task.state == TaskState::InReview);
    Some(OpenTask { id: task.id, subject, is_in_review })
}
