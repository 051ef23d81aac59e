//! The task board: states, claims, review, comments, files and filters.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Run, Stage};

/// A team with two members that phalanx did not start, so that they read their mail themselves.
fn team() -> Stage {
    let stage = super::stage_without_tmux();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    stage.add_native("demo", &["ann", "ben"]);
    stage
}

fn as_ann(stage: &Stage, verb: &[&str]) -> Run {
    stage.phalanx(&[&["--as", "ann", "task"], verb].concat())
}

fn lead(stage: &Stage, verb: &[&str]) -> Run {
    stage.phalanx(&[&["task"], verb].concat())
}

fn task(stage: &Stage, id: &str) -> Value {
    stage.phalanx(&["--json", "task", "get", id]).expect(0).json()
}

fn state(stage: &Stage, id: &str) -> (String, String) {
    let task = task(stage, id);
    let word = |key: &str| task[key].as_str().unwrap_or_default().to_owned();
    (word("state"), word("status"))
}

fn is(state: &str, status: &str) -> (String, String) {
    (state.to_owned(), status.to_owned())
}

fn mail(stage: &Stage, name: &str) -> Vec<String> {
    let mail = stage.phalanx(&["--json", "inbox", name, "--peek", "--all"]).expect(0).json();
    let texts = mail.as_array().expect("a list").iter().filter_map(|one| one["text"].as_str());
    texts.map(str::to_owned).collect()
}

fn events(stage: &Stage, id: &str) -> Vec<String> {
    let events = task(stage, id)["events"].as_array().expect("events").clone();
    events.iter().map(|e| e["event"].as_str().expect("a kind").to_owned()).collect()
}

/// The ids that `task list` with these options shows.
fn listed(stage: &Stage, options: &[&str]) -> Vec<String> {
    let list = stage.phalanx(&[&["--json", "task", "list"], options].concat()).expect(0).json();
    let ids = list.as_array().expect("a list").iter().map(|task| task["id"].as_str().expect("id"));
    ids.map(str::to_owned).collect()
}

#[test]
fn every_state_is_shown_and_mapped_to_the_wire() {
    let stage = team();
    for subject in ["a", "b", "c", "d", "e", "f"] {
        lead(&stage, &["create", subject]).expect(0);
    }
    lead(&stage, &["block", "2", "--by", "1"]).expect(0);
    assert_eq!(state(&stage, "1"), is("pending", "pending"));
    assert_eq!(state(&stage, "2"), is("blocked", "pending"));
    as_ann(&stage, &["claim", "3"]).expect(0);
    assert_eq!(state(&stage, "3"), is("in_progress", "in_progress"));
    as_ann(&stage, &["review", "3", "--result", "r", "--commit", "1a2b3c4"]).expect(0);
    assert_eq!(state(&stage, "3"), is("in_review", "in_progress"));
    as_ann(&stage, &["complete", "4", "--summary", "quick"]).expect(0);
    assert_eq!(state(&stage, "4"), is("completed", "completed"));
    lead(&stage, &["fail", "5", "--reason", "no disk"]).expect(0);
    assert_eq!(state(&stage, "5"), is("failed", "pending"));
    lead(&stage, &["cancel", "6", "--reason", "not needed"]).expect(0);
    assert_eq!(state(&stage, "6"), is("cancelled", "completed"));

    let status = stage.phalanx(&["--json", "status"]).expect(0).json();
    let counts = json!({"pending": 1, "blocked": 1, "in_progress": 0, "in_review": 1, "completed": 1, "failed": 1,
        "cancelled": 1, "stale": 0});
    assert_eq!(status["tasks"], counts);
    assert_eq!(listed(&stage, &[]), ["1", "2", "3", "5"]);
    assert_eq!(listed(&stage, &["--active"]), ["1", "2", "3"]);
    assert_eq!(listed(&stage, &["--in-review"]), ["3"]);
    assert_eq!(listed(&stage, &["--completed"]), ["4"]);
    assert_eq!(listed(&stage, &["--all"]).len(), 6);
    assert_eq!(listed(&stage, &["--owner", "ann"]), ["3"]);
    assert_eq!(listed(&stage, &["--completed", "--owner", "ann"]), ["4"]);
    lead(&stage, &["list", "--all", "--completed"]).expect(2);

    let done = task(&stage, "4")["metadata"]["phalanx"].clone();
    assert_eq!(done["snapshot"]["final_status"], "completed");
    assert_eq!(done["snapshot"]["summary"], "quick");
    let table = stage.phalanx(&["task", "list", "--completed", "-v"]).expect(0).stdout;
    assert!(["ENDED", "SUMMARY", "quick"].iter().all(|word| table.contains(word)), "{table}");
    let brief = stage.phalanx(&["task", "list", "--completed"]).expect(0).stdout;
    assert!(!brief.contains("SUMMARY"), "{brief}");
    assert_eq!(task(&stage, "4")["owner"], "ann", "a pending task is claimed first");
    assert_eq!(task(&stage, "5")["metadata"]["phalanx"]["reason"], "no disk");
    lead(&stage, &["retry", "5"]).expect(0);
    assert_eq!(task(&stage, "5")["metadata"]["phalanx"]["reason"], Value::Null);
    assert_eq!(task(&stage, "5")["metadata"]["phalanx"]["snapshot"], Value::Null);
}

