//! Tests against real processes: a shell plays the launcher.

use std::time::Duration;

use super::*;
use crate::Label;
use model::members::placement::TmuxPane;
use sys::fs;
use sys::proc::Liveness;

fn process(placement: &Placement) -> Process {
    let ProcessId { pid, start } = placement.launcher().expect("known at once");
    Process { pid, start }
}

struct Bench {
    dir: tempfile::TempDir,
    pty: Pty,
    placed: std::cell::RefCell<Vec<Process>>,
}

/// Stops all launchers, even if the test panics.
impl Drop for Bench {
    fn drop(&mut self) {
        for launcher in self.placed.borrow().iter() {
            proc::end_tree(*launcher, true, Duration::ZERO);
        }
    }
}

impl Bench {
    fn new() -> Bench {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let logs = dir.path().to_owned();
        let env =
            vec![("PATH".into(), "/usr/bin:/bin".into()), ("OF_LAUNCHER".into(), "yes".into())];
        let pty = Pty::new(env, move |name| logs.join(format!("{name}.log")));
        Bench { dir, pty, placed: std::cell::RefCell::default() }
    }

    fn launch(member: &str, script: &str) -> PlacementRequest {
        let argv = ["/bin/sh", "-c", script].map(OsString::from).to_vec();
        let (member, token) = (MemberName::new(member).expect("a name"), "t".to_owned());
        PlacementRequest { member, token, argv, label: Label::default() }
    }

    fn place(&self, script: &str) -> Placement {
        let placed =
            self.pty.place(&[Self::launch("alice", script)]).remove(0).expect("sh is there");
        self.placed.borrow_mut().push(process(&placed));
        placed
    }

    fn wait_for(&self, file: &str) -> String {
        let path = self.dir.path().join(file);
        let deadline = sys::clock::Deadline::after(Duration::from_secs(60));
        loop {
            let bytes = fs::read(&path, 1024).expect("readable").unwrap_or_default();
            if bytes.ends_with(b"\n") {
                return String::from_utf8(bytes).expect("text");
            }
            assert!(!deadline.expired(), "timed out waiting for {file}");
            sys::clock::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn launcher_is_placed_verified_and_closed() {
    let bench = Bench::new();
    let script =
        format!("cd {}; echo $OF_LAUNCHER $(pwd) > up; sleep 60", bench.dir.path().display());
    let placement = bench.place(&script);
    assert_eq!(bench.wait_for("up"), format!("yes {}\n", bench.dir.path().display()));
    assert_eq!(placement.backend(), BackendKind::Pty);
    assert_eq!(bench.pty.verify(Mark::new(&placement, "t")), Verdict::Owned);
    assert_eq!(bench.pty.how_to_watch(&placement), "phalanx attach alice");
    assert!(matches!(bench.pty.close(Mark::new(&placement, "t")), CloseOutcome::Closed));
    assert_eq!(bench.pty.verify(Mark::new(&placement, "t")), Verdict::Gone);
    assert!(
        matches!(bench.pty.close(Mark::new(&placement, "t")), CloseOutcome::Gone),
        "twice is harmless"
    );
}

#[test]
fn reused_pid_is_gone_and_not_signalled() {
    let bench = Bench::new();
    let Placement::Pty(hold) = bench.place("sleep 60") else {
        panic!("another backend's placement")
    };
    let other = ProcessId { start: hold.launcher.start + 1, ..hold.launcher };
    let placement = Placement::Pty(PtyHold { launcher: other, log: hold.log });
    assert_eq!(bench.pty.verify(Mark::new(&placement, "t")), Verdict::Gone);
    assert!(
        matches!(bench.pty.close(Mark::new(&placement, "t")), CloseOutcome::Gone),
        "nothing to do"
    );
    assert_eq!(process_state(hold.launcher), ProcessState::Running);
}

#[test]
fn launcher_that_ignores_sigterm_is_killed_with_its_tree() {
    let bench = Bench::new();
    let script = format!(
        "trap '' TERM HUP; cd {}; sleep 60 & echo $! > up; while :; do wait; done",
        bench.dir.path().display()
    );
    let placement = bench.place(&script);
    let below: i32 = bench.wait_for("up").trim().parse().expect("a pid");
    let below = Process::of(below).expect("it runs");
    assert!(matches!(bench.pty.close(Mark::new(&placement, "t")), CloseOutcome::Closed));
    assert_eq!(bench.pty.verify(Mark::new(&placement, "t")), Verdict::Gone);
    assert_eq!(proc::liveness(below.pid, below.start), Liveness::Dead);
}

#[test]
fn early_stderr_of_a_launcher_is_on_its_screen() {
    let bench = Bench::new();
    let placed = bench.pty.place(&[
        Bench::launch("bob", "echo 'no spec' >&2; exit 125"),
        Bench::launch("eve", "sleep 60"),
    ]);
    // The result for bob does not matter: the launcher may have exited before it was identified.
    let log = bench.wait_for("bob.log");
    assert_eq!(log, "no spec\n");
    let eve = placed[1].as_ref().expect("sh is there");
    bench.placed.borrow_mut().push(process(eve));
    let hold = PtyHold {
        launcher: eve.launcher().expect("known at once"),
        log: bench.dir.path().join("bob.log").display().to_string(),
    };
    let screen = bench.pty.screen(Mark::new(&Placement::Pty(hold), "t"), 20);
    assert_eq!(screen.expect("readable"), "no spec");
}

#[test]
fn sp_09_missing_program_leaves_no_placement() {
    let bench = Bench::new();
    let mut launch = Bench::launch("alice", "");
    launch.argv = vec!["/no/such/program".into(), "exec".into()];
    let placed = bench.pty.place(&[launch]);
    assert!(matches!(placed[0], Err(BackendError::Exec(_))), "{placed:?}");
}

#[test]
fn placement_of_another_backend_is_not_touched() {
    let bench = Bench::new();
    let none = ProcessId { pid: 1, start: 1 };
    let pane = Placement::Tmux(TmuxPane {
        socket: "/s".to_owned(),
        server: none,
        session_id: "$0".to_owned(),
        session_name: "x".to_owned(),
        window_id: "@0".to_owned(),
        window_name: "x".to_owned(),
        pane_id: "%0".to_owned(),
        pane: none,
    });
    let mark = Mark::new(&pane, "t");
    assert!(matches!(bench.pty.verify(mark), Verdict::Unknown { .. }));
    assert!(matches!(bench.pty.close(mark), CloseOutcome::Unknown { .. }));
    assert!(matches!(bench.pty.screen(mark, 5), Err(BackendError::NotOurs { .. })));
}
