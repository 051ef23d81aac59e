//! Tasks that are edited, deleted, retried, and changed by other programs under a running lead.

use std::fs;

use serde_json::Value;

use crate::harness::{Stage, wait_for};

#[test]
fn tasks_are_edited_and_deleted() {
    let stage = super::stage();
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
    stage.add_native("demo", &["ann"]);
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
    assert!(
        kinds.contains(&"task_deleted".into()) && kinds.contains(&"task_updated".into()),
        "{kinds:?}"
    );
}

#[test]
fn new_owner_is_notified_unless_it_assigned_itself() {
    let stage = super::stage();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    stage.add_native("demo", &["ada", "bob"]);
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
    let first =
        |what: &str, is: &str| journal.iter().find(|e| e[what] == is || e["detail"][what] == is);
    let (sent, updated) = (first("kind", "task_assignment"), first("event", "task_updated"));
    assert_eq!(sent.expect("told")["cause"], updated.expect("told")["id"]);
    stage.phalanx(&["task", "create", "two", "--owner", "ada"]).expect(0);
    assert_eq!(mail().as_array().map(Vec::len), Some(2));
}

/// TK-07: another program edits tasks under a running lead.
#[test]
fn tk_07_lead_journals_task_changes_by_other_programs() {
    let stage = super::stage();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    for subject in ["one", "two", "three"] {
        stage.phalanx(&["task", "create", subject]).expect(0);
    }
    let lead = stage.start(&["lead"]);
    wait_for("the lead to have looked at the board", || {
        stage.journal("demo").iter().any(|e| e["event"] == "lead_started").then_some(())
    });
    // The lead notices only changes to tasks that it has read; a reported change proves that it
    // has.
    let file = |id: u32| stage.root().join(format!("tasks/demo/{id}.json"));
    let edit = |id: u32, key: &str, value: &str| {
        let mut task: Value =
            serde_json::from_slice(&fs::read(file(id)).expect("read")).expect("json");
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
    assert!(shown.contains("another program took away #3 three"), "{shown}");
    stage.phalanx(&["team", "delete"]).expect(0);
    lead.end().expect(0);
    stage.assert_clean();
}

/// Each event of a task names the previous one as its cause.
#[test]
fn events_of_a_task_form_a_causal_chain() {
    let stage = super::stage_without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["task", "create", "T", "--", "true"]).expect(0);
    stage.phalanx(&["spawn", "ada"]).expect(0);
    stage.wait_event("alpha", "task_completed", "1");
    let told: Vec<Value> =
        stage.journal("alpha").into_iter().filter(|e| e["task"] == "1").collect();
    let names: Vec<&str> = told.iter().filter_map(|e| e["event"].as_str()).collect();
    assert_eq!(names, ["task_created", "task_claimed", "task_completed"]);
    assert_eq!(told[0].get("cause"), None);
    assert_eq!(told[1]["cause"], told[0]["id"]);
    assert_eq!(told[2]["cause"], told[1]["id"]);
    stage.phalanx(&["down"]).expect(0);
}

fn get(stage: &Stage, id: &str) -> Value {
    stage.phalanx(&["--json", "task", "get", id]).expect(0).json()
}

