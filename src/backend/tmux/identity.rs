//! Whether a recorded pane is still there and still ours (protocol.md, section 8; SD-06, CR-11). Where it is, what it
//! is called and whether it is seen do not matter: people swap, move, zoom and rename. Refuses to act on what it finds.

use std::path::Path;

use super::command::{PaneId, Plain, Server};
use super::row::{PaneRow, ServerRow, rows};
use super::verb;
use crate::model::placement::{ProcessId, TmuxPane, Verdict};
use crate::sys::proc::{self, Liveness, Process};

/// What has become of a recorded process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Alive,
    Gone,
    /// Its pid belongs to another one.
    Replaced,
    Unknown,
}

/// What the socket says about the pane.
#[derive(Debug, Clone)]
struct Look {
    /// Pid of the server that answered.
    server: Option<i32>,
    pane: Option<PaneRow>,
    /// Why not all of the answer came.
    trouble: Option<String>,
}

/// Asks the pane's own server, in one tmux process.
pub(super) fn verify(program: &Path, recorded: &TmuxPane, token: &str) -> Verdict {
    let unknown = |reason: String| Verdict::Unknown { reason };
    let Some(pane) = PaneId::parse(&recorded.pane_id) else {
        return unknown(format!("{:?} is not the id of a pane", recorded.pane_id));
    };
    if Plain::parse(token).is_none() {
        return unknown("the recorded token is not one".to_owned());
    }
    if recorded.socket.is_empty() {
        return unknown("no socket is recorded".to_owned());
    }
    let server = Server { program, socket: Some(Path::new(&recorded.socket)) };
    judge(recorded, token, &look(&server, pane), fate)
}

fn look(server: &Server<'_>, pane: PaneId) -> Look {
    let answer = server.ask(&verb::server().then(verb::pane(pane)));
    let found = rows::<PaneRow>(&answer.lines).into_iter().find(|row| row.id == pane);
    let trouble = answer.problem.map(|problem| problem.to_string());
    // A server that was told to stay without sessions has no panes either, and says it in this way.
    let trouble = trouble.filter(|text| !text.ends_with("no current target"));
    Look { server: rows(&answer.lines).first().map(|row: &ServerRow| row.pid), pane: found, trouble }
}

fn fate(process: ProcessId) -> Fate {
    match proc::liveness(process.pid, process.start) {
        Liveness::Alive => Fate::Alive,
        Liveness::Unknown => Fate::Unknown,
        Liveness::Dead if Process::of(process.pid).is_some() => Fate::Replaced,
        Liveness::Dead => Fate::Gone,
    }
}

fn judge(recorded: &TmuxPane, token: &str, look: &Look, fate: impl Fn(ProcessId) -> Fate) -> Verdict {
    let trouble = || look.trouble.clone().unwrap_or_else(|| "the answer was cut short".to_owned());
    let reason = match (look.server, fate(recorded.server)) {
        // A pane does not outlive its server, whoever has the socket now.
        (_, Fate::Gone | Fate::Replaced) => return Verdict::Gone,
        (Some(pid), Fate::Alive) if pid == recorded.server.pid => {
            return judge_pane(recorded, token, look, fate);
        }
        // It may live on behind a socket that was removed or taken (CR-11).
        (Some(pid), Fate::Alive) => {
            format!("another tmux server ({pid}) has the socket of the one that it was made by")
        }
        (None, Fate::Alive) => format!("its tmux server lives but does not answer: {}", trouble()),
        (_, Fate::Unknown) => "the system does not tell whether its tmux server lives".to_owned(),
    };
    Verdict::Unknown { reason }
}

fn judge_pane(recorded: &TmuxPane, token: &str, look: &Look, fate: impl Fn(ProcessId) -> Fate) -> Verdict {
    let foreign = |difference: &str| Verdict::Foreign { difference: difference.to_owned() };
    let unknown = |reason: &str| Verdict::Unknown { reason: reason.to_owned() };
    let Some(row) = &look.pane else {
        return match &look.trouble {
            None => Verdict::Gone,
            Some(trouble) => unknown(trouble),
        };
    };
    if row.token != token {
        return foreign("token");
    }
    if row.pid != recorded.pane.pid {
        return foreign("process");
    }
    match (fate(recorded.pane), row.dead) {
        // The launcher may be gone and the pane still open: kept by `remain-on-exit` or held by its children.
        (Fate::Alive, false) | (Fate::Gone, _) | (Fate::Replaced, true) => Verdict::Owned,
        (Fate::Replaced, false) => foreign("start of the process"),
        (Fate::Alive, true) => unknown("tmux takes its process for dead, which it is not"),
        (Fate::Unknown, _) => unknown("the system does not tell whether its process lives"),
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
        let row = rows::<PaneRow>(&[format!("phx-pane %5 {pid} {} $0 80 24 {token}", u8::from(dead))]);
        row.into_iter().next()
    }

    fn word(server: Option<i32>, pane: Option<PaneRow>, fates: (Fate, Fate), trouble: bool) -> &'static str {
        let look = Look { server, pane, trouble: trouble.then(|| "trouble".to_owned()) };
        let fate = |process| if process == SERVER { fates.0 } else { fates.1 };
        match judge(&recorded(), "tok", &look, fate) {
            Verdict::Owned => "owned",
            Verdict::Foreign { .. } => "foreign",
            Verdict::Gone => "gone",
            Verdict::Unknown { .. } => "unknown",
        }
    }

    #[test]
    fn sd_06_cr_11_the_table_of_servers() {
        use Fate::{Alive, Gone, Replaced, Unknown};
        let table = [
            // who answers, fate of the recorded server, verdict when the pane's row is as recorded
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
    fn sd_05_the_table_of_panes() {
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
            assert_eq!(word(Some(100), pane.clone(), (Alive, fate), false), expected, "{pane:?} {fate:?}");
        }
        assert_eq!(
            word(Some(100), None, (Alive, Alive), true),
            "unknown",
            "half an answer proves no absence"
        );
    }
}
