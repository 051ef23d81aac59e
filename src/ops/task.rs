//! The task verbs: create, list, get, claim, complete, fail, release, update, delete.

use super::context::{Context, now};
use super::error::OpsError;
use crate::model::board::{Board, Refusal};
use crate::model::drift::Drift;
use crate::model::envelope::Envelope;
use crate::model::event::{EventKind, Note};
use crate::model::id::{MemberName, TaskId};
use crate::model::protocol::{Message, TaskAssignment};
use crate::model::task::{Outcome, Task, TaskState};
use crate::store::{Ending, NewTask, StoreError, TaskChanges, TaskOwner, TeamStore};
use crate::sys::failpoint;

/// Puts tasks on the board, all or none.
pub(crate) fn create(ctx: &Context, team: &TeamStore, batch: &[NewTask]) -> Result<Vec<Task>, OpsError> {
    batch.iter().filter_map(|t| t.owner.as_ref()).try_for_each(|owner| must_be_member(team, owner))?;
    let mut batch = batch.to_vec();
    for new in &mut batch {
        new.extra.untold = new.owner.as_ref().map_or(Ok(false), |owner| hears(ctx, team, owner))?;
    }
    let tasks = lay_out(ctx, team, &batch)?;
    failpoint::hit("assign.noted");
    tasks
        .iter()
        .filter(|task| task.extra.untold)
        .try_for_each(|task| tell_owner(team, task, &ctx.speaker))?;
    Ok(tasks)
}

/// As [`create`], for a team whose members are still to come: owners are not looked up.
pub(crate) fn lay_out(ctx: &Context, team: &TeamStore, batch: &[NewTask]) -> Result<Vec<Task>, OpsError> {
    let tasks = team.create_tasks(batch, ctx.speaker.as_str(), now())?;
    for task in &tasks {
        team.record(Note::of_task(EventKind::TaskCreated, task))?;
    }
    Ok(tasks)
}

fn must_be_member(team: &TeamStore, name: &MemberName) -> Result<(), OpsError> {
    let roster = team.team()?;
    if roster.member(name).is_some() {
        return Ok(());
    }
    let known = roster.members.into_iter().map(|m| m.name).collect();
    Err(StoreError::NoSuchMember { team: team.name().clone(), name: name.clone(), known }.into())
}

/// Whether a new owner of a task is to be told: not of its own doing, and only if it reads what it is told.
fn hears(ctx: &Context, team: &TeamStore, owner: &MemberName) -> Result<bool, OpsError> {
    Ok(*owner != ctx.speaker && super::send::reads_mail(team, owner)?)
}

/// Tells the new owner of a task. The message has the id of the task's event: whoever comes after one that died here sees
/// by it whether it was said.
fn tell_owner(team: &TeamStore, task: &Task, by: &MemberName) -> Result<(), OpsError> {
    let (Some(owner), Some(event)) = (&task.owner, &task.extra.event) else { return Ok(()) };
    let news = TaskAssignment {
        task_id: task.id.to_string(),
        subject: Some(task.subject.clone()),
        description: Some(task.description.clone()),
        assigned_by: Some(by.to_string()),
        timestamp: Some(now().iso()),
    };
    let owner = MemberName::existing(owner)?;
    super::send::say_all(team, by, &owner, &[(Message::TaskAssignment(news), event)])?;
    failpoint::hit("assign.said");
    Ok(team.owner_is_told(task.id)?)
}

/// Tells the owners that whoever named them did not live to tell; gives their tasks.
pub(super) fn tell_owners(team: &TeamStore) -> Result<Vec<TaskId>, OpsError> {
    let roster = team.team()?;
    let mut told = Vec::new();
    for task in board(team)?.tasks.values().filter(|task| task.extra.untold) {
        let owner = roster.members.iter().find(|member| task.is_owned_by(&member.name));
        let Some(owner) = owner.filter(|_| task.state == TaskState::Pending) else { continue };
        let is_it = |said: &Envelope| Some(&said.msg_id) == task.extra.event.as_ref();
        if team.mailbox(&owner.name).all()?.iter().any(is_it) {
            team.owner_is_told(task.id)?;
        } else {
            tell_owner(team, task, &MemberName::lead())?;
            told.push(task.id);
        }
    }
    Ok(told)
}

