//! Reminds the owner of a task that has had no update, and then escalates as the team's settings
//! say. Each step is persisted before it is sent: a lead that crashes in between skips one
//! reminder, and no lead sends one twice.

use super::announce::counted;
use crate::model::event::{EventKind, Note};
use crate::model::followup::{Escalation, NotificationStep, Reminded};
use crate::model::id::{Incarnation, MemberName, TaskId};
use crate::model::protocol::Message;
use crate::model::task::{Task, TaskAction, TaskState};
use crate::model::text;
use crate::ops::{OpsError, send, task};
use crate::store::{TaskStep, TeamStore};
use crate::sys::rand;

/// Characters of a task's subject that a reminder quotes.
const SUBJECT: usize = 120;

/// Reminds the member of its task, or escalates. Has no effect if the task is over or has another
/// owner.
///
/// # Errors
/// A board, record, mailbox or journal that cannot be read or written.
pub(crate) fn remind(
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
    if let NotificationStep::Escalation { mode: Escalation::FailTask, .. } = step {
        // Before the step is persisted: after a crash in between, the next lead finds the task
        // failed.
        let step =
            TaskStep { reason: Some("no update".to_owned()), ..TaskStep::of(TaskAction::Fail) };
        task::end(team, id, &MemberName::lead(), &step)?;
    }
    let reminded = Some(Reminded { task: id, times: step.times() });
    if team.change_record(name, incarnation, |record| record.reminded = reminded)?.is_none() {
        return Ok(());
    }
    let event = rand::uuid();
    for (to, text) in compose_messages(name, &task, step) {
        let system = MemberName::existing("system")?;
        send::say(team, &system, &to, &Message::Text(text), Some(event.clone()))?;
    }
    let note = match step {
        NotificationStep::First | NotificationStep::Reminder { .. } => {
            Note::of(EventKind::Reminded)
        }
        NotificationStep::Escalation { mode, .. } => {
            Note::of(EventKind::Escalated).with("mode", mode.as_str())
        }
    };
    let note = note.task(id).member(name).with("subject", task.subject.as_str());
    team.record(counted(Note { id: Some(event), cause: task.extra.event, ..note }, step))?;
    Ok(())
}

/// Resets the reminders after an update.
pub(crate) fn reset_reminders(
    team: &TeamStore,
    name: &MemberName,
    incarnation: &Incarnation,
) -> Result<(), OpsError> {
    team.change_record(name, incarnation, |record| record.reminded = None)?;
    Ok(())
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
            let reminders = if after == 1 { "reminder" } else { "reminders" };
            let what =
                format!("{called} is in progress, but has had no update after {after} {reminders}");
            match mode {
                Escalation::NotifyLead => vec![(
                    MemberName::lead(),
                    format!(
                        "{name}: {what}. Send {name} a message, check its screen with `phalanx peek {name}`, or reassign the task."
                    ),
                )],
                Escalation::FailTask => vec![
                    (
                        name.clone(),
                        format!("{what}. It has been marked as failed. Stop working on it."),
                    ),
                    (MemberName::lead(), format!("{name}: {what}. It has been marked as failed.")),
                ],
            }
        }
    }
}
