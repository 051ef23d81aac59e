//! Fails a task of an agent whose time limit has passed. A worker limits its own commands.

use crate::board::owners::SUBJECT;
use crate::board::task;
use crate::ending::shutdown::{self, ShutdownOptions};
use crate::{OpsError, Post, now};
use model::board::task::{TaskAction, TaskState};
use model::id::{MemberName, TaskId};
use model::text;
use store::{TaskStep, TeamStore};

/// Time in which the run of one task has to end, in seconds.
const DEADLINE_S: u64 = 30;

/// Fails the task, and notifies its owner and the lead. A run that was started for it is ended.
///
/// # Errors
/// A board, record, mailbox or journal that cannot be read or written.
pub fn fail_late(team: &TeamStore, id: TaskId) -> Result<(), OpsError> {
    let found = task::get(team, id)?;
    let (limit, claimed_at) = (found.extra.timeout_s, found.extra.claimed_at);
    let Some((seconds, claimed_at)) = limit.zip(claimed_at) else { return Ok(()) };
    let is_due = claimed_at.plus_ms(seconds.saturating_mul(1000)) <= now();
    if found.state != TaskState::InProgress || !is_due {
        return Ok(());
    }
    let (lead, reason) = (MemberName::lead(), format!("not done within its limit of {seconds} s"));
    let step = TaskStep { reason: Some(reason.clone()), ..TaskStep::of(TaskAction::Fail) };
    let (failed, _) = task::end(team, id, &lead, &step)?;
    let Some(owner) = found.owner_member() else { return Ok(()) };
    let subject = text::short(&found.subject, SUBJECT);
    let text = format!("Task #{id} \"{subject}\" of {owner} has failed: {reason}.");
    Post::notice(&lead, text).because(failed.extra.event).send(team)?;
    let record = team.member_record(&owner)?;
    if record.is_some_and(|record| record.request.task == Some(id)) {
        let options = ShutdownOptions {
            reason: Some(reason),
            deadline_s: DEADLINE_S,
            ..ShutdownOptions::default()
        };
        shutdown::ask(team, &lead, &[owner], &options)?;
    }
    Ok(())
}
