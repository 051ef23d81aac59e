//! Creating, editing, retrying and deleting tasks.

use super::announce::{note_claim, say_end, say_step};
use super::guards::{may_create, must_be_open_to, must_have_verb};
use super::read::{get, must_be_member};
use super::steps::{Completed, claim};
use super::stop::end_command;
use crate::board::owners;
use crate::team::hooks::{self, TeamHooks};
use crate::{Context, OpsError, now};
use model::board::limits::Limits;
use model::board::task::{Task, TaskAction, TaskState};
use model::id::{MemberName, TaskId};
use model::team::event::{EventKind, Note};
use store::{NewTask, TargetStatus, TaskChanged, TaskChanges, TaskOwner, TaskStep, TeamStore};
use sys::failpoint;

/// Adds tasks to the board, all or none, and notifies their owners.
pub fn create(ctx: &Context, team: &TeamStore, batch: &[NewTask]) -> Result<Vec<Task>, OpsError> {
    batch
        .iter()
        .filter_map(|t| t.owner.as_ref())
        .try_for_each(|owner| must_be_member(team, owner))?;
    let mut batch = batch.to_vec();
    inherit_scope(ctx, team, &mut batch)?;
    may_create(ctx, team, &batch)?;
    batch.iter_mut().try_for_each(|new| prepare_assignment(ctx, team, new))?;
    let tasks = lay_out(ctx, team, &batch)?;
    failpoint::hit("assign.noted");
    notify_new_owners(ctx, team, &tasks)?;
    Ok(tasks)
}

/// Gives new tasks without an origin that of the task which their creator has in progress.
fn inherit_scope(ctx: &Context, team: &TeamStore, batch: &mut [NewTask]) -> Result<(), OpsError> {
    if ctx.speaker.is_lead() || batch.iter().all(|new| !new.scope.is_empty()) {
        return Ok(());
    }
    let board = team.open_board()?;
    let work = board.work_of(&ctx.speaker).and_then(|id| board.tasks.get(&id));
    let Some(scope) = work.map(|task| &task.extra.scope) else { return Ok(()) };
    for new in batch.iter_mut().filter(|new| new.scope.is_empty()) {
        new.scope = scope.clone();
    }
    Ok(())
}

/// Sets the limits of a new task's owner, and whether it must be notified.
pub(crate) fn prepare_assignment(
    ctx: &Context,
    team: &TeamStore,
    new: &mut NewTask,
) -> Result<(), OpsError> {
    let Some(owner) = &new.owner else { return Ok(()) };
    new.notify_owner = owners::must_be_notified(team, &ctx.speaker, owner)?;
    new.limits = limits(team, &ctx.speaker, owner)?;
    Ok(())
}

/// Notifies the owners of new tasks.
pub(crate) fn notify_new_owners(
    ctx: &Context,
    team: &TeamStore,
    tasks: &[Task],
) -> Result<(), OpsError> {
    let mut untold = tasks.iter().filter(|task| task.extra.untold);
    untold.try_for_each(|task| owners::notify_owner(team, task, &ctx.speaker))
}

/// As [`create`], for a team whose members are still to start: owners are neither checked nor
/// notified.
pub fn lay_out(ctx: &Context, team: &TeamStore, batch: &[NewTask]) -> Result<Vec<Task>, OpsError> {
    let tasks = team.create_tasks(batch, ctx.speaker.as_str(), now())?;
    team.record_all(created(&tasks, &ctx.speaker))?;
    Ok(tasks)
}

/// Returns the events of new tasks, and of their assignments.
pub fn created(tasks: &[Task], by: &MemberName) -> Vec<Note> {
    let notes = tasks.iter().flat_map(|task| {
        let note = Note::of_task(EventKind::TaskCreated, task).with("by", by.as_str());
        [Some(note), assigned(task, by)]
    });
    notes.flatten().collect()
}

/// Returns the event of an assignment by another member than the owner, if there is an owner that
/// works on it.
fn assigned(task: &Task, by: &MemberName) -> Option<Note> {
    let owner = task.owner_member().filter(|_| task.awaited_member().is_none())?;
    let note = Note::of(EventKind::TaskAssigned).task(task.id).member(&owner);
    let note = note.with("subject", task.subject.as_str()).with("by", by.as_str());
    let cause = task.extra.event.clone();
    (owner != *by).then_some(Note { cause, ..note })
}

