//! Tests with real processes: liveness, signals, and ending whole trees without harming bystanders.

use super::process::notice_of;
use super::*;
use crate::clock::Deadline;
use crate::stat::Stat;
use crate::testing::{Guarded, is_dead, number_in, until};
use crate::{native, ready};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);

fn of(child: &Guarded) -> Process {
    Process::of(child.pid()).expect("it has just been started")
}

/// Runs a shell script with `dir` as its `$1`.
fn script(text: &str, dir: &Path) -> Guarded {
    Guarded::spawn(Command::new("sh").args(["-c", text, "sh"]).arg(dir))
}

#[test]
fn current_process_is_alive_with_its_start_time() {
    let us = Process::current();
    assert_eq!(Process::of(us.pid), Some(us));
    assert!(us.start > 0);
    assert_eq!(liveness(us.pid, us.start), Liveness::Alive);
    assert_eq!(liveness(us.pid, us.start + 1), Liveness::Dead, "a reused pid is another process");
    assert_eq!(liveness(0, 0), Liveness::Unknown);
    assert_eq!(liveness(-1, 0), Liveness::Unknown);
}

#[test]
fn zombies_and_reaped_processes_are_dead() {
    let mut child = Guarded::spawn(&mut Command::new("true"));
    let pid = child.pid();
    until("it is a zombie", || crate::testing::state(pid) == Some('Z'));
    let start = Process::of_child(pid).expect("not reaped").start;
    assert_eq!(Process::of(pid), None);
    assert_eq!(liveness(pid, start), Liveness::Dead);
    assert!(notice_of(Process { pid, start }).is_none());
    child.0.wait().expect("ours");
    assert_eq!(liveness(pid, start), Liveness::Dead);
}

#[test]
fn signal_requires_the_matching_start_time() {
    let child = Guarded::sleeper();
    let process = of(&child);
    let namesake = Process { start: process.start + 1, ..process };
    assert!(!signal(namesake, libc::SIGKILL));
    assert_eq!(Process::of(process.pid), Some(process), "the namesake's signal must not arrive");
    assert!(!wait_exit(process, Duration::ZERO));
    assert!(signal(process, libc::SIGKILL));
    assert!(wait_exit(process, LONG));
    assert!(!signal(process, libc::SIGKILL));
    assert!(!signal(Process { pid: -1, start: 0 }, libc::SIGKILL));
    assert!(!signal(Process { pid: 0, start: 0 }, libc::SIGKILL));
}

#[test]
fn a_stopped_process_is_alive_and_reported_as_stopped() {
    let child = Guarded::sleeper();
    let process = of(&child);
    let is_stopped = || is_stopped(process.pid, process.start);
    assert!(!is_stopped());
    assert!(signal(process, libc::SIGSTOP));
    until("it is stopped", is_stopped);
    assert_eq!(liveness(process.pid, process.start), Liveness::Alive);
    assert!(!super::is_stopped(process.pid, process.start + 1), "a reused pid is another process");
    assert!(signal(process, libc::SIGCONT));
    until("it runs again", || !is_stopped());
}

#[test]
fn exit_notice_becomes_readable_when_the_process_ends() {
    let child = Guarded::sleeper();
    let handle = notice_of(of(&child)).expect("alive");
    assert!(!ready::readable(handle.as_fd(), Duration::ZERO).expect("pollable"));
    assert!(signal(of(&child), libc::SIGTERM));
    until("the handle is readable", || ready::readable(handle.as_fd(), LONG).expect("pollable"));
    assert!(is_dead(child.pid()));
}

#[test]
fn program_name_with_parentheses_is_parsed() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let odd = dir.path().join("a) R 1 (b");
    std::fs::copy("/bin/sleep", &odd).expect("readable");
    let child = Guarded::spawn(Command::new(&odd).arg("60"));
    let us = Process::current();
    until("it has its name", || {
        std::fs::read_to_string(format!("/proc/{}/comm", child.pid()))
            .is_ok_and(|name| name.starts_with("a)"))
    });
    assert!(of(&child).start >= us.start);
    assert!(descendants(us.pid).contains(&of(&child)));
}

#[test]
fn descendants_are_the_whole_tree_below() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let child =
        script("sh -c 'sleep 60 & echo $! > \"$1/leaf\"; wait' sh \"$1\" & wait", dir.path());
    let leaf = number_in(&dir.path().join("leaf"));
    let below = descendants(child.pid());
    assert_eq!(below.len(), 2, "{below:?}");
    assert_eq!(below[1].pid, leaf, "parents come first");
    assert!(end_tree(of(&child), true, LONG).is_empty());
    assert!(descendants(child.pid()).is_empty());
    assert!(descendants(-5).is_empty());
}

