//! Brings the lead's mailbox up to date while no lead runs: retires members that have exited and
//! announces tasks that have ended, as the lead's loop does.

use super::context::{Context, now};
use super::effects;
use super::error::OpsError;
use super::lease;
use super::presence;
use super::retire;
use crate::model::event::{EventKind, Note};
use crate::model::record::MemberRecord;
use crate::model::settings::Finish;
use crate::store::TeamStore;
use crate::sys::proc::{self, Liveness};

/// Sends the news that the loop of a running lead would send. Returns at once if a lead runs, or if
/// another program leads the team.
pub(crate) fn catch_up(ctx: &Context, team: &TeamStore) -> Result<(), OpsError> {
    let Some(settings) = team.settings()? else { return Ok(()) };
    if lease::is_led(team)? || lease::stranger(team)?.is_some() {
        return Ok(());
    }
    for record in team.member_records()?.iter().filter(|record| has_exited(record)) {
        if let Err(e) = retire::terminate_and_retire(ctx, team, record) {
            // One member must not hide the news of the others.
            let text = format!("could not be retired: {e}");
            team.record(Note::of(EventKind::Warning).member(&record.name).with("text", text))?;
        }
    }
    // In a team that ends with its tasks the final report has the results.
    if settings.finish == Finish::Manual {
        effects::results::report_due(team, now())
    } else {
        Ok(())
    }
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
