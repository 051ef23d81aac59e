//! Notifies the owner of a task that it was assigned (TK-01), and that it can start because nothing
//! blocks it any longer (TK-04). A member is not notified of its own actions.

use super::context::now;
use super::error::OpsError;
use super::send::{can_be_told, reads_mail, say, say_all, say_once_as};
use crate::model::board::Board;
use crate::model::id::{MemberName, TaskId};
use crate::model::protocol::{Message, TaskAssignment};
use crate::model::task::{Task, TaskState};
use crate::store::TeamStore;
use crate::sys::failpoint;

/// Returns true if a new owner must be notified: if it did not assign the task itself, is on the
/// team and reads mail. A member that is still to start is notified at its start.
pub(super) fn must_be_notified(
    team: &TeamStore,
    by: &MemberName,
    owner: &MemberName,
) -> Result<bool, OpsError> {
    Ok(owner != by && can_be_told(team, owner)?)
}

/// Notifies the new owner of a task. The message has the id of the task's event, so that recovery
/// after a crash can tell if it was sent.
pub(super) fn notify_owner(team: &TeamStore, task: &Task, by: &MemberName) -> Result<(), OpsError> {
    let (Some(owner), Some(event)) = (&task.owner, &task.extra.event) else { return Ok(()) };
    let owner = MemberName::existing(owner)?;
    say_all(team, by, &owner, &[(assignment(task, by), event)])?;
    failpoint::hit("assign.said");
    Ok(team.mark_owner_notified(task.id)?)
}

/// Sends the notifications that crashed processes did not send. Returns the tasks.
pub(super) fn notify_owners(team: &TeamStore, board: &Board) -> Result<Vec<TaskId>, OpsError> {
    let roster = team.team()?;
    let mut notified = Vec::new();
    for task in board.tasks.values().filter(|task| task.extra.untold) {
        let owner = roster.members.iter().find(|member| task.is_owned_by(&member.name));
        let Some(owner) = owner.filter(|_| task.state == TaskState::Pending) else { continue };
        let mailbox = team.mailbox(&owner.name);
        let sent =
            task.extra.event.as_ref().map(|event| mailbox.find(event)).transpose()?.flatten();
        if sent.is_some() {
            team.mark_owner_notified(task.id)?;
        } else {
            notify_owner(team, task, &MemberName::lead())?;
            notified.push(task.id);
        }
    }
    Ok(notified)
}

/// Notifies members that start of the tasks that they own. Their mailboxes exist. An earlier run
/// may have been notified, but this one was not.
pub(super) fn catch_up(team: &TeamStore, names: &[&MemberName]) -> Result<(), OpsError> {
    let (board, lead) = (team.board()?, MemberName::lead());
    let owned = board.tasks.values().filter(|task| task.owner.is_some() && !task.state.is_over());
    for task in owned {
        for name in names.iter().filter(|name| task.is_owned_by(name)) {
            if reads_mail(team, name)? {
                say(team, &lead, name, &assignment(task, &lead), task.extra.event.clone())?;
            }
            if task.extra.untold {
                team.mark_owner_notified(task.id)?;
            }
        }
    }
    Ok(())
}

/// Notifies the former owner of a stale task that it lost the task.
pub(super) fn notify_former(
    team: &TeamStore,
    before: &Task,
    task: &Task,
    by: &MemberName,
) -> Result<(), OpsError> {
    if before.state != TaskState::Stale || before.owner == task.owner {
        return Ok(());
    }
    let Some(owner) = before.owner_member().filter(|owner| owner != by) else { return Ok(()) };
    if !can_be_told(team, &owner)? {
        return Ok(());
    }
    let text = format!(
        "Task #{} \"{}\" was stale and is no longer assigned to you. Stop working on it.",
        task.id, task.subject
    );
    say(team, by, &owner, &Message::Text(text), task.extra.event.clone())?;
    Ok(())
}

/// Notifies the owners of these tasks that nothing blocks them any longer. With the `event` that
/// freed them, an owner that was notified of it before is not notified again.
pub(super) fn freed(
    team: &TeamStore,
    by: &MemberName,
    tasks: &[TaskId],
    event: Option<&str>,
) -> Result<(), OpsError> {
    for id in tasks {
        let Some(task) = team.task(*id)?.filter(|task| task.state == TaskState::Pending) else {
            continue;
        };
        let Some(owner) = task.owner_member().filter(|owner| owner != by) else { continue };
        // An owner that has left is not notified, since its tasks are released.
        if !can_be_told(team, &owner)? {
            continue;
        }
        let text = format!(
            "Task #{} \"{}\" is assigned to you and no longer blocked: you can start it now.",
            task.id, task.subject
        );
        let (message, cause) = (Message::Text(text), task.extra.event.clone());
        match event {
            None => drop(say(team, by, &owner, &message, cause)?),
            Some(event) => say_once_as(team, by, &owner, &message, cause, format!("{event}-{id}"))?,
        }
    }
    Ok(())
}

fn assignment(task: &Task, by: &MemberName) -> Message {
    Message::TaskAssignment(TaskAssignment {
        task_id: task.id.to_string(),
        subject: Some(task.subject.clone()),
        description: Some(task.description.clone()),
        assigned_by: Some(by.to_string()),
        timestamp: Some(now().iso()),
    })
}