#[test]
fn tty_of_names_the_pty_or_returns_none() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    // script(1) from util-linux gives its command a terminal of its own.
    let text = "exec script -qfec 'echo $$ > \"$0/pid\"; tty > \"$0/tty\"; sleep 60' /dev/null";
    let typed = text.replace("\"$0/", &format!("\"{}/", dir.path().display()));
    let child = Guarded::spawn(Command::new("setsid").args(["sh", "-c", &typed]));
    let pid = number_in(&dir.path().join("pid"));
    until("tty has answered", || {
        std::fs::read_to_string(dir.path().join("tty")).is_ok_and(|t| t.ends_with('\n'))
    });
    let expected = std::fs::read_to_string(dir.path().join("tty")).expect("written");
    assert_eq!(tty_of(pid).as_deref(), Some(expected.trim()));
    assert_eq!(tty_of(child.pid()), None);
    assert!(end_tree(of(&child), true, LONG).is_empty());
}

/// Script that starts the three kinds of grandchildren that outlive a closed terminal, and writes
/// their pids.
const ESCAPERS: &str = "
    (trap '' HUP TERM; echo $(exec sh -c 'echo $PPID') > \"$1/ignoring\"; while :; do sleep 60; done) &
    setsid sh -c 'echo $$ > \"$1/setsid\"; sleep 60' sh \"$1\" &
    nohup sh -c 'echo $$ > \"$1/nohup\"; sleep 60' sh \"$1\" > /dev/null 2>&1 &
    wait";

#[test]
fn end_tree_ends_escaped_processes_and_spares_bystanders() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let bystander = Guarded::sleeper();
    let child = script(ESCAPERS, dir.path());
    let pids = ["ignoring", "setsid", "nohup"].map(|name| number_in(&dir.path().join(name)));
    let tree = descendants(child.pid());
    assert!(tree.len() >= 5, "{tree:?}");
    let survivors = end_tree(of(&child), true, Duration::from_millis(200));
    assert_eq!(survivors, []);
    assert!(is_dead(child.pid()));
    assert!(pids.iter().chain(tree.iter().map(|process| &process.pid)).all(|pid| is_dead(*pid)));
    assert!(Process::of(bystander.pid()).is_some(), "outside the tree");
}

#[test]
fn end_tree_can_spare_the_root() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let child = script("sleep 60 & echo $! > \"$1/leaf\"; wait; exec sleep 60", dir.path());
    let leaf = number_in(&dir.path().join("leaf"));
    let root = of(&child);
    assert_eq!(end_tree(root, false, LONG), []);
    assert!(is_dead(leaf));
    assert_eq!(Process::of(root.pid), Some(root));
}

#[test]
fn end_tree_ignores_a_root_with_another_start_time() {
    let child = Guarded::sleeper();
    let namesake = Process { start: of(&child).start + 1, ..of(&child) };
    assert_eq!(end_tree(namesake, true, Duration::ZERO), []);
    assert!(Process::of(child.pid()).is_some());
}

#[test]
fn end_tree_wakes_a_stopped_process_and_lets_it_clean_up() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let child = script(
        "trap 'echo 1 > \"$1/clean\"; exit' TERM; echo $$ > \"$1/ready\"; while :; do sleep 0.01; done",
        dir.path(),
    );
    number_in(&dir.path().join("ready"));
    assert!(signal(of(&child), libc::SIGSTOP));
    until("it has stopped", || crate::testing::state(child.pid()) == Some('T'));
    assert_eq!(end_tree(of(&child), true, LONG), []);
    assert!(dir.path().join("clean").exists(), "it was killed before it could clean up");
}

#[test]
fn end_tree_sends_hup_at_once_if_term_is_ignored() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let text = "trap '' TERM; trap 'echo 1 > \"$1/hung\"; exit' HUP; echo $$ > \"$1/ready\"; while :; do sleep 0.01; done";
    let child = script(text, dir.path());
    number_in(&dir.path().join("ready"));
    let grace = Deadline::after(LONG);
    assert_eq!(end_tree(of(&child), true, LONG), []);
    assert!(dir.path().join("hung").exists() && !grace.expired());
}

#[test]
fn end_tree_ends_orphans_in_a_session_of_the_tree() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    // The orphan's parent exits at once, so only the session connects the orphan with the tree.
    let text = "(sh -c 'echo $$ > \"$1/orphan\"; sleep 60' sh \"$1\" &); exec sleep 60";
    let child =
        Guarded::spawn(Command::new("setsid").args(["sh", "-c", text, "sh"]).arg(dir.path()));
    let orphan = number_in(&dir.path().join("orphan"));
    until("it is an orphan", || native::stat(orphan).is_ok_and(|stat| stat.ppid != child.pid()));
    assert_eq!(end_tree(of(&child), true, LONG), []);
    assert!(is_dead(orphan));
}

