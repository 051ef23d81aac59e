//! Runs that no record names: their spawner was killed before it could record them.

use crate::Context;
use crate::ending::by_process::{self, EndedRun};
use crate::members::launchers::Launcher;
use model::members::record::MemberRecord;
use store::{StoreError, TeamStore};

/// Returns the launchers among `running` that none of the team's records names. Records that are
/// read later than the launchers name each run that had begun.
pub(crate) fn unrecorded<'a>(
    running: &'a [Launcher],
    records: &'a [MemberRecord],
) -> impl Iterator<Item = &'a Launcher> {
    running.iter().filter(|run| !records.iter().any(|record| record.is(&run.incarnation)))
}

/// Ends the runs of one team that no record names, and closes their panes.
pub fn end_lost_runs(ctx: &Context, team: &TeamStore) -> Vec<EndedRun> {
    let running = by_process::launchers_of(ctx, team);
    // Read once: with many members, each launcher would read all of their records again.
    let lost: Vec<Launcher> = match team.member_records() {
        Ok(records) => unrecorded(&running, &records).cloned().collect(),
        Err(_) => running.into_iter().filter(|run| is_orphan(ctx, run)).collect(),
    };
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
