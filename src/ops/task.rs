//! The task verbs: create, list, get, claim, complete, fail, release, retry, update, delete.

use std::collections::BTreeMap;

use super::context::{Context, now};
use super::error::OpsError;
use super::hooks::{self, TeamHooks};
use super::owners;
use super::send::say_all;
use crate::model::board::{Board, Refusal};
use crate::model::event::{Event, EventKind, Note};
use crate::model::external_change::ExternalChange;
use crate::model::id::{MemberName, TaskId};
use crate::model::limits::Limits;
use crate::model::protocol::{Message, TaskCompleted};
use crate::model::settings::Settings;
use crate::model::task::{CommandOutcome, Task, TaskState};
use crate::model::time::Timestamp;
use crate::store::{
    NewTask, StoreError, TargetStatus, TaskChanged, TaskChanges, TaskEnding, TaskOwner, TeamStore,
};
use crate::sys::failpoint;

/// Adds tasks to the board, all or none, and notifies their owners.
pub(crate) fn create(
    ctx: &Context,
    team: &TeamStore,
    batch: &[NewTask],
) -> Result<Vec<Task>, OpsError> {
    batch
        .iter()
        .filter_map(|t| t.owner.as_ref())
        .try_for_each(|owner| must_be_member(team, owner))?;
    let mut batch = batch.to_vec();
    batch.iter_mut().try_for_each(|new| prepare_assignment(ctx, team, new))?;
    let tasks = lay_out(ctx, team, &batch)?;
    failpoint::hit("assign.noted");
    notify_new_owners(ctx, team, &tasks)?;
    Ok(tasks)
}

/// Sets the limits of a new task's owner, and whether it must be notified.
pub(super) fn prepare_assignment(
    ctx: &Context,
    team: &TeamStore,
    new: &mut NewTask,
) -> Result<(), OpsError> {
    let Some(owner) = &new.owner else { return Ok(()) };
    new.extra.untold = owners::must_be_notified(team, &ctx.speaker, owner)?;
    new.limits = limits(team, &ctx.speaker, owner)?;
    Ok(())
}

/// Notifies the owners of new tasks.
pub(super) fn notify_new_owners(
    ctx: &Context,
    team: &TeamStore,
    tasks: &[Task],
) -> Result<(), OpsError> {
    let mut untold = tasks.iter().filter(|task| task.extra.untold);
    untold.try_for_each(|task| owners::notify_owner(team, task, &ctx.speaker))
}

