//! Decides whether a recorded pane still exists and is ours (SD-06, CR-11). Its location, name and
//! visibility do not matter, because people swap, move, zoom and rename panes.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::command::{PaneId, Plain, Server, Unit};
use super::row::{PaneRow, ServerRow, rows};
use super::verb::{self, Proof};
use crate::backend::{BackendError, Mark};
use crate::model::placement::{Placement, ProcessId, TmuxPane, Verdict};
use crate::sys::proc::{self, Liveness, Process};

/// Time that an exiting server gets to disappear.
const LEAVING: Duration = Duration::from_secs(1);

/// The state of a recorded process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Alive,
    Gone,
    /// Its pid now belongs to another process.
    Replaced,
    Unknown,
}

/// A recorded pane with a valid id, token and socket; other records never reach tmux (SD-07).
#[derive(Debug, Clone)]
pub(super) struct Claim<'p> {
    pub(super) recorded: &'p TmuxPane,
    pub(super) id: PaneId,
    pub(super) token: Plain,
}

impl<'p> Claim<'p> {
    /// Validates the record of a placement.
    ///
    /// # Errors
    /// Returns the verdict on an invalid record or on a placement of another backend.
    pub(super) fn of(mark: &Mark<'p>) -> Result<Claim<'p>, Verdict> {
        let unknown = |reason: String| Verdict::Unknown { reason };
        let recorded = match mark.placement {
            Placement::Tmux(pane) => pane,
            Placement::Iterm2(_) | Placement::Pty(_) | Placement::Exec(_) => {
                return Err(Verdict::Foreign { difference: "it is not a tmux pane".to_owned() });
            }
        };
        let id = PaneId::parse(&recorded.pane_id)
            .ok_or_else(|| unknown(format!("{:?} is not the id of a pane", recorded.pane_id)))?;
        let token = Plain::parse(mark.token)
            .ok_or_else(|| unknown("the recorded token is invalid".to_owned()))?;
        if recorded.socket.is_empty() {
            return Err(unknown("no socket is recorded".to_owned()));
        }
        Ok(Claim { recorded, id, token })
    }

    pub(super) fn server(&self, program: &'p Path) -> Server<'p> {
        Server { program, socket: Some(Path::new(&self.recorded.socket)) }
    }

    pub(super) fn place(&self) -> String {
        Placement::Tmux(self.recorded.clone()).to_string()
    }

    /// Makes `unit` conditional on the identity of the claimed pane.
    pub(super) fn guarded(&self, unit: &Unit) -> Unit {
        verb::guarded(self.id, self.recorded.server.pid, &Proof::Token(&self.token), unit)
    }
}

/// The panes of a server, as listed by one call.
#[derive(Debug)]
pub(super) struct Look {
    /// Pid of the server that answered.
    server: Option<i32>,
    panes: Vec<PaneRow>,
    /// Set if the answer may be incomplete.
    pub(super) problem: Option<BackendError>,
}

impl Look {
    /// The zoomed panes of windows in which panes of `going` will close: each close would end the
    /// zoom (LY-05).
    pub(super) fn alone_before<'l>(
        &'l self,
        going: &'l [PaneId],
    ) -> impl Iterator<Item = PaneId> + 'l {
        let shrinks =
            |window| self.panes.iter().any(|row| row.window == window && going.contains(&row.id));
        let alone = move |row: &&PaneRow| {
            row.zoomed && row.active && !going.contains(&row.id) && shrinks(row.window)
        };
        self.panes.iter().filter(alone).map(|row| row.id)
    }
}

