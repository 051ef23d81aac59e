//! Programs without a pane: the launcher allocates a PTY and logs its screen.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::{Child, Command, Stdio};

use super::bench::{Bench, Order, PANE, is_dead, nul_separated, text, until};
use crate::gear;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Starts the launcher as the pty backend does: without a terminal, standard streams at /dev/null.
pub(crate) fn detached(bench: &Bench, order: &Order) -> Detached {
    detached_with(bench, order, &[])
}

/// Like [`detached`], with additional variables in the environment of the launcher.
pub(crate) fn detached_with(bench: &Bench, order: &Order, more: &[(&str, &str)]) -> Detached {
    start(Command::new("setsid"), bench, order, more)
}

/// Like [`detached`], under a umask. A shell sets it, because the threads of this process share
/// theirs.
pub(crate) fn detached_under(umask: &str, bench: &Bench, order: &Order) -> Detached {
    let mut shell = Command::new("sh");
    shell.args(["-c", "umask \"$0\" && exec setsid \"$@\"", umask]);
    start(shell, bench, order, &[])
}

/// Starts the launcher with `command`, which leads to setsid(1).
fn start(mut command: Command, bench: &Bench, order: &Order, more: &[(&str, &str)]) -> Detached {
    command.arg("--wait").arg(env!("CARGO_BIN_EXE_phalanx")).arg("exec").arg(bench.spec(order));
    command
        .env_clear()
        .envs(gear::portable())
        .env("PATH", "/usr/bin:/bin")
        .envs(PANE)
        .envs(more.iter().copied());
    command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Detached(command.spawn().expect("setsid is there"))
}

/// A detached launcher; ended when dropped.
pub(crate) struct Detached(pub(crate) Child);

impl Drop for Detached {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            // The test leads its process group and the child does not, so setsid(1) did not fork:
            // the child is the launcher itself.
            let pid = Pid::from_raw(i32::try_from(self.0.id()).expect("a pid"));
            let _ = kill(pid, Signal::SIGTERM);
            let _ = self.0.wait();
        }
    }
}

pub(crate) fn own(bench: &Bench, script: &str) -> Order {
    Order { terminal: bench.own_terminal(), ..bench.sh(script) }
}

pub(crate) fn code(mut child: Detached) -> i32 {
    let mut status = None;
    until("the launcher's end", || {
        status = child.0.try_wait().expect("our child");
        status.is_some()
    });
    status.and_then(|status| status.code()).expect("it ended by itself")
}

#[test]
fn log_holds_the_output_and_is_private() {
    let bench = Bench::new("idle");
    fs::write(bench.log(), "an earlier run").expect("writable");
    fs::write(bench.log().with_extension("log.1"), "and its older part").expect("writable");
    let script =
        "test -t 0 && test -t 1 && test -t 2 && echo terminal; stty size; tty; echo $TERM; exit 4";
    assert_eq!(code(detached(&bench, &own(&bench, script))), 4);
    let tty = bench.part("start")["tty"].as_str().expect("a name").to_owned();
    assert_eq!(text(&bench.log()), format!("terminal\r\n50 200\r\n{tty}\r\nxterm-256color\r\n"));
    assert_eq!(fs::metadata(bench.log()).expect("it is there").mode() & 0o777, 0o600);
    assert!(!bench.log().with_extension("log.1").exists());
    assert_eq!(bench.part("exit")["code"], 4);
}

#[test]
fn en_03_environment_of_the_launcher_does_not_leak() {
    let bench = Bench::new("idle");
    let launcher = detached(&bench, &own(&bench, "read line"));
    let program = bench.program();
    let mut found = nul_separated(program, "environ");
    found.sort();
    let secret = format!("SECRET={}", super::bench::CANARY);
    assert_eq!(
        found,
        [b"PATH=/usr/bin:/bin".as_slice(), secret.as_bytes(), b"TERM=xterm-256color"]
    );
    let launching = bench.part("start")["launcher"]["pid"].as_i64().expect("a number");
    kill(Pid::from_raw(i32::try_from(launching).expect("a pid")), Signal::SIGTERM)
        .expect("it runs");
    assert_eq!(code(launcher), 128 + 15);
    assert!(is_dead(program));
}

#[test]
fn child_that_keeps_the_terminal_open_does_not_delay_the_end() {
    let bench = Bench::new("idle");
    let script = "(trap '' HUP TERM; echo $$ > up; setsid sh -c 'trap \"\" HUP TERM; echo $$ > child; while :; do sleep 600; done') & \
                  while [ ! -s child ]; do sleep 0.01; done; echo bye; exit 0";
    assert_eq!(code(detached(&bench, &own(&bench, script))), 0);
    assert!(is_dead(bench.number("child")));
    assert_eq!(text(&bench.log()), "bye\r\n");
}

#[test]
fn sp_09_reason_of_a_failed_start_is_in_the_log() {
    let bench = Bench::new("starting");
    let mut order = own(&bench, "");
    order.argv = vec!["./not-there".into()];
    order.linger_ms = 100;
    assert_eq!(code(detached(&bench, &order)), 127);
    let file = bench.path("work").join("./not-there");
    assert_eq!(
        text(&bench.log()),
        format!("phalanx: program {} does not exist\r\n", file.display())
    );
}

#[test]
fn log_is_rotated_at_its_size_limit() {
    const LIMIT: u64 = 8 * 1024 * 1024;
    let bench = Bench::new("idle");
    assert_eq!(
        code(detached(
            &bench,
            &own(&bench, "head -c 9000000 /dev/zero | tr '\\0' x; echo; echo end")
        )),
        0
    );
    let len = |path: &std::path::Path| fs::metadata(path).expect("it is there").len();
    let (now, older) = (len(&bench.log()), len(&bench.log().with_extension("log.1")));
    assert_eq!(now + older, 9_000_000 + 2 + 5);
    assert!(older <= LIMIT && older > LIMIT - 128 * 1024, "{older}");
    assert!(text(&bench.log()).ends_with("x\r\nend\r\n"));
}
