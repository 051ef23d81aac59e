//! Sends the reminders that members have set on tasks, to the lead. Each step is persisted before
//! it is sent: a lead that crashes in between skips one reminder, and no lead sends one twice.

use serde_json::{Value, json};

use super::announce::task_note;
use crate::board::owners::SUBJECT;
use crate::board::task;
use crate::mail::send;
use crate::{OpsError, Post, now};
use model::board::task::{Task, TaskAction};
use model::id::{MemberName, TaskId};
use model::team::event::Note;
use model::team::followup::{Escalation, NotificationStep, TaskReminder};
use model::text;
use store::{TaskStep, TeamStore};
use sys::rand;

/// A reminder that was sent, for the `notify` command.
#[derive(Debug)]
pub struct SentReminder {
    /// The member that has set the reminder.
    pub by: MemberName,
    pub subject: Value,
}

/// Sends the step of the task's reminder that is due, if there is one, or escalates.
///
/// # Errors
/// A task, mailbox or journal that cannot be read or written.
pub fn send_reminder(team: &TeamStore, id: TaskId) -> Result<Option<SentReminder>, OpsError> {
    let Some(task) = team.task(id)?.filter(|task| !task.state.is_over()) else { return Ok(None) };
    let Some(reminder) = task.extra.reminder.clone() else { return Ok(None) };
    let due = match reminder.due(now()) {
        Some(step @ NotificationStep::Escalation { mode: Escalation::FailTask, .. }) => {
            // The end of the task removes the reminder.
            let reason = Some("a reminder about it was not answered".to_owned());
            let fail = TaskStep { reason, ..TaskStep::of(TaskAction::Fail) };
            task::end(team, id, &MemberName::lead(), &fail)?;
            Some(step)
        }
        Some(_) => team.count_reminder(id, now())?,
        None => None,
    };
    let Some(step) = due else { return Ok(None) };
    let event = rand::uuid();
    let text = compose_message(&task, &reminder, step);
    for to in recipients(team, &task, step)? {
        Post::notice(&to, text.clone()).because(Some(event.clone())).send(team)?;
    }
    let by = MemberName::existing(&reminder.by).unwrap_or_else(|_| MemberName::lead());
    let note = task_note(&task, &by, step).with("text", reminder.text.as_str());
    team.record(Note { id: Some(event), cause: task.extra.event.clone(), ..note })?;
    let subject = json!({
        "team": team.name(), "task": id, "subject": task.subject, "from": by, "text": reminder.text,
        "reminder": step.times(),
    });
    Ok(Some(SentReminder { by, subject }))
}

/// Returns the lead, and the owner of a task that the step has failed.
fn recipients(
    team: &TeamStore,
    task: &Task,
    step: NotificationStep,
) -> Result<Vec<MemberName>, OpsError> {
    let mut recipients = vec![MemberName::lead()];
    let fails = matches!(step, NotificationStep::Escalation { mode: Escalation::FailTask, .. });
    let owner = task.owner_member();
    if let Some(owner) = owner.filter(|owner| fails && !owner.is_lead())
        && send::can_be_told(team, &owner)?
    {
        recipients.push(owner);
    }
    Ok(recipients)
}

fn compose_message(task: &Task, reminder: &TaskReminder, step: NotificationStep) -> String {
    let TaskReminder { text, by, .. } = reminder;
    let id = task.id;
    let called = format!("task #{id} ({})", text::short(&task.subject, SUBJECT));
    match step {
        NotificationStep::First => String::new(),
        NotificationStep::Reminder { nth, of } => format!(
            "Reminder {nth} of {of} about {called}, set by {by}: {text}\n\
             `phalanx task unremind {id}` ends these reminders."
        ),
        NotificationStep::Escalation { after, mode: Escalation::NotifyLead } => format!(
            "{called} still waits for a decision after {after} reminders set by {by}: {text}\n\
             There will be no further reminder."
        ),
        NotificationStep::Escalation { after, mode: Escalation::FailTask } => format!(
            "{called} has been marked as failed, because nothing was decided after {after} reminders set by {by}: {text}"
        ),
    }
}
