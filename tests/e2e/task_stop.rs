//! Tasks that the lead takes from a worker while their command runs.

use std::fs;

use serde_json::Value;

use crate::harness::{Stage, wait_for};

/// A way to take a running task from its owner, and the state of the task after it.
const TAKES: [(&[&str], Option<&str>); 8] = [
    (&["task", "cancel", "1", "--reason", "wrong"], Some("cancelled")),
    (&["task", "fail", "1"], Some("failed")),
    (&["task", "complete", "1"], Some("completed")),
    (&["task", "release", "1"], Some("pending")),
    (&["task", "assign", "1", "zoe"], Some("pending")),
    (&["task", "update", "1", "--owner", "zoe"], Some("pending")),
    (&["task", "update", "1", "--status", "pending"], Some("pending")),
    (&["task", "delete", "1", "--force"], None),
];

/// A command that ends at SIGTERM after 0.3 s, and else creates `done` after a minute.
const COMMAND: &str = "trap 'sleep 0.3; echo end >>log; exit 1' TERM; echo begin >>log; \
                       sleep 60 & wait; touch done";

fn state(stage: &Stage, id: &str) -> Option<String> {
    let run = stage.phalanx(&["--json", "task", "get", id]);
    (run.code == 0).then(|| run.json()["state"].as_str().expect("a state").to_owned())
}

fn log(stage: &Stage) -> Vec<String> {
    let text = fs::read_to_string(stage.at("work/log")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn await_begin(stage: &Stage) {
    wait_for("the command to begin", || (!log(stage).is_empty()).then_some(()));
}

/// A team whose worker `ann` runs the command of task 1; task 2 waits for it.
fn working(is_led: bool, backend: &str) -> Stage {
    let stage = if backend == "tmux" { Stage::new() } else { Stage::without_tmux() };
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.add_native("alpha", &["zoe"]);
    if is_led {
        stage.phalanx(&["lead", "--detach"]).expect(0);
    }
    stage.phalanx(&["spawn", "ann", "--backend", backend]).expect(0);
    stage
        .phalanx(&["task", "create", "work", "--file", "a", "--", "bash", "-c", COMMAND])
        .expect(0);
    let next = "echo next >>log";
    stage
        .phalanx(&["task", "create", "next", "--blocked-by", "1", "--", "sh", "-c", next])
        .expect(0);
    await_begin(&stage);
    stage
}

fn take_running_tasks(backend: &str) {
    for (verb, after) in TAKES {
        for is_led in [true, false] {
            let what = format!("{verb:?}, led: {is_led}");
            let stage = working(is_led, backend);
            stage.phalanx(verb).expect(0);
            // When the verb returns, nothing of the command runs, and its end came before all else.
            assert_eq!(log(&stage)[..2], ["begin", "end"], "{what}");
            let runs = stage.processes().iter().any(|line| line.contains("touch done"));
            // A free task is claimed again at once.
            assert!(!runs || after == Some("pending"), "{what}");
            let found = state(&stage, "1");
            let again = after == Some("pending") && found.as_deref() == Some("in_progress");
            assert!(again || found.as_deref() == after, "{what}: {found:?}");
            if matches!(after, Some("cancelled" | "completed") | None) {
                wait_for("the next task", || {
                    (state(&stage, "2").as_deref() == Some("completed")).then_some(())
                });
                assert_eq!(log(&stage), ["begin", "end", "next"], "{what}");
            }
            assert!(!stage.at("work/done").exists(), "{what}");
            stage.phalanx(&["down", "--force"]).expect(0);
        }
    }
}

/// TK-11: whatever takes a running task, its command ends before the task is free.
#[test]
fn tk_11_no_command_outlives_its_task() {
    take_running_tasks("pty");
}

#[test]
fn tk_11_tmux_no_command_outlives_its_task() {
    take_running_tasks("tmux");
}

/// TK-11: two workers never run the command of a released task at the same time.
#[test]
fn tk_11_a_released_task_runs_again_only_after_its_end() {
    let stage = working(false, "pty");
    stage.phalanx(&["spawn", "bob", "--backend", "pty"]).expect(0);
    stage.phalanx(&["task", "release", "1"]).expect(0);
    wait_for("the next run", || (log(&stage).len() >= 3).then_some(()));
    assert_eq!(log(&stage), ["begin", "end", "begin"]);
    stage.phalanx(&["down", "--force"]).expect(0);
}

/// While the command ends, the task is shown as stopping, by each face.
#[test]
fn tk_11_a_task_is_stopping_until_its_command_has_ended() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["spawn", "ann", "--backend", "pty"]).expect(0);
    let command = "trap 'while [ ! -e go ]; do sleep 0.01; done; exit 1' TERM; echo begin >>log; \
                   sleep 60 & wait";
    stage.phalanx(&["task", "create", "work", "--", "bash", "-c", command]).expect(0);
    await_begin(&stage);
    let cancel = stage.start(&["task", "cancel", "1"]);
    wait_for("the task to be stopping", || {
        (state(&stage, "1").as_deref() == Some("stopping")).then_some(())
    });
    let listed = stage.phalanx(&["task", "list"]).expect(0).stdout;
    assert!(listed.contains("stopping"), "{listed}");
    let listed = stage.phalanx(&["--json", "task", "list"]).expect(0).json();
    assert_eq!(listed[0]["state"], "stopping");
    fs::write(stage.at("work/go"), "").expect("written");
    cancel.end().expect(0);
    assert_eq!(state(&stage, "1").as_deref(), Some("cancelled"));
    stage.phalanx(&["down", "--force"]).expect(0);
}