/// TK-04: cancelling or rejecting the last blocker frees its dependants, and their owners are told
/// once.
#[test]
fn tk_04_cancelled_and_rejected_tasks_free_their_dependants_once() {
    let stage = team();
    for subject in ["a", "b", "c"] {
        lead(&stage, &["create", subject]).expect(0);
    }
    lead(&stage, &["update", "3", "--owner", "ben", "--blocked-by", "1,2"]).expect(0);
    let blocked = stage.phalanx(&["--as", "ben", "task", "complete", "3"]).expect(4);
    assert!(blocked.stderr.contains("blocked"), "{blocked:?}");
    lead(&stage, &["cancel", "1"]).expect(0);
    assert_eq!(state(&stage, "3").0, "blocked");
    as_ann(&stage, &["claim", "2"]).expect(0);
    as_ann(&stage, &["review", "2"]).expect(0);
    as_ann(&stage, &["approve", "2"]).expect(4);
    lead(&stage, &["reject", "2"]).expect(2);
    lead(&stage, &["reject", "2", "--cancel", "--reason", "wrong file"]).expect(0);
    assert_eq!(state(&stage, "2").0, "cancelled");
    assert_eq!(state(&stage, "3").0, "pending");
    let freed = mail(&stage, "ben").into_iter().filter(|text| text.contains("no longer blocked"));
    assert_eq!(freed.count(), 1);
    let told =
        |name| mail(&stage, name).into_iter().filter(|text| text.contains("wrong file")).count();
    // The lead knows what it has decided itself.
    assert_eq!((told("ann"), told("team-lead")), (1, 0));
    lead(&stage, &["reject", "2", "--reason", "again"]).expect(4);
    assert_eq!(
        events(&stage, "2"),
        ["task_created", "task_claimed", "task_submitted", "task_cancelled"]
    );
}

#[test]
fn review_is_approved_and_the_lead_is_told_once() {
    let stage = team();
    lead(&stage, &["create", "a", "--owner", "ann"]).expect(0);
    as_ann(&stage, &["review", "1"]).expect(4);
    as_ann(&stage, &["claim", "1"]).expect(0);
    as_ann(&stage, &["review", "1", "--result", "done"]).expect(0);
    as_ann(&stage, &["complete", "1"]).expect(4);
    let asked =
        mail(&stage, "team-lead").into_iter().filter(|text| text.contains("task approve 1"));
    assert_eq!(asked.count(), 1);
    lead(&stage, &["approve", "1"]).expect(0);
    let ours = task(&stage, "1")["metadata"]["phalanx"].clone();
    assert_eq!((&ours["ended_by"], &ours["decided_by"]), (&json!("ann"), &json!("team-lead")));
    assert_eq!(ours["snapshot"]["result_preview"], "done");
}

