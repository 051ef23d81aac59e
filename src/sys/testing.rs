//! Helpers for the tests of `sys`: waits with a time limit, helper processes, process states from
//! `/proc`.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::clock::{self, Deadline};

/// Time limit for anything that a test waits for.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

/// Polls `condition` until it holds; panics with `what` after [`PATIENCE`].
pub(super) fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Deadline::after(PATIENCE);
    while !condition() {
        assert!(!deadline.expired(), "timed out waiting for: {what}");
        clock::sleep(Duration::from_millis(2));
    }
}

/// Returns a command that runs the ignored test `name` (full path) of this test binary in a process
/// of its own.
pub(super) fn helper(name: &str) -> Command {
    let mut command =
        Command::new(std::env::current_exe().expect("a running test has an executable"));
    command.args([name, "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
    command.stdin(Stdio::null());
    command
}

/// Runs a helper to its end, asserts that its test was found and passed, and returns its output.
pub(super) fn run_helper(mut command: Command) -> String {
    let output = command.output().expect("the test binary can be started");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("1 passed"), "no such helper test: {text}");
    text
}

/// Returns the state letter of `/proc/PID/stat`; `None` if the process does not exist, not even as
/// a zombie.
pub(super) fn state(pid: i32) -> Option<char> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text[text.rfind(')')? + 1..].trim_start().chars().next()
}

/// Returns true if the process is gone or a zombie.
pub(super) fn is_dead(pid: i32) -> bool {
    matches!(state(pid), None | Some('Z' | 'X'))
}

/// Waits until a script has written a number and a newline to `path`, and returns the number.
pub(super) fn number_in(path: &PathBuf) -> i32 {
    let mut found = None;
    until(&format!("a number in {}", path.display()), || {
        let text = fs::read_to_string(path).unwrap_or_default();
        found = text.strip_suffix('\n').and_then(|line| line.trim().parse().ok());
        found.is_some()
    });
    found.expect("the wait above ended with a number")
}

/// A child that is killed and reaped on drop.
pub(super) struct Guarded(pub(super) Child);

impl Guarded {
    pub(super) fn spawn(command: &mut Command) -> Guarded {
        Guarded(command.spawn().expect("the program can be started"))
    }

    pub(super) fn sleeper() -> Guarded {
        Guarded::spawn(Command::new("sleep").arg("60"))
    }

    pub(super) fn pid(&self) -> i32 {
        i32::try_from(self.0.id()).expect("a pid fits an i32")
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // Both fail only if the test itself has already ended and reaped the child.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
