//! The deletion of a team, once nothing of it runs.

use crate::authority::speaker;
use crate::ending::{by_process, lost_runs};
use crate::members::launchers::Launcher;
use crate::members::{account, backends, status};
use crate::team::lease;
use crate::team::worktree::{self, Removal};
use crate::{Context, OpsError};
use model::id::{MemberName, TeamName};
use model::members::record::MemberRecord;
use model::team::event::{EventKind, Note};
use store::TeamStore;
use sys::{failpoint, proc};

/// Completes an interrupted deletion of this team, for a person only: nothing is left of the team
/// that says who may do so. Returns true if there was one.
pub fn finish_deletion(ctx: &Context, name: &TeamName) -> Result<bool, OpsError> {
    Ok(!speaker::has_token(ctx) && ctx.store.finish_deletion(name)?)
}

/// Returns the members that phalanx did not start and whose tmux panes are open, as far as visible
/// from here. Such panes are never closed, because nothing proves whose they are (SD-05).
pub fn living_strangers(ctx: &Context, team: &TeamStore) -> Result<Vec<MemberName>, OpsError> {
    let mut living = Vec::new();
    for member in team.team()?.teammates().filter(|member| member.pane_id.starts_with('%')) {
        let ours = team.member_record(&member.name)?.is_some();
        if !ours && backends::tmux_pane_lives(ctx, team, &member.pane_id)? {
            living.push(member.name.clone());
        }
    }
    Ok(living)
}

/// Deletes a team whose members have all ended, by the state of the processes and not by the roster
/// (SD-04), and keeps its report. Returns the worktrees that stay because work would be lost with
/// them.
pub fn delete(
    ctx: &Context,
    team: &TeamStore,
    report: Option<&str>,
) -> Result<Vec<Removal>, OpsError> {
    let founded_at = team.founded_at();
    lease::must_be_free(team)?;
    lease::must_be_left(ctx, team)?;
    status::see_off(team)?;
    // The launchers before the records: a record is there before its launcher starts.
    let running = by_process::launchers_of(ctx, team);
    let records = team.member_records()?;
    let mut live = status::live_of(&records);
    // The record of a start whose spawner was killed may name no process yet, and the launcher
    // would outlive the team.
    let runs = |record: &MemberRecord| running.iter().any(|run| record.is(&run.incarnation));
    for record in records.iter().filter(|record| !record.state.is_over() && runs(record)) {
        if !live.contains(&record.name) {
            live.push(record.name.clone());
        }
    }
    if !live.is_empty() {
        return Err(OpsError::LiveMembers { team: team.name().clone(), members: live });
    }
    must_have_no_lost_run(team, &records, &running)?;
    failpoint::hit("delete.checked");
    let kept = worktree::clear(ctx, team)?;
    account::unlink_all(team)?;
    // The last line of a journal that is deleted with the team, for processes that follow it. On a
    // full disk it cannot be written, and the deletion frees space.
    let _ = team.record(Note::of(EventKind::TeamDeleted));
    team.delete_with(founded_at, report)?;
    Ok(kept)
}

/// Rejects a team with a process that no record names: it would outlive the team. A process that
/// has just finished may need a moment to exit.
fn must_have_no_lost_run(
    team: &TeamStore,
    records: &[MemberRecord],
    running: &[Launcher],
) -> Result<(), OpsError> {
    for Launcher { process, .. } in lost_runs::unrecorded(running, records) {
        if !proc::wait_exit(*process, status::EXIT_LIMIT) {
            let (pid, name) = (process.pid, team.name());
            let what = format!(
                "process {pid} belongs to team `{name}`, but no member record names it; end it with `phalanx down --force -t {name}`"
            );
            return Err(OpsError::NotEnded { what });
        }
    }
    Ok(())
}