#[test]
fn next_task_is_the_one_with_the_highest_priority_then_the_oldest() {
    let stage = team();
    for (subject, priority) in [("a", "0"), ("b", "5"), ("c", "5"), ("d", "9")] {
        lead(&stage, &["create", subject, "--priority", priority]).expect(0);
    }
    lead(&stage, &["update", "4", "--owner", "ben"]).expect(0);
    lead(&stage, &["create", "for a worker", "--priority", "99", "--", "true"]).expect(0);
    let next = |options: &[&str]| {
        let run = stage
            .phalanx(&[&["--json", "--as", "ann", "task", "claim", "--next"], options].concat());
        run.expect(0).json()["id"].as_str().expect("an id").to_owned()
    };
    assert_eq!(next(&[]), "2");
    let busy = as_ann(&stage, &["claim", "--next", "--busy-check"]).expect(4);
    assert!(busy.stderr.contains("agent_busy"), "{busy:?}");
    as_ann(&stage, &["claim", "1", "--busy-check"]).expect(4);
    assert_eq!((next(&[]), next(&[])), ("3".to_owned(), "1".to_owned()));
    let none = as_ann(&stage, &["claim", "--next"]).expect(3);
    assert!(none.stderr.contains("no task is free for ann"), "{none:?}");
    as_ann(&stage, &["claim"]).expect(2);
    as_ann(&stage, &["claim", "2", "--next"]).expect(2);
}

#[test]
fn comments_progress_and_files_are_part_of_the_page() {
    let stage = team();
    lead(&stage, &["create", "a", "--label", "bug", "--label", "ui", "--type", "fix"]).expect(0);
    as_ann(&stage, &["claim", "1"]).expect(0);
    let file = stage.file("report.txt", "all is well");
    as_ann(&stage, &["progress", "1", "40", "reading\u{1b}"]).expect(0);
    as_ann(&stage, &["progress", "1", "101"]).expect(2);
    lead(&stage, &["comment", "1", "mind\nthe gap"]).expect(0);
    lead(&stage, &["comment", "1", " "]).expect(2);
    as_ann(&stage, &["attach", "1", &file]).expect(0);
    as_ann(&stage, &["attach", "1", "/dev/null"]).expect(2);
    let page = stage.phalanx(&["task", "get", "1"]).expect(0).stdout;
    for words in
        ["40 %, reading\u{241b}", "bug, ui", "fix", "mind\n  the gap", "report.txt (11 bytes)"]
    {
        assert!(page.contains(words), "{words:?} in {page}");
    }
    let json = task(&stage, "1");
    assert_eq!(json["comments"][0]["text"], "mind\nthe gap");
    assert_eq!(json["attachments"][0]["path"], file.as_str());
    assert_eq!(json["metadata"]["phalanx"]["labels"], json!(["bug", "ui"]));
    let told =
        mail(&stage, "ann").into_iter().filter(|text| text.contains("mind\nthe gap")).count();
    assert_eq!(told, 1, "the owner is told");
    assert_eq!(listed(&stage, &["--label", "ui"]), ["1"]);
    assert_eq!(listed(&stage, &["--label", "none"]), Vec::<String>::new());
    stage.phalanx(&["--as", "ben", "task", "progress", "1", "50"]).expect(4);
    lead(&stage, &["update", "1", "--label", ""]).expect(0);
}

