//! Notifies idle members of tasks that they could claim.

use crate::OpsError;
use crate::Post;
use crate::board::owners::SUBJECT;
use crate::mail::send;
use model::board::task::{Task, TaskState};
use model::digest;
use model::id::{Incarnation, MemberName, TaskId};
use model::mail::protocol::Message;
use model::text;
use store::TeamStore;

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
    let is_free = |task: &Task| task.state == TaskState::Pending && task.owner.is_none();
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
