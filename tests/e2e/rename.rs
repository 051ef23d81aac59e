//! `rename`: what a member has goes to its new name, once, and with a worktree that stays in its
//! place.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{NATIVE, Run, SETTLED, Stage, binary, wait_for};
use crate::worktree::with_repository;

fn rename(stage: &Stage, args: &[&str]) -> Run {
    stage.phalanx(&[&["rename"], args].concat())
}

fn names(stage: &Stage) -> Vec<String> {
    let status = stage.phalanx(&["--json", "status"]).expect(0).json();
    let members = status["members"].as_array().expect("members").iter();
    members.filter_map(|member| member["name"].as_str().map(str::to_owned)).collect()
}

/// The owners and states of all tasks.
fn tasks(stage: &Stage) -> Vec<(Value, Value)> {
    let tasks = stage.phalanx(&["--json", "task", "list", "--all"]).expect(0).json();
    let all = tasks.as_array().expect("tasks").iter();
    all.map(|task| (task["owner"].clone(), task["state"].clone())).collect()
}

/// A member with a worktree that holds a file, a task that it works on, an open one and a finished
/// one; and a member that reads no mail, with a message.
fn busy() -> Stage {
    let stage = with_repository(super::stage());
    stage.profile("native", NATIVE);
    stage.phalanx(&["spawn", "ann", "--backend", "pty", "--worktree"]).expect(0);
    stage.phalanx(&["spawn", "cid", "--profile", "native", "--", "sleep", "300"]).expect(0);
    for words in [&["Short", "--owner", "ann", "--", "true"][..], &["Next", "--owner", "cid"]] {
        stage.phalanx(&[&["task", "create"], words].concat()).expect(0);
    }
    stage.phalanx(&["wait", "--until", "task=1", "--timeout", "60"]).expect(0);
    for words in ["Long", "Later"] {
        let task = ["task", "create", words, "--owner", "ann", "--", "sleep", "300"];
        stage.phalanx(&task).expect(0);
    }
    wait_for("the long task", || (tasks(&stage)[2].1 == "in_progress").then_some(()));
    stage.phalanx(&["send", "cid", "a word for you"]).expect(0);
    stage
}

fn worktree_of(stage: &Stage, name: &str) -> Option<String> {
    let all = stage.phalanx(&["--json", "worktree", "list"]).expect(0).json();
    let found = all.as_array()?.iter().find(|one| one["name"] == name)?.clone();
    Some(found["path"].as_str()?.to_owned())
}

/// SP-18: with and without a lead.
#[test]
fn tmux_sp_18_rename_hands_over_what_a_member_has() {
    for is_led in [false, true] {
        let stage = busy();
        if is_led {
            stage.phalanx(&["lead", "--detach"]).expect(0);
        }
        let path = worktree_of(&stage, "ann").expect("a worktree");
        fs::write(format!("{path}/draft.txt"), "half of it").expect("draft");

        let done = rename(&stage, &["--json", "--force", "ann", "parser"]).expect(0).json();
        assert_eq!(done["tasks"], json!(["3", "4"]), "led {is_led}: {done}");
        assert_eq!(names(&stage), ["cid", "parser"], "led {is_led}");
        wait_for("the task to go on", || {
            let all = tasks(&stage);
            let is_its = [&all[2], &all[3]].iter().all(|task| task.0 == "parser");
            (is_its && [&all[2].1, &all[3].1].contains(&&json!("in_progress"))).then_some(())
        });
        assert_eq!(tasks(&stage)[0], (json!("ann"), json!("completed")), "history keeps its name");
        assert_eq!(tasks(&stage)[1].0, "cid", "a task of another member");
        assert_eq!(worktree_of(&stage, "parser"), Some(path.clone()));
        assert_eq!(worktree_of(&stage, "ann"), None);
        assert_eq!(fs::read_to_string(format!("{path}/draft.txt")).expect("draft"), "half of it");
        let cwd = stage.phalanx(&["--json", "-v", "explain", "parser"]).expect(0).stdout;
        assert!(cwd.contains(&path), "it works there: {cwd}");

        let done = rename(&stage, &["--json", "--force", "cid", "dora"]).expect(0).json();
        assert_eq!((&done["messages"], &done["tasks"]), (&json!(1), &json!(["2"])), "{done}");
        let unread = |name: &str| {
            let args = ["--json", "--as", name, "inbox", name, "--peek"];
            stage.phalanx(&args).stdout.matches("a word for you").count()
        };
        assert_eq!((unread("dora"), unread("cid")), (1, 0), "led {is_led}");
        let events = stage.phalanx(&["events"]).expect(0).stdout;
        assert!(events.contains("dora") && events.contains("was called cid before"), "{events}");
        stage.phalanx(&["down", "--force"]).expect(0);
        fs::remove_file(format!("{path}/draft.txt")).ok();
    }
}

