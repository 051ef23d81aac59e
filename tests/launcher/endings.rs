//! How a run ends: by itself, by signals, by a closed terminal; and that nothing of it is left, nor anything else
//! touched (SD-08, SD-09).

use crate::bench::{Bench, Bystander, Launcher, is_dead, start_of};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Four children that try to get away: a session of its own, `nohup`, deaf to HUP and TERM, and a daemon whose parent
/// has gone. Each notes its pid; the script goes on when all have.
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
    /// With the start of each, so that a failed test ends these and no others.
    children: Vec<(i32, u64)>,
    bystander: Bystander,
}

impl Family {
    /// A program with all four children, which then does `rest`.
    fn start(rest: &str) -> Family {
        let (bench, bystander) = (Bench::new("idle"), Bystander::new());
        let launcher = Launcher::unread(&bench.spec(&bench.sh(&format!("{CHILDREN}{rest}"))));
        bench.number("ready");
        let pids = ["session", "nohup", "deaf", "daemon"].map(|name| bench.number(name));
        let children = pids.map(|pid| (pid, start_of(pid))).to_vec();
        Family { bench, launcher, children, bystander }
    }

    /// Waits for the launcher's end with `code`, and then looks who is left.
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
fn sd_09_children_that_tried_to_get_away_end_with_their_program() {
    assert_eq!(Family::start("exit 5").ends(5)["code"], 5);
}

#[test]
fn sd_09_a_term_to_the_launcher_ends_the_tree() {
    let family = Family::start("wait");
    family.launcher.signal(Signal::SIGTERM);
    assert_eq!(family.ends(128 + 15)["signal"], 15);
}

#[test]
fn sd_08_a_closed_terminal_ends_the_tree() {
    let mut family = Family::start("wait");
    family.launcher.hang_up();
    assert_eq!(family.ends(128 + 1)["signal"], 1);
}

#[test]
fn sd_09_a_deaf_program_is_killed_after_its_grace() {
    let family = Family::start("trap '' TERM HUP INT; while :; do sleep 600; done");
    family.launcher.signal(Signal::SIGTERM);
    assert_eq!(family.ends(128 + 9)["signal"], 9);
}

#[test]
fn cr_01_a_killed_program_is_on_record_as_killed() {
    let family = Family::start("wait");
    kill(Pid::from_raw(family.bench.program()), Signal::SIGKILL).expect("it runs");
    let exit = family.ends(128 + 9);
    assert_eq!((&exit["signal"], exit.get("code")), (&serde_json::json!(9), None));
}

#[test]
fn cr_03_a_program_may_end_as_it_likes_when_told() {
    let bench = Bench::new("idle");
    let mut launcher = bench
        .launch(&bench.sh("trap 'exit 0' TERM; echo $$ > ready; while :; do sleep 0.01; done"));
    bench.number("ready");
    launcher.signal(Signal::SIGTERM);
    assert_eq!(launcher.code(), 0);
    assert_eq!(bench.part("exit")["code"], 0);
}

#[test]
fn a_second_term_does_no_harm() {
    let bench = Bench::new("idle");
    let script = "trap 'echo $$ > told' TERM; echo $$ > ready; while [ ! -s told ]; do sleep 0.01; done; exit 6";
    let mut launcher = bench.launch(&bench.sh(script));
    bench.number("ready");
    launcher.signal(Signal::SIGTERM);
    launcher.signal(Signal::SIGTERM);
    assert_eq!(launcher.code(), 6);
}

#[test]
fn sd_09_an_interactive_shell_is_hung_up_on() {
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
