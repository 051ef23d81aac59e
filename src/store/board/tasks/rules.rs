//! Rules for single tasks: who may change a task, and what an action on it sets.

use crate::error::StoreError;
use model::board::task::{
    CommandOutcome, PREVIEW, Permit, Task, TaskAction, TaskSnapshot, TaskState, TransitionRefusal,
    transition,
};
use model::board::{Board, Refusal};
use model::id::{MemberName, TaskId};
use model::time::Timestamp;
use sys::rand;

/// An action on a task, and what it records there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskStep {
    pub action: TaskAction,
    /// The result of the task's command, if one has run.
    pub outcome: Option<CommandOutcome>,
    /// The result of the work.
    pub result: Option<String>,
    /// A sentence for the snapshot of the ended task.
    pub summary: Option<String>,
    pub commit: Option<String>,
    /// Why the task is sent back, cancelled, released or failed.
    pub reason: Option<String>,
}

impl TaskStep {
    pub fn of(action: TaskAction) -> TaskStep {
        TaskStep { action, outcome: None, result: None, summary: None, commit: None, reason: None }
    }

    /// The end of a command, whose outcome is recorded.
    pub fn with_outcome(action: TaskAction, outcome: &CommandOutcome) -> TaskStep {
        TaskStep { outcome: Some(outcome.clone()), ..TaskStep::of(action) }
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
/// unless the task has begun.
pub(super) fn may_edit(task: &Task, who: &MemberName) -> Result<(), StoreError> {
    let has_begun = task.state.is_running() || task.state == TaskState::InReview;
    if task.is_created_by(who) && !has_begun {
        return Ok(());
    }
    may_touch(task, who)
}

pub(super) fn must_be_free(board: &Board, task: &Task) -> Result<(), StoreError> {
    match board.open_blockers(task) {
        by if by.is_empty() => Ok(()),
        by => Err(Refusal::Blocked { id: task.id, by }.into()),
    }
}

/// Checks that `who` may perform the action on the task.
pub(super) fn may_act(
    task: &Task,
    action: TaskAction,
    who: &MemberName,
) -> Result<TaskState, StoreError> {
    let (id, state) = (task.id, task.state);
    transition(task, action, who).map_err(|refusal| match refusal {
        TransitionRefusal::WrongState => StoreError::Transition { id, state, action },
        TransitionRefusal::NotPermitted(Permit::LeadOnly) => StoreError::LeadOnly { id, action },
        TransitionRefusal::NotPermitted(_) => {
            StoreError::NotYours { id, owner: task.owner.clone() }
        }
    })
}

/// Performs the action on the task.
pub(super) fn act(
    task: &mut Task,
    who: &MemberName,
    step: &TaskStep,
    now: Timestamp,
) -> Result<(), StoreError> {
    let next = may_act(task, step.action, who)?;
    let was_in_review = task.state == TaskState::InReview;
    match step.action {
        TaskAction::Claim => claim_for(task, who, now),
        TaskAction::Complete if task.state == TaskState::Pending => {
            let owner = task.owner_member();
            claim_for(task, &owner.unwrap_or_else(|| who.clone()), now);
        }
        TaskAction::Retry => clear_ending(task),
        TaskAction::Release => {
            if task.state != TaskState::Pending {
                return_to_pending(task);
            }
            (task.owner, task.extra.assigned_by, task.extra.untold) = (None, None, false);
            task.extra.reason.clone_from(&step.reason);
        }
        TaskAction::Reject => {
            task.extra.rounds += 1;
            task.extra.reason.clone_from(&step.reason);
        }
        TaskAction::Complete
        | TaskAction::Review
        | TaskAction::Approve
        | TaskAction::Cancel
        | TaskAction::Fail
        | TaskAction::Stall
        | TaskAction::Recover => {}
    }
    // A worker claims what it owns and runs it again.
    let runs_again = step.action == TaskAction::Reject && !task.extra.run.is_empty();
    task.state = if runs_again { TaskState::Pending } else { next };
    let extra = &mut task.extra;
    if !next.is_running() {
        extra.stopping = None;
    }
    extra.stalled_at = (next == TaskState::Stale).then_some(now);
    extra.result = step.result.clone().or(extra.result.take());
    extra.commit = step.commit.clone().or(extra.commit.take());
    if next.is_over() {
        extra.reminder = None;
        extra.outcome.clone_from(&step.outcome);
        let preview = task.result_line().unwrap_or_default().chars().take(PREVIEW).collect();
        let extra = &mut task.extra;
        extra.reason.clone_from(&step.reason);
        extra.ended_at = Some(now);
        let decides = step.action == TaskAction::Approve || was_in_review && who.is_lead();
        let worker = task.owner.as_deref().filter(|_| decides);
        extra.ended_by = Some(worker.unwrap_or(who.as_str()).to_owned());
        extra.decided_by = decides.then(|| who.to_string());
        extra.snapshot = Some(TaskSnapshot {
            completed_at: now,
            result_preview: preview,
            final_status: next,
            summary: step.summary.clone(),
        });
    }
    Ok(())
}

fn claim_for(task: &mut Task, owner: &MemberName, now: Timestamp) {
    task.owner = Some(owner.to_string());
    task.extra.claimed_at = Some(now);
    task.extra.progress = None;
    task.extra.reason = None;
}

/// Removes what the end of the task has recorded; the journal keeps it.
fn clear_ending(task: &mut Task) {
    let extra = &mut task.extra;
    (extra.outcome, extra.snapshot, extra.reason) = (None, None, None);
    (extra.claimed_at, extra.ended_at, extra.ended_by) = (None, None, None);
}

fn return_to_pending(task: &mut Task) {
    task.extra.released += 1;
    task.extra.stopping = None;
    (task.extra.claimed_at, task.extra.stalled_at) = (None, None);
}

/// Starts the task for `who`.
pub(super) fn begin(task: &mut Task, who: &MemberName, now: Timestamp) -> Result<(), StoreError> {
    if let Some(owner) = task.owner.as_ref().filter(|_| !task.is_owned_by(who)) {
        return Err(Refusal::AlreadyClaimed { id: task.id, owner: owner.clone() }.into());
    }
    act(task, who, &TaskStep::of(TaskAction::Claim), now)
}

/// Gives an unfinished task of `who` back. Work in review stays: it waits for the lead, not for its
/// owner.
pub(super) fn release(task: &mut Task, who: &MemberName) {
    if !task.is_owned_by(who) || task.state.is_over() || task.state == TaskState::InReview {
        return;
    }
    if task.state != TaskState::Pending {
        task.state = TaskState::Pending;
        return_to_pending(task);
    }
    task.owner = None;
    task.extra.assigned_by = None;
    task.extra.untold = false;
    task.extra.claimed_at = None;
    task.goes_on(rand::uuid());
}

pub(super) fn add_edge(edges: &mut Vec<TaskId>, id: TaskId) {
    if !edges.contains(&id) {
        edges.push(id);
    }
}

/// Sets another owner, who starts over: the previous owner's progress does not count (TK-08).
pub(super) fn set_owner(task: &mut Task, owner: Option<&MemberName>, notify_owner: bool) {
    if task.state.is_running() || task.state == TaskState::InReview {
        task.state = TaskState::Pending;
        return_to_pending(task);
    }
    task.owner = owner.map(MemberName::to_string);
    task.extra.assigned_by = None;
    task.extra.untold = notify_owner;
}
