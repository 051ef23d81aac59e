//! Observes recorded panes for the proof that they are ours (SD-06, CR-11). Their location, name
//! and visibility do not matter, because people swap, move, zoom and rename panes.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::command::{PaneId, PlainWord, SERVER_EXITED, Server, Unit};
use super::row::{PaneRow, ServerRow, rows};
use super::verb::{self, PaneGuard};
use crate::proof::{IdentityPart, Observation, ProcessState, judge, process_state};
use crate::{BackendError, Mark};
use model::members::placement::{Placement, ProcessId, TmuxPane, Verdict};
use sys::proc::{self, Process};

/// Time that an exiting server gets to disappear.
const EXIT_GRACE: Duration = Duration::from_secs(1);

/// A recorded pane with a valid id, token and socket; other records never reach tmux (SD-07).
#[derive(Debug, Clone)]
pub(super) struct PaneClaim<'p> {
    pub(super) recorded: &'p TmuxPane,
    pub(super) id: PaneId,
    pub(super) token: PlainWord,
}

impl<'p> PaneClaim<'p> {
    /// Validates the record of a placement.
    ///
    /// # Errors
    /// Returns the verdict on an invalid record or on a placement of another backend.
    pub(super) fn parse(mark: &Mark<'p>) -> Result<PaneClaim<'p>, Verdict> {
        let unknown = |reason: String| judge(Observation::Unclear(reason));
        let recorded = match mark.placement {
            Placement::Tmux(pane) => pane,
            Placement::Iterm2(_) | Placement::Pty(_) => {
                return Err(judge(Observation::different("it is not a tmux pane")));
            }
        };
        let id = PaneId::parse(&recorded.pane_id)
            .ok_or_else(|| unknown(format!("{:?} is not the id of a pane", recorded.pane_id)))?;
        let token = PlainWord::parse(mark.token)
            .ok_or_else(|| unknown("the recorded token is invalid".to_owned()))?;
        if recorded.socket.is_empty() {
            return Err(unknown("no socket is recorded".to_owned()));
        }
        Ok(PaneClaim { recorded, id, token })
    }

    pub(super) fn server(&self, program: &'p Path) -> Server<'p> {
        Server { program, socket: Some(Path::new(&self.recorded.socket)) }
    }

    pub(super) fn place(&self) -> String {
        Placement::Tmux(self.recorded.clone()).to_string()
    }

    /// Makes `unit` conditional on the identity of the claimed pane.
    pub(super) fn guarded(&self, unit: &Unit) -> Unit {
        verb::guarded(self.id, self.recorded.server.pid, &self.guard(), unit)
    }

    /// The command that closes the claimed pane if it still has its identity.
    pub(super) fn close(&self) -> Unit {
        verb::close(self.id, self.recorded.server.pid, &self.guard())
    }

    fn guard(&self) -> PaneGuard<'_> {
        PaneGuard::Identity { token: &self.token, pid: self.recorded.pane.pid }
    }
}

/// The panes of a server, as listed by one call.
#[derive(Debug)]
pub(super) struct PaneListing {
    /// Pid of the server that answered.
    server: Option<i32>,
    panes: Vec<PaneRow>,
    /// Set if the answer may be incomplete.
    pub(super) problem: Option<BackendError>,
}

impl PaneListing {
    /// The zoomed panes of windows in which panes of `closing` will close: each close would end the
    /// zoom (LY-05).
    pub(super) fn zoomed_beside<'l>(
        &'l self,
        closing: &'l [PaneId],
    ) -> impl Iterator<Item = PaneId> + 'l {
        let shrinks =
            |window| self.panes.iter().any(|row| row.window == window && closing.contains(&row.id));
        let stays = move |row: &&PaneRow| {
            row.zoomed && row.active && !closing.contains(&row.id) && shrinks(row.window)
        };
        self.panes.iter().filter(stays).map(|row| row.id)
    }
}

/// Verifies all marks, with one tmux process for each server. Also returns the listings on which
/// the verdicts depend, by socket.
pub(super) fn verify<'p>(
    program: &Path,
    marks: &[Mark<'p>],
) -> (Vec<Verdict>, BTreeMap<&'p str, PaneListing>) {
    let mut listings: BTreeMap<&str, PaneListing> = BTreeMap::new();
    let mut verdicts = Vec::new();
    for mark in marks {
        verdicts.push(match PaneClaim::parse(mark) {
            Ok(claim) => {
                let list = || list_panes_once(&claim, program);
                verdict(&claim, listings.entry(&claim.recorded.socket).or_insert_with(list))
            }
            Err(verdict) => verdict,
        });
    }
    (verdicts, listings)
}

