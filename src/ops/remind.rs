//! The owner of a task of which nothing is heard is reminded of it; when that was in vain, what the team wants is done. What is
//! said is written down first: a lead that dies in between leaves one reminder out, and no lead says one twice.

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
use crate::sys::rand;

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
    if let Step::Escalation { mode: Escalation::FailTask, .. } = step {
        // Before it is noted: whoever finds it undone does it, and whoever finds it done does nothing.
        task::end(team, id, &MemberName::lead(), Ending::Failed, None)?;
    }
    let reminded = Some(Reminded { task: id, times: step.times() });
    if team.change_record(name, incarnation, |record| record.reminded = reminded)?.is_none() {
        return Ok(());
    }
    let event = rand::uuid();
    for (to, text) in words(name, &task, step) {
        let system = MemberName::existing("system")?;
        send::say(team, &system, &to, &Message::Text(text), Some(event.clone()))?;
    }
    let note = match step {
        Step::First | Step::Reminder { .. } => Note::of(EventKind::Reminded),
        Step::Escalation { mode, .. } => Note::of(EventKind::Escalated).with("mode", mode.as_str()),
    };
    let note = note.task(id).member(name).with("subject", task.subject.as_str());
    team.record(counted(Note { id: Some(event), cause: task.extra.event, ..note }, step))?;
    Ok(())
}

/// Something was heard: the reminders begin anew.
pub(crate) fn heard(
    team: &TeamStore,
    name: &MemberName,
    incarnation: &Incarnation,
) -> Result<(), OpsError> {
    team.change_record(name, incarnation, |record| record.reminded = None)?;
    Ok(())
}

/// Who is told what.
fn words(name: &MemberName, task: &Task, step: Step) -> Vec<(MemberName, String)> {
    let id = task.id;
    let called = format!("task #{id} ({})", text::short(&task.subject, SUBJECT));
    match step {
        Step::First => Vec::new(),
        Step::Reminder { nth, of } => {
            let text = format!(
                "Reminder {nth} of {of}: {called} is in progress and assigned to you, but has had no update. Report its status with \
                 `phalanx send team-lead TEXT`, or complete it with `phalanx task complete {id}`."
            );
            vec![(name.clone(), text)]
        }
        Step::Escalation { after, mode } => {
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
