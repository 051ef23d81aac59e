//! The right to lead a team: one process at a time.

use super::context::now;
use super::error::OpsError;
use crate::model::event::{EventKind, Note};
use crate::model::placement::ProcessId;
use crate::store::{LeadRecord, Lease, TeamStore};
use crate::sys::env;
use crate::sys::proc::Process;

/// Takes the lease for this process.
///
/// # Errors
/// [`OpsError::LedByAnother`] names the process that holds it.
pub(crate) fn take(team: &TeamStore) -> Result<Lease, OpsError> {
    let me = Process::current();
    let record = LeadRecord {
        format: 1,
        process: ProcessId { pid: me.pid, start: me.start },
        boot_id: env::boot_id(),
        host: env::hostname(),
        since: now(),
    };
    match team.take_lease(&record)? {
        Some(lease) => {
            team.record(Note::of(EventKind::LeadStarted).with("pid", me.pid))?;
            Ok(lease)
        }
        None => {
            let pid = team.current_lead()?.map_or(0, |lead| lead.process.pid);
            Err(OpsError::LedByAnother { team: team.name().clone(), pid })
        }
    }
}

/// Whether some process leads the team.
pub(crate) fn is_led(team: &TeamStore) -> Result<bool, OpsError> {
    Ok(team.current_lead()?.is_some())
}

/// The process that leads the team; none if nobody does.
pub(crate) fn holder(team: &TeamStore) -> Result<Option<i32>, OpsError> {
    Ok(team.current_lead()?.map(|lead| lead.process.pid))
}
