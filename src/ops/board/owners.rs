//! Notifies the owner of a task that it was assigned (TK-01), and that it can start because nothing
//! blocks it any longer (TK-04), and of each change by another member (TK-12). A member is not
//! notified of its own actions.

use crate::mail::post::Post;
use crate::mail::send::{can_be_told, reads_mail};
use crate::{OpsError, now};
use model::board::Board;
use model::board::task::{Task, TaskState};
use model::id::{MemberName, TaskId};
use model::mail::protocol::{Message, TaskAssignment};
use model::text;
use store::TeamStore;
use sys::failpoint;

/// Characters of a task's subject that a message quotes.
pub const SUBJECT: usize = 120;

/// Returns true if a new owner must be notified: if it did not assign the task itself, is on the
/// team and reads mail. A member that is still to start is notified at its start.
pub(crate) fn must_be_notified(
    team: &TeamStore,
    by: &MemberName,
    owner: &MemberName,
) -> Result<bool, OpsError> {
    Ok(owner != by && can_be_told(team, owner)?)
}

/// Notifies the new owner of a task. The message has the id of the task's event, so that recovery
/// after a crash can tell if it was sent.
pub fn notify_owner(team: &TeamStore, task: &Task, by: &MemberName) -> Result<(), OpsError> {
    let (Some(owner), Some(event)) = (&task.owner, &task.extra.event) else { return Ok(()) };
    let owner = MemberName::existing(owner)?;
    Post::new(by, &owner, assignment(task, by)).for_event(event).send(team)?;
    failpoint::hit("assign.said");
    Ok(team.mark_owner_notified(task.id)?)
}

/// Sends the notifications that crashed processes did not send. Returns the tasks.
pub(crate) fn notify_owners(team: &TeamStore, board: &Board) -> Result<Vec<TaskId>, OpsError> {
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
pub fn catch_up(team: &TeamStore, names: &[&MemberName]) -> Result<(), OpsError> {
    let (board, lead) = (team.board()?, MemberName::lead());
    let is_work = |task: &&Task| !task.state.is_over() && task.awaited_member().is_none();
    let owned = board.tasks.values().filter(|task| task.owner.is_some()).filter(is_work);
    for task in owned {
        for name in names.iter().filter(|name| task.is_owned_by(name)) {
            if reads_mail(team, name)? {
                let post = Post::new(&lead, name, assignment(task, &lead));
                post.because(task.extra.event.clone()).send(team)?;
            }
            if task.extra.untold {
                team.mark_owner_notified(task.id)?;
            }
        }
    }
    Ok(())
}

/// Notifies the owner of a task of a change by another member, in one sentence with the reason. A
/// running turn is interrupted for a task that the owner no longer has to do. `after` is none for a
/// deleted task.
pub(crate) fn notify_owner_of_change(
    team: &TeamStore,
    before: &Task,
    after: Option<&Task>,
    by: &MemberName,
    reason: Option<&str>,
) -> Result<(), OpsError> {
    let Some(owner) = before.owner_member().filter(|owner| owner != by) else { return Ok(()) };
    let is_assigned_again =
        after.is_some_and(|after| after.extra.untold && after.owner == before.owner);
    let Some(words) = change_words(before, after).filter(|_| !is_assigned_again) else {
        return Ok(());
    };
    if !can_be_told(team, &owner)? {
        return Ok(());
    }
    let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    let is_sent_back = before.state == TaskState::InReview;
    let is_over = before.state.is_running() && after.is_none_or(|after| !after.state.is_running());
    let advice = match after.map(|after| after.state) {
        Some(TaskState::InProgress) if is_sent_back => " Work on it again.",
        _ if is_over => " Stop working on it.",
        _ => "",
    };
    let text = format!(
        "Task #{} \"{}\" {words} by {by}{reason}.{advice}",
        before.id,
        text::short(&before.subject, SUBJECT)
    );
    let cause = after.and_then(|after| after.extra.event.clone());
    let post = Post::new(by, &owner, Message::Text(text)).urgent(is_over);
    post.because(cause).send(team).map(drop)
}

/// Returns what has happened to the task, before `by NAME`; `None` for a change of other fields.
fn change_words(before: &Task, after: Option<&Task>) -> Option<&'static str> {
    let Some(after) = after else {
        return (!before.state.is_over()).then_some("was deleted");
    };
    if before.owner != after.owner {
        return (!before.state.is_over()).then_some("was taken from you");
    }
    if before.state == after.state {
        return None;
    }
    Some(match (before.state, after.state) {
        (TaskState::InReview, TaskState::Completed) => "was approved",
        (TaskState::InReview, TaskState::InProgress | TaskState::Pending) => "was sent back to you",
        (_, TaskState::Completed) => "was completed",
        (_, TaskState::Cancelled) => "was cancelled",
        (_, TaskState::Failed) => "was marked as failed",
        (_, TaskState::Pending) => "was made pending again",
        (_, TaskState::InReview) => "was submitted for approval",
        (
            _,
            TaskState::Blocked | TaskState::InProgress | TaskState::Stopping | TaskState::Stale,
        ) => return None,
    })
}

/// Notifies the owners of these tasks that nothing blocks them any longer. With the `event` that
/// freed them, an owner that was notified of it before is not notified again.
pub fn freed(
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
        let post = Post::new(by, &owner, Message::Text(text)).because(task.extra.event.clone());
        match event {
            None => drop(post.send(team)?),
            Some(event) => post.with_id(format!("{event}-{id}")).send_once(team)?,
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
