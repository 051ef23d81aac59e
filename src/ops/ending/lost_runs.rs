//! Runs that no record names: their spawner was killed before it could record them.

use std::path::Path;

use crate::model::id::{Incarnation, TeamName};
use crate::ops::Context;
use crate::ops::ending::by_process::{self, EndedRun};
use crate::ops::members::launchers::Launcher;
use crate::store::{StoreError, TeamStore};
use crate::sys::proc::Process;

/// Returns the launchers of one team that no record names.
pub(crate) fn lost_runs(ctx: &Context, team: &TeamStore) -> Vec<Process> {
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
pub(crate) fn end_lost_runs(ctx: &Context, team: &TeamStore) -> Vec<EndedRun> {
    let lost = lost_launchers(ctx, team);
    by_process::end_runs(ctx, &lost).into_iter().map(|(_, ended)| ended).collect()
}

/// Returns true if no team knows the run of this launcher.
pub(in crate::ops) fn is_orphan(ctx: &Context, launcher: &Launcher) -> bool {
    !is_known(ctx, &launcher.root, &launcher.team, &launcher.incarnation)
}

/// Returns true if a team of this name under `root` knows the run, whose processes are then not
/// orphans.
pub(in crate::ops) fn is_known(
    ctx: &Context,
    root: &Path,
    name: &TeamName,
    incarnation: &Incarnation,
) -> bool {
    let records = ctx.store.under(root).team(name).and_then(|team| team.member_records());
    // A team that cannot be read may know it.
    records.map_or_else(
        |e| !matches!(e, StoreError::NoSuchTeam { .. }),
        |records| records.iter().any(|record| record.is(incarnation)),
    )
}
