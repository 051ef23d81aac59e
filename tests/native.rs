//! Real Claude Code from npm as native teammates: prompts, mail, permissions, plans, modes and
//! shutdown (EN-02, PM-03, PM-04, PM-07, PM-11, SD-02, ST-02). Runs without a network, in its own
//! namespaces, against a stand-in of its API.
#![allow(clippy::disallowed_methods, reason = "tests drive the real system")]

mod gear;

use std::path::Path;
use std::process::Command;

/// unshare(1) options for new network, mount and pid namespaces; remaining processes end with the
/// first one.
const APART: [&str; 5] = ["-nm", "--pid", "--fork", "--kill-child", "--mount-proc"];
/// The script's exit code after Claude Code 2.1.34 has logged that it dropped a message: it tries
/// to lock a mailbox only once (docs/profiles.md).
const DROPPED: i32 = 3;
/// Lives that are tried until one is without a dropped message.
const LIVES: usize = 3;

#[test]
fn tmux_native_claude_completes_a_lifecycle_in_a_team() {
    run_to_its_end("native.sh");
}

/// CR-18: all processes of a team are killed at once, and the machine gets another boot id.
#[test]
fn tmux_cr_18_native_claudes_go_on_with_their_conversations_after_a_restart() {
    run_to_its_end("morning.sh");
}

/// The ten commands of the README, from an empty home to the merged work of two agents.
#[test]
fn tmux_commands_of_the_readme_lead_two_native_claudes_to_merged_work() {
    run_to_its_end("way-in.sh");
}

/// Runs a script of `fixtures/api` in namespaces of its own.
fn run_to_its_end(script: &str) {
    if !gear::is_full() {
        return gear::skip("Claude Code itself runs with --full");
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let bin = root.join("tests/interop/node_modules/.bin");
    if !bin.join("claude").exists() {
        return gear::skip_without(
            "claude is missing: `npm ci --prefix tests/interop` installs it",
        );
    }
    let apart = Command::new("unshare").args(APART).arg("true").output();
    if !apart.is_ok_and(|done| done.status.success()) {
        return gear::skip(
            "this user may not create namespaces, which keep claude off the network",
        );
    }
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").expect("a PATH"));
    let script = root.join("fixtures/api").join(script);
    let live = || {
        let mut run = Command::new("unshare");
        run.args(APART).arg(&script).arg(env!("CARGO_BIN_EXE_phalanx")).env("PATH", &path);
        run.output().expect("unshare has run before")
    };
    let mut run = live();
    for _ in 1..LIVES {
        if run.status.code() != Some(DROPPED) {
            break;
        }
        eprintln!("{}", String::from_utf8_lossy(&run.stderr));
        run = live();
    }
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{said}\n{}", String::from_utf8_lossy(&run.stderr));
    assert!(said.ends_with("==> all came out as it should\n"), "{said}");
}
