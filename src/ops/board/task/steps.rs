//! Actions on tasks: claiming, ending, review, release.

use super::announce::say_step;
use super::guards::must_have_verb;
use super::read::must_be_member;
use super::stop::end_command;
use crate::board::owners;
use crate::team::hooks::{self, TeamHooks};
use crate::{Context, OpsError, now};
use model::board::Board;
use model::board::task::{Task, TaskAction, TaskState};
use model::id::{MemberName, TaskId};
use model::team::event::{EventKind, Note};
use store::{ClaimKind, StoreError, TaskStep, TeamStore};
use sys::failpoint;

/// The tasks that each member held, and the board before they were released.
pub(crate) type Released = (Vec<Result<Vec<Task>, OpsError>>, Board);

/// Claims a task for a member. With `busy_check`, it must have no other task in progress.
pub fn claim(
    team: &TeamStore,
    id: TaskId,
    who: &MemberName,
    busy_check: bool,
) -> Result<Task, OpsError> {
    let task = team.claim(id, who, busy_check, now())?;
    team.record_claim(&task, who)?;
    Ok(task)
}

/// Claims the next task of this kind for a member of this role, if there is one.
pub fn claim_next(
    team: &TeamStore,
    who: &MemberName,
    role: Option<&str>,
    kind: ClaimKind,
) -> Result<Option<Task>, OpsError> {
    let task = team.claim_next(who, role, kind, now())?;
    if let Some(task) = &task {
        // The task is claimed. A claim that is not in the journal is added by the lead.
        let _ = team.record_claim(task, who);
    }
    Ok(task)
}

/// Performs an action that runs no hooks. Returns the task and those that it unblocked, whose
/// owners are notified.
pub fn end(
    team: &TeamStore,
    id: TaskId,
    who: &MemberName,
    step: &TaskStep,
) -> Result<(Task, Vec<TaskId>), OpsError> {
    // The outcome of a command comes from the worker that has run it.
    let before = match step.outcome {
        None => Some(team.task_before(id, who, step)?),
        Some(_) => None,
    };
    carry_out(team, before, id, who, step)
}

/// Performs an action whose owner learns of it by another message.
pub(crate) fn end_without_notice(
    team: &TeamStore,
    id: TaskId,
    who: &MemberName,
    step: &TaskStep,
) -> Result<(), OpsError> {
    let (task, freed) = team.step_task(id, who, step, now())?;
    say_step(team, &task, who, step.action, &freed)
}

/// Performs an action. `before` is the task that the action was checked on; `None` for the end of a
/// command.
fn carry_out(
    team: &TeamStore,
    before: Option<Task>,
    id: TaskId,
    who: &MemberName,
    step: &TaskStep,
) -> Result<(Task, Vec<TaskId>), OpsError> {
    if before.is_some() && !step.action.to().is_running() {
        end_command(team, id, who)?;
    }
    let (task, freed) = team.step_task(id, who, step, now())?;
    failpoint::hit("task.ended");
    say_step(team, &task, who, step.action, &freed)?;
    if let Some(before) = before {
        owners::notify_owner_of_change(team, &before, Some(&task), who, step.reason.as_deref())?;
    }
    Ok((task, freed))
}

/// A task after `update` or `complete`.
#[derive(Debug)]
pub struct Completed {
    pub task: Task,
    /// Tasks that can start now.
    pub freed: Vec<TaskId>,
    /// Problems with hooks, for the user.
    pub complaints: Vec<String>,
}

/// Performs an action of `who` on a task. One that completes it happens only if the hooks
/// allow it.
///
/// # Errors
/// [`OpsError::HookRefused`], with the hook's stderr, if a hook rejects it. No hook runs for an
/// action that could not be performed anyway.
pub fn act(
    ctx: &Context,
    team: &TeamStore,
    hooks: &TeamHooks,
    id: TaskId,
    who: &MemberName,
    step: &TaskStep,
) -> Result<Completed, OpsError> {
    let (task, complaints) = must_be_allowed(ctx, team, hooks, id, who, step)?;
    let before = Some(task).filter(|_| step.outcome.is_none());
    let (task, freed) = carry_out(team, before, id, who, step)?;
    Ok(Completed { task, freed, complaints })
}

/// Checks that `who` may perform an action on a task now, and that the hooks allow it. Returns the
/// task, and the problems with hooks.
///
/// # Errors
/// As [`act`].
pub(crate) fn must_be_allowed(
    ctx: &Context,
    team: &TeamStore,
    hooks: &TeamHooks,
    id: TaskId,
    who: &MemberName,
    step: &TaskStep,
) -> Result<(Task, Vec<String>), OpsError> {
    if matches!(step.action, TaskAction::Review | TaskAction::Approve | TaskAction::Reject) {
        must_have_verb(team, step.action.as_str())?;
    }
    let task = team.task_before(id, who, step)?;
    let complaints = match step.action.to() {
        TaskState::Completed => hooks::before_completion(ctx, team, hooks, &task, who)?,
        _ => Vec::new(),
    };
    Ok((task, complaints))
}

/// Releases the tasks of a name that is not on the team and that the lead starts no member for.
pub fn release_absent(team: &TeamStore, who: &MemberName) -> Result<(), OpsError> {
    match must_be_member(team, who) {
        Err(OpsError::Store(StoreError::NoSuchMember { .. })) => release(team, who).map(drop),
        done => done,
    }
}

/// Releases the tasks of a member that hangs, after a worker has ended their command. The member is
/// notified.
pub fn release_hanging(team: &TeamStore, who: &MemberName) -> Result<(), OpsError> {
    let lead = MemberName::lead();
    let board = team.board()?;
    let running = board.work().filter(|task| task.state.is_running() && task.is_owned_by(who));
    running.map(|task| task.id).try_for_each(|id| end_command(team, id, &lead))?;
    let (released, before) = release(team, who)?;
    for task in &released {
        if let Some(before) = before.tasks.get(&task.id) {
            let reason = Some("no sign of life");
            owners::notify_owner_of_change(team, before, Some(task), &lead, reason)?;
        }
    }
    Ok(())
}

/// Releases what a member held when it left. Returns that, and the board as it was before.
pub fn release(team: &TeamStore, who: &MemberName) -> Result<(Vec<Task>, Board), OpsError> {
    let (released, board) = release_all(team, &[who])?;
    let released: Result<Vec<_>, _> = released.into_iter().collect();
    Ok((released?.concat(), board))
}

/// Releases what these members held when they left. Returns that of each, and the board as it was
/// before.
pub(crate) fn release_all(team: &TeamStore, members: &[&MemberName]) -> Result<Released, OpsError> {
    let (released, board) = team.release_tasks_of(members)?;
    failpoint::hit("task.released");
    let mut notes = Vec::new();
    for (who, tasks) in members.iter().zip(&released) {
        for task in tasks.iter().flatten() {
            notes.push(Note::of_task(EventKind::TaskReleased, task).member(who));
        }
    }
    team.record_all(notes)?;
    Ok((released.into_iter().map(|tasks| Ok(tasks?)).collect(), board))
}
