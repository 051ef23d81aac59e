//! `doctor --self-test` checks the functions of the system, and leaves nothing behind.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Run, Stage, binary, wait_for};

/// The checks that pass on every system with a tmux.
const PASSING: [&str; 16] = [
    "start-time",
    "zombie",
    "exit-notice",
    "command-line",
    "ancestry",
    "signal",
    "socket",
    "boot-id",
    "watch",
    "rename",
    "flock",
    "pty",
    "foreground",
    "inheritance",
    "process-tree",
    "tmux",
];

/// Runs the checks with the stage's working directory as the one for temporary files.
fn self_test(stage: &Stage, words: &[&str], portable: bool) -> Run {
    let mut command = stage.command(binary());
    command.args(words).args(["doctor", "--self-test"]).env("TMPDIR", stage.at("work"));
    if portable {
        command.env("SYS_TEST_PORTABLE", "1");
    } else {
        command.env_remove("SYS_TEST_PORTABLE");
    }
    Run::from(command.output().expect("phalanx runs"))
}

fn line<'r>(run: &'r Run, check: &str) -> &'r str {
    let is_it = |line: &&str| line.split_whitespace().nth(1) == Some(check);
    run.stdout.lines().find(is_it).unwrap_or_else(|| panic!("no line for {check}: {run:?}"))
}

fn assert_nothing_is_left(stage: &Stage) {
    let left: Vec<_> = fs::read_dir(stage.at("work")).expect("there").flatten().collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(!stage.root().exists(), "no config root is needed");
    wait_for("all helper processes to end", || {
        let processes = stage.processes();
        (!processes.iter().any(|line| line.contains("self-test"))).then_some(())
    });
}

fn passes(portable: bool) {
    let stage = Stage::new();
    stage.tmux(&["new-session", "-d", "-s", "mine", "sleep", "300"]).expect("session");
    let before = stage.panes();
    let run = self_test(&stage, &[], portable).expect(0);
    for check in PASSING {
        assert!(line(&run, check).starts_with("pass  "), "{run:?}");
    }
    let (notice, tree) = match portable {
        true => ("by polling", "by its mark"),
        false => ("by notice", "as an adopted child"),
    };
    assert!(line(&run, "exit-notice").contains(notice), "{run:?}");
    assert!(line(&run, "process-tree").ends_with(tree), "{run:?}");
    assert!(line(&run, "osascript").starts_with("skip  "), "{run:?}");
    assert!(run.stdout.ends_with("17 checks on linux: 16 passed, 1 skipped\n"), "{run:?}");
    assert_eq!(stage.panes(), before, "the user's server is not touched");
    assert_nothing_is_left(&stage);
}

#[test]
fn tmux_self_test_passes_and_leaves_nothing_behind() {
    passes(false);
}

#[test]
fn tmux_self_test_passes_without_the_mechanisms_of_linux() {
    passes(true);
}

#[test]
fn self_test_prints_an_array_and_skips_a_missing_tmux() {
    let stage = Stage::without_tmux();
    let found = self_test(&stage, &["--json"], false).expect(0).json();
    let found = found.as_array().expect("an array");
    let named: Vec<&str> = found.iter().filter_map(|check| check["check"].as_str()).collect();
    assert_eq!(named, [&PASSING[..], &["osascript"]].concat());
    for check in found {
        let skipped = ["tmux", "osascript"].map(Value::from).contains(&check["check"]);
        assert_eq!(check["result"], json!(if skipped { "skip" } else { "pass" }), "{check}");
        assert!(check["ms"].is_u64() && check["detail"].is_string(), "{check}");
    }
    assert_nothing_is_left(&stage);
}

#[test]
fn a_failing_check_is_reported_and_exits_with_1() {
    let mut stage = Stage::without_tmux();
    stage.shadow("tmux", "#!/bin/sh\necho tmux 2.9\n");
    let run = self_test(&stage, &[], false).expect(1);
    assert!(line(&run, "tmux").starts_with("fail  "), "{run:?}");
    assert!(line(&run, "tmux").contains("tmux 3.2 or later is needed"), "{run:?}");
    assert!(run.stdout.contains("checks on linux: 1 failed, 15 passed, 1 skipped"), "{run:?}");
    assert_nothing_is_left(&stage);
}