/// As [`create`], for a team whose members are still to start: owners are neither checked nor
/// notified.
pub(crate) fn lay_out(
    ctx: &Context,
    team: &TeamStore,
    batch: &[NewTask],
) -> Result<Vec<Task>, OpsError> {
    let tasks = team.create_tasks(batch, ctx.speaker.as_str(), now())?;
    team.record_all(
        tasks.iter().map(|task| Note::of_task(EventKind::TaskCreated, task)).collect(),
    )?;
    Ok(tasks)
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

/// Checks that a member of this name is on the team, or is started when there is work for it.
pub(super) fn must_be_member(team: &TeamStore, name: &MemberName) -> Result<(), OpsError> {
    let roster = team.team()?;
    let comes = |settings: Settings| settings.templates.iter().any(|template| template.makes(name));
    if roster.member(name).is_some() || team.settings()?.is_some_and(comes) {
        return Ok(());
    }
    let known = roster.members.into_iter().map(|m| m.name).collect();
    Err(StoreError::NoSuchMember { team: team.name().clone(), name: name.clone(), known }.into())
}

/// Edits a task. A new owner is notified, and so is the present one if the task can start now.
///
/// # Errors
/// [`OpsError::HookRefused`] if the edit completes the task and a hook rejects that;
/// [`StoreError::NoSuchMember`] for an unknown owner.
pub(crate) fn update(
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
    owner.iter().try_for_each(|owner| must_be_member(team, owner))?;
    let completes = changes.status == Some(TargetStatus::Completed);
    let complaints =
        match team.task(id)?.filter(|task| completes && task.state != TaskState::Completed) {
            Some(_) => {
                let task = team.endable(id, &ctx.speaker, TaskEnding::Completed, None)?;
                hooks::before_completion(ctx, team, hooks, &task, &ctx.speaker)?
            }
            None => Vec::new(),
        };
    let notify_owner =
        owner.map_or(Ok(false), |owner| owners::must_be_notified(team, &ctx.speaker, owner))?;
    let limits = owner.map_or(Ok(None), |owner| limits(team, &ctx.speaker, owner))?;
    let changes = TaskChanges { notify_owner, limits, ..changes.clone() };
    let changed = team.update_task(id, &ctx.speaker, &changes, now())?;
    failpoint::hit("assign.owned");
    note_update(ctx, team, &changed, &changes)?;
    failpoint::hit("assign.noted");
    let TaskChanged { task, unblocked, freed, .. } = changed;
    if task.extra.untold {
        owners::notify_owner(team, &task, &ctx.speaker)?;
    } else if unblocked {
        owners::freed(team, &ctx.speaker, &[id])?;
    }
    Ok(Completed { task, freed, complaints })
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
    match of_status {
        Some(TargetStatus::Completed) => say_end(team, task, &ctx.speaker, freed),
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

/// Makes a failed task pending again. A member that it was assigned to keeps it and is notified, if
/// still there; otherwise any member may claim it.
pub(crate) fn retry(ctx: &Context, team: &TeamStore, id: TaskId) -> Result<Task, OpsError> {
    let task = get(team, id)?;
    let assigned = task.owner_name().filter(|_| task.extra.assigned_by.is_some());
    let owner = assigned.and_then(|name| MemberName::existing(name).ok());
    let owner = owner.filter(|owner| must_be_member(team, owner).is_ok());
    let notify_owner = owner
        .as_ref()
        .map_or(Ok(false), |owner| owners::must_be_notified(team, &ctx.speaker, owner))?;
    let (before, task) = team.retry_task(id, &ctx.speaker, owner.is_some(), notify_owner)?;
    note_retry(team, &before, &task, ctx.speaker.as_str())?;
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
pub(crate) fn delete(
    ctx: &Context,
    team: &TeamStore,
    id: TaskId,
    force: bool,
) -> Result<Task, OpsError> {
    let (task, freed) = team.delete_task(id, &ctx.speaker, force)?;
    let note = Note::of(EventKind::TaskDeleted).task(id).with("subject", task.subject.as_str());
    team.record(note.with("by", ctx.speaker.as_str()))?;
    owners::freed(team, &ctx.speaker, &freed)?;
    Ok(task)
}

/// Journals what another program changed in a task.
pub(crate) fn journal_change(team: &TeamStore, change: ExternalChange) -> Result<(), OpsError> {
    team.record(change_note(change))?;
    Ok(())
}

/// Notifies the owners of tasks that another program has unblocked (TK-04).
pub(crate) fn notify_unblocked(team: &TeamStore, tasks: &[TaskId]) -> Result<(), OpsError> {
    owners::freed(team, &MemberName::lead(), tasks)
}

fn change_note(change: ExternalChange) -> Note {
    let note = |kind, id, subject: String| Note::of(kind).task(id).with("subject", subject);
    match change {
        ExternalChange::Vanished { id, subject } => note(EventKind::TaskVanished, id, subject),
        ExternalChange::Rewritten { id, subject, fields } => {
            note(EventKind::TaskRewritten, id, subject).with("fields", fields)
        }
        ExternalChange::Changed { id, subject, status, owner, fields } => {
            let given = [("status", status), ("owner", owner)];
            let given = given.into_iter().filter_map(|(key, value)| Some((key, value?)));
            let note = given
                .fold(note(EventKind::TaskChanged, id, subject), |note, (key, value)| {
                    note.with(key, value)
                });
            if fields.is_empty() { note } else { note.with("fields", fields) }
        }
    }
}

pub(crate) fn board(team: &TeamStore) -> Result<Board, OpsError> {
    Ok(team.board()?)
}

pub(crate) fn get(team: &TeamStore, id: TaskId) -> Result<Task, OpsError> {
    Ok(team.task(id)?.ok_or(StoreError::Refused(Refusal::TaskNotFound(id)))?)
}

/// Claims a task for the speaker.
pub(crate) fn claim(ctx: &Context, team: &TeamStore, id: TaskId) -> Result<Task, OpsError> {
    claim_for(team, id, &ctx.speaker)
}

/// Claims a task for a member.
pub(super) fn claim_for(team: &TeamStore, id: TaskId, who: &MemberName) -> Result<Task, OpsError> {
    let task = team.claim(id, who, now())?;
    note_claim(team, &task, who)?;
    Ok(task)
}

/// Claims the next task for a worker of this role, if there is one.
pub(crate) fn claim_next(
    team: &TeamStore,
    who: &MemberName,
    role: Option<&str>,
) -> Result<Option<Task>, OpsError> {
    let task = team.claim_next(who, role, now())?;
    if let Some(task) = &task {
        note_claim(team, task, who)?;
    }
    Ok(task)
}

/// Returns the task if `who` owns it and it is in progress.
pub(crate) fn claimed(
    team: &TeamStore,
    id: TaskId,
    who: &MemberName,
) -> Result<Option<Task>, OpsError> {
    let task = team.task(id)?;
    Ok(task.filter(|task| task.state == TaskState::InProgress && task.is_owned_by(who)))
}

fn note_claim(team: &TeamStore, task: &Task, who: &MemberName) -> Result<(), OpsError> {
    team.record(Note::of_task(EventKind::TaskClaimed, task).member(who))?;
    Ok(())
}

/// Ends a task: completed, or failed with the outcome of its command. Returns the task and those
/// that it unblocked, whose owners are notified.
pub(crate) fn end(
    team: &TeamStore,
    id: TaskId,
    who: &MemberName,
    ending: TaskEnding,
    outcome: Option<&CommandOutcome>,
) -> Result<(Task, Vec<TaskId>), OpsError> {
    let (task, freed) = team.end_task(id, who, ending, outcome, now())?;
    failpoint::hit("task.ended");
    say_end(team, &task, who, &freed)?;
    Ok((task, freed))
}

/// Journals that a task is over, and notifies the lead and the owners of the tasks that it
/// unblocked.
fn say_end(
    team: &TeamStore,
    task: &Task,
    who: &MemberName,
    freed: &[TaskId],
) -> Result<(), OpsError> {
    let kind = match task.state {
        TaskState::Failed => EventKind::TaskFailed,
        TaskState::Pending
        | TaskState::InProgress
        | TaskState::Completed
        | TaskState::Cancelled => EventKind::TaskCompleted,
    };
    let mut note = Note::of_task(kind, task).member(who);
    if let Some(outcome) = &task.extra.outcome {
        note = note.with("exit_code", outcome.exit_code).with("elapsed_ms", outcome.elapsed_ms);
    }
    note = note.with("freed", freed.iter().map(TaskId::to_string).collect::<Vec<_>>());
    // Before the journal: recovery repeats both where the journal lacks the end.
    notify_lead(team, task, who)?;
    team.record(note)?;
    owners::freed(team, who, freed)
}

/// Sends `task_completed` to the lead's mailbox, once: the message has the id of the task's event.
/// The end of a command or of a run reaches the lead in other messages already.
fn notify_lead(team: &TeamStore, task: &Task, who: &MemberName) -> Result<(), OpsError> {
    let by_hand = task.state == TaskState::Completed && task.extra.outcome.is_none();
    let Some(event) = task.extra.event.as_deref().filter(|_| by_hand && !who.is_lead()) else {
        return Ok(());
    };
    let lead = MemberName::lead();
    if team.mailbox(&lead).find(event)?.is_some() {
        return Ok(());
    }
    let news = Message::TaskCompleted(TaskCompleted {
        from: Some(who.to_string()),
        task_id: task.id.to_string(),
        task_subject: Some(task.subject.clone()),
        timestamp: Some(now().iso()),
    });
    say_all(team, who, &lead, &[(news, event)])
}

/// Returns the tasks that `who` has ended since then.
pub(super) fn ended_by<'b>(board: &'b Board, who: &MemberName, since: Timestamp) -> Vec<&'b Task> {
    let is_it = |task: &&Task| {
        let by_it = task.extra.ended_by.as_deref() == Some(who.as_str());
        by_it && task.state.is_over() && task.extra.ended_at.is_some_and(|at| at >= since)
    };
    board.tasks.values().filter(is_it).collect()
}

/// Announces ended tasks whose end is not in the journal, because the process that ended them
/// crashed. Returns them.
pub(super) fn journal_ends(
    team: &TeamStore,
    ended: &[&Task],
    journal: &[Event],
) -> Result<Vec<TaskId>, OpsError> {
    let ends =
        |event: &&Event| matches!(event.event, EventKind::TaskCompleted | EventKind::TaskFailed);
    let said: BTreeMap<TaskId, Timestamp> =
        journal.iter().filter(ends).filter_map(|event| Some((event.task?, event.at))).collect();
    let is_unsaid = |task: &&&Task| said.get(&task.id).copied() < task.extra.ended_at;
    let mut told = Vec::new();
    for task in ended.iter().filter(is_unsaid) {
        let Some(who) =
            task.extra.ended_by.as_deref().and_then(|who| MemberName::existing(who).ok())
        else {
            continue;
        };
        say_end(team, task, &who, &team.freed_by(task)?)?;
        told.push(task.id);
    }
    Ok(told)
}

/// A task after `update` or `complete`.
#[derive(Debug)]
pub(crate) struct Completed {
    pub(crate) task: Task,
    /// Tasks that can start now.
    pub(crate) freed: Vec<TaskId>,
    /// Problems with hooks, for the user.
    pub(crate) complaints: Vec<String>,
}

/// Completes a task, if the hooks allow it.
///
/// # Errors
/// [`OpsError::HookRefused`], with the hook's stderr, if a hook rejects it. No hook runs for a task
/// that could not be completed anyway.
pub(crate) fn complete(
    ctx: &Context,
    team: &TeamStore,
    hooks: &TeamHooks,
    id: TaskId,
    who: &MemberName,
    outcome: Option<&CommandOutcome>,
) -> Result<Completed, OpsError> {
    let task = team.endable(id, who, TaskEnding::Completed, outcome)?;
    let complaints = hooks::before_completion(ctx, team, hooks, &task, who)?;
    let (task, freed) = end(team, id, who, TaskEnding::Completed, outcome)?;
    Ok(Completed { task, freed, complaints })
}

/// Releases the tasks of a name that is not on the team and that the lead starts no member for.
pub(crate) fn release_absent(team: &TeamStore, who: &MemberName) -> Result<(), OpsError> {
    match must_be_member(team, who) {
        Err(OpsError::Store(StoreError::NoSuchMember { .. })) => release(team, who).map(drop),
        done => done,
    }
}

/// Releases what a member held when it left. Returns that, and the board as it was before.
pub(crate) fn release(team: &TeamStore, who: &MemberName) -> Result<(Vec<Task>, Board), OpsError> {
    let (released, board) = team.release_tasks_of(who)?;
    failpoint::hit("task.released");
    for task in &released {
        team.record(Note::of_task(EventKind::TaskReleased, task).member(who))?;
    }
    Ok((released, board))
}
