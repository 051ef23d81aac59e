//! Runs that no record names: their spawner was killed before it could record them.

use crate::Context;
use crate::ending::by_process::{self, EndedRun};
use crate::members::launchers::Launcher;
use store::{StoreError, TeamStore};
use sys::proc::Process;

/// Returns the launchers of one team that no record names.
pub fn lost_runs(ctx: &Context, team: &TeamStore) -> Vec<Process> {
    lost_launchers(ctx, team).into_iter().map(|launcher| launcher.process).collect()
}

fn lost_launchers(ctx: &Context, team: &TeamStore) -> Vec<Launcher> {
    let mut running = by_process::launchers_of(ctx, team);
    // Read once: with many members, each launcher would read all of their records again.
    match team.member_records() {
        Ok(known) => running.retain(|run| !known.iter().any(|known| known.is(&run.incarnation))),
        Err(_) => running.retain(|run| is_orphan(ctx, run)),
    }
    running
}

/// Ends the runs of one team that no record names, and closes their panes.
pub fn end_lost_runs(ctx: &Context, team: &TeamStore) -> Vec<EndedRun> {
    let lost = lost_launchers(ctx, team);
    by_process::end_runs(ctx, &lost).into_iter().map(|(_, ended)| ended).collect()
}

/// Returns true if no team knows the run of this launcher. A team that cannot be read may know it.
pub(crate) fn is_orphan(ctx: &Context, launcher: &Launcher) -> bool {
    let team = ctx.store.under(&launcher.root).team(&launcher.team);
    match team.and_then(|team| team.member_records()) {
        Ok(records) => !records.iter().any(|record| record.is(&launcher.incarnation)),
        Err(e) => matches!(e, StoreError::NoSuchTeam { .. }),
    }
}