#[test]
fn end_tree_ends_a_tree_that_keeps_forking() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let text = "trap '' TERM HUP; echo $$ > \"$1/up\"; while :; do sh -c 'trap \"\" TERM HUP; sleep 60' & sleep 0.005; done";
    let child =
        Guarded::spawn(Command::new("setsid").args(["sh", "-c", text, "sh"]).arg(dir.path()));
    number_in(&dir.path().join("up"));
    let session = child.pid();
    assert_eq!(end_tree(of(&child), true, Duration::from_millis(100)), []);
    let left: Vec<Stat> =
        native::stats().into_iter().filter(|s| s.session == session && !s.ended).collect();
    assert_eq!(left, []);
}

#[test]
fn sd_09_processes_without_a_common_root_are_found_by_mark() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mark = format!("SYS_TEST_MARK={}", dir.path().display());
    let (name, value) = mark.split_once('=').expect("it has one");
    let bystander = Guarded::spawn(Command::new("sleep").arg("60").env(name, format!("{value}x")));
    let text =
        "(setsid sh -c 'trap \"\" HUP TERM; echo $$ > \"$1/daemon\"; while :; do sleep 60; done' sh \"$1\" &)
                (setsid nohup env -i sh -c 'echo $$ > \"$1/bare\"; sleep 60' sh \"$1\" > /dev/null 2>&1) &
                sleep 60 & wait";
    let child = Guarded::spawn(
        Command::new("sh").args(["-c", text, "sh"]).arg(dir.path()).env(name, value),
    );
    // `bare` has wiped its environment, but its parent has not.
    let escaped = ["daemon", "bare"].map(|file| number_in(&dir.path().join(file)));
    let us = Process::current();
    assert_eq!(end_marked(std::slice::from_ref(&mark), Duration::from_millis(200)), []);
    assert!(escaped.iter().chain([&child.pid()]).all(|pid| is_dead(*pid)));
    assert!(Process::of(bystander.pid()).is_some() && Process::of(us.pid).is_some());
    assert_eq!(end_marked(std::slice::from_ref(&mark), Duration::ZERO), [], "done twice");
}

/// A script on a terminal of its own, and what it waits for.
#[cfg(target_os = "linux")]
struct OnTerminal {
    process: Process,
    master: crate::child::PtyMaster,
    tty: std::path::PathBuf,
}

#[cfg(target_os = "linux")]
impl OnTerminal {
    fn start(text: &str) -> OnTerminal {
        let program = crate::child::Program {
            path: "/bin/sh".into(),
            argv: ["sh", "-c", text].map(Into::into).into(),
            cwd: "/".into(),
            env: vec![("PATH".into(), std::env::var_os("PATH").unwrap_or_default())],
        };
        let (process, master) = crate::child::spawn_on_pty(&program, 24, 80).expect("a terminal");
        let tty = master.tty_name().expect("it has a name").into();
        OnTerminal { process, master, tty }
    }

    fn awaited(&self) -> Option<AwaitedInput> {
        awaited_input(self.process, &self.tty)
    }

    fn waits_for(&self, what: &str, is_it: impl Fn(Option<AwaitedInput>) -> bool) {
        until(what, || is_it(self.awaited()));
    }
}

#[cfg(target_os = "linux")]
impl Drop for OnTerminal {
    fn drop(&mut self) {
        end_tree(self.process, true, Duration::ZERO);
        crate::child::wait(self.process);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn pm_08_waits_for_input_are_told_from_other_waits() {
    let is_line = |input: Option<AwaitedInput>| input.is_some_and(AwaitedInput::is_line);
    let is_key = |input: Option<AwaitedInput>| input.is_some_and(|input| !input.is_line());
    for (script, waits_for) in [
        ("read line", "line"),
        // The leader of the group waits for another process.
        ("sh -c 'read line; :'; :", "line"),
        ("exec 0</dev/tty; read line", "line"),
        ("stty -echo; read line", "line"),
        ("stty raw; cat", "key"),
    ] {
        let program = OnTerminal::start(script);
        match waits_for {
            "line" => program.waits_for(script, is_line),
            _ => program.waits_for(script, is_key),
        }
        assert_eq!(program.awaited(), program.awaited(), "{script}: one wait");
    }
    let dir = tempfile::tempdir().expect("a directory");
    let fifo = dir.path().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).expect("a fifo");
    let of_fifo = OnTerminal::start(&format!("exec 3<>'{}'; read line <&3", fifo.display()));
    let answered = OnTerminal::start("read line; read line");
    answered.waits_for("the first read", is_line);
    let first = answered.awaited();
    answered.master.write_all(b"yes\n").expect("typed");
    answered.waits_for("the second read", |input| is_line(input) && input != first);
    until("the other script to wait", || crate::testing::state(of_fifo.process.pid) == Some('S'));
    assert_eq!(of_fifo.awaited(), None, "a read of something else");
}
