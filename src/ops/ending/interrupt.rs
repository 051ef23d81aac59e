//! Ends members together with their lead, as when the machine shuts down or a person logs out. The
//! team stays, and `resume --all` goes on with it.

use crate::ending::stop::{MemberStop, stop_all};
use crate::members::presence;
use crate::{Context, OpsError, now};
use model::decisions::request::ShutdownOutcome;
use model::members::lifecycle::MemberState;
use model::members::record::MemberRecord;
use model::team::event::{EventKind, Note};
use store::TeamStore;

/// A shutdown signals processes in any order: a program that exited with 0 up to this long before
/// its lead was signalled had not come to its end.
const SHUTDOWN_MS: u64 = 10_000;
const REASON: &str = "ended with its lead";

/// Ends all members on this host at once, without a handshake, and records that no request has
/// ended them. Members on other hosts keep running.
///
/// # Errors
/// Files of the team that cannot be read or written. A member that cannot be stopped is a warning
/// in the journal.
pub fn end_with_lead(ctx: &Context, team: &TeamStore) -> Result<(), OpsError> {
    let since = now().minus_ms(SHUTDOWN_MS);
    let requests = team.requests()?;
    let was_asked = |record: &MemberRecord| {
        let mut asked = requests.iter().filter(|r| record.is(&r.incarnation));
        asked.any(|request| request.outcome != Some(ShutdownOutcome::Rejected))
    };
    let has_completed = |record: &MemberRecord| {
        let exit = record.exit.as_ref().filter(|exit| exit.code == Some(0) && exit.at >= since);
        record.state == MemberState::Completed && record.request.task.is_none() && exit.is_some()
    };
    let ends = |record: &MemberRecord| {
        let is_here = !record.is_elsewhere && !was_asked(record);
        is_here && (!record.state.is_over() || has_completed(record))
    };
    let stops = team.member_records()?.into_iter().filter(ends).map(MemberStop::at_once);
    let stops: Vec<MemberStop> = stops.collect();
    for (MemberStop { record, .. }, stopped) in stops.iter().zip(stop_all(ctx, team, &stops)) {
        if let Err(e) = stopped {
            let warning = Note::of(EventKind::Warning).member(&record.name);
            team.record(warning.with("text", e.to_string()))?;
            continue;
        }
        let change = |record: &mut MemberRecord| {
            record.state = MemberState::Disappeared;
            record.state_since = now();
            record.reason = Some(REASON.to_owned());
        };
        team.change_record(&record.name, &record.incarnation, change)?;
        team.record(presence::news(&record.name, MemberState::Disappeared, Some(REASON)))?;
    }
    Ok(())
}
