//! Reminds the owner of a task that has had no update, and then escalates as the team's settings
//! say. Each reminder is persisted before it is sent: a lead that crashes in between skips one
//! reminder, and no lead sends one twice. A task that becomes stale is announced once: the next
//! lead completes what is missing.

use super::announce::task_note;
use crate::board::owners::SUBJECT;
use crate::board::task;
use crate::{OpsError, Post, now};
use model::board::task::{Task, TaskAction, TaskState};
use model::id::{Incarnation, MemberName, TaskId};
use model::team::event::{Event, EventKind, Note};
use model::team::followup::{Escalation, NotificationStep, Reminded};
use model::text;
use store::{TaskStep, TeamStore};
use sys::{failpoint, rand};

/// Reminds the member of its task, or escalates. Has no effect if the task is over or has another
/// owner.
///
/// # Errors
/// A board, record, mailbox or journal that cannot be read or written.
pub fn remind(
    team: &TeamStore,
    name: &MemberName,
    incarnation: &Incarnation,
    id: TaskId,
    step: NotificationStep,
) -> Result<(), OpsError> {
    let task = task::get(team, id)?;
    if task.state != TaskState::InProgress || !task.is_owned_by(name) {
        return Ok(());
    }
    match step {
        NotificationStep::First | NotificationStep::Reminder { .. } => {}
        NotificationStep::Escalation { after, mode: Escalation::NotifyLead } => {
            let is_current = team.member_record(name)?.is_some_and(|record| record.is(incarnation));
            return if is_current { stall(team, name, id, after) } else { Ok(()) };
        }
        NotificationStep::Escalation { after, mode: Escalation::FailTask } => {
            // Before the step is persisted: after a crash in between, the next lead finds the task
            // failed. The owner is told by this.
            let reason = Some(format!("no update{}", after_reminders(after)));
            let step = TaskStep { reason, ..TaskStep::of(TaskAction::Fail) };
            task::end(team, id, &MemberName::lead(), &step)?;
        }
    }
    let reminded = Some(Reminded { task: id, times: step.times() });
    if team.change_record(name, incarnation, |record| record.reminded = reminded)?.is_none() {
        return Ok(());
    }
    let event = rand::uuid();
    for (to, text) in compose_messages(name, &task, step) {
        Post::notice(&to, text).because(Some(event.clone())).send(team)?;
    }
    let note = task_note(&task, name, step);
    team.record(Note { id: Some(event), cause: task.extra.event, ..note })?;
    Ok(())
}

/// Makes the task stale, and announces that.
fn stall(team: &TeamStore, owner: &MemberName, id: TaskId, after: u32) -> Result<(), OpsError> {
    let step = TaskStep::of(TaskAction::Stall);
    let (task, _) = team.step_task(id, &MemberName::lead(), &step, now())?;
    failpoint::hit("task.stalled");
    announce_stall(team, owner, &task, after)
}

/// Notifies the lead that the task is stale, journals it, and resets the reminders of the owner.
/// The message has the id of the task's event. The journal comes last: [`settle_stale`] repeats the
/// rest where it lacks the event.
fn announce_stall(
    team: &TeamStore,
    owner: &MemberName,
    task: &Task,
    after: u32,
) -> Result<(), OpsError> {
    let lead = MemberName::lead();
    let step = NotificationStep::Escalation { after, mode: Escalation::NotifyLead };
    let Some(event) = &task.extra.event else { return Ok(()) };
    if team.mailbox(&lead).find(event)?.is_none() {
        for (to, text) in compose_messages(owner, task, step) {
            Post::notice(&to, text).for_event(event).send(team)?;
        }
    }
    failpoint::hit("task.stall_said");
    if let Some(record) = team.member_record(owner)? {
        reset_reminders(team, owner, &record.incarnation)?;
    }
    let escalated = task_note(task, owner, step).because(event);
    let stale = Note::of_task(EventKind::TaskStale, task).member(owner).with("by", lead.as_str());
    team.record_all(vec![stale, escalated])?;
    Ok(())
}

/// Completes what an earlier lead left undone about a stale task: announces it, or resumes it if
/// its owner has given a sign of life since.
///
/// # Errors
/// A task, mailbox or journal that cannot be read or written.
pub(crate) fn settle_stale(team: &TeamStore, task: &Task) -> Result<(), OpsError> {
    let owner = task.owner_member();
    let (Some(since), Some(owner)) = (task.extra.stalled_at, owner) else { return Ok(()) };
    let is_announced = |event: &Event| Some(&event.id) == task.extra.event.as_ref();
    if !team.task_events(task.id)?.iter().any(is_announced) {
        let followup = team.settings()?.and_then(|settings| settings.followup);
        let after = followup.map_or(0, |followup| followup.max_reminders);
        announce_stall(team, &owner, task, after)?;
    }
    let is_sign = |event: &Event| {
        event.at > since && event.sign_of_life().is_some_and(|member| task.is_owned_by(&member))
    };
    if team.events_since(since)?.iter().any(is_sign) {
        task::resume(team, task.clone(), &owner)?;
    }
    Ok(())
}

/// Resets the reminders after an update.
pub fn reset_reminders(
    team: &TeamStore,
    name: &MemberName,
    incarnation: &Incarnation,
) -> Result<(), OpsError> {
    team.change_record(name, incarnation, |record| record.reminded = None)?;
    Ok(())
}

fn after_reminders(count: u32) -> String {
    match count {
        0 => String::new(),
        1 => " after 1 reminder".to_owned(),
        _ => format!(" after {count} reminders"),
    }
}

/// Returns the recipients of a step and their messages.
fn compose_messages(
    name: &MemberName,
    task: &Task,
    step: NotificationStep,
) -> Vec<(MemberName, String)> {
    let id = task.id;
    let called = format!("task #{id} ({})", text::short(&task.subject, SUBJECT));
    match step {
        NotificationStep::First => Vec::new(),
        NotificationStep::Reminder { nth, of } => {
            let text = format!(
                "Reminder {nth} of {of}: {called} is in progress and assigned to you, but has had no update. Report its status with \
                 `phalanx send team-lead TEXT`, or complete it with `phalanx task complete {id}`."
            );
            vec![(name.clone(), text)]
        }
        NotificationStep::Escalation { after, mode } => {
            let after = after_reminders(after);
            let what = format!("{called} is in progress, but has had no update{after}");
            match mode {
                Escalation::NotifyLead => vec![(
                    MemberName::lead(),
                    format!(
                        "{name}: {what}. The task is stale now, until {name} says something. Send {name} a message, check its screen \
                         with `phalanx peek {name}`, or make the task free for others with `phalanx task retry {id}`."
                    ),
                )],
                Escalation::FailTask => vec![(
                    MemberName::lead(),
                    format!("{name}: {what}. It has been marked as failed."),
                )],
            }
        }
    }
}
