//! Notifications to the owners of tasks.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Stage, wait_for};

/// Installs a profile whose program never reads its mailbox.
fn install(stage: &Stage) {
    let text = "about = \"reads nothing\"\nruns = \"native\"\nreads_mail = true\n\
                [launch]\nargv = [[\"sleep\", \"600\"]]\nprompt = \"mailbox\"\n\
                [launch.modes]\ndefault = []\n[ready]\nwhen = \"settled\"\nsettle_ms = 10\n";
    stage.profile("mute", text);
}

/// Members that own the tasks written by another program. The lead would release a task whose owner
/// is not on the team, and so race with the test for the file.
const NATIVES: [&str; 2] = ["bob", "cid"];

fn with_ada() -> Stage {
    let stage = Stage::without_tmux();
    install(&stage);
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["spawn", "ada", "--profile", "mute"]).expect(0);
    stage
}

/// Raises the task limits beyond what the tests assign.
fn raise_limits(stage: &Stage) {
    let file = stage.root().join("teams/alpha/phalanx/team.json");
    let mut settings: Value =
        serde_json::from_slice(&fs::read(&file).expect("read")).expect("json");
    settings["limits"] = json!({ "max_per_link": 9, "max_per_member": 9 });
    fs::write(&file, settings.to_string()).expect("write");
}

/// All texts in a mailbox, read or unread.
fn texts_for(stage: &Stage, name: &str) -> Vec<Value> {
    let mail = stage.phalanx(&["--json", "inbox", name, "--peek", "--all"]).expect(0).json();
    mail.as_array().expect("a list").iter().map(|one| one["text"].clone()).collect()
}

/// The ids in the assignment messages that a member received.
fn assigned(stage: &Stage, name: &str) -> Vec<Value> {
    let news = |text: &Value| serde_json::from_str::<Value>(text.as_str()?).ok();
    let texts = texts_for(stage, name);
    let news = texts.iter().filter_map(news).filter(|news| news["type"] == "task_assignment");
    news.map(|news| news["taskId"].clone()).collect()
}

/// The number of notifications to a member that its task is unblocked.
fn freed(stage: &Stage, name: &str, task: u32) -> usize {
    let head = format!("Task #{task} ");
    let is = |text: &&Value| {
        text.as_str()
            .is_some_and(|text| text.starts_with(&head) && text.contains("you can start it now"))
    };
    texts_for(stage, name).iter().filter(is).count()
}

/// TK-01: in the manifest, at creation, later, and when a task is assigned back.
#[test]
fn tk_01_each_assignment_notifies_the_owner_once() {
    let stage = Stage::without_tmux();
    install(&stage);
    let manifest = stage.file(
        "team.toml",
        "[team]\nname = \"alpha\"\nfinish = \"manual\"\n[[member]]\nname = \"ada\"\nprofile = \"mute\"\n\
         prompt = \"begin\"\n[[member]]\nname = \"bob\"\nprofile = \"mute\"\n\
         [[task]]\nkey = \"a\"\nsubject = \"A\"\nowner = \"ada\"\n[[task]]\nkey = \"b\"\nsubject = \"B\"\n\
         [[task]]\nkey = \"c\"\nsubject = \"C\"\nowner = \"ada\"\nafter = [\"a\"]\n",
    );
    stage.phalanx(&["up", &manifest, "--detach"]).expect(0);
    raise_limits(&stage);
    assert_eq!(texts_for(&stage, "ada")[0], json!("begin"));
    assert_eq!(assigned(&stage, "ada"), ["1", "3"]);
    assert_eq!(assigned(&stage, "bob"), [""; 0]);
    stage.phalanx(&["task", "create", "D", "--owner", "ada"]).expect(0);
    stage.phalanx(&["task", "update", "2", "--owner", "ada"]).expect(0);
    stage.phalanx(&["task", "update", "2", "--owner", "ada", "--subject", "B2"]).expect(0);
    assert_eq!(assigned(&stage, "ada"), ["1", "3", "4", "2"]);
    stage.phalanx(&["task", "update", "2", "--owner", "bob"]).expect(0);
    stage.phalanx(&["task", "update", "2", "--owner", "ada"]).expect(0);
    assert_eq!(assigned(&stage, "bob"), ["2"]);
    assert_eq!(assigned(&stage, "ada"), ["1", "3", "4", "2", "2"]);
    stage.phalanx(&["down", "--force"]).expect(0);
}

