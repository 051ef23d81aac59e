//! Ends of a run: by itself, by a signal, or by a closed terminal. Nothing of it may be left, and
//! no other process may be affected (SD-08, SD-09).

use super::bench::{Bench, Bystander, Launcher, is_dead, start_of};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Four children that try to escape: one in its own session, one under `nohup`, one that ignores
/// HUP and TERM, and a daemon whose parent has exited. Each writes its pid; the script waits for
/// all.
const CHILDREN: &str = "
    setsid sh -c 'echo $$ > session; exec sleep 600' &
    nohup sh -c 'echo $$ > nohup; exec sleep 600' > /dev/null 2>&1 &
    sh -c 'trap \"\" HUP TERM; echo $$ > deaf; while :; do sleep 600; done' &
    (setsid sh -c 'trap \"\" HUP TERM; echo $$ > daemon; while :; do sleep 600; done' > /dev/null 2>&1 &)
    while [ ! -s session ] || [ ! -s nohup ] || [ ! -s deaf ] || [ ! -s daemon ]; do sleep 0.01; done
    echo $$ > ready
";

struct Family {
    bench: Bench,
    launcher: Launcher,
    /// Pid and start time of each, so that a failed test kills these and no others.
    children: Vec<(i32, u64)>,
    bystander: Bystander,
}

impl Family {
    /// Starts a program with all four children, which then runs `rest`.
    fn start(rest: &str) -> Family {
        let (bench, bystander) = (Bench::new("idle"), Bystander::new());
        let launcher = Launcher::unread(&bench.spec(&bench.sh(&format!("{CHILDREN}{rest}"))));
        bench.number("ready");
        let pids = ["session", "nohup", "deaf", "daemon"].map(|name| bench.number(name));
        let children = pids.map(|pid| (pid, start_of(pid))).to_vec();
        Family { bench, launcher, children, bystander }
    }

    /// Waits until the launcher exits with `code`, and asserts that no process of it is left.
    fn ends(mut self, code: u32) -> serde_json::Value {
        assert_eq!(self.launcher.code(), code);
        let left: Vec<_> = self.children.iter().filter(|(pid, _)| !is_dead(*pid)).collect();
        assert!(left.is_empty(), "still there: {left:?} of {:?}", self.children);
        assert!(is_dead(self.bench.program()));
        assert!(self.bystander.is_running(), "a stranger was hit");
        self.bench.part("exit")
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        for (pid, start) in self.children.iter().filter(|(pid, _)| !is_dead(*pid)) {
            if start_of(*pid) == *start {
                let _ = kill(Pid::from_raw(*pid), Signal::SIGKILL);
            }
        }
    }
}

#[test]
fn sd_09_escaping_children_end_with_their_program() {
    assert_eq!(Family::start("exit 5").ends(5)["code"], 5);
}

#[test]
fn sd_09_sigterm_to_the_launcher_ends_the_tree() {
    let family = Family::start("wait");
    family.launcher.signal(Signal::SIGTERM);
    assert_eq!(family.ends(128 + 15)["signal"], 15);
}

#[test]
fn sd_08_closed_terminal_ends_the_tree() {
    let mut family = Family::start("wait");
    family.launcher.hang_up();
    assert_eq!(family.ends(128 + 1)["signal"], 1);
}

#[test]
fn sd_09_program_that_ignores_sigterm_is_killed_after_the_grace() {
    let family = Family::start("trap '' TERM HUP INT; while :; do sleep 600; done");
    family.launcher.signal(Signal::SIGTERM);
    assert_eq!(family.ends(128 + 9)["signal"], 9);
}

#[test]
fn cr_01_killed_program_is_recorded_with_its_signal() {
    let family = Family::start("wait");
    kill(Pid::from_raw(family.bench.program()), Signal::SIGKILL).expect("it runs");
    let exit = family.ends(128 + 9);
    assert_eq!((&exit["signal"], exit.get("code")), (&serde_json::json!(9), None));
}

#[test]
fn cr_03_exit_code_of_a_program_that_handles_sigterm_is_kept() {
    let bench = Bench::new("idle");
    let mut launcher = bench
        .launch(&bench.sh("trap 'exit 0' TERM; echo $$ > ready; while :; do sleep 0.01; done"));
    bench.number("ready");
    launcher.signal(Signal::SIGTERM);
    assert_eq!(launcher.code(), 0);
    assert_eq!(bench.part("exit")["code"], 0);
}

#[test]
fn second_sigterm_does_no_harm() {
    let bench = Bench::new("idle");
    let script = "trap 'echo $$ > told' TERM; echo $$ > ready; while [ ! -s told ]; do sleep 0.01; done; exit 6";
    let mut launcher = bench.launch(&bench.sh(script));
    bench.number("ready");
    launcher.signal(Signal::SIGTERM);
    launcher.signal(Signal::SIGTERM);
    assert_eq!(launcher.code(), 6);
}

#[test]
fn sd_09_interactive_shell_is_ended_with_sighup() {
    for shell in [&["bash", "--norc", "-i"][..], &["sh", "-i"]] {
        let bench = Bench::new("idle");
        let mut order = bench.order(shell);
        order.env.push(("PS1".into(), "ready> ".into()));
        let mut launcher = bench.launch(&order);
        launcher.shows("ready> ");
        launcher.signal(Signal::SIGTERM);
        assert_eq!(launcher.code(), 128 + 1, "{shell:?}");
        assert_eq!(bench.part("exit")["signal"], 1, "{shell:?}");
    }
}
