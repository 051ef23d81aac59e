//! Test laboratory: tmux servers on private sockets, real clients, and programs that stand in for
//! launchers. Never touches the default server; kills each server by its own socket.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use super::super::Tmux;
use crate::{Backend, CloseOutcome, InsidePane, Label, Mark, PlacementRequest, TmuxHome};
use model::id::MemberName;
use model::members::placement::{Layout, Placement, TmuxPane, Verdict};
use sys::clock::{self, Deadline};
use sys::{exec, fs};

/// Time limit of every wait.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/tmux");

/// One private server, or the location for one.
pub(super) struct Lab {
    dir: TempDir,
    pub(super) socket: PathBuf,
    /// The socket of a second server, whose pane runs a client of the first.
    outer: PathBuf,
}

impl Lab {
    /// A location without a server.
    pub(super) fn empty() -> Lab {
        let dir = tempfile::tempdir().expect("a directory for the sockets");
        let (socket, outer) = (dir.path().join("s"), dir.path().join("outer"));
        Lab { dir, socket, outer }
    }

    /// A server with the session `main` of 80x24, with a configuration from the fixtures or none.
    pub(super) fn start(conf: Option<&str>) -> Lab {
        let lab = Lab::empty();
        lab.boot(conf);
        lab.tmux(&[
            "new-session",
            "-d",
            "-s",
            "main",
            "-x",
            "80",
            "-y",
            "24",
            "--",
            "env",
            "sleep",
            "300",
        ]);
        lab
    }

    /// A server with the session `main` of 200x50.
    pub(super) fn wide() -> Lab {
        let lab = Lab::empty();
        lab.boot(None);
        lab.tmux(&[
            "new-session",
            "-d",
            "-s",
            "main",
            "-x",
            "200",
            "-y",
            "50",
            "--",
            "env",
            "sleep",
            "300",
        ]);
        lab
    }

