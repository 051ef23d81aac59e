//! Closes panes, all those of a server in one call, and waits until they are gone. The server
//! checks each pane's identity in the step that closes it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::command::{PaneId, Server, Unit, spread};
use super::identity::{Claim, Look, look, verdict};
use super::verb::{self, Proof};
use crate::backend::{BackendError, Mark};
use crate::model::placement::Verdict;
use crate::sys::clock::{self, Deadline};

/// Time that panes may take to disappear.
const CLOSED_WITHIN: Duration = Duration::from_secs(3);
/// The first pause between two checks; it doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(5);

/// Closes all panes that are proven ours. Takes two tmux processes per server: one lists the panes,
/// one closes them and lists them again.
pub(super) fn close_all(program: &Path, marks: &[Mark<'_>]) -> Vec<Result<Verdict, BackendError>> {
    let mut results = Vec::new();
    let mut servers: BTreeMap<&str, Vec<(usize, Claim<'_>)>> = BTreeMap::new();
    for (nth, mark) in marks.iter().enumerate() {
        let place = mark.placement.to_string();
        results.push(match Claim::of(mark) {
            Ok(claim) => {
                servers.entry(&claim.recorded.socket).or_default().push((nth, claim));
                Ok(Verdict::Owned)
            }
            Err(verdict) => Err(BackendError::NotOurs { place, verdict }),
        });
    }
    for mut claims in servers.into_values() {
        let Some((_, first)) = claims.first() else { continue };
        let server: Server<'_> = first.server(program);
        let seen = look(&server, Vec::new());
        claims.retain(|(nth, claim)| match verdict(claim, &seen) {
            Verdict::Owned => true,
            Verdict::Gone => {
                results[*nth] = Ok(Verdict::Gone);
                false
            }
            verdict @ (Verdict::Foreign { .. } | Verdict::Unknown { .. }) => {
                results[*nth] = Err(BackendError::NotOurs { place: claim.place(), verdict });
                false
            }
        });
        for (nth, error) in close_owned(&server, &seen, claims) {
            results[nth] = Err(error);
        }
    }
    results
}

/// Closes the panes of one server. Returns those that still exist at the deadline, with the reason.
fn close_owned(
    server: &Server<'_>,
    before: &Look,
    mut left: Vec<(usize, Claim<'_>)>,
) -> Vec<(usize, BackendError)> {
    let Some((_, first)) = left.first() else { return Vec::new() };
    let pid = first.recorded.server.pid;
    let going: Vec<PaneId> = left.iter().map(|(_, claim)| claim.id).collect();
    let restored: Vec<Unit> =
        before.alone_before(&going).map(|pane| verb::alone_again(pane, pid)).collect();
    let deadline = Deadline::after(CLOSED_WITHIN);
    let mut pause = FIRST_PAUSE;
    loop {
        // Repeated in each round in case the last call was cut short; the proof makes repetition
        // harmless.
        let tell = |(_, claim): &(usize, Claim<'_>)| {
            verb::close(claim.id, pid, &Proof::Token(&claim.token))
        };
        let mut seen =
            look(server, left.iter().map(tell).chain(restored.iter().cloned()).collect());
        left.retain(|(_, claim)| match verdict(claim, &seen) {
            Verdict::Gone | Verdict::Foreign { .. } => false,
            // The server exits with its last pane and cannot be queried while it does so (SD-13).
            Verdict::Owned | Verdict::Unknown { .. } => true,
        });
        if left.is_empty() || deadline.expired() {
            let waited_ms = u64::try_from(deadline.elapsed().as_millis()).unwrap_or(u64::MAX);
            let still_there = |(nth, claim): (usize, Claim<'_>)| {
                let reason = spread(&mut seen.problem);
                (
                    nth,
                    reason.unwrap_or(BackendError::StillThere { place: claim.place(), waited_ms }),
                )
            };
            return left.into_iter().map(still_there).collect();
        }
        clock::sleep(pause.min(deadline.remaining()));
        pause *= 2;
    }
}