#[test]
fn file_is_attached_once_has_a_limit_and_is_marked_when_it_is_gone() {
    let stage = team();
    lead(&stage, &["create", "a"]).expect(0);
    let file = stage.file("report.txt", "one");
    lead(&stage, &["attach", "1", &file]).expect(0);
    stage.file("report.txt", "three");
    lead(&stage, &["attach", "1", &file.replace("/report", "/../work/report")]).expect(0);
    let files = || task(&stage, "1")["attachments"].as_array().cloned().expect("a list");
    let found = files();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["path"], file.as_str());
    assert_eq!((&found[0]["bytes"], &found[0]["gone"]), (&json!(5), &json!(false)));
    fs::remove_file(&file).expect("removed");
    let page = stage.phalanx(&["task", "get", "1"]).expect(0).stdout;
    assert!(page.contains("report.txt (5 bytes, gone)"), "{page}");
    assert_eq!(files()[0]["gone"], true);

    stage.phalanx(&["team", "set", "workspace.max_file_mb", "1"]).expect(0);
    let large = stage.file("large.bin", &"x".repeat(1024 * 1024 + 1));
    let refused = lead(&stage, &["attach", "1", &large]).expect(2);
    assert!(refused.stderr.contains("large.bin has 1048577 bytes"), "{refused:?}");
    assert!(refused.stderr.contains("at most 1 MB"), "{refused:?}");
    assert!(refused.stderr.contains("phalanx team set workspace.max_file_mb N"), "{refused:?}");
    stage.phalanx(&["team", "set", "workspace.max_file_mb", "2"]).expect(0);
    lead(&stage, &["attach", "1", &large]).expect(0);
    assert_eq!(files().len(), 2);
}

#[test]
fn long_result_is_cut_unless_all_of_it_is_asked_for() {
    let stage = team();
    lead(&stage, &["create", "a"]).expect(0);
    let result = "é".repeat(9000);
    as_ann(&stage, &["complete", "1", "--result", &result]).expect(0);
    let cut = stage.phalanx(&["--json", "task", "get", "1"]).expect(0).json();
    let text = |task: &Value| {
        task["metadata"]["phalanx"]["result"].as_str().expect("a result").chars().count()
    };
    assert_eq!((text(&cut), &cut["resultIsCut"]), (8000, &json!(true)));
    let whole = stage.phalanx(&["--json", "task", "get", "1", "--full"]).expect(0).json();
    assert_eq!((text(&whole), &whole["resultIsCut"]), (9000, &Value::Null));
    let preview = &whole["metadata"]["phalanx"]["snapshot"]["result_preview"];
    assert_eq!(preview.as_str().map(|text| text.chars().count()), Some(100));
    let page = stage.phalanx(&["task", "get", "1"]).expect(0);
    assert!(page.stderr.contains("--full"), "{page:?}");
}

#[test]
fn assignment_release_and_dependencies_have_their_own_verbs() {
    let stage = team();
    for subject in ["a", "b", "c"] {
        lead(&stage, &["create", subject]).expect(0);
    }
    lead(&stage, &["assign", "1", "ann"]).expect(0);
    assert!(mail(&stage, "ann").iter().any(|text| text.contains("task_assignment")));
    assert!(events(&stage, "1").contains(&"task_assigned".to_owned()));
    as_ann(&stage, &["claim", "1"]).expect(0);
    stage.phalanx(&["--as", "ben", "task", "release", "1"]).expect(4);
    as_ann(&stage, &["release", "1"]).expect(0);
    assert_eq!(
        (state(&stage, "1").0.as_str(), &task(&stage, "1")["owner"]),
        ("pending", &Value::Null)
    );
    lead(&stage, &["block", "2", "--by", "1"]).expect(0);
    lead(&stage, &["block", "3", "--by", "2"]).expect(0);
    let cycle = lead(&stage, &["block", "1", "--by", "3"]).expect(4);
    assert!(cycle.stderr.contains("1 → 2 → 3 → 1"), "{cycle:?}");
    lead(&stage, &["unblock", "3"]).expect(0);
    assert_eq!(state(&stage, "3").0, "pending");
    lead(&stage, &["unblock", "2", "--by", "1"]).expect(0);
    assert_eq!(state(&stage, "2").0, "pending");
}