/// Returns the limits on what a member may be assigned at once. What it assigns to itself is
/// exempt.
fn limits(
    team: &TeamStore,
    by: &MemberName,
    owner: &MemberName,
) -> Result<Option<Limits>, OpsError> {
    if by == owner {
        return Ok(None);
    }
    Ok(Some(team.settings()?.map(|settings| settings.limits).unwrap_or_default()))
}

/// Edits a task. A new owner is notified, and so is the present one if the task can start now.
///
/// # Errors
/// [`OpsError::HookRefused`] if the edit completes the task and a hook rejects that;
/// [`OpsError::AccessDenied`] if the new owner takes no tasks of this origin;
/// [`StoreError::NoSuchMember`](store::StoreError::NoSuchMember) for an unknown owner.
pub fn update(
    ctx: &Context,
    team: &TeamStore,
    hooks: &TeamHooks,
    id: TaskId,
    changes: &TaskChanges,
) -> Result<Completed, OpsError> {
    let owner = match &changes.owner {
        Some(TaskOwner::Member(name)) => Some(name),
        Some(TaskOwner::Nobody) | None => None,
    };
    let before = team.task(id)?;
    if let Some(owner) = owner {
        must_be_member(team, owner)?;
        let scope = before.as_ref().map(|task| task.extra.scope.clone()).unwrap_or_default();
        must_be_open_to(ctx, team, &scope, owner)?;
    }
    // Assigning, claiming and completing are verbs of version 1, under their own names.
    if changes.fields().iter().any(|field| *field != "owner") {
        must_have_verb(team, "update")?;
    }
    let completes = changes.status == Some(TargetStatus::Completed);
    let complaints =
        match before.clone().filter(|task| completes && task.state != TaskState::Completed) {
            Some(task) => {
                let in_review = task.state == TaskState::InReview;
                let action = if in_review { TaskAction::Approve } else { TaskAction::Complete };
                let task = team.task_before(id, &ctx.speaker, &TaskStep::of(action))?;
                hooks::before_completion(ctx, team, hooks, &task, &ctx.speaker)?
            }
            None => Vec::new(),
        };
    let notify_owner =
        owner.map_or(Ok(false), |owner| owners::must_be_notified(team, &ctx.speaker, owner))?;
    let limits = owner.map_or(Ok(None), |owner| limits(team, &ctx.speaker, owner))?;
    let changes = TaskChanges { notify_owner, limits, ..changes.clone() };
    if let Some(before) = before.filter(|task| task.state.is_running()) {
        let after = team.task_after(id, &ctx.speaker, &changes, now())?;
        if !after.state.is_running() || after.owner != before.owner {
            end_command(team, id, &ctx.speaker)?;
        }
    }
    let changed = team.update_task(id, &ctx.speaker, &changes, now())?;
    failpoint::hit("assign.owned");
    note_update(ctx, team, &changed, &changes)?;
    failpoint::hit("assign.noted");
    let TaskChanged { before, task, unblocked, freed } = changed;
    owners::notify_owner_of_change(team, &before, Some(&task), &ctx.speaker, None)?;
    if task.extra.untold {
        owners::notify_owner(team, &task, &ctx.speaker)?;
    } else if unblocked {
        owners::freed(team, &ctx.speaker, &[id], None)?;
    }
    Ok(Completed { task, freed, complaints })
}

/// Gives a pending task to a member that was started for it, and claims it for the member. The
/// member may have claimed it already, and even have completed it.
pub fn delegate(
    ctx: &Context,
    team: &TeamStore,
    id: TaskId,
    to: &MemberName,
) -> Result<Task, OpsError> {
    let owner = Some(TaskOwner::Member(to.clone()));
    let changes = TaskChanges { owner, ..TaskChanges::default() };
    let given = update(ctx, team, &hooks::load_hooks(ctx, team), id, &changes);
    let claimed = given.and_then(|_| claim(team, id, to, false));
    claimed.or_else(|refused| match get(team, id)? {
        task if task.is_owned_by(to) && task.state != TaskState::Pending => Ok(task),
        _ => Err(refused),
    })
}