/// Edits a task; a new owner is told.
pub(crate) fn update(
    ctx: &Context,
    team: &TeamStore,
    id: TaskId,
    changes: &TaskChanges,
) -> Result<Task, OpsError> {
    let owner = match &changes.owner {
        Some(TaskOwner::Member(name)) => Some(name),
        Some(TaskOwner::Nobody) | None => None,
    };
    owner.iter().try_for_each(|owner| must_be_member(team, owner))?;
    let before = get(team, id)?;
    let tells = owner.map_or(Ok(false), |owner| hears(ctx, team, owner))?;
    let task = team.update_task(id, &ctx.speaker, &TaskChanges { tells, ..changes.clone() })?;
    failpoint::hit("assign.owned");
    let mut note = Note::of_task(EventKind::TaskUpdated, &task)
        .with("by", ctx.speaker.as_str())
        .with("fields", changes.fields());
    if task.state != before.state {
        note = note.with("status", task.state.as_str());
    }
    team.record(note)?;
    failpoint::hit("assign.noted");
    if task.extra.untold {
        tell_owner(team, &task, &ctx.speaker)?;
    }
    Ok(task)
}

/// Deletes a task.
pub(crate) fn delete(ctx: &Context, team: &TeamStore, id: TaskId, force: bool) -> Result<Task, OpsError> {
    let task = team.delete_task(id, &ctx.speaker, force)?;
    let note = Note::of(EventKind::TaskDeleted).task(id).with("subject", task.subject.as_str());
    team.record(note.with("by", ctx.speaker.as_str()))?;
    Ok(task)
}

/// What another program did to a task, for the journal.
pub(crate) fn told(drift: Drift) -> Note {
    let note = |kind, id, subject: String| Note::of(kind).task(id).with("subject", subject);
    match drift {
        Drift::Vanished { id, subject } => note(EventKind::TaskVanished, id, subject),
        Drift::Rewritten { id, subject, fields } => {
            note(EventKind::TaskRewritten, id, subject).with("fields", fields)
        }
        Drift::Changed { id, subject, status, owner, fields } => {
            let given = [("status", status), ("owner", owner)];
            let given = given.into_iter().filter_map(|(key, value)| Some((key, value?)));
            let told = given
                .fold(note(EventKind::TaskChanged, id, subject), |told, (key, value)| told.with(key, value));
            if fields.is_empty() { told } else { told.with("fields", fields) }
        }
    }
}

/// The board.
pub(crate) fn board(team: &TeamStore) -> Result<Board, OpsError> {
    Ok(team.board()?)
}

/// One task.
pub(crate) fn get(team: &TeamStore, id: TaskId) -> Result<Task, OpsError> {
    Ok(team.task(id)?.ok_or(StoreError::Refused(Refusal::TaskNotFound(id)))?)
}

/// The speaker takes one task.
pub(crate) fn claim(ctx: &Context, team: &TeamStore, id: TaskId) -> Result<Task, OpsError> {
    let task = team.claim(id, &ctx.speaker, now())?;
    note_claim(team, &task, &ctx.speaker)?;
    Ok(task)
}

/// A worker takes what it should do next in its role, if there is anything.
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

fn note_claim(team: &TeamStore, task: &Task, who: &MemberName) -> Result<(), OpsError> {
    team.record(Note::of_task(EventKind::TaskClaimed, task).member(who))?;
    Ok(())
}

/// Brings a task to its end: completed, or failed with how its command ended. Gives the task and those it freed.
pub(crate) fn end(
    team: &TeamStore,
    id: TaskId,
    who: &MemberName,
    ending: Ending,
    outcome: Option<&Outcome>,
) -> Result<(Task, Vec<TaskId>), OpsError> {
    let (task, freed) = team.end_task(id, who, ending, outcome, now())?;
    let kind = match ending {
        Ending::Completed => EventKind::TaskCompleted,
        Ending::Failed => EventKind::TaskFailed,
    };
    let mut note = Note::of_task(kind, &task).member(who);
    if let Some(outcome) = outcome {
        note = note.with("exit_code", outcome.exit_code).with("elapsed_ms", outcome.elapsed_ms);
    }
    note = note.with("freed", freed.iter().map(TaskId::to_string).collect::<Vec<_>>());
    team.record(note)?;
    Ok((task, freed))
}

/// Gives back what a member held when it left.
pub(crate) fn release(team: &TeamStore, who: &MemberName) -> Result<Vec<Task>, OpsError> {
    let released = team.release_tasks_of(who)?;
    failpoint::hit("task.released");
    for task in &released {
        team.record(Note::of_task(EventKind::TaskReleased, task).member(who))?;
    }
    Ok(released)
}