/// Lists the panes of a claim's server. A server that exits during the call reports only that, so
/// its process is given time to disappear before it is judged (SD-13).
fn list_panes_once(claim: &PaneClaim<'_>, program: &Path) -> PaneListing {
    let listing = list_panes(&claim.server(program), Vec::new());
    if listing.problem.as_ref().is_some_and(|problem| problem.says(SERVER_EXITED)) {
        let ProcessId { pid, start } = claim.recorded.server;
        proc::wait_exit(Process { pid, start }, EXIT_GRACE);
    }
    listing
}

/// Lists all panes of a server, in the same process and after the commands `before`.
pub(super) fn list_panes(server: &Server<'_>, mut before: Vec<Unit>) -> PaneListing {
    before.push(verb::server().then(verb::panes()));
    let (mut lines, mut problem) = (Vec::new(), None);
    for answer in server.run(&before) {
        lines.extend(answer.lines);
        problem = answer.problem.or(problem);
    }
    // A server with `exit-empty` off and without sessions reports its lack of panes as this error.
    let problem = problem.filter(|problem| !problem.says("no current target"));
    PaneListing {
        server: rows(&lines).first().map(|row: &ServerRow| row.pid),
        panes: rows(&lines),
        problem,
    }
}

pub(super) fn verdict(claim: &PaneClaim<'_>, listing: &PaneListing) -> Verdict {
    judge(observe(claim, listing, process_state))
}

fn observe(
    claim: &PaneClaim<'_>,
    listing: &PaneListing,
    state: impl Fn(ProcessId) -> ProcessState,
) -> Observation {
    let recorded = claim.recorded;
    let incomplete = || "the answer was cut short".to_owned();
    let problem = || listing.problem.as_ref().map_or_else(incomplete, BackendError::to_string);
    Observation::Unclear(match (listing.server, state(recorded.server)) {
        // A pane does not outlive its server, whichever server owns the socket now.
        (_, ProcessState::Ended | ProcessState::Replaced) => return Observation::Absent,
        (Some(pid), ProcessState::Running) if pid == recorded.server.pid => {
            return observe_pane(claim, listing, state);
        }
        // The recorded server may still run behind a socket that was removed or replaced (CR-11).
        (Some(pid), ProcessState::Running) => {
            format!("another tmux server ({pid}) now owns the socket of the server that created it")
        }
        (None, ProcessState::Running) => {
            format!("its tmux server is running but does not answer: {}", problem())
        }
        (_, ProcessState::Unknown) => {
            "the system cannot say whether its tmux server is running".to_owned()
        }
    })
}