/// TK-04: when the last blocker completes, the dependency is removed, or the blocker is deleted;
/// not when the owner itself completed the blocker.
#[test]
fn tk_04_owner_is_notified_once_when_its_task_is_unblocked() {
    let stage = with_ada();
    raise_limits(&stage);
    for (subject, blockers) in
        [("1", ""), ("2", ""), ("3", "1 2"), ("4", "3"), ("5", "4"), ("6", "5")]
    {
        stage.phalanx(&["task", "create", subject, "--owner", "ada"]).expect(0);
        for blocker in blockers.split_whitespace() {
            stage.phalanx(&["task", "update", subject, "--blocked-by", blocker]).expect(0);
        }
    }
    stage.phalanx(&["task", "complete", "1"]).expect(0);
    assert_eq!(freed(&stage, "ada", 3), 0);
    stage.phalanx(&["task", "complete", "2"]).expect(0);
    assert_eq!(freed(&stage, "ada", 3), 1);
    stage.phalanx(&["--as", "ada", "task", "complete", "3"]).expect(0);
    assert_eq!(freed(&stage, "ada", 4), 0, "its own doing");
    stage.phalanx(&["task", "update", "5", "--unblock", "4"]).expect(0);
    stage.phalanx(&["task", "update", "5", "--unblock", "4"]).expect(0);
    assert_eq!(freed(&stage, "ada", 5), 1);
    stage.phalanx(&["task", "delete", "5", "--force"]).expect(0);
    assert_eq!(freed(&stage, "ada", 6), 1);
    stage.phalanx(&["down", "--force"]).expect(0);
}

/// TK-04: two processes complete the last two blockers concurrently.
#[test]
fn tk_04_concurrent_completions_notify_the_owner_once() {
    let stage = with_ada();
    raise_limits(&stage);
    for round in 0..8 {
        let (one, two, behind) = (3 * round + 1, 3 * round + 2, 3 * round + 3);
        for subject in [one, two, behind] {
            stage.phalanx(&["task", "create", &subject.to_string()]).expect(0);
        }
        let blockers = ["--blocked-by", &one.to_string(), "--blocked-by", &two.to_string()];
        let id = behind.to_string();
        let words = [&["task", "update", &id, "--owner", "ada"][..], &blockers].concat();
        stage.phalanx(&words).expect(0);
        let both = [one, two].map(|id| stage.start(&["task", "complete", &id.to_string()]));
        both.into_iter().for_each(|ending| drop(ending.end().expect(0)));
        assert_eq!(freed(&stage, "ada", behind), 1);
    }
    stage.phalanx(&["down", "--force"]).expect(0);
}

/// TK-04: another program completes a task while a lead runs.
#[test]
fn tk_04_lead_notifies_owner_unblocked_by_another_program() {
    let stage = with_ada();
    for name in NATIVES {
        stage.phalanx(&["spawn", name, "--profile", "mute"]).expect(0);
    }
    stage.phalanx(&["task", "create", "1"]).expect(0);
    stage.phalanx(&["task", "create", "2", "--owner", "ada"]).expect(0);
    stage.phalanx(&["task", "update", "2", "--blocked-by", "1"]).expect(0);
    stage.phalanx(&["lead", "--detach"]).expect(0);
    let file = stage.root().join("tasks/alpha/1.json");
    let edit = |key: &str, value: String| {
        let mut task: Value =
            serde_json::from_slice(&fs::read(&file).expect("read")).expect("json");
        task[key] = value.into();
        fs::write(&file, serde_json::to_string_pretty(&task).expect("text")).expect("write");
    };
    // The lead notices a change only after it has read the task; a reported change proves that it
    // has.
    let mut round = 0;
    wait_for("the lead to notice a change", || {
        edit("owner", NATIVES[round % 2].to_owned());
        round += 1;
        stage.journal("alpha").iter().any(|e| e["event"] == "task_changed").then_some(())
    });
    edit("status", "completed".to_owned());
    wait_for("ada to be told", || (freed(&stage, "ada", 2) == 1).then_some(()));
    edit("owner", "ada".to_owned());
    wait_for("the lead to notice the last change", || {
        let is_last = |e: &Value| e["event"] == "task_changed" && e["detail"]["owner"] == "ada";
        stage.journal("alpha").iter().any(is_last).then_some(())
    });
    assert_eq!(freed(&stage, "ada", 2), 1);
    stage.phalanx(&["down", "--force"]).expect(0);
}

