//! What the owner of a task is told, by whatever way the task became its own: once that it has it (TK-01), and once that
//! it can begin when what blocked it is over (TK-04). Nobody is told of its own doing.

use super::context::now;
use super::error::OpsError;
use super::send::{reads_mail, say, say_all};
use crate::model::id::{MemberName, TaskId};
use crate::model::protocol::{Message, TaskAssignment};
use crate::model::task::{Task, TaskState};
use crate::store::TeamStore;
use crate::sys::failpoint;

/// Whether a new owner of a task is to be told: not of its own doing, and only if it reads what it is told. One that is
/// still to come is told when it starts.
pub(super) fn hears(
    team: &TeamStore,
    by: &MemberName,
    owner: &MemberName,
) -> Result<bool, OpsError> {
    Ok(owner != by && team.team()?.member(owner).is_some() && reads_mail(team, owner)?)
}

/// Tells the new owner of a task. The message has the id of the task's event: whoever comes after one that died here sees
/// by it whether it was said.
pub(super) fn tell(team: &TeamStore, task: &Task, by: &MemberName) -> Result<(), OpsError> {
    let (Some(owner), Some(event)) = (&task.owner, &task.extra.event) else { return Ok(()) };
    let owner = MemberName::existing(owner)?;
    say_all(team, by, &owner, &[(news(task, by), event)])?;
    failpoint::hit("assign.said");
    Ok(team.owner_is_told(task.id)?)
}

/// Tells the owners that whoever named them did not live to tell; gives their tasks.
pub(super) fn tell_all(team: &TeamStore) -> Result<Vec<TaskId>, OpsError> {
    let roster = team.team()?;
    let mut told = Vec::new();
    for task in team.board()?.tasks.values().filter(|task| task.extra.untold) {
        let owner = roster.members.iter().find(|member| task.is_owned_by(&member.name));
        let Some(owner) = owner.filter(|_| task.state == TaskState::Pending) else { continue };
        let mailbox = team.mailbox(&owner.name);
        let said =
            task.extra.event.as_ref().map(|event| mailbox.find(event)).transpose()?.flatten();
        if said.is_some() {
            team.owner_is_told(task.id)?;
        } else {
            tell(team, task, &MemberName::lead())?;
            told.push(task.id);
        }
    }
    Ok(told)
}

/// Tells members that start of what is theirs; their mailboxes exist. An earlier run may have been told: this one was not.
pub(super) fn catch_up(team: &TeamStore, names: &[&MemberName]) -> Result<(), OpsError> {
    let (board, lead) = (team.board()?, MemberName::lead());
    let owned = board.tasks.values().filter(|task| task.owner.is_some() && !task.state.is_over());
    for task in owned {
        for name in names.iter().filter(|name| task.is_owned_by(name)) {
            if reads_mail(team, name)? {
                say(team, &lead, name, &news(task, &lead), task.extra.event.clone())?;
            }
            if task.extra.untold {
                team.owner_is_told(task.id)?;
            }
        }
    }
    Ok(())
}

/// Tells the owners of tasks that nothing blocks any more.
pub(super) fn freed(team: &TeamStore, by: &MemberName, tasks: &[TaskId]) -> Result<(), OpsError> {
    for id in tasks {
        let Some(task) = team.task(*id)?.filter(|task| task.state == TaskState::Pending) else {
            continue;
        };
        let owner = task.owner.as_deref().and_then(|name| MemberName::existing(name).ok());
        let Some(owner) = owner.filter(|owner| owner != by) else { continue };
        // Whoever has left is told nothing; what it held is given back.
        if team.team()?.member(&owner).is_none() || !reads_mail(team, &owner)? {
            continue;
        }
        let text = format!(
            "Task #{} \"{}\" is assigned to you and no longer blocked: you can start it now.",
            task.id, task.subject
        );
        say(team, by, &owner, &Message::Text(text), task.extra.event.clone())?;
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
