//! The task verbs: create, list, get, claim, complete, fail, release.

use super::context::{Context, now};
use super::error::OpsError;
use crate::model::board::{Board, Refusal};
use crate::model::event::{EventKind, Note};
use crate::model::id::{MemberName, TaskId};
use crate::model::task::{Outcome, Task};
use crate::store::{Ending, NewTask, StoreError, TeamStore};

/// Puts tasks on the board, all or none.
pub(crate) fn create(ctx: &Context, team: &TeamStore, batch: &[NewTask]) -> Result<Vec<Task>, OpsError> {
    if let Some(owner) = batch.iter().filter_map(|t| t.owner.as_ref()).find(|o| !is_member(team, o)) {
        let known = team.team()?.members.into_iter().map(|m| m.name).collect();
        return Err(StoreError::NoSuchMember { team: team.name().clone(), name: owner.clone(), known }.into());
    }
    lay_out(ctx, team, batch)
}

/// As [`create`], for a team whose members are still to come: owners are not looked up.
pub(crate) fn lay_out(ctx: &Context, team: &TeamStore, batch: &[NewTask]) -> Result<Vec<Task>, OpsError> {
    let tasks = team.create_tasks(batch, ctx.speaker.as_str(), now())?;
    for task in &tasks {
        team.record(Note::of(EventKind::TaskCreated).task(task.id).with("subject", task.subject.as_str()))?;
    }
    Ok(tasks)
}

fn is_member(team: &TeamStore, name: &MemberName) -> bool {
    team.team().is_ok_and(|t| t.member(name).is_some())
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

/// A worker takes what it should do next, if there is anything.
pub(crate) fn claim_next(team: &TeamStore, who: &MemberName) -> Result<Option<Task>, OpsError> {
    let task = team.claim_next(who, now())?;
    if let Some(task) = &task {
        note_claim(team, task, who)?;
    }
    Ok(task)
}

fn note_claim(team: &TeamStore, task: &Task, who: &MemberName) -> Result<(), OpsError> {
    let note =
        Note::of(EventKind::TaskClaimed).task(task.id).member(who).with("subject", task.subject.as_str());
    team.record(note)?;
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
    let mut note = Note::of(kind).task(id).member(who).with("subject", task.subject.as_str());
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
    for task in &released {
        team.record(
            Note::of(EventKind::TaskReleased)
                .task(task.id)
                .member(who)
                .with("subject", task.subject.as_str()),
        )?;
    }
    Ok(released)
}
