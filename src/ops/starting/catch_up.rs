//! Brings the lead's mailbox up to date while no lead runs: removes members that have exited and
//! announces tasks that have ended, as the lead's loop does.

use crate::effects;
use crate::ending::remove;
use crate::members::{lead, presence};
use crate::starting::recover;
use crate::{Context, OpsError, now};
use model::board::task::Task;
use model::board::waiting::Ability;
use model::members::launch::ability;
use model::members::record::MemberRecord;
use model::team::event::{EventKind, Note};
use model::team::settings::Finish;
use store::TeamStore;
use sys::proc::{self, Liveness};

/// Sends the news that the loop of a running lead would send. Returns at once if a lead runs, or if
/// another program leads the team.
pub fn catch_up(ctx: &Context, team: &TeamStore) -> Result<(), OpsError> {
    let Some(settings) = team.settings()? else { return Ok(()) };
    if !is_leaderless(team)? {
        return Ok(());
    }
    remove_exited(ctx, team)?;
    // In a team that ends with its tasks the final report has the results.
    if settings.finish == Finish::Manual {
        effects::results::report_due(team, now())
    } else {
        Ok(())
    }
}

/// Frees the tasks of members that have exited, for a member that finds no task. Returns whether
/// there were such members. A running lead frees them itself.
pub fn free_tasks_of_dead(ctx: &Context, team: &TeamStore) -> Result<bool, OpsError> {
    Ok(team.settings()?.is_some() && is_leaderless(team)? && remove_exited(ctx, team)?)
}

/// Returns true if neither phalanx nor another program leads the team.
pub(crate) fn is_leaderless(team: &TeamStore) -> Result<bool, OpsError> {
    Ok(!lead::is_led(team)? && lead::stranger(team)?.is_none())
}

/// Returns true if members of the team run, it is one that a lead leads until it is deleted, and no
/// lead does.
pub fn lacks_lead(team: &TeamStore) -> Result<bool, OpsError> {
    let Some(settings) = team.settings()? else { return Ok(false) };
    Ok(settings.finish == Finish::Manual
        && is_leaderless(team)?
        && team.member_records()?.iter().any(|record| record.state.is_up()))
}

/// Returns true if the task is free, an agent of the team could claim it, and no lead runs that
/// would notify one.
pub fn is_unnoticed(team: &TeamStore, task: &Task) -> Result<bool, OpsError> {
    let is_plain = task.owner.is_none() && task.extra.run.is_empty();
    if !is_plain || !is_leaderless(team)? {
        return Ok(false);
    }
    let Some(settings) = team.settings()? else { return Ok(false) };
    let could_claim = |record: &MemberRecord| {
        let request = &record.request;
        let is_agent = record.reads_mail() && ability(&request.profile) == Ability::Prompts;
        record.state.is_up() && is_agent && settings.tells_of(task, &record.name, request)
    };
    if !team.member_records()?.iter().any(could_claim) {
        return Ok(false);
    }
    // Only the files of other tasks are found nowhere but on the whole board.
    let board = match task.extra.files.is_empty() {
        true => team.with_blockers(task.id)?,
        false => team.open_board()?,
    };
    Ok(board.is_free(task))
}

/// Removes the members that have exited, also those that a killed process had begun to remove.
/// Returns whether there were any.
fn remove_exited(ctx: &Context, team: &TeamStore) -> Result<bool, OpsError> {
    let mut found = recover::complete_retirements(ctx, team)?;
    for record in team.member_records()?.iter().filter(|record| has_exited(record)) {
        found = true;
        if let Err(e) = remove::stop_and_remove(ctx, team, record) {
            // One member must not hide the news of the others.
            let text = format!("could not be removed: {e}");
            team.record(Note::of(EventKind::Warning).member(&record.name).with("text", text))?;
        }
    }
    Ok(found)
}

/// Returns true for a run that came up and whose launcher has exited. The spawner handles a run
/// that is still starting.
fn has_exited(record: &MemberRecord) -> bool {
    if !record.state.is_up() {
        return false;
    }
    if record.is_elsewhere {
        return record.exit.is_some();
    }
    let is_spawned =
        record.spawner.is_none_or(|it| proc::liveness(it.pid, it.start) != Liveness::Alive);
    is_spawned && presence::liveness(record) == Liveness::Dead
}
