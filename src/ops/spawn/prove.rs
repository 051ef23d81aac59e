//! The proof that a teammate runs: its launcher's start record, and what its profile asks for beyond that.

use std::time::Duration;

use super::super::context::now;
use super::super::error::OpsError;
use super::{Prepared, Underway};
use crate::model::placement::Placement;
use crate::model::record::MemberRecord;
use crate::model::text;
use crate::profile::Ready;
use crate::store::TeamStore;
use crate::sys::clock::Deadline;
use crate::sys::proc::{self, Liveness};
use crate::sys::watch::Changes;

/// A launcher can die without a word; it is looked after this often.
const GLANCE: Duration = Duration::from_millis(100);

/// Whether a teammate runs.
pub(super) enum Proof {
    Runs {
        pid: i32,
        cwd: String,
    },
    Fails {
        reason: String,
        /// It may only have been too slow.
        late: bool,
    },
}

/// Waits for all of the batch at once.
pub(super) fn prove(
    team: &TeamStore,
    underway: &[Underway],
    changes: &Changes,
    limit: Duration,
) -> Vec<Proof> {
    let deadline = Deadline::after(limit);
    let mut proofs: Vec<Option<Proof>> = underway.iter().map(|_| None).collect();
    loop {
        let mut wake = GLANCE.min(deadline.remaining());
        for (one, proof) in underway.iter().zip(&mut proofs).filter(|(_, proof)| proof.is_none()) {
            let Ok(placement) = &one.place else {
                *proof = Some(fails("it was not placed"));
                continue;
            };
            match look(team, &one.prepared, placement) {
                Look::Settled(found) => *proof = Some(found),
                Look::Wait(at_most) => wake = wake.min(at_most),
            }
        }
        if proofs.iter().all(Option::is_some) || deadline.expired() {
            break;
        }
        changes.wait(wake);
    }
    let late = || Proof::Fails { reason: String::new(), late: true };
    proofs.into_iter().map(|p| p.unwrap_or_else(late)).collect()
}

enum Look {
    Settled(Proof),
    /// Look again when something changed, and at the latest after this.
    Wait(Duration),
}

fn look(team: &TeamStore, one: &Prepared, placement: &Placement) -> Look {
    let record = match team.member_record(&one.record.name) {
        Ok(Some(record)) if record.is(&one.record.incarnation) => record,
        Ok(_) => return Look::Settled(fails("its record was taken by another run")),
        Err(e) => return Look::Settled(fails(&e.to_string())),
    };
    if let Some(exit) = &record.exit {
        return Look::Settled(fails(&exit.describe()));
    }
    let launcher = record.launcher().or_else(|| placement.launcher());
    if launcher.is_some_and(|it| proc::liveness(it.pid, it.start) == Liveness::Dead) {
        // It may have written its last word between our two looks.
        let last = team.member_record(&one.record.name).ok().flatten().and_then(|r| r.exit);
        let reason =
            last.map_or("its launcher was gone before it said anything".to_owned(), |e| e.describe());
        return Look::Settled(fails(&reason));
    }
    ready(&record, one.ready)
}

fn ready(record: &MemberRecord, rule: Ready) -> Look {
    let Some(start) = &record.start else { return Look::Wait(GLANCE) };
    let runs = || Look::Settled(Proof::Runs { pid: start.program.pid, cwd: start.cwd.clone() });
    match rule {
        Ready::Hello | Ready::Screen if record.ready_at.is_some() => runs(),
        Ready::Hello | Ready::Screen => Look::Wait(GLANCE),
        Ready::Settled { ms } => match ms.saturating_sub(now().since(start.at)) {
            0 => runs(),
            left => Look::Wait(Duration::from_millis(left)),
        },
    }
}

fn fails(reason: &str) -> Proof {
    Proof::Fails { reason: reason.to_owned(), late: false }
}

/// The error for a teammate that does not run, with the last lines of its screen made fit to print.
pub(super) fn failure(record: &MemberRecord, reason: String, late: bool, screen: &str) -> OpsError {
    let screen = text::block(&text::last_lines(screen, 20));
    let name = record.name.clone();
    if late {
        let seconds = now().since(record.asked_at).div_ceil(1000);
        return OpsError::StartDeadline { name, seconds, screen };
    }
    OpsError::StartFailed { name, reason: text::line(&reason), screen }
}
