//! `--force` while the lead is stopped: this process ends the members. The lead keeps its lease and
//! can be continued at any moment, so every step is idempotent.

use std::time::Duration;

use crate::ending::remove::{self, MemberRemoval};
use crate::ending::shutdown;
use crate::ending::stop::{self, MemberStop};
use crate::members::lead;
use crate::{Context, OpsError};
use model::decisions::request::{ShutdownOutcome, ShutdownRequest};
use model::members::lifecycle::Cause;
use model::members::record::MemberRecord;
use model::team::event::{EventKind, Note};
use store::TeamStore;
use sys::clock::{Deadline, sleep};
use sys::failpoint;
use sys::proc::{self, Process};

/// Maximum number of times that the lead is continued, and the time limit of each.
const TRIES: usize = 20;
const MOMENT: Duration = Duration::from_millis(500);

/// Makes a stopped lead release the team's locks, which would block every step: continues the lead
/// until it holds none, then stops it again.
pub fn release_locks(team: &TeamStore) -> Result<(), OpsError> {
    let Some(lead) = lead::stopped_process(team)? else { return Ok(()) };
    let lead = Process { pid: lead.pid, start: lead.start };
    let mut was_continued = false;
    for _ in 0..TRIES {
        if !team.holds_gate(lead.pid) {
            break;
        }
        was_continued = true;
        proc::resume(lead);
        let moment = Deadline::after(MOMENT);
        while team.holds_gate(lead.pid) && !moment.expired() {
            sleep(Duration::from_millis(1));
        }
        proc::stop(lead);
        // The signal takes effect later, and the lead may acquire another lock until then.
        let moment = Deadline::after(MOMENT);
        while !proc::is_stopped(lead.pid, lead.start) && !moment.expired() {
            sleep(Duration::from_millis(1));
        }
    }
    if was_continued {
        let text = "the stopped lead was continued for a moment to release its locks";
        team.record(Note::of(EventKind::Warning).with("text", text))?;
    }
    Ok(())
}

/// Carries out those of the requests that are open. Returns all of them in their current state.
pub fn end_members(
    ctx: &Context,
    team: &TeamStore,
    requests: Vec<ShutdownRequest>,
) -> Result<Vec<ShutdownRequest>, OpsError> {
    let mut living = Vec::new();
    for request in requests.iter().filter(|request| request.is_open()) {
        match team.member_record(&request.member)?.filter(|record| is_open_run(record, request)) {
            Some(record) => living.push((request.clone(), record)),
            None => shutdown::resolve(team, &request.id, ShutdownOutcome::Gone, None)?,
        }
    }
    failpoint::hit("force.read");
    let endings = living.iter().map(|(_, record)| MemberStop::at_once(record.clone()));
    let results = stop::stop_all(ctx, team, &endings.collect::<Vec<_>>());
    let (mut ended, mut failed) = (Vec::new(), Vec::new());
    for ((request, record), result) in living.into_iter().zip(results) {
        match result {
            Ok(()) => ended.push((request, record)),
            Err(e) => failed.push((request, e)),
        }
    }
    let removal = |record| MemberRemoval::of(record, Cause::Forced, "by force".to_owned());
    let removals: Vec<MemberRemoval> = ended.iter().map(|(_, record)| removal(record)).collect();
    remove::remove(ctx, team, &removals)?;
    end_late_launchers(ctx, team, &ended)?;
    for (request, _) in &ended {
        shutdown::resolve(team, &request.id, ShutdownOutcome::Forced, None)?;
    }
    for (request, e) in &failed {
        let text = format!("could not be stopped: {e}");
        let note = Note::of(EventKind::Warning).member(&request.member);
        team.record(note.with("text", text.as_str()))?;
        shutdown::resolve(team, &request.id, ShutdownOutcome::TimedOut, Some(&text))?;
    }
    requests.iter().map(|request| Ok(team.request(&request.id)?)).collect()
}

/// Ends launchers that recorded themselves after the records were read and before the runs were
/// removed. Later ones are refused by their records.
fn end_late_launchers(
    ctx: &Context,
    team: &TeamStore,
    ended: &[(ShutdownRequest, MemberRecord)],
) -> Result<(), OpsError> {
    let mut late = Vec::new();
    for (_, read) in ended.iter().filter(|(_, read)| read.launcher().is_none()) {
        let record = team.member_record(&read.name)?;
        let record =
            record.filter(|record| record.is(&read.incarnation) && record.launcher().is_some());
        late.extend(record.map(MemberStop::at_once));
    }
    stop::stop_all(ctx, team, &late).into_iter().collect()
}

/// Returns true if the record is of the run that the request names, and that run is not over.
fn is_open_run(record: &MemberRecord, request: &ShutdownRequest) -> bool {
    record.is(&request.incarnation) && !record.state.is_over()
}
