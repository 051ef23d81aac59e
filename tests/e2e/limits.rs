//! Limits of a team: the number of members, concurrent spawns, and no tmux calls while all members
//! are idle.

use std::fs;

use serde_json::Value;

use crate::harness::{Background, Run, Stage, wait_for, which};

/// Runs `count` concurrent `spawn` processes and returns their results.
fn spawn_at_once(stage: &Stage, count: usize) -> Vec<Run> {
    let spawn = |n: usize| {
        let name = format!("m{n}");
        stage.start(&["spawn", &name, "--backend", "pty", "--deadline", "60", "--", "sleep", "300"])
    };
    let all: Vec<Background> = (0..count).map(spawn).collect();
    all.into_iter().map(Background::end).collect()
}

fn members(stage: &Stage) -> Vec<Value> {
    let status = stage.phalanx(&["--json", "status"]).expect(0).json();
    status["members"].as_array().expect("members").clone()
}

fn manual(stage: &Stage, name: &str, more: &str) {
    let text = format!("[team]\nname = \"{name}\"\nfinish = \"manual\"\n{more}");
    stage.phalanx(&["up", &stage.file("team.toml", &text), "--detach"]).expect(0);
}

#[test]
fn pf_02_pf_07_concurrent_spawns_do_not_exceed_max_members() {
    let stage = Stage::without_tmux();
    manual(&stage, "small", "max_members = 3\n[[member]]\nname = \"ada\"\n");
    let runs = spawn_at_once(&stage, 8);
    let (came, refused): (Vec<Run>, Vec<Run>) = runs.into_iter().partition(|run| run.code == 0);
    assert_eq!(came.len(), 2, "{refused:?}");
    for run in &refused {
        assert!(run.code == 4 && run.stderr.contains("max_members"), "{run:?}");
    }
    assert_eq!(members(&stage).len(), 3);
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// PF-08: forty concurrent spawns contend for the team's locks, and all succeed.
#[test]
fn pf_08_forty_concurrent_spawns_all_succeed() {
    let stage = Stage::without_tmux();
    manual(&stage, "crowd", "max_members = 40\n");
    for run in spawn_at_once(&stage, 40) {
        run.expect(0);
    }
    assert_eq!(members(&stage).len(), 40);
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// PF-06: no tmux process is started while all members are idle. `scripts/bench/run idle`
/// prints the lead's CPU time.
#[test]
fn tmux_pf_06_idle_members_cause_no_tmux_calls() {
    let mut stage = Stage::new();
    let calls = stage.at("calls");
    let tmux = which("tmux", stage.path()).expect("tmux");
    let script =
        format!("#!/bin/sh\necho \"$@\" >> {}\nexec {} \"$@\"\n", calls.display(), tmux.display());
    stage.shadow("tmux", &script);
    let names: String = (0..10).map(|n| format!("[[member]]\nname = \"m{n}\"\n")).collect();
    manual(&stage, "rest", &format!("backend = \"tmux\"\nmax_members = 10\n{names}"));
    // A task without a command, so that no worker claims it.
    stage.phalanx(&["task", "create", "never"]).expect(0);
    let count = || fs::read_to_string(&calls).expect("calls").lines().count();
    let pass = |seconds: &str| {
        let run = stage.phalanx(&["wait", "--until", "task=1", "--timeout", seconds]);
        assert_ne!(run.code, 0, "nobody does it");
    };
    assert!(count() > 0, "it is this tmux that is asked");
    wait_for("the calls of the start to end", || {
        let before = count();
        pass("2");
        (count() == before).then_some(())
    });
    let before = count();
    pass("8");
    assert_eq!(count(), before, "{}", fs::read_to_string(&calls).expect("calls"));
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}