/// Journals an edit: a change of the status as the verb for it does, other fields as
/// `task_updated`.
fn note_update(
    ctx: &Context,
    team: &TeamStore,
    changed: &TaskChanged,
    changes: &TaskChanges,
) -> Result<(), OpsError> {
    let TaskChanged { before, task, freed, .. } = changed;
    let (by, fields) = (ctx.speaker.as_str(), changes.fields());
    let moved = task.state != before.state;
    let of_status = changes.status.filter(|_| moved);
    if of_status.is_none() || !fields.is_empty() {
        // The event id on the task belongs to the change of its status.
        let note = match of_status {
            None => Note::of_task(EventKind::TaskUpdated, task),
            Some(_) => Note::of(EventKind::TaskUpdated)
                .task(task.id)
                .with("subject", task.subject.as_str()),
        };
        let note = note.with("by", by).with("fields", fields);
        team.record(if moved { note.with("status", task.state.as_str()) } else { note })?;
    }
    if before.owner != task.owner {
        team.record_all(assigned(task, &ctx.speaker).into_iter().collect())?;
    }
    match of_status {
        Some(TargetStatus::Completed) => say_end(team, task, &ctx.speaker, freed, None),
        Some(TargetStatus::InProgress) if before.state == TaskState::Stale => {
            say_step(team, task, &ctx.speaker, TaskAction::Recover, freed)
        }
        Some(TargetStatus::InProgress) => {
            let owner = task.owner_name().map(MemberName::existing).transpose()?;
            note_claim(team, task, owner.as_ref().unwrap_or(&ctx.speaker))
        }
        Some(TargetStatus::Pending) if before.state == TaskState::Failed => {
            note_retry(team, before, task, by)
        }
        Some(TargetStatus::Pending) => {
            team.record(Note::of_task(EventKind::TaskReleased, task).with("by", by))?;
            Ok(())
        }
        None => Ok(()),
    }
}

/// Makes a task that has ended or is stale pending again. A member that an ended task was assigned
/// to keeps it and is notified, if still there; otherwise any member may claim it. The former owner
/// of a stale task is notified.
pub fn retry(ctx: &Context, team: &TeamStore, id: TaskId) -> Result<Task, OpsError> {
    must_have_verb(team, "retry")?;
    let task = get(team, id)?;
    let is_stale = task.state == TaskState::Stale;
    team.task_before(id, &ctx.speaker, &TaskStep::of(TaskAction::Retry))?;
    end_command(team, id, &ctx.speaker)?;
    let assigned = task.owner_name().filter(|_| task.extra.assigned_by.is_some() && !is_stale);
    let owner = assigned.and_then(|name| MemberName::existing(name).ok());
    let owner = owner.filter(|owner| must_be_member(team, owner).is_ok());
    let notify_owner = owner
        .as_ref()
        .map_or(Ok(false), |owner| owners::must_be_notified(team, &ctx.speaker, owner))?;
    let (before, task) = team.retry_task(id, &ctx.speaker, owner.is_some(), notify_owner, now())?;
    note_retry(team, &before, &task, ctx.speaker.as_str())?;
    owners::notify_owner_of_change(team, &before, Some(&task), &ctx.speaker, None)?;
    if task.extra.untold {
        owners::notify_owner(team, &task, &ctx.speaker)?;
    }
    Ok(task)
}

/// Journals a retry with the outcome that the retry removes from the task.
fn note_retry(team: &TeamStore, before: &Task, task: &Task, by: &str) -> Result<(), OpsError> {
    let note = Note::of_task(EventKind::TaskRetried, task).with("by", by);
    let failure = serde_json::to_value(&before.extra.outcome).unwrap_or_default();
    let note = if failure.is_null() { note } else { note.with("failure", failure) };
    team.record(note)?;
    Ok(())
}

/// Deletes a task, and notifies the owners of tasks that only it had blocked.
pub fn delete(ctx: &Context, team: &TeamStore, id: TaskId, force: bool) -> Result<Task, OpsError> {
    if force {
        end_command(team, id, &ctx.speaker)?;
    }
    let (task, freed) = team.delete_task(id, &ctx.speaker, force)?;
    let note = Note::of(EventKind::TaskDeleted).task(id).with("subject", task.subject.as_str());
    team.record(note.with("by", ctx.speaker.as_str()))?;
    owners::notify_owner_of_change(team, &task, None, &ctx.speaker, None)?;
    owners::freed(team, &ctx.speaker, &freed, None)?;
    Ok(task)
}