/// A board of version 1 has few verbs; the others name the upgrade.
#[test]
fn version_1_refuses_later_verbs_until_the_upgrade() {
    let stage = team();
    stage.phalanx(&["team", "set", "board.version", "3"]).expect(2);
    stage.phalanx(&["team", "set", "board.version", "1"]).expect(0);
    for subject in ["a", "b", "c"] {
        lead(&stage, &["create", subject]).expect(0);
    }
    let file = stage.file("f.txt", "x");
    as_ann(&stage, &["claim", "1"]).expect(0);
    let refused: [&[&str]; 9] = [
        &["review", "1"],
        &["approve", "1"],
        &["reject", "1", "--reason", "r"],
        &["comment", "1", "c"],
        &["progress", "1", "5"],
        &["attach", "1", &file],
        &["update", "1", "--subject", "s"],
        &["retry", "1"],
        &["remind", "1", "--every", "5", "Which licence?"],
    ];
    for verb in refused {
        let run = lead(&stage, verb).expect(4);
        let problem = format!("`task {}` needs version 2 of the board", verb[0]);
        assert!(
            run.stderr.contains(&problem) && run.stderr.contains("phalanx team upgrade"),
            "{run:?}"
        );
    }
    lead(&stage, &["assign", "2", "ann"]).expect(0);
    as_ann(&stage, &["complete", "2"]).expect(0);
    lead(&stage, &["cancel", "3"]).expect(0);
    stage.phalanx(&["team", "upgrade"]).expect(0);
    as_ann(&stage, &["review", "1"]).expect(0);
    assert_eq!(state(&stage, "1").0, "in_review");
}

#[test]
fn board_that_demands_owners_and_a_look_refuses_hasty_tasks() {
    let stage = team();
    stage.phalanx(&["team", "set", "board.assignee", "true"]).expect(0);
    let ownerless = lead(&stage, &["create", "a"]).expect(4);
    assert!(ownerless.stderr.contains("members: ann, ben"), "{ownerless:?}");
    lead(&stage, &["create", "a", "--owner", "ann"]).expect(0);

    stage.phalanx(&["team", "set", "board.list_before_create", "true"]).expect(0);
    let create =
        |name: &str| stage.phalanx(&["--as", name, "task", "create", "x", "--owner", name]);
    let hasty = create("ann").expect(4);
    assert!(hasty.stderr.contains("phalanx task list"), "{hasty:?}");
    as_ann(&stage, &["list"]).expect(0);
    create("ann").expect(0);
    create("ann").expect(0);
    stage.phalanx(&["--as", "ben", "task", "list"]).expect(0);
    create("ben").expect(0);
    let late = create("ann").expect(4);
    assert!(late.stderr.contains("task 4 is new since you looked"), "{late:?}");
}

/// Delegated work has a task: a pending one of this team, which the new member gets and claims.
#[test]
fn spawn_with_a_prompt_needs_a_task_if_the_team_demands_it() {
    let stage = team();
    stage.phalanx(&["team", "set", "board.delegation_task", "true", "backend", "pty"]).expect(0);
    let spawn = |options: &[&str]| stage.phalanx(&[&["spawn", "dan"], options].concat());
    let none = spawn(&["--prompt", "go"]).expect(4);
    assert!(none.stderr.contains("phalanx task create"), "{none:?}");
    for subject in ["first", "second"] {
        lead(&stage, &["create", subject]).expect(0);
    }
    lead(&stage, &["cancel", "1"]).expect(0);
    let missing = spawn(&["--prompt", "go"]).expect(4);
    assert!(missing.stderr.contains("pending: #2 second"), "{missing:?}");
    let unknown = spawn(&["--prompt", "go", "--task", "9"]).expect(4);
    assert!(unknown.stderr.contains("has no task 9"), "{unknown:?}");
    let over = spawn(&["--prompt", "go", "--task", "1"]).expect(4);
    assert!(over.stderr.contains("task 1 is cancelled, not pending"), "{over:?}");
    stage.phalanx(&["spawn", "dan", "eve", "--task", "2"]).expect(2);
    spawn(&["--task", "2"]).expect(0);
    let task = task(&stage, "2");
    assert_eq!((&task["owner"], &task["state"]), (&json!("dan"), &json!("in_progress")));
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}