fn observe_pane(
    claim: &PaneClaim<'_>,
    listing: &PaneListing,
    state: impl Fn(ProcessId) -> ProcessState,
) -> Observation {
    let Some(row) = listing.panes.iter().find(|row| row.id == claim.id) else {
        return match &listing.problem {
            None => Observation::Absent,
            Some(problem) => Observation::Unclear(problem.to_string()),
        };
    };
    let unreadable = |reason: &str| IdentityPart::Unreadable(reason.to_owned());
    let process = match (state(claim.recorded.pane), row.dead) {
        // The pane may outlive the launcher: kept by `remain-on-exit`, or because children hold its
        // terminal.
        (ProcessState::Running, false)
        | (ProcessState::Ended, _)
        | (ProcessState::Replaced, true) => IdentityPart::Same,
        (ProcessState::Replaced, false) => {
            IdentityPart::Different("start of the process".to_owned())
        }
        (ProcessState::Running, true) => {
            unreadable("tmux reports its process as dead, but it is running")
        }
        (ProcessState::Unknown, _) => {
            unreadable("the system cannot say whether its process is running")
        }
    };
    let pid = match (row.pid, row.dead) {
        (Some(pid), _) => IdentityPart::compare("process", &claim.recorded.pane.pid, &pid),
        // tmux 3.8 no longer reports it. The recorded process has ended, or `process` is
        // unreadable.
        (None, true) => IdentityPart::Same,
        (None, false) => unreadable("tmux does not report its process"),
    };
    Observation::Present(vec![
        IdentityPart::compare("token", claim.token.as_str(), row.token.as_str()),
        pid,
        process,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: ProcessId = ProcessId { pid: 100, start: 1 };
    const PANE: ProcessId = ProcessId { pid: 200, start: 2 };

    fn recorded() -> TmuxPane {
        TmuxPane {
            socket: "/tmp/s".to_owned(),
            server: SERVER,
            session_id: "$0".to_owned(),
            session_name: "phalanx-demo".to_owned(),
            window_id: "@0".to_owned(),
            window_name: "phalanx-demo".to_owned(),
            pane_id: "%5".to_owned(),
            pane: PANE,
        }
    }

    fn seen(pid: i32, dead: bool, token: &str) -> Option<PaneRow> {
        let pid = if pid == 0 { String::new() } else { pid.to_string() };
        let row = rows::<PaneRow>(&[format!(
            "phx-pane %5 {pid} {} $0 @0 80 24 80 24 0 1  {token}",
            u8::from(dead)
        )]);
        row.into_iter().next()
    }

    fn word(
        server: Option<i32>,
        pane: Option<PaneRow>,
        states: (ProcessState, ProcessState),
        is_incomplete: bool,
    ) -> &'static str {
        let problem = BackendError::Unavailable { program: "tmux", problem: "trouble".to_owned() };
        let panes = pane.into_iter().collect();
        let listing = PaneListing { server, panes, problem: is_incomplete.then_some(problem) };
        let placement = Placement::Tmux(recorded());
        let claim =
            PaneClaim::parse(&Mark { placement: &placement, token: "tok" }).expect("a good record");
        let state = |process| if process == SERVER { states.0 } else { states.1 };
        judge(observe(&claim, &listing, state)).into()
    }

    #[test]
    fn sd_06_cr_11_verdict_depends_on_the_server() {
        use ProcessState::{Ended, Replaced, Running, Unknown};
        let table = [
            // server that answers, state of the recorded server, verdict if the pane's row is as
            // recorded
            (Some(100), Running, "owned"),
            (Some(100), Ended, "gone"),
            (Some(100), Replaced, "gone"),
            (Some(100), Unknown, "unknown"),
            (Some(101), Running, "unknown"),
            (Some(101), Ended, "gone"),
            (Some(101), Replaced, "gone"),
            (Some(101), Unknown, "unknown"),
            (None, Running, "unknown"),
            (None, Ended, "gone"),
            (None, Replaced, "gone"),
            (None, Unknown, "unknown"),
        ];
        for (server, state, expected) in table {
            let got = word(server, seen(200, false, "tok"), (state, Running), server.is_none());
            assert_eq!(got, expected, "{server:?} {state:?}");
        }
    }

    #[test]
    fn sd_05_verdict_depends_on_token_and_process() {
        use ProcessState::{Ended, Replaced, Running, Unknown};
        let table = [
            (seen(200, false, "tok"), Running, "owned"),
            (seen(200, false, "tok"), Ended, "owned"),
            (seen(200, false, "tok"), Replaced, "foreign"),
            (seen(200, false, "tok"), Unknown, "unknown"),
            (seen(200, true, "tok"), Ended, "owned"),
            (seen(200, true, "tok"), Replaced, "owned"),
            (seen(200, true, "tok"), Running, "unknown"),
            // tmux 3.8 reports no pid once the program has exited.
            (seen(0, true, "tok"), Ended, "owned"),
            (seen(0, true, "other"), Ended, "foreign"),
            (seen(0, true, "tok"), Running, "unknown"),
            (seen(0, false, "tok"), Running, "unknown"),
            (seen(201, false, "tok"), Running, "foreign"),
            (seen(200, false, "other"), Running, "foreign"),
            (seen(200, false, ""), Running, "foreign"),
            (None, Running, "gone"),
        ];
        for (pane, state, expected) in table {
            assert_eq!(
                word(Some(100), pane.clone(), (Running, state), false),
                expected,
                "{pane:?} {state:?}"
            );
        }
        assert_eq!(
            word(Some(100), None, (Running, Running), true),
            "unknown",
            "an incomplete answer does not prove that the pane is gone"
        );
    }
}
