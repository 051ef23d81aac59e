//! The owner of a task of which nothing is heard is reminded of it; when that was in vain, what the team wants is done. Each
//! time it is written down first, so that a lead that dies in between says nothing twice.

use super::announce::counted;
use super::error::OpsError;
use super::{send, task};
use crate::model::event::{EventKind, Note};
use crate::model::followup::{Escalation, Reminded, Step};
use crate::model::id::{Incarnation, MemberName, TaskId};
use crate::model::protocol::Message;
use crate::model::task::{Task, TaskState};
use crate::model::text;
use crate::store::{Ending, TeamStore};

/// How much of a subject is repeated.
const SUBJECT: usize = 120;

/// Reminds the run of its task, or escalates. Of a task that is over meanwhile, or somebody else's, nothing is said.
///
/// # Errors
/// What cannot be written.
pub(crate) fn remind(
    team: &TeamStore,
    name: &MemberName,
    incarnation: &Incarnation,
    id: TaskId,
    step: Step,
) -> Result<(), OpsError> {
    let task = task::get(team, id)?;
    if task.state != TaskState::InProgress || !task.is_owned_by(name) {
        return Ok(());
    }
    let reminded = Some(Reminded { task: id, times: step.times() });
    if team.change_record(name, incarnation, |record| record.reminded = reminded)?.is_none() {
        return Ok(());
    }
    let kind = if let Step::Escalation { .. } = step { EventKind::Escalated } else { EventKind::Reminded };
    let note = counted(Note::of_task(kind, &task).member(name), step);
    match step {
        Step::First | Step::Reminder { .. } => {
            let event = team.record(Note { id: None, ..note })?.id;
            say(team, name, reminder(&task, step), event)
        }
        Step::Escalation { after, mode } => {
            let event = team.record(Note { id: None, ..note.with("mode", mode.as_str()) })?.id;
            escalate(team, name, &task, after, mode, event)
        }
    }
}

/// Something was heard: the reminders begin anew.
pub(crate) fn heard(team: &TeamStore, name: &MemberName, incarnation: &Incarnation) -> Result<(), OpsError> {
    team.change_record(name, incarnation, |record| record.reminded = None)?;
    Ok(())
}

fn escalate(
    team: &TeamStore,
    name: &MemberName,
    task: &Task,
    after: u32,
    mode: Escalation,
    event: String,
) -> Result<(), OpsError> {
    let what = format!("{} is in progress, and nothing is heard of it (reminders: {after})", called(task));
    match mode {
        Escalation::NotifyLead => {
            let advice = format!(
                "write to {name}, look at it with `phalanx peek {name}`, or give the task to somebody else"
            );
            say(team, &MemberName::lead(), format!("{name}: {what}: {advice}."), event)
        }
        Escalation::FailTask => {
            let lead = MemberName::lead();
            task::end(team, task.id, &lead, Ending::Failed, None)?;
            say(team, name, format!("{what}: it is failed now. Stop working on it."), event.clone())?;
            say(team, &lead, format!("{name}: {what}: it is failed now."), event)
        }
    }
}

fn reminder(task: &Task, step: Step) -> String {
    let nth = match step {
        Step::Reminder { nth, of } => format!("Reminder {nth} of {of}: "),
        Step::First | Step::Escalation { .. } => String::new(),
    };
    let id = task.id;
    format!(
        "{nth}{} is in progress and yours, and nothing is heard of it. Say how it stands with `phalanx send team-lead TEXT`, or end \
         it with `phalanx task complete {id}`.",
        called(task)
    )
}

fn called(task: &Task) -> String {
    format!("task #{} ({})", task.id, text::short(&task.subject, SUBJECT))
}

fn say(team: &TeamStore, to: &MemberName, text: String, event: String) -> Result<(), OpsError> {
    let system = MemberName::existing("system")?;
    send::say(team, &system, to, &Message::Text(text), Some(event))?;
    Ok(())
}
