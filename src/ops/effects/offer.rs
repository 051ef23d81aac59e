//! Notifies idle members of tasks that they could claim, and the lead of tasks that each of them has given back.

use std::collections::BTreeMap;

use crate::board::owners::SUBJECT;
use crate::mail::send;
use crate::{OpsError, Post};
use model::board::task::{Task, TaskState};
use model::id::{Incarnation, MemberName, TaskId};
use model::mail::protocol::Message;
use model::team::event::EventKind;
use model::{digest, text, wire};
use store::TeamStore;

/// Maximum length of a reason, in characters.
const REASON: usize = 200;

/// Notifies the member of the task, unless it has been claimed. A lead that crashed may have
/// notified this run, so the id of the message does not change until the task does.
///
/// # Errors
/// A task or mailbox that cannot be read or written.
pub fn send(
    team: &TeamStore,
    id: TaskId,
    name: &MemberName,
    incarnation: &Incarnation,
) -> Result<(), OpsError> {
    let Some(task) = team.task(id)?.filter(is_free) else { return Ok(()) };
    if !send::can_be_told(team, name)? {
        return Ok(());
    }
    let text = format!(
        "Task #{id} \"{}\" is free, and you are idle. If it suits you, claim it (`phalanx task \
         claim {id}`) and begin. If not, another member is notified.",
        text::short(&task.subject, SUBJECT)
    );
    let event = task.extra.event.clone();
    let freed = event.clone().unwrap_or_default();
    let msg_id = digest::hash(&[
        b"offer",
        id.to_string().as_bytes(),
        freed.as_bytes(),
        incarnation.as_str().as_bytes(),
    ]);
    let post = Post::new(&MemberName::lead(), name, Message::Text(text));
    post.because(event).with_id(msg_id).send_once(team)
}

/// Notifies the lead, once for each change of the task, that each member that could claim it has
/// given it back, with the last reason of each. No effect if it has been claimed.
///
/// # Errors
/// A task, its log or a mailbox that cannot be read or written.
pub fn report_refused(team: &TeamStore, id: TaskId) -> Result<(), OpsError> {
    let Some(task) = team.task(id)?.filter(is_free) else { return Ok(()) };
    let returns = team.task_events(id)?.into_iter();
    let returns = returns.filter(|event| event.event == EventKind::TaskReleased);
    let reasons: BTreeMap<MemberName, String> = returns
        .filter_map(|event| {
            let reason =
                wire::text(&event.detail, "reason").unwrap_or_else(|| "no reason".to_owned());
            Some((event.member?, text::short(&reason, REASON)))
        })
        .collect();
    let reasons: Vec<String> =
        reasons.iter().map(|(name, reason)| format!("`{name}`: {reason}\n")).collect();
    let text = format!(
        "Each member that could claim task #{id} \"{}\" has given it back, and is not notified of it \
         again.\n{}Change it (`phalanx task update {id} --description TEXT`), which offers it \
         anew, assign it (`phalanx task assign {id} NAME`), or cancel it.",
        text::short(&task.subject, SUBJECT),
        reasons.concat()
    );
    let event = task.extra.event.clone().unwrap_or_default();
    let msg_id = digest::hash(&[b"refused", id.to_string().as_bytes(), event.as_bytes()]);
    Post::notice(&MemberName::lead(), text)
        .because(task.extra.event)
        .with_id(msg_id)
        .send_once(team)
}

fn is_free(task: &Task) -> bool {
    task.state == TaskState::Pending && task.owner.is_none()
}