/// SP-18: nothing is stopped for a name that cannot be had.
#[test]
fn tmux_sp_18_rename_is_refused_before_anything_is_stopped() {
    let stage = busy();
    let before = (names(&stage), stage.phalanx(&["--json", "ps"]).expect(0).json());
    for (args, said) in [
        (&["ann", "cid"][..], "has a member `cid`"),
        (&["ann", "CID"], "has a member `cid`"),
        (&["ann", "ann"], "has this name"),
        (&["ann", "a/b"], "a/b"),
        (&["ann", "team-lead"], "team-lead"),
        (&["eve", "fay"], "eve"),
        (&["ann"], "needs a new name"),
    ] {
        let run = rename(&stage, args);
        assert!(run.code != 0 && run.stderr.contains(said), "{args:?}: {run:?}");
    }
    let pids = |ps: &Value| ps[0]["members"].as_array().map(|all| all.len());
    assert_eq!(names(&stage), before.0);
    assert_eq!(pids(&stage.phalanx(&["--json", "ps"]).expect(0).json()), pids(&before.1));
    assert_eq!(tasks(&stage)[2], (json!("ann"), json!("in_progress")), "it works on");
    stage.phalanx(&["down", "--force"]).expect(0);
}

/// SP-18: a call that was killed is repeated, and everything is handed over once.
#[test]
fn tmux_crash_sp_18_killed_rename_is_completed_by_the_next_one() {
    for point in ["rename.stopped", "rename.settled", "rename.started", "rename.given"] {
        let stage = busy();
        let path = worktree_of(&stage, "ann").expect("a worktree");
        let mut command = stage.command(binary());
        command.env("PHALANX_FAILPOINT", point).args(["rename", "--force", "ann", "parser"]);
        assert!(!command.output().expect("phalanx runs").status.success(), "{point}");
        rename(&stage, &["--force", "ann", "parser"]).expect(0);
        assert_eq!(names(&stage), ["cid", "parser"], "{point}");
        wait_for(&format!("{point}: the task to go on"), || {
            let all = tasks(&stage);
            let is_its = [&all[2], &all[3]].iter().all(|task| task.0 == "parser");
            (is_its && [&all[2].1, &all[3].1].contains(&&json!("in_progress"))).then_some(())
        });
        assert_eq!(worktree_of(&stage, "parser"), Some(path), "{point}");
        stage.phalanx(&["down", "--force"]).expect(0);
    }
}

/// SP-18: a program that does not start again leaves the member its name and its worktree.
#[test]
fn tmux_sp_18_member_that_does_not_start_keeps_its_name() {
    let stage = with_repository(super::stage());
    stage.profile("settled", SETTLED);
    let script = "[ -e once ] && exit 7; touch once; exec sleep 300";
    let spawn = ["spawn", "bob", "--profile", "settled", "--worktree", "--", "sh", "-c", script];
    stage.phalanx(&spawn).expect(0);
    let path = worktree_of(&stage, "bob").expect("a worktree");
    let run = rename(&stage, &["--force", "bob", "dev"]).expect(1);
    assert!(run.stderr.contains("bob keeps its name; `phalanx resume bob`"), "{run:?}");
    assert_eq!(worktree_of(&stage, "bob"), Some(path.clone()));
    fs::remove_file(format!("{path}/once")).expect("well again");
    stage.phalanx(&["resume", "bob"]).expect(0);
    assert_eq!(names(&stage), ["bob"]);
    fs::remove_file(format!("{path}/once")).expect("clean");
    stage.phalanx(&["down", "--force"]).expect(0);
}