/// TK-04: another program deletes the blockers one by one.
#[test]
fn tk_04_lead_notifies_owner_unblocked_by_vanished_tasks() {
    let stage = with_ada();
    for name in NATIVES {
        stage.phalanx(&["spawn", name, "--profile", "mute"]).expect(0);
    }
    for _ in 0..2 {
        stage.phalanx(&["task", "create", "blocks"]).expect(0);
    }
    stage.phalanx(&["task", "create", "behind", "--owner", "ada"]).expect(0);
    stage.phalanx(&["task", "update", "3", "--blocked-by", "1,2"]).expect(0);
    let lead = stage.start(&["lead"]);
    let mut round = 0;
    wait_for("a lead that has looked", || {
        let file = stage.root().join("tasks/alpha/1.json");
        let mut task: Value =
            serde_json::from_slice(&fs::read(&file).expect("read")).expect("json");
        task["owner"] = NATIVES[round % 2].into();
        round += 1;
        fs::write(&file, serde_json::to_string_pretty(&task).expect("text")).expect("write");
        stage.journal("alpha").iter().any(|e| e["event"] == "task_changed").then_some(())
    });
    for id in ["1", "2"] {
        assert_eq!(freed(&stage, "ada", 3), 0);
        fs::remove_file(stage.root().join(format!("tasks/alpha/{id}.json"))).expect("removed");
        stage.wait_event("alpha", "task_vanished", id);
    }
    wait_for("ada to be told", || (freed(&stage, "ada", 3) == 1).then_some(()));
    stage.phalanx(&["down", "--force"]).expect(0);
    lead.end().expect(0);
    stage.assert_clean();
}

/// Limits per assigner and per owner. A refused assignment has no effect.
#[test]
fn assignments_beyond_the_task_limits_are_refused() {
    let stage = with_ada();
    let create =
        |by: &str| stage.phalanx(&["--as", by, "task", "create", "more", "--owner", "ada"]);
    let give = |id: &str| stage.phalanx(&["task", "update", id, "--owner", "ada"]);
    stage.phalanx(&["spawn", "bob", "--profile", "mute"]).expect(0);
    (0..3).for_each(|_| drop(create("team-lead").expect(0)));
    let refused = create("team-lead").expect(4);
    assert!(
        refused.stderr.contains("`ada` is at capacity (3/3), open from `team-lead`: #1, #2, #3"),
        "{refused:?}"
    );
    assert!(
        refused.stderr.contains("--until task=1") && refused.stderr.contains("max_per_link"),
        "{refused:?}"
    );
    stage.phalanx(&["task", "create", "anybody's"]).expect(0);
    give("4").expect(4);
    give("3").expect(0);
    assert_eq!(assigned(&stage, "ada"), ["1", "2", "3"], "who is refused is told nothing");
    stage.phalanx(&["task", "complete", "1"]).expect(0);
    give("4").expect(0);
    (0..2).for_each(|_| drop(create("bob").expect(0)));
    let refused = create("bob").expect(4);
    assert!(refused.stderr.contains("(5/5), open: #2, #3, #4, #5, #6"), "{refused:?}");
    assert!(refused.stderr.contains("max_per_member"), "{refused:?}");
    create("ada").expect(0);
    raise_limits(&stage);
    create("bob").expect(0);
    let board = stage.phalanx(&["--json", "task", "list", "--all"]).expect(0).json();
    assert_eq!(
        board.as_array().expect("tasks").len(),
        8,
        "what was refused is not on the board: {board}"
    );
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// Concurrent assigners: the limit is checked under the lock.
#[test]
fn concurrent_assignments_do_not_exceed_the_limit() {
    let stage = with_ada();
    let all: Vec<_> =
        (0..6).map(|_| stage.start(&["task", "create", "more", "--owner", "ada"])).collect();
    let mut codes: Vec<i32> = all.into_iter().map(|one| one.end().code).collect();
    codes.sort_unstable();
    assert_eq!(codes, [0, 0, 0, 4, 4, 4]);
    stage.phalanx(&["down", "--force"]).expect(0);
}

/// TK-08: another program can write any name as the owner.
#[test]
fn lead_releases_a_task_whose_owner_is_not_on_the_team() {
    let stage = Stage::without_tmux();
    let text = "[team]\nname = \"alpha\"\nfinish = \"manual\"\nbackend = \"pty\"\n[[member]]\nname = \"ann\"\n";
    stage.phalanx(&["up", &stage.file("alpha.toml", text), "--detach"]).expect(0);
    stage.phalanx(&["task", "create", "Held", "--", "true"]).expect(0);
    stage.wait_event("alpha", "task_completed", "1");
    stage.phalanx(&["task", "create", "Blocked", "--blocked-by", "1", "--", "true"]).expect(0);
    stage.wait_event("alpha", "task_completed", "2");
    let path = stage.root().join("tasks/alpha/3.json");
    let task = json!({"id": "3", "subject": "Ghostly", "description": "", "status": "in_progress", "owner": "ghost",
                      "blocks": [], "blockedBy": []});
    std::fs::write(&path, task.to_string()).expect("a foreign task");
    let released = stage.wait_event("alpha", "task_released", "3");
    assert_eq!(released["member"], json!("ghost"));
    let task = stage.phalanx(&["--json", "task", "get", "3"]).expect(0).json();
    assert_eq!((&task["status"], &task["owner"]), (&json!("pending"), &Value::Null));
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}