#[test]
fn retried_task_is_run_and_reported_again() {
    let stage = super::stage_without_tmux();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    let lead = stage.start(&["lead"]);
    stage
        .phalanx(&["task", "create", "T", "--", "sh", "-c", "echo no such page; test -e fixed"])
        .expect(0);
    stage.phalanx(&["task", "create", "open"]).expect(0);
    stage.phalanx(&["spawn", "ada"]).expect(0);
    let reports = || {
        let mail = stage.phalanx(&["--json", "inbox", "--peek", "--all"]).expect(0).json();
        let all = mail.as_array().expect("a list").iter();
        let texts: Vec<String> = all
            .filter(|one| one["from"] == "system" && one["text"].to_string().contains("#1"))
            .map(|one| one["text"].to_string())
            .collect();
        texts
    };
    let first = wait_for("the report of the failure", || reports().pop());
    assert!(first.contains("`phalanx task retry 1` makes it pending again"), "{first}");
    stage.phalanx(&["--as", "ada", "task", "retry", "2"]).expect(4);
    stage.phalanx(&["task", "retry", "9"]).expect(3);
    stage.phalanx(&["retry", "9"]).expect(3);
    let refused = stage.phalanx(&["task", "claim", "1"]).expect(4);
    assert!(
        refused.stderr.contains("hint: make it pending again with `phalanx task retry 1`"),
        "{refused:?}"
    );
    stage.file("fixed", "");
    let task = stage.phalanx(&["--json", "task", "retry", "1"]).expect(0).json();
    let ours = &task["metadata"]["phalanx"];
    assert_eq!((&task["status"], &ours["state"]), (&"pending".into(), &"pending".into()));
    assert_eq!((ours.get("outcome"), ours.get("ended_by"), task.get("owner")), (None, None, None));
    let retried = stage.wait_event("demo", "task_retried", "1");
    assert_eq!(retried["detail"]["failure"]["exit_code"], 1);
    assert!(retried["detail"]["failure"]["tail"].to_string().contains("no such page"), "{retried}");
    stage.wait_event("demo", "task_completed", "1");
    wait_for("the report of the second run", || (reports().len() == 2).then_some(()));
    stage.phalanx(&["task", "create", "waits", "--blocked-by", "2"]).expect(0);
    let refused = stage.phalanx(&["task", "retry", "3"]).expect(4);
    let wrong = "`retry` needs one that is completed, failed, cancelled, stale";
    assert!(refused.stderr.contains(wrong), "{refused:?}");
    stage.phalanx(&["down", "--force"]).expect(0);
    lead.end().expect(0);
    stage.assert_clean();
}

#[test]
fn retried_task_keeps_an_assigned_owner() {
    let stage = super::stage_without_tmux();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    stage.phalanx(&["spawn", "ada"]).expect(0);
    stage.phalanx(&["task", "create", "T", "--owner", "ada", "--", "false"]).expect(0);
    stage.wait_event("demo", "task_failed", "1");
    let task = stage.phalanx(&["--json", "task", "retry", "1"]).expect(0).json();
    assert_eq!(task["owner"], "ada");
    wait_for("the second failure", || {
        let failed = stage.journal("demo").iter().filter(|e| e["event"] == "task_failed").count();
        (failed == 2).then_some(())
    });
    stage.phalanx(&["shutdown", "ada", "--force"]).expect(0);
    let task = stage.phalanx(&["--json", "task", "retry", "1"]).expect(0).json();
    assert_eq!(task.get("owner"), None, "an owner that has left does not keep it");
    stage.phalanx(&["down"]).expect(0);
}

