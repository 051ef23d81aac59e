//! Closes panes, all those of a server in one call, and waits until they are gone. The server
//! checks each pane's identity in the step that closes it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::command::{PaneId, Server, Unit, share_error};
use super::identity::{PaneClaim, PaneListing, list_panes, verdict, verify};
use super::verb;
use crate::proof::{self, NO_ANSWER, Proven};
use crate::{BackendError, BeforeClose, CloseOutcome, Mark};
use model::members::placement::Verdict;
use sys::clock::{self, Deadline};

/// Time that panes may take to disappear.
const CLOSED_WITHIN: Duration = Duration::from_secs(3);
/// The first pause between two checks; it doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(5);

/// Closes all panes that are proven ours. Takes two tmux processes per server: one lists the panes,
/// one closes them and lists them again.
pub(super) fn close_all(
    program: &Path,
    marks: &[Mark<'_>],
    before: &mut BeforeClose<'_>,
) -> Vec<CloseOutcome> {
    let (verdicts, listings) = verify(program, marks);
    proof::close_proven(marks, verdicts, before, |proven| {
        close_by_server(program, &listings, proven)
    })
}

fn close_by_server(
    program: &Path,
    listings: &BTreeMap<&str, PaneListing>,
    proven: &[Proven<'_>],
) -> Vec<CloseOutcome> {
    let mut outcomes: Vec<CloseOutcome> =
        proven.iter().map(|_| CloseOutcome::Unknown { reason: NO_ANSWER.to_owned() }).collect();
    let mut claims: BTreeMap<&str, Vec<(usize, PaneClaim<'_>)>> = BTreeMap::new();
    for (nth, proven) in proven.iter().enumerate() {
        if let Ok(claim) = PaneClaim::parse(&proven.mark()) {
            claims.entry(&claim.recorded.socket).or_default().push((nth, claim));
        }
    }
    for (socket, claims) in claims {
        let (Some(before), Some((_, first))) = (listings.get(socket), claims.first()) else {
            continue;
        };
        let (server, pid) = (first.server(program), first.recorded.server.pid);
        for (nth, outcome) in close_panes(&server, pid, before, claims) {
            outcomes[nth] = outcome;
        }
    }
    outcomes
}

/// Closes the panes of one server, and waits until they are gone or the deadline has passed.
fn close_panes(
    server: &Server<'_>,
    server_pid: i32,
    before: &PaneListing,
    mut left: Vec<(usize, PaneClaim<'_>)>,
) -> Vec<(usize, CloseOutcome)> {
    let closing: Vec<PaneId> = left.iter().map(|(_, claim)| claim.id).collect();
    let zoomed = before.zoomed_beside(&closing);
    let rezoom: Vec<Unit> = zoomed.map(|pane| verb::rezoom(pane, server_pid)).collect();
    let mut outcomes = Vec::new();
    let deadline = Deadline::after(CLOSED_WITHIN);
    let mut pause = FIRST_PAUSE;
    loop {
        // Repeated in each round in case the last call was cut short; the guard makes repetition
        // harmless.
        let close = left.iter().map(|(_, claim)| claim.close());
        let mut listing = list_panes(server, close.chain(rezoom.iter().cloned()).collect());
        left.retain(|(nth, claim)| match verdict(claim, &listing) {
            Verdict::Gone | Verdict::Foreign { .. } => {
                outcomes.push((*nth, CloseOutcome::Closed));
                false
            }
            // The server exits with its last pane and cannot be queried while it does so (SD-13).
            Verdict::Owned | Verdict::Unknown { .. } => true,
        });
        if left.is_empty() || deadline.expired() {
            let waited_ms = u64::try_from(deadline.elapsed().as_millis()).unwrap_or(u64::MAX);
            outcomes.extend(left.into_iter().map(|(nth, claim)| {
                let still_there = BackendError::StillThere { place: claim.place(), waited_ms };
                let error = share_error(&mut listing.problem).unwrap_or(still_there);
                (nth, CloseOutcome::Failed(error))
            }));
            return outcomes;
        }
        clock::sleep(pause.min(deadline.remaining()));
        pause *= 2;
    }
}
