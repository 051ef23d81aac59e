//! Free tasks and idle agents: the lead notifies one agent after the other (TK-13), and without a
//! lead nothing lies there unseen.

use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{NATIVE, Stage, wait_for};

fn spawn(stage: &Stage, name: &str, more: &[&str]) -> Value {
    let args =
        [&["--json", "spawn", name, "--profile", "native", "--backend", "pty"], more].concat();
    stage.phalanx(&[&args[..], &["--", "sleep", "300"]].concat()).expect(0).json()
}

fn team(stage: &Stage) {
    stage.profile("native", NATIVE);
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
}

/// Reads the mail of a member.
fn mail(stage: &Stage, name: &str) -> String {
    stage.phalanx(&["--as", name, "inbox", "--all", "--peek"]).expect(0).stdout
}

/// Waits until one of the members is notified of the task, and returns which one.
fn told<'a>(stage: &Stage, names: &[&'a str], id: u64) -> &'a str {
    let text = format!("phalanx task claim {id}");
    wait_for(&format!("an offer of task {id}"), || {
        names.iter().find(|name| mail(stage, name).contains(&text)).copied()
    })
}

/// TK-13: each free task is offered to an agent that is idle, and after it has refused to the
/// other.
#[test]
fn tk_13_idle_agents_are_notified_of_free_tasks_one_by_one() {
    let stage = Stage::without_tmux();
    team(&stage);
    for name in ["ann", "ben", "cleo"] {
        let pull: &[&str] = if name == "cleo" { &["--pull", "never"] } else { &[] };
        spawn(&stage, name, pull);
    }
    stage.phalanx(&["lead", "--detach"]).expect(0);
    let created = stage.phalanx(&["task", "create", "Fix the parser"]).expect(0);
    assert!(!created.stderr.contains("notified"), "{created:?}");
    let first = told(&stage, &["ann", "ben"], 1);
    let other = if first == "ann" { "ben" } else { "ann" };
    stage.phalanx(&["--as", first, "task", "claim", "1"]).expect(0);
    stage.phalanx(&["task", "create", "Write a test"]).expect(0);
    assert_eq!(told(&stage, &[first, other], 2), other, "{first} has work");
    // The other has a turn and does not claim.
    let idle = json!({"type": "idle_notification", "from": other, "idleReason": "available"});
    stage.phalanx(&["--as", other, "send", "team-lead", &idle.to_string()]).expect(0);
    stage.phalanx(&["--as", first, "task", "complete", "1"]).expect(0);
    assert_eq!(told(&stage, &[first], 2), first);
    let mails: Vec<String> = ["ann", "ben"].iter().map(|name| mail(&stage, name)).collect();
    let count = |text: &str| mails.iter().map(|mail| mail.matches(text).count()).sum::<usize>();
    assert_eq!((count("task claim 1"), count("task claim 2")), (1, 2), "{mails:?}");
    assert!(!mail(&stage, "cleo").contains("task claim"));
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// TK-13: without a lead, `task create` prints that no member was notified.
#[test]
fn tk_13_task_create_prints_that_no_member_was_notified_without_a_lead() {
    let stage = Stage::without_tmux();
    team(&stage);
    let says = |args: &[&str], expected: bool| {
        let run = stage.phalanx(&[&["task", "create"], args].concat()).expect(0);
        assert_eq!(run.stderr.contains("no member was notified"), expected, "{args:?}: {run:?}");
    };
    says(&["no agent is there"], false);
    spawn(&stage, "ann", &[]);
    says(&["free"], true);
    says(&["hers", "--owner", "ann"], false);
    says(&["waits", "--blocked-by", "1"], false);
    says(&["for a role", "--role", "tester"], false);
    says(&["for a worker", "--", "true"], false);
    stage.phalanx(&["team", "set", "board.pull", "never"]).expect(0);
    says(&["no member is ever notified"], false);
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// TK-05: the task of a member that died is free for the next that claims one, also without a lead.
#[test]
fn tk_05_claim_frees_the_task_of_a_dead_owner_without_a_lead() {
    let stage = Stage::without_tmux();
    team(&stage);
    spawn(&stage, "ben", &[]);
    for (id, how) in [("1", "1"), ("2", "--next")] {
        let ann = spawn(&stage, "ann", &[]);
        stage.phalanx(&["task", "create", "Fix"]).expect(0);
        stage.phalanx(&["--as", "ann", "task", "claim", id]).expect(0);
        let claim = ["--as", "ben", "task", "claim", how];
        assert_ne!(stage.phalanx(&claim).code, 0, "ann lives");
        let pid = ann["pid"].to_string();
        Command::new("kill").args(["-KILL", &pid]).status().expect("kill");
        wait_for("the claim", || (stage.phalanx(&claim).code == 0).then_some(()));
        let task = stage.phalanx(&["--json", "task", "get", id]).expect(0).json();
        assert_eq!((&task["owner"], &task["state"]), (&"ben".into(), &"in_progress".into()));
        let journal = stage.journal("alpha");
        let released = journal.iter().filter(|event| event["event"] == "task_released");
        assert_eq!(released.count().to_string(), id, "{journal:?}");
    }
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}
