//! Tasks that are edited, deleted, and changed by strangers while a lead looks on.

use std::fs;

use serde_json::Value;

use crate::harness::{Stage, wait_for};

#[test]
fn tasks_are_edited_and_deleted() {
    let stage = Stage::new();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    for subject in ["one", "two", "three"] {
        stage.phalanx(&["task", "create", subject]).expect(0);
    }
    let task = |id: &str| stage.phalanx(&["--json", "task", "get", id]).expect(0).json();
    stage.phalanx(&["task", "update", "2", "--subject", "zwei", "--blocked-by", "1"]).expect(0);
    stage.phalanx(&["task", "update", "3", "--blocked-by", "2"]).expect(0);
    assert_eq!((&task("2")["subject"], &task("1")["blocks"]), (&"zwei".into(), &vec!["2"].into()));
    let refused = stage.phalanx(&["task", "update", "1", "--blocked-by", "3"]).expect(4);
    assert!(refused.stderr.contains("1 → 2 → 3 → 1"), "{refused:?}");
    stage.phalanx(&["task", "update", "3"]).expect(2);
    stage.phalanx(&["task", "update", "3", "--owner", "nobody-here"]).expect(3);
    stage.phalanx(&["--as", "ann", "task", "delete", "2", "--force"]).expect(4);
    let early = stage.phalanx(&["task", "delete", "2"]).expect(4);
    assert!(early.stderr.contains("--force"), "{early:?}");
    stage.phalanx(&["task", "delete", "2", "--force"]).expect(0);
    stage.phalanx(&["task", "get", "2"]).expect(3);
    assert_eq!(
        (&task("1")["blocks"], &task("3")["blockedBy"]),
        (&Value::Array(vec![]), &Value::Array(vec![]))
    );
    let kinds: Vec<Value> = stage.journal("demo").into_iter().map(|e| e["event"].clone()).collect();
    assert!(kinds.contains(&"task_deleted".into()) && kinds.contains(&"task_updated".into()), "{kinds:?}");
}

/// A native member: on the roster, not started by phalanx, reads its mailbox.
fn native(stage: &Stage, name: &str) {
    let file = stage.root().join("teams/demo/config.json");
    let mut config: Value = serde_json::from_slice(&fs::read(&file).expect("read")).expect("json");
    let members = config["members"].as_array_mut().expect("members");
    members.push(serde_json::json!({"agentId": format!("{name}@demo"), "name": name}));
    fs::write(&file, serde_json::to_string_pretty(&config).expect("text")).expect("write");
}

#[test]
fn a_new_owner_is_told_unless_it_is_its_own_doing() {
    let stage = Stage::new();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    native(&stage, "ada");
    native(&stage, "bob");
    let mail = || stage.phalanx(&["--json", "inbox", "ada", "--peek"]).expect(0).json();
    stage.phalanx(&["task", "create", "one", "--description", "d"]).expect(0);
    stage.phalanx(&["task", "update", "1", "--owner", "ada"]).expect(0);
    stage.phalanx(&["task", "update", "1", "--owner", "ada"]).expect(0);
    stage.phalanx(&["--as", "ada", "task", "create", "mine", "--owner", "ada"]).expect(0);
    let told = mail();
    assert_eq!(told.as_array().map(Vec::len), Some(1), "{told}");
    let news: Value = serde_json::from_str(told[0]["text"].as_str().expect("text")).expect("json");
    assert_eq!((&news["type"], &news["taskId"]), (&"task_assignment".into(), &"1".into()));
    assert_eq!((&news["assignedBy"], &news["subject"]), (&"team-lead".into(), &"one".into()));
    let journal = stage.journal("demo");
    let first = |what: &str, is: &str| journal.iter().find(|e| e[what] == is || e["detail"][what] == is);
    let (sent, updated) = (first("kind", "task_assignment"), first("event", "task_updated"));
    assert_eq!(sent.expect("told")["cause"], updated.expect("told")["id"]);
    stage.phalanx(&["task", "create", "two", "--owner", "ada"]).expect(0);
    assert_eq!(mail().as_array().map(Vec::len), Some(2));
}

/// TK-07: a program that knows nothing of phalanx, under a running lead.
#[test]
fn tk_07_a_lead_tells_what_strangers_did_to_tasks() {
    let stage = Stage::new();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    for subject in ["one", "two", "three"] {
        stage.phalanx(&["task", "create", subject]).expect(0);
    }
    let lead = stage.start(&["lead"]);
    wait_for("the lead to have looked at the board", || {
        stage.journal("demo").iter().any(|e| e["event"] == "lead_started").then_some(())
    });
    // Only what the lead has seen can vanish: a change that it tells is the proof that it has looked.
    let file = |id: u32| stage.root().join(format!("tasks/demo/{id}.json"));
    let edit = |id: u32, key: &str, value: &str| {
        let mut task: Value = serde_json::from_slice(&fs::read(file(id)).expect("read")).expect("json");
        task[key] = value.into();
        fs::write(file(id), serde_json::to_string_pretty(&task).expect("text")).expect("write");
    };
    let events = |kind: &str| -> Vec<Value> {
        stage.journal("demo").into_iter().filter(|e| e["event"] == kind).collect()
    };
    let mut round = 0;
    wait_for("the lead to tell a change", || {
        edit(1, "owner", &format!("native{round}"));
        round += 1;
        (!events("task_changed").is_empty()).then_some(())
    });
    edit(2, "description", "theirs");
    let rewritten = wait_for("task_rewritten", || events("task_rewritten").pop());
    assert_eq!(
        (&rewritten["task"], &rewritten["detail"]["fields"]),
        (&"2".into(), &vec!["description"].into())
    );
    fs::remove_file(file(3)).expect("remove");
    wait_for("task_vanished", || events("task_vanished").pop());
    stage.phalanx(&["task", "delete", "2", "--force"]).expect(0);
    stage.phalanx(&["task", "create", "four"]).expect(0);
    edit(4, "status", "in_progress");
    edit(1, "owner", "last");
    wait_for("the last change", || {
        events("task_changed").into_iter().find(|e| e["detail"]["owner"] == "last")
    });
    assert_eq!(
        (events("task_vanished").len(), events("task_rewritten").len()),
        (1, 1),
        "{:?}",
        stage.journal("demo")
    );
    let shown = stage.phalanx(&["events"]).expect(0).stdout;
    assert!(shown.contains("task_vanished") && shown.contains("three"), "{shown}");
    stage.phalanx(&["team", "delete"]).expect(0);
    lead.end().expect(0);
    stage.assert_clean();
}

/// A whole delegation can be traced: each event of a task names the one before it as its cause.
#[test]
fn the_events_of_a_task_are_a_chain() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["task", "create", "T", "--", "true"]).expect(0);
    stage.phalanx(&["spawn", "ada"]).expect(0);
    stage.wait_event("alpha", "task_completed", "1");
    let told: Vec<Value> = stage.journal("alpha").into_iter().filter(|e| e["task"] == "1").collect();
    let names: Vec<&str> = told.iter().filter_map(|e| e["event"].as_str()).collect();
    assert_eq!(names, ["task_created", "task_claimed", "task_completed"]);
    assert_eq!(told[0].get("cause"), None);
    assert_eq!(told[1]["cause"], told[0]["id"]);
    assert_eq!(told[2]["cause"], told[1]["id"]);
    stage.phalanx(&["down"]).expect(0);
}