#[test]
fn task_update_changes_every_field() {
    let stage = super::stage_without_tmux();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    stage.add_native("demo", &["ada"]);
    for subject in ["one", "two", "three"] {
        stage.phalanx(&["task", "create", subject, "--metadata", r#"{"a": 1, "b": 2}"#]).expect(0);
    }
    let changes =
        ["--subject", "zwei", "--description", "d", "--active-form", "Zweiing", "--priority", "-3"];
    let more = [
        "--role",
        "coder",
        "--file",
        "a",
        "b",
        "--type",
        "bug",
        "--metadata",
        r#"{"a": null, "c": [1]}"#,
    ];
    let run =
        ["--cwd", "sub", "--env", "X=1", "--blocked-by", "1", "--blocks", "3", "--owner", "ada"];
    let all = [&["task", "update", "2"], &changes[..], &more, &run, &["--", "echo", "hi"]].concat();
    stage.phalanx(&all).expect(0);
    let task = get(&stage, "2");
    let ours = &task["metadata"]["phalanx"];
    assert_eq!(
        (&task["subject"], &task["description"], &task["activeForm"]),
        (&"zwei".into(), &"d".into(), &"Zweiing".into())
    );
    assert_eq!(
        (&task["blockedBy"], &task["blocks"], &task["owner"]),
        (&vec!["1"].into(), &vec!["3"].into(), &"ada".into())
    );
    assert_eq!(
        (&ours["priority"], &ours["role"], &ours["files"]),
        (&Value::from(-3), &"coder".into(), &vec!["a", "b"].into())
    );
    assert_eq!((&ours["run"], &ours["env"]["X"]), (&vec!["echo", "hi"].into(), &"1".into()));
    assert_eq!(ours["cwd"], stage.at("work/sub").to_string_lossy().as_ref());
    let metadata = &task["metadata"];
    assert_eq!(
        (metadata.get("a"), &metadata["b"], &ours["type"]),
        (None, &2.into(), &"bug".into())
    );
    assert_eq!(metadata["c"], serde_json::json!([1]));
    assert_eq!(get(&stage, "3")["blockedBy"], serde_json::json!(["2"]));
    stage
        .phalanx(&[
            "task",
            "update",
            "2",
            "--active-form",
            "",
            "--role",
            "",
            "--cwd",
            "",
            "--file",
            "",
        ])
        .expect(0);
    let task = get(&stage, "2");
    let ours = &task["metadata"]["phalanx"];
    assert_eq!(
        (task.get("activeForm"), ours.get("role"), ours.get("cwd"), ours.get("files")),
        (None, None, None, None)
    );
    let blocked = stage
        .phalanx(&["task", "update", "2", "--status", "in_progress", "--subject", "x"])
        .expect(4);
    assert!(blocked.stderr.contains("task 2 is blocked by 1 (blocked)"), "{blocked:?}");
    assert_eq!(get(&stage, "2")["subject"], "zwei", "a refused update changes nothing");
    let circle = stage.phalanx(&["task", "update", "3", "--blocks", "1"]).expect(4);
    assert!(circle.stderr.contains("would form a cycle"), "{circle:?}");
    stage.phalanx(&["--as", "ada", "task", "update", "2", "--blocks", "1"]).expect(4);
    let journal = stage.journal("demo");
    let updated = journal.iter().find(|e| e["event"] == "task_updated").expect("an event");
    let fields = updated["detail"]["fields"].as_array().map(Vec::len);
    assert_eq!(fields, Some(14), "{updated}");
}

#[test]
fn task_update_status_is_journaled_like_the_verb() {
    let stage = super::stage_without_tmux();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    stage.add_native("demo", &["ada"]);
    stage.phalanx(&["task", "create", "one"]).expect(0);
    stage.phalanx(&["task", "create", "two", "--blocked-by", "1"]).expect(0);
    let set = |status: &str| stage.phalanx(&["task", "update", "1", "--status", status]);
    stage.phalanx(&["task", "update", "1", "--status", "in_progress", "--owner", "ada"]).expect(0);
    assert_eq!(
        (&get(&stage, "1")["owner"], &get(&stage, "1")["status"]),
        (&"ada".into(), &"in_progress".into())
    );
    set("pending").expect(0);
    assert_eq!(get(&stage, "1")["owner"], "ada");
    set("in_progress").expect(0);
    let done = set("completed").expect(0);
    assert_eq!(done.stdout, "task 1 is completed; free now: #2\n");
    set("pending").expect(4);
    set("deleted").expect(2);
    let told: Vec<Value> = stage.journal("demo").into_iter().filter(|e| e["task"] == "1").collect();
    let names: Vec<&str> = told.iter().filter_map(|e| e["event"].as_str()).collect();
    let verbs = [
        "task_updated",
        "task_assigned",
        "task_claimed",
        "task_released",
        "task_claimed",
        "task_completed",
    ];
    assert_eq!(names[1..], verbs, "{told:?}");
    assert_eq!(told.last().map(|e| &e["detail"]["freed"]), Some(&serde_json::json!(["2"])));
}

#[test]
fn worker_claims_the_highest_priority_first() {
    let stage = super::stage_without_tmux();
    let task = |key: &str, rest: &str| {
        format!("[[task]]\nkey = \"{key}\"\nsubject = \"{key}\"\nrun = [\"true\"]\n{rest}\n")
    };
    let tasks = [
        task("plain", ""),
        task("low", "priority = -1"),
        task("high", "priority = 5"),
        task("next", "priority = 5"),
    ];
    let head = "[team]\nname = \"demo\"\nbackend = \"pty\"\n[[member]]\nname = \"ada\"\n";
    let manifest = stage.file("team.toml", &format!("{head}{}", tasks.concat()));
    stage.phalanx(&["up", &manifest, "--keep"]).expect(0);
    let claims = |team: &str| -> Vec<String> {
        let claims = stage.journal(team).into_iter().filter(|e| e["event"] == "task_claimed");
        claims.map(|e| e["detail"]["subject"].as_str().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(claims("demo"), ["high", "next", "plain", "low"]);
    stage.phalanx(&["task", "update", "1", "--priority", "9", "-t", "demo"]).expect(0);
    let listed = stage.phalanx(&["task", "list", "--all", "-t", "demo"]).expect(0).stdout;
    assert!(
        listed.starts_with(
            "ID  KEY    STATE      PRIORITY  OWNER  SUBJECT\n1   plain  completed  9         ada    plain\n3 "
        ),
        "{listed}"
    );
    stage.phalanx(&["team", "delete", "-t", "demo"]).expect(0);
}

#[test]
fn running_task_is_shown_by_its_active_form() {
    let stage = super::stage_without_tmux();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    stage.add_native("demo", &["ada"]);
    stage
        .phalanx(&[
            "task",
            "create",
            "Write docs",
            "--active-form",
            "Writing \u{1b}docs",
            "--owner",
            "ada",
        ])
        .expect(0);
    let shown = |verb: &[&str]| stage.phalanx(verb).expect(0).stdout;
    assert!(shown(&["task", "list"]).contains("Write docs"));
    stage.phalanx(&["--as", "ada", "task", "claim", "1"]).expect(0);
    assert!(
        shown(&["task", "list"]).contains("Writing \u{241b}docs"),
        "{}",
        shown(&["task", "list"])
    );
    assert!(shown(&["status"]).contains("#1 Writing \u{241b}docs"), "{}", shown(&["status"]));
    let status = stage.phalanx(&["--json", "status"]).expect(0).json();
    assert_eq!(status["members"][0]["activity"], "Writing \u{1b}docs");
    stage.phalanx(&["--as", "ada", "task", "complete", "1"]).expect(0);
    assert!(shown(&["task", "list", "--all"]).contains("Write docs"));
}

#[test]
fn internal_tasks_of_claude_code_are_hidden() {
    let stage = super::stage_without_tmux();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    let internal = r#"{"_internal": true}"#;
    stage.phalanx(&["task", "create", "ada", "--metadata", internal]).expect(0);
    stage.phalanx(&["task", "update", "1", "--status", "in_progress"]).expect(0);
    assert_eq!(stage.phalanx(&["task", "list"]).expect(0).stderr, "no open tasks\n");
    assert_eq!(stage.phalanx(&["--json", "task", "list"]).expect(0).json(), serde_json::json!([]));
    let all = stage.phalanx(&["--json", "task", "list", "--all"]).expect(0).json();
    assert_eq!(all.as_array().map(Vec::len), Some(1));
    let status = stage.phalanx(&["--json", "status"]).expect(0).json();
    assert_eq!(status["tasks"]["in_progress"], 0);
}

#[test]
fn member_that_completes_a_task_notifies_the_lead_once() {
    let stage = super::stage_without_tmux();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    stage.add_native("demo", &["ada"]);
    for (subject, owner) in [("one", "ada"), ("two", "ada"), ("three", "team-lead")] {
        stage.phalanx(&["task", "create", subject, "--owner", owner]).expect(0);
    }
    let news = || -> Vec<Value> {
        let mail = stage.phalanx(&["--json", "inbox", "--peek", "--all"]).expect(0).json();
        let texts = mail.as_array().expect("a list").iter().filter_map(|one| one["text"].as_str());
        let parsed = texts.filter_map(|text| serde_json::from_str::<Value>(text).ok());
        parsed.filter(|news| news["type"] == "task_completed").collect()
    };
    stage.phalanx(&["--as", "ada", "task", "complete", "1"]).expect(0);
    assert_eq!(news().len(), 1);
    assert_eq!((&news()[0]["taskId"], &news()[0]["from"]), (&"1".into(), &"ada".into()));
    assert_eq!(news()[0]["taskSubject"], "one");
    let lead = stage.start(&["lead", "--on-exit", "detach"]);
    stage.phalanx(&["--as", "ada", "task", "update", "2", "--status", "completed"]).expect(0);
    stage.phalanx(&["task", "complete", "3"]).expect(0);
    wait_for("the lead to read its mail", || {
        let unread = stage.phalanx(&["--json", "inbox", "--peek"]).expect(0).json();
        (!unread.to_string().contains("task_completed")).then_some(())
    });
    let ids: Vec<Value> = news().into_iter().map(|news| news["taskId"].clone()).collect();
    assert_eq!(ids, ["1", "2"], "each of the member's once, none of the lead's own");
    lead.signal("TERM");
    lead.end().expect(0);
}