    /// Starts the server without sessions.
    pub(super) fn boot(&self, conf: Option<&str>) {
        let conf = conf.map_or_else(|| "/dev/null".to_owned(), |name| format!("{FIXTURES}/{name}"));
        let socket = self.socket.to_str().expect("utf-8");
        let words = [
            "-f",
            &conf,
            "-S",
            socket,
            "start-server",
            ";",
            "set-option",
            "-s",
            "exit-empty",
            "off",
        ];
        // A server that a test has ended may still be exiting.
        until("a server", || run("tmux", &words).code == Some(0));
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Runs a tmux command that must succeed, and returns its output.
    pub(super) fn tmux(&self, words: &[&str]) -> String {
        let output = self.try_tmux(words);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.code, Some(0), "{words:?}: {stderr}");
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    pub(super) fn try_tmux(&self, words: &[&str]) -> exec::ExecOutput {
        let mut all = vec!["-u", "-S", self.socket.to_str().expect("utf-8")];
        all.extend(words);
        run("tmux", &all)
    }

    /// Expands a format for a pane, a window or a session.
    pub(super) fn field(&self, target: &str, format: &str) -> String {
        self.tmux(&["display-message", "-p", "-t", target, format])
    }

    pub(super) fn panes(&self) -> Vec<String> {
        let listed = self.try_tmux(&["list-panes", "-a", "-F", "#{pane_id}"]);
        let mut ids: Vec<String> =
            String::from_utf8_lossy(&listed.stdout).lines().map(str::to_owned).collect();
        ids.retain(|line| line.starts_with('%'));
        ids.sort();
        ids.dedup();
        ids
    }

    /// Attaches a real client of 80x24 to `session`.
    pub(super) fn attach(&self, session: &str) {
        self.attach_sized(session, 80, 24);
    }

    /// Attaches a real client of this size to `session`.
    pub(super) fn attach_sized(&self, session: &str, width: usize, height: usize) {
        let (outer, inner) =
            (self.outer.to_str().expect("utf-8"), self.socket.to_str().expect("utf-8"));
        let (width, height) = (width.to_string(), height.to_string());
        let head =
            ["-f", "/dev/null", "-S", outer, "new-session", "-d", "-x", &width, "-y", &height];
        let tail = ["--", "env", "-u", "TMUX", "tmux", "-u", "-S", inner, "attach", "-t", session];
        let output = run("tmux", &[&head[..], &tail[..]].concat());
        assert_eq!(output.code, Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let size = format!("{width}x{height}");
        until("a client is attached", || {
            self.tmux(&["list-clients", "-t", session]).contains(&size)
        });
    }

    /// Attaches a client in control mode to `session`, as iTerm2 does with `tmux -CC`.
    pub(super) fn attach_control(&self, session: &str) {
        let (outer, inner) =
            (self.outer.to_str().expect("utf-8"), self.socket.to_str().expect("utf-8"));
        let head = ["-f", "/dev/null", "-S", outer, "new-session", "-d", "--"];
        let tail = ["env", "-u", "TMUX", "tmux", "-u", "-S", inner, "-C", "attach", "-t", session];
        assert_eq!(run("tmux", &[&head[..], &tail[..]].concat()).code, Some(0));
        let modes = || self.tmux(&["list-clients", "-t", session, "-F", "#{client_control_mode}"]);
        until("a client in control mode is attached", || modes().contains('1'));
    }

    /// The screen of the client of [`Lab::attach`], with its colours.
    pub(super) fn shown(&self) -> String {
        let outer = self.outer.to_str().expect("utf-8");
        let output = run("tmux", &["-u", "-S", outer, "capture-pane", "-e", "-p"]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Number of processes that a [`traced`] tmux has started.
    pub(super) fn calls(&self) -> usize {
        self.text("trace").lines().filter(|line| *line == "CALL").count()
    }

    pub(super) fn home(&self, team: &str) -> TmuxHome {
        TmuxHome {
            program: PathBuf::from("tmux"),
            socket: Some(self.socket.clone()),
            inside: None,
            last: None,
            team: team.to_owned(),
            tag: format!("{team}-7f3a"),
            layout: Layout::Panes,
        }
    }

    /// The home of a team whose lead runs in `pane`.
    pub(super) fn home_in(&self, team: &str, pane: &str) -> TmuxHome {
        // Fails for a server that does not run.
        let found = self.try_tmux(&["display-message", "-p", "-t", pane, "#{session_id}"]);
        let session = String::from_utf8_lossy(&found.stdout).trim_end().to_owned();
        let inside = InsidePane { pane: pane.to_owned(), session };
        TmuxHome { inside: Some(inside), ..self.home(team) }
    }

    /// Writes an executable file. The shell does it, so that no descriptor of this process makes
    /// its execution fail with ETXTBSY.
    pub(super) fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        let words = ["-c", "printf '%s' \"$1\" > \"$2\" && chmod 755 \"$2\"", "sh", text];
        let output = run("/bin/sh", &[&words[..], &[path.to_str().expect("utf-8")]].concat());
        assert_eq!(output.code, Some(0));
        path
    }

    /// The text of a file in the laboratory; empty if it does not exist.
    pub(super) fn text(&self, name: &str) -> String {
        let bytes = fs::read(&self.path(name), 1 << 20).expect("readable").unwrap_or_default();
        String::from_utf8(bytes).expect("utf-8")
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for socket in [&self.outer, &self.socket] {
            run("tmux", &["-S", socket.to_str().unwrap_or("/nonexistent"), "kill-server"]);
        }
    }
}

pub(super) fn run(program: &str, words: &[&str]) -> exec::ExecOutput {
    let args = words.iter().map(OsString::from).collect();
    let command = exec::ExecCommand {
        program: OsString::from(program),
        args,
        ..exec::ExecCommand::default()
    };
    exec::run(&command, PATIENCE).expect("the helper program runs")
}

/// Polls `condition` until it holds; panics with `what` at the time limit.
pub(super) fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Deadline::after(PATIENCE);
    while !condition() {
        assert!(!deadline.expired(), "timed out waiting for: {what}");
        clock::sleep(Duration::from_millis(5));
    }
}

pub(super) fn launch_of(member: &str, argv: &[&str]) -> PlacementRequest {
    PlacementRequest {
        member: MemberName::existing(member).expect("a name"),
        token: format!("tok-{}", sys::rand::token()),
        argv: argv.iter().map(OsString::from).collect(),
        label: Label {
            name: member.to_owned(),
            role: Some("tester".to_owned()),
            ..Label::default()
        },
    }
}

/// A launcher that keeps running.
pub(super) fn launch(member: &str) -> PlacementRequest {
    launch_of(member, &["/usr/bin/env", "sleep", "300"])
}

pub(super) fn launches(count: usize) -> Vec<PlacementRequest> {
    (0..count).map(|nth| launch(&format!("m{nth}"))).collect()
}

/// Places all launchers, each of which must succeed.
pub(super) fn placed(tmux: &Tmux, launches: &[PlacementRequest]) -> Vec<Placement> {
    tmux.place(launches).into_iter().map(|result| result.expect("a place")).collect()
}

pub(super) fn pane(placement: &Placement) -> &TmuxPane {
    match placement {
        Placement::Tmux(pane) => pane,
        Placement::Iterm2(_) | Placement::Pty(_) => panic!("not a pane"),
    }
}

/// Closes a placement that must still exist.
pub(super) fn closed(tmux: &Tmux, placement: &Placement, launch: &PlacementRequest) {
    let outcome = tmux.close(Mark::new(placement, &launch.token));
    assert!(matches!(outcome, CloseOutcome::Closed), "{outcome:?}");
    assert_eq!(tmux.verify(Mark::new(placement, &launch.token)), Verdict::Gone);
}

pub(super) fn marks<'a>(
    places: &'a [Placement],
    launches: &'a [PlacementRequest],
) -> Vec<Mark<'a>> {
    let mark = |(placement, launch): (&'a Placement, &'a PlacementRequest)| Mark {
        placement,
        token: &launch.token,
    };
    places.iter().zip(launches).map(mark).collect()
}

/// Closes placements that must all still exist.
pub(super) fn all_closed(tmux: &Tmux, places: &[Placement], launches: &[PlacementRequest]) {
    for outcome in tmux.close_all(&marks(places, launches), &mut |_| true) {
        assert!(matches!(outcome, CloseOutcome::Closed), "{outcome:?}");
    }
}

/// Asserts that closing is refused, and returns the verdict.
pub(super) fn refused(tmux: &Tmux, placement: &Placement, token: &str) -> Verdict {
    match tmux.close(Mark::new(placement, token)) {
        CloseOutcome::Foreign { difference } => Verdict::Foreign { difference },
        CloseOutcome::Unknown { reason } => Verdict::Unknown { reason },
        other => panic!("not refused: {other:?}"),
    }
}

/// A tmux that records each of its arguments before it runs.
pub(super) fn traced(lab: &Lab) -> PathBuf {
    let log = lab.path("trace");
    let log = log.to_str().expect("utf-8");
    let text = format!("#!/bin/sh\nprintf '%s\\n' CALL \"$@\" >> '{log}'\nexec tmux \"$@\"\n");
    lab.script("traced", &text)
}

pub(super) fn exists(path: &Path) -> bool {
    fs::exists(path)
}
