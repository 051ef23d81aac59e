//! Reminders about tasks, which the lead sends to itself and to the person beside it.

use super::guards::must_have_verb;
use super::read::get;
use crate::{Context, OpsError, now};
use model::board::task::Task;
use model::id::TaskId;
use model::team::event::{EventKind, Note};
use model::team::followup::{Escalation, MAX_REMINDERS, TaskReminder};
use store::TeamStore;

/// Maximum length of the text in bytes.
const MAX_TEXT: usize = 4096;

/// A reminder to set. The settings of the team apply where an option is `None`.
#[derive(Debug, Clone)]
pub struct ReminderRequest {
    /// The question to be decided.
    pub text: String,
    /// Time between two reminders, in milliseconds.
    pub every_ms: Option<u64>,
    /// Number of reminders.
    pub max: Option<u32>,
    pub escalation: Option<Escalation>,
}

/// Sets the reminder of an open task. It replaces an earlier one.
///
/// # Errors
/// [`OpsError::Usage`] for an empty or long text, and without an interval;
/// [`StoreError::NotYours`](store::StoreError::NotYours) unless the speaker is the owner,
/// the creator or the lead.
pub fn remind(
    ctx: &Context,
    team: &TeamStore,
    id: TaskId,
    wanted: ReminderRequest,
) -> Result<Task, OpsError> {
    must_have_verb(team, "remind")?;
    let text = wanted.text;
    if text.trim().is_empty() || text.len() > MAX_TEXT {
        let problem =
            format!("the text of a reminder has 1 to {MAX_TEXT} bytes, not {}", text.len());
        return Err(OpsError::Usage { problem, hint: None });
    }
    let who = &ctx.speaker;
    let policy = team.settings()?.and_then(|settings| settings.followup);
    let Some(every_ms) = wanted.every_ms.or(policy.map(|policy| policy.interval_ms)) else {
        let problem = "no time between the reminders was given".to_owned();
        let hint = Some(
            "add `--every MINUTES`, or set `followup_interval_minutes` of the team".to_owned(),
        );
        return Err(OpsError::Usage { problem, hint });
    };
    // A creator may not fail the task of another member.
    let may_fail = who.is_lead() || get(team, id)?.is_owned_by(who);
    let default = policy.filter(|_| may_fail).map(|policy| policy.escalation).unwrap_or_default();
    let max = wanted.max.or(policy.map(|policy| policy.max_reminders)).unwrap_or(MAX_REMINDERS);
    let reminder = TaskReminder {
        text,
        every_ms,
        max,
        escalation: wanted.escalation.unwrap_or(default),
        by: who.to_string(),
        sent: 0,
        last: now(),
    };
    let task = team.set_reminder(id, who, Some(&reminder))?;
    note_change(ctx, team, &task)?;
    Ok(task)
}

/// Removes the reminder of a task. Has no effect if there is none.
///
/// # Errors
/// As [`remind`].
pub fn unremind(ctx: &Context, team: &TeamStore, id: TaskId) -> Result<Task, OpsError> {
    let task = get(team, id)?;
    if task.extra.reminder.is_none() {
        return Ok(task);
    }
    let task = team.set_reminder(id, &ctx.speaker, None)?;
    note_change(ctx, team, &task)?;
    Ok(task)
}

fn note_change(ctx: &Context, team: &TeamStore, task: &Task) -> Result<(), OpsError> {
    let note = Note::of_task(EventKind::TaskUpdated, task).with("by", ctx.speaker.as_str());
    team.record(note.with("fields", vec!["reminder"]))?;
    Ok(())
}
