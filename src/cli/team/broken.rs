//! The first step of `down --force` and `team delete --force`: moves broken files of the team
//! aside, reports them, and stops runs without a record and a lead without the lease.

use crate::fail::Failure;
use crate::setup::Setup;
use ops::ending::by_process::EndedRun;
use ops::{self, OpsError, TeamStore};

/// Restores a missing team file, if the rest of the named team exists.
pub(crate) fn restore_missing(setup: &Setup, given: Option<&str>) -> Result<(), Failure> {
    if let Some(name) = setup.named_team(given)?
        && let Some(path) = ops::team::broken::restore_missing(&setup.ctx, &name)?
    {
        setup.out.print_message(&format!(
            "{}: it was missing; restored to end the team",
            path.display()
        ));
    }
    Ok(())
}

pub(crate) fn prepare_deletion(setup: &Setup, team: &TeamStore) -> Result<(), Failure> {
    ops::ending::stop_without_lead::release_locks(team)?;
    for one in ops::team::broken::set_aside_all(&setup.ctx, team)? {
        let outcome = match &one.moved_to {
            Some(copy) => format!("moved to {}, which goes with the team", copy.display()),
            None => "usable again".to_owned(),
        };
        setup.out.print_message(&format!("{}: {}; {outcome}", one.path.display(), one.problem));
    }
    if let Some(lead) = ops::ending::by_process::end_unleased_lead(team)? {
        report_ended(setup, &lead, "which does not hold the lease")?;
    }
    for lost in ops::ending::lost_runs::end_lost_runs(&setup.ctx, team) {
        report_ended(setup, &lost, "which no record names")?;
    }
    Ok(())
}

/// Reports what was ended beside the orderly way, with a clause that says what it was.
pub(crate) fn report_ended(setup: &Setup, ended: &EndedRun, what: &str) -> Result<(), Failure> {
    match &ended.failure {
        None => {
            setup.out.print_message(&format!("ended {}, {what}", ended.place));
            Ok(())
        }
        Some(problem) => {
            let what = format!("{}: {problem}", ended.place);
            Err(OpsError::NotEnded { what }.into())
        }
    }
}