/// The process that takes a task is killed while the command ends: the worker gives the task back.
#[test]
fn tk_11_a_task_whose_taker_was_killed_is_given_back() {
    let stage = working(false, "pty");
    let cancel = stage.start_and_stop_at("task.stopping", &["task", "cancel", "1"]);
    wait_for("the end of the command", || (log(&stage).len() >= 2).then_some(()));
    cancel.signal("KILL");
    wait_for("the next run", || (log(&stage).len() >= 3).then_some(()));
    assert_eq!(log(&stage), ["begin", "end", "begin"]);
    stage.phalanx(&["down", "--force"]).expect(0);
}

/// TK-12: the owner is told once of each change by another member, with the reason.
#[test]
fn tk_12_the_owner_is_told_of_each_change() {
    let table: [(&[&[&str]], &str); 8] = [
        (
            &[&["task", "cancel", "1", "--reason", "wrong"]],
            "Task #1 \"work\" was cancelled by team-lead: wrong. Stop working on it.",
        ),
        (
            &[&["task", "fail", "1", "--reason", "late"]],
            "Task #1 \"work\" was marked as failed by team-lead: late. Stop working on it.",
        ),
        (
            &[&["task", "release", "1"]],
            "Task #1 \"work\" was taken from you by team-lead. Stop working on it.",
        ),
        (
            &[&["task", "assign", "1", "bob"]],
            "Task #1 \"work\" was taken from you by team-lead. Stop working on it.",
        ),
        (
            &[&["task", "delete", "1", "--force"]],
            "Task #1 \"work\" was deleted by team-lead. Stop working on it.",
        ),
        (
            &[&["task", "complete", "1"]],
            "Task #1 \"work\" was completed by team-lead. Stop working on it.",
        ),
        (
            &[&["--as", "ada", "task", "review", "1"], &["task", "approve", "1"]],
            "Task #1 \"work\" was approved by team-lead.",
        ),
        (
            &[
                &["--as", "ada", "task", "review", "1"],
                &["task", "reject", "1", "--reason", "no tests"],
            ],
            "Task #1 \"work\" was sent back to you by team-lead: no tests. Work on it again.",
        ),
    ];
    for (verbs, said) in table {
        let stage = Stage::without_tmux();
        stage.phalanx(&["team", "create", "alpha"]).expect(0);
        stage.add_native("alpha", &["ada", "bob"]);
        stage.phalanx(&["task", "create", "work"]).expect(0);
        stage.phalanx(&["--as", "ada", "task", "claim", "1"]).expect(0);
        verbs.iter().for_each(|verb| drop(stage.phalanx(verb).expect(0)));
        let mail = stage.phalanx(&["--json", "inbox", "ada", "--peek"]).expect(0).json();
        let texts: Vec<&Value> =
            mail.as_array().expect("mail").iter().map(|m| &m["text"]).collect();
        assert_eq!(texts, [said], "{verbs:?}");
    }
}

/// Work is sent back, done again and approved; what waits for it starts only then.
#[test]
fn work_is_sent_back_until_it_is_approved() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.add_native("alpha", &["ada"]);
    stage.phalanx(&["task", "create", "work"]).expect(0);
    stage.phalanx(&["task", "create", "deploy", "--blocked-by", "1"]).expect(0);
    stage.phalanx(&["--as", "ada", "task", "claim", "1"]).expect(0);
    for round in 1..=2 {
        stage.phalanx(&["--as", "ada", "task", "review", "1", "--result", "v"]).expect(0);
        stage.phalanx(&["task", "reject", "1", "--reason", "no tests"]).expect(0);
        let task = stage.phalanx(&["--json", "task", "get", "1"]).expect(0).json();
        assert_eq!((&task["state"], &task["owner"]), (&"in_progress".into(), &"ada".into()));
        assert_eq!(task["metadata"]["phalanx"]["rounds"], round);
        assert_eq!(state(&stage, "2").as_deref(), Some("blocked"));
    }
    stage.phalanx(&["--as", "ada", "task", "review", "1"]).expect(0);
    stage.phalanx(&["task", "approve", "1"]).expect(0);
    assert_eq!(state(&stage, "2").as_deref(), Some("pending"));
    stage.phalanx(&["--as", "ada", "task", "claim", "2"]).expect(0);
    stage.phalanx(&["--as", "ada", "task", "review", "2"]).expect(0);
    stage.phalanx(&["task", "reject", "2", "--reason", "never", "--cancel"]).expect(0);
    assert_eq!(state(&stage, "2").as_deref(), Some("cancelled"));
    for id in ["1", "2"] {
        stage.phalanx(&["task", "retry", id]).expect(0);
        assert_eq!(
            state(&stage, id).as_deref(),
            if id == "1" { Some("pending") } else { Some("blocked") }
        );
    }
}
