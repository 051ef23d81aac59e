//! Rules for single tasks: who may change a task, and what a change of its state sets.

use crate::model::board::{Board, Refusal};
use crate::model::id::{MemberName, TaskId};
use crate::model::task::{CommandOutcome, Task, TaskState};
use crate::model::time::Timestamp;
use crate::store::error::StoreError;
use crate::sys::rand;

/// The result of work on a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskEnding {
    Completed,
    Failed,
}

impl TaskEnding {
    fn state(self) -> TaskState {
        match self {
            TaskEnding::Completed => TaskState::Completed,
            TaskEnding::Failed => TaskState::Failed,
        }
    }
}

/// Checks that `who` is the owner or the lead (TK-06).
pub(super) fn may_touch(task: &Task, who: &MemberName) -> Result<(), StoreError> {
    if who.is_lead() || task.is_owned_by(who) {
        return Ok(());
    }
    Err(StoreError::NotYours { id: task.id, owner: task.owner.clone() })
}

/// Checks that `who` may edit or delete the task. Besides the owner and the lead, its creator may,
/// unless the task is in progress.
pub(super) fn may_edit(task: &Task, who: &MemberName) -> Result<(), StoreError> {
    let is_creator = task.extra.created_by.as_deref().is_some_and(|by| who.clashes_with(by));
    if is_creator && task.state != TaskState::InProgress {
        return Ok(());
    }
    may_touch(task, who)
}

pub(super) fn may_end(task: &Task, who: &MemberName, ending: TaskEnding) -> Result<(), StoreError> {
    may_touch(task, who)?;
    may_become(task, ending.state())
}

pub(super) fn must_be_free(board: &Board, task: &Task) -> Result<(), StoreError> {
    match board.open_blockers(task) {
        by if by.is_empty() => Ok(()),
        by => Err(Refusal::Blocked { id: task.id, by }.into()),
    }
}

fn may_become(task: &Task, next: TaskState) -> Result<(), StoreError> {
    if task.state.may_become(next) {
        Ok(())
    } else {
        Err(StoreError::Transition { id: task.id, from: task.state.as_str(), to: next.as_str() })
    }
}

fn transition(task: &mut Task, next: TaskState) -> Result<(), StoreError> {
    may_become(task, next)?;
    task.state = next;
    Ok(())
}

pub(super) fn begin(task: &mut Task, who: &MemberName, now: Timestamp) -> Result<(), StoreError> {
    if let Some(owner) = task.owner.as_ref().filter(|_| !task.is_owned_by(who)) {
        return Err(Refusal::AlreadyClaimed { id: task.id, owner: owner.clone() }.into());
    }
    transition(task, TaskState::InProgress)?;
    task.owner = Some(who.to_string());
    task.extra.claimed_at = Some(now);
    Ok(())
}

/// Records the end of a task. The caller has checked that its state allows it.
pub(super) fn finish(
    task: &mut Task,
    who: &MemberName,
    ending: TaskEnding,
    outcome: Option<&CommandOutcome>,
    now: Timestamp,
) {
    task.state = ending.state();
    task.extra.outcome = outcome.cloned();
    task.extra.ended_at = Some(now);
    task.extra.ended_by = Some(who.to_string());
}

pub(super) fn release(task: &mut Task, who: &MemberName) -> Result<(), StoreError> {
    if !task.is_owned_by(who) || task.state.is_over() {
        return Ok(());
    }
    if task.state != TaskState::Pending {
        transition(task, TaskState::Pending)?;
        task.extra.released += 1;
    }
    task.owner = None;
    task.extra.assigned_by = None;
    task.extra.untold = false;
    task.extra.claimed_at = None;
    task.goes_on(rand::uuid());
    Ok(())
}

pub(super) fn add_edge(edges: &mut Vec<TaskId>, id: TaskId) {
    if !edges.contains(&id) {
        edges.push(id);
    }
}

/// Makes a failed task pending again. Its outcome is kept only in the journal.
pub(super) fn reopen(task: &mut Task) -> Result<(), StoreError> {
    transition(task, TaskState::Pending)?;
    task.extra.outcome = None;
    (task.extra.claimed_at, task.extra.ended_at, task.extra.ended_by) = (None, None, None);
    Ok(())
}

/// Makes a task in progress pending again and keeps its owner.
pub(super) fn return_to_pending(task: &mut Task) -> Result<(), StoreError> {
    transition(task, TaskState::Pending)?;
    task.extra.released += 1;
    task.extra.claimed_at = None;
    Ok(())
}

/// Sets another owner, who starts over: the previous owner's progress does not count (TK-08).
pub(super) fn set_owner(
    task: &mut Task,
    owner: Option<&MemberName>,
    notify_owner: bool,
) -> Result<(), StoreError> {
    if task.state == TaskState::InProgress {
        return_to_pending(task)?;
    }
    task.owner = owner.map(MemberName::to_string);
    task.extra.assigned_by = None;
    task.extra.untold = notify_owner;
    Ok(())
}
