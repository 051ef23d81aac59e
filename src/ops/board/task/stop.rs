//! A task and the command that runs it are one: before a running task is taken from a worker, the
//! worker ends the command. Until then the task is shown as stopping, keeps its owner and its
//! files, and frees nothing (TK-11).

use std::time::Duration;

use crate::members::presence;
use crate::{OpsError, now};
use model::board::task::Task;
use model::id::{MemberName, TaskId};
use model::team::event::{EventKind, Note};
use store::TeamStore;
use sys::clock::Deadline;
use sys::failpoint;
use sys::proc::Liveness;

/// Time limit for a worker to end the command, which includes the grace between SIGTERM and
/// SIGKILL. After it the task is taken: the worker hangs, or its host cannot be reached.
const LIMIT: Duration = Duration::from_secs(10);
/// The poll interval: a worker that is killed writes nothing.
const SWEEP: Duration = Duration::from_millis(500);

/// Ends the command of a running task that `by` takes from its owner, if a living worker runs it.
/// The caller has checked that `by` may take the task; only the lead takes one from another member.
pub(super) fn end_command(team: &TeamStore, id: TaskId, by: &MemberName) -> Result<(), OpsError> {
    if !by.is_lead() {
        return Ok(());
    }
    let Some(task) = team.task(id)? else { return Ok(()) };
    let Some(owner) = runner(team, &task)?.filter(|owner| owner != by) else { return Ok(()) };
    let changes = team.changes()?;
    let limit = Deadline::after(LIMIT);
    let until = now().plus_ms(u64::try_from(LIMIT.as_millis()).unwrap_or(u64::MAX));
    team.ask_to_stop(id, by, until)?;
    failpoint::hit("task.stopping");
    loop {
        let Some(task) = team.task(id)? else { return Ok(()) };
        if task.extra.stopping.as_ref().is_none_or(|stopping| stopping.stopped)
            || runner(team, &task)?.as_ref() != Some(&owner)
        {
            return Ok(());
        }
        if limit.expired() {
            let text = format!(
                "task {id} was taken from {owner}, which has not ended its command within {LIMIT:?}: it may \
                 still run (`phalanx peek {owner}`, `phalanx shutdown {owner} --force`)"
            );
            team.record(Note::of(EventKind::Warning).task(id).member(&owner).with("text", text))?;
            return Ok(());
        }
        changes.wait(SWEEP.min(limit.remaining()));
    }
}

/// Returns the owner of a running task if it is a worker that lives and therefore runs its command.
fn runner(team: &TeamStore, task: &Task) -> Result<Option<MemberName>, OpsError> {
    let Some(owner) = task.owner_member().filter(|_| task.state.is_running()) else {
        return Ok(None);
    };
    if task.extra.run.is_empty() {
        return Ok(None);
    }
    let runs = team.member_record(&owner)?.is_some_and(|record| {
        let is_dead = !record.is_elsewhere && presence::liveness(&record) == Liveness::Dead;
        record.runs_commands() && record.state.is_up() && !is_dead
    });
    Ok(runs.then_some(owner))
}

/// Records that a worker has ended the command of a task that another member takes from it.
pub fn confirm_stopped(team: &TeamStore, id: TaskId, who: &MemberName) -> Result<(), OpsError> {
    Ok(team.confirm_stopped(id, who)?)
}
