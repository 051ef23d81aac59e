//! What the owner of a task is told, by whatever way the task became its own: once that it has it (TK-01), and once that
//! it can begin when what blocked it is over (TK-04). Nobody is told of its own doing.

use super::context::now;
use super::error::OpsError;
use super::send::{reads_mail, say};
use crate::model::id::{MemberName, TaskId};
use crate::model::protocol::{Message, TaskAssignment};
use crate::model::task::{Task, TaskState};
use crate::store::TeamStore;

/// Tells `owner` that this task is its own.
pub(super) fn assign(
    team: &TeamStore,
    by: &MemberName,
    task: &Task,
    owner: &MemberName,
) -> Result<(), OpsError> {
    if owner == by || !reads_mail(team, owner)? {
        return Ok(());
    }
    say(team, by, owner, &news(task, by), task.extra.event.clone()).map(drop)
}

/// Tells the owners of tasks that nothing blocks any more.
pub(super) fn freed(team: &TeamStore, by: &MemberName, tasks: &[TaskId]) -> Result<(), OpsError> {
    for id in tasks {
        let Some(task) = team.task(*id)?.filter(|task| task.state == TaskState::Pending) else { continue };
        let owner = task.owner.as_deref().and_then(|name| MemberName::existing(name).ok());
        let Some(owner) = owner.filter(|owner| owner != by) else { continue };
        // Whoever has left is told nothing; what it held is given back.
        if team.team()?.member(&owner).is_none() || !reads_mail(team, &owner)? {
            continue;
        }
        let text = format!(
            "Task #{} \"{}\" is yours and can be begun now: what blocked it is over.",
            task.id, task.subject
        );
        say(team, by, &owner, &Message::Text(text), task.extra.event.clone())?;
    }
    Ok(())
}

/// Tells members that start of what was theirs before they were there; their mailboxes exist.
pub(super) fn catch_up(team: &TeamStore, names: &[&MemberName]) -> Result<(), OpsError> {
    let board = team.board()?;
    let owned = board.tasks.values().filter(|task| task.owner.is_some() && !task.state.is_over());
    for task in owned {
        for name in names.iter().filter(|name| task.is_owned_by(name)) {
            assign(team, &MemberName::lead(), task, name)?;
        }
    }
    Ok(())
}

fn news(task: &Task, by: &MemberName) -> Message {
    Message::TaskAssignment(TaskAssignment {
        task_id: task.id.to_string(),
        subject: Some(task.subject.clone()),
        description: Some(task.description.clone()),
        assigned_by: Some(by.to_string()),
        timestamp: Some(now().iso()),
    })
}
