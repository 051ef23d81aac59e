//! Closing panes: all of a server at once, each under its own proof, and seen to be gone. Refuses to close what is not
//! proven ours.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::command::{Server, spread};
use super::identity::{Claim, look, verdict, verify_all};
use super::verb::{self, Proof};
use crate::backend::{BackendError, Mark};
use crate::model::placement::Verdict;
use crate::sys::clock::{self, Deadline};

/// How long panes that were told to close may stay.
const CLOSED_WITHIN: Duration = Duration::from_secs(3);
/// The first pause between two looks, doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(5);

/// Closes all that are proven ours. Two tmux processes for each server: one looks, one closes and looks again.
pub(super) fn close_all(program: &Path, marks: &[Mark<'_>]) -> Vec<Result<Verdict, BackendError>> {
    let mut owned: BTreeMap<&str, Vec<(usize, Claim<'_>)>> = BTreeMap::new();
    let mut results = Vec::new();
    for (nth, (mark, verdict)) in marks.iter().zip(verify_all(program, marks)).enumerate() {
        results.push(match (verdict, Claim::of(mark)) {
            (Verdict::Owned, Ok(claim)) => {
                owned.entry(&claim.recorded.socket).or_default().push((nth, claim));
                Ok(Verdict::Owned)
            }
            (Verdict::Gone, _) => Ok(Verdict::Gone),
            (verdict, _) => Err(BackendError::NotOurs { place: mark.placement.to_string(), verdict }),
        });
    }
    for claims in owned.into_values() {
        for (nth, error) in close_owned(program, claims) {
            results[nth] = Err(error);
        }
    }
    results
}

/// Closes the panes of one server. Gives those that are still there when the time is up, and why.
fn close_owned(program: &Path, mut left: Vec<(usize, Claim<'_>)>) -> Vec<(usize, BackendError)> {
    let Some((_, first)) = left.first() else { return Vec::new() };
    let server: Server<'_> = first.server(program);
    let deadline = Deadline::after(CLOSED_WITHIN);
    let mut pause = FIRST_PAUSE;
    loop {
        // Told again each time: whatever tore the last call apart, the proof makes it harmless.
        let tell = |(_, claim): &(usize, Claim<'_>)| {
            verb::close(claim.id, claim.recorded.server.pid, &Proof::Token(&claim.token))
        };
        let mut seen = look(&server, left.iter().map(tell).collect());
        left.retain(|(_, claim)| match verdict(claim, &seen) {
            Verdict::Gone | Verdict::Foreign { .. } => false,
            // With its last pane the server ends; until it has, it cannot be asked (SD-13).
            Verdict::Owned | Verdict::Unknown { .. } => true,
        });
        if left.is_empty() || deadline.expired() {
            let waited_ms = u64::try_from(deadline.elapsed().as_millis()).unwrap_or(u64::MAX);
            let still_there = |(nth, claim): (usize, Claim<'_>)| {
                let place = format!("pane {} of the tmux server at {}", claim.id, claim.recorded.socket);
                let reason = spread(&mut seen.problem);
                (nth, reason.unwrap_or(BackendError::StillThere { place, waited_ms }))
            };
            return left.into_iter().map(still_there).collect();
        }
        clock::sleep(pause.min(deadline.remaining()));
        pause *= 2;
    }
}