/// Judges all marks, with one tmux process for each server.
pub(super) fn verify_all(program: &Path, marks: &[Mark<'_>]) -> Vec<Verdict> {
    let mut looks: BTreeMap<&str, Look> = BTreeMap::new();
    let mut verdicts = Vec::new();
    for mark in marks {
        verdicts.push(match Claim::of(mark) {
            Ok(claim) => {
                let once = || look_once(&claim, program);
                verdict(&claim, looks.entry(&claim.recorded.socket).or_insert_with(once))
            }
            Err(verdict) => verdict,
        });
    }
    verdicts
}

/// Lists the panes of a claim's server. A server that exits during the call reports only that, so
/// its process is given time to disappear before it is judged (SD-13).
fn look_once(claim: &Claim<'_>, program: &Path) -> Look {
    let seen = look(&claim.server(program), Vec::new());
    if seen
        .problem
        .as_ref()
        .is_some_and(|problem| problem.to_string().ends_with("server exited unexpectedly"))
    {
        let ProcessId { pid, start } = claim.recorded.server;
        proc::wait_exit(Process { pid, start }, LEAVING);
    }
    seen
}

/// Lists all panes of a server, in the same process and after the commands `before`.
pub(super) fn look(server: &Server<'_>, mut before: Vec<Unit>) -> Look {
    before.push(verb::server().then(verb::panes()));
    let (mut lines, mut problem) = (Vec::new(), None);
    for answer in server.run(&before) {
        lines.extend(answer.lines);
        problem = answer.problem.or(problem);
    }
    // A server with `exit-empty` off and without sessions reports its lack of panes as this error.
    let problem = problem.filter(|problem| !problem.to_string().ends_with("no current target"));
    Look {
        server: rows(&lines).first().map(|row: &ServerRow| row.pid),
        panes: rows(&lines),
        problem,
    }
}

pub(super) fn verdict(claim: &Claim<'_>, look: &Look) -> Verdict {
    judge(claim, look, fate)
}

fn fate(process: ProcessId) -> Fate {
    match proc::liveness(process.pid, process.start) {
        Liveness::Alive => Fate::Alive,
        Liveness::Unknown => Fate::Unknown,
        Liveness::Dead if Process::of(process.pid).is_some() => Fate::Replaced,
        Liveness::Dead => Fate::Gone,
    }
}

fn judge(claim: &Claim<'_>, look: &Look, fate: impl Fn(ProcessId) -> Fate) -> Verdict {
    let recorded = claim.recorded;
    let cut = || "the answer was cut short".to_owned();
    let trouble = || look.problem.as_ref().map_or_else(cut, BackendError::to_string);
    let reason = match (look.server, fate(recorded.server)) {
        // A pane does not outlive its server, whichever server owns the socket now.
        (_, Fate::Gone | Fate::Replaced) => return Verdict::Gone,
        (Some(pid), Fate::Alive) if pid == recorded.server.pid => {
            return judge_pane(claim, look, fate);
        }
        // The recorded server may still run behind a socket that was removed or replaced (CR-11).
        (Some(pid), Fate::Alive) => {
            format!("another tmux server ({pid}) now owns the socket of the server that created it")
        }
        (None, Fate::Alive) => {
            format!("its tmux server is running but does not answer: {}", trouble())
        }
        (_, Fate::Unknown) => "the system cannot say whether its tmux server is running".to_owned(),
    };
    Verdict::Unknown { reason }
}

fn judge_pane(claim: &Claim<'_>, look: &Look, fate: impl Fn(ProcessId) -> Fate) -> Verdict {
    let foreign = |difference: &str| Verdict::Foreign { difference: difference.to_owned() };
    let unknown = |reason: &str| Verdict::Unknown { reason: reason.to_owned() };
    let Some(row) = look.panes.iter().find(|row| row.id == claim.id) else {
        return match &look.problem {
            None => Verdict::Gone,
            Some(problem) => unknown(&problem.to_string()),
        };
    };
    if row.token != claim.token.as_str() {
        return foreign("token");
    }
    if row.pid != claim.recorded.pane.pid {
        return foreign("process");
    }
    match (fate(claim.recorded.pane), row.dead) {
        // The pane may outlive the launcher: kept by `remain-on-exit`, or because children hold its
        // terminal.
        (Fate::Alive, false) | (Fate::Gone, _) | (Fate::Replaced, true) => Verdict::Owned,
        (Fate::Replaced, false) => foreign("start of the process"),
        (Fate::Alive, true) => unknown("tmux reports its process as dead, but it is running"),
        (Fate::Unknown, _) => unknown("the system cannot say whether its process is running"),
    }
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
        let row = rows::<PaneRow>(&[format!(
            "phx-pane %5 {pid} {} $0 @0 80 24 80 24 0 1  {token}",
            u8::from(dead)
        )]);
        row.into_iter().next()
    }

    fn word(
        server: Option<i32>,
        pane: Option<PaneRow>,
        fates: (Fate, Fate),
        trouble: bool,
    ) -> &'static str {
        let problem = BackendError::Unavailable { program: "tmux", problem: "trouble".to_owned() };
        let panes = pane.into_iter().collect();
        let look = Look { server, panes, problem: trouble.then_some(problem) };
        let placement = Placement::Tmux(recorded());
        let claim =
            Claim::of(&Mark { placement: &placement, token: "tok" }).expect("a good record");
        let fate = |process| if process == SERVER { fates.0 } else { fates.1 };
        judge(&claim, &look, fate).into()
    }

    #[test]
    fn sd_06_cr_11_verdict_depends_on_the_server() {
        use Fate::{Alive, Gone, Replaced, Unknown};
        let table = [
            // server that answers, fate of the recorded server, verdict if the pane's row is as
            // recorded
            (Some(100), Alive, "owned"),
            (Some(100), Gone, "gone"),
            (Some(100), Replaced, "gone"),
            (Some(100), Unknown, "unknown"),
            (Some(101), Alive, "unknown"),
            (Some(101), Gone, "gone"),
            (Some(101), Replaced, "gone"),
            (Some(101), Unknown, "unknown"),
            (None, Alive, "unknown"),
            (None, Gone, "gone"),
            (None, Replaced, "gone"),
            (None, Unknown, "unknown"),
        ];
        for (server, fate, expected) in table {
            let got = word(server, seen(200, false, "tok"), (fate, Alive), server.is_none());
            assert_eq!(got, expected, "{server:?} {fate:?}");
        }
    }

    #[test]
    fn sd_05_verdict_depends_on_token_and_process() {
        use Fate::{Alive, Gone, Replaced, Unknown};
        let table = [
            (seen(200, false, "tok"), Alive, "owned"),
            (seen(200, false, "tok"), Gone, "owned"),
            (seen(200, false, "tok"), Replaced, "foreign"),
            (seen(200, false, "tok"), Unknown, "unknown"),
            (seen(200, true, "tok"), Gone, "owned"),
            (seen(200, true, "tok"), Replaced, "owned"),
            (seen(200, true, "tok"), Alive, "unknown"),
            (seen(201, false, "tok"), Alive, "foreign"),
            (seen(200, false, "other"), Alive, "foreign"),
            (seen(200, false, ""), Alive, "foreign"),
            (None, Alive, "gone"),
        ];
        for (pane, fate, expected) in table {
            assert_eq!(
                word(Some(100), pane.clone(), (Alive, fate), false),
                expected,
                "{pane:?} {fate:?}"
            );
        }
        assert_eq!(
            word(Some(100), None, (Alive, Alive), true),
            "unknown",
            "half an answer proves no absence"
        );
    }
}
