//! Reviews of members' work: comments from the draft to the answer.

use std::fs;

use serde_json::{Value, json};

use crate::harness::Stage;
use crate::mcp::Client;
use crate::worktree;

/// A member that leaves its mail in its mailbox, where a test finds it.
pub const SILENT: &str = "about = \"reads nothing\"\nruns = \"native\"\nreads_mail = true\n\
    [launch]\nargv = [[\"sleep\", \"300\"]]\nprompt = \"mailbox\"\n\
    [launch.modes]\ndefault = []\n[ready]\nwhen = \"settled\"\nsettle_ms = 100\n";

/// A stage whose member `bob` has a commit on its own branch and a task in review.
pub fn with_task_in_review() -> Stage {
    let stage = worktree::with_repository(super::stage());
    stage.profile("silent", SILENT);
    stage.phalanx(&["spawn", "bob", "--profile", "silent", "--worktree"]).expect(0);
    let dir = "work/.worktrees/alpha-bob";
    fs::write(stage.at(dir).join("a.txt"), "one\ntwo\nthree\n").expect("a file");
    worktree::git(&stage, dir, &["commit", "--quiet", "-am", "two more"]);
    stage.phalanx(&["task", "create", "Count", "--owner", "bob"]).expect(0);
    stage.phalanx(&["--as", "bob", "task", "claim", "1"]).expect(0);
    stage.phalanx(&["--as", "bob", "task", "review", "1", "--result", "counted"]).expect(0);
    stage
}

/// Returns the texts of all messages of a mailbox.
pub fn mail(stage: &Stage, owner: &str) -> Vec<String> {
    let all = stage.phalanx(&["--json", "inbox", owner, "--all", "--peek"]).expect(0).json();
    let texts = all.as_array().expect("messages").iter();
    texts.map(|message| message["text"].as_str().expect("a text").to_owned()).collect()
}

fn task_state(stage: &Stage) -> String {
    let task = stage.phalanx(&["--json", "task", "get", "1"]).expect(0).json();
    task["state"].as_str().expect("a state").to_owned()
}

fn state(stage: &Stage, id: &str) -> String {
    let listed = stage.phalanx(&["--json", "review", "show", "bob"]).expect(0).json();
    let comments = listed["comments"].as_array().expect("comments").clone();
    let found = comments.iter().find(|comment| comment["id"] == id).expect("the comment");
    match (&found["sent"], &found["answer"], &found["resolved"]) {
        (Value::Null, ..) => "draft",
        (_, _, Value::Number(_)) => "resolved",
        (_, Value::Object(_), _) => "answered",
        _ => "sent",
    }
    .to_owned()
}

/// RV-37: a place is a file of git, however it is written, and one that the work changes.
#[test]
fn rv_37_comments_are_on_files_that_the_work_changes() {
    let stage = worktree::with_repository(super::stage());
    fs::create_dir(stage.at("work/dir")).expect("a directory");
    fs::write(stage.at("work/dir/same.txt"), "same\n").expect("a file");
    fs::write(stage.at("work/old.txt"), "old\n").expect("a file");
    worktree::git(&stage, "work", &["add", "dir", "old.txt"]);
    worktree::git(&stage, "work", &["commit", "--quiet", "-m", "more"]);
    stage.profile("silent", SILENT);
    stage.phalanx(&["spawn", "bob", "--profile", "silent", "--worktree"]).expect(0);
    let dir = "work/.worktrees/alpha-bob";
    fs::write(stage.at(dir).join("a.txt"), "one\ntwo\n").expect("a file");
    fs::remove_file(stage.at(dir).join("old.txt")).expect("removed");
    worktree::git(&stage, dir, &["commit", "--quiet", "-am", "work"]);
    let comment = |words: &[&str]| {
        stage.phalanx(&[&["review", "comment", "bob", "Why?", "--at"], words].concat())
    };
    let full = format!("{}:2", stage.at(dir).join("a.txt").display());
    for at in ["a.txt:2", "./a.txt:2", ".//a.txt:2", full.as_str()] {
        let made = comment(&[at, "--json"]).expect(0).json();
        assert_eq!(made["place"]["path"], "a.txt", "{at}: {made}");
    }
    for (words, problem) in [
        (vec!["old.txt:1"], "deletes it; `--old` is for its lines"),
        (vec!["./old.txt"], "deletes it; `--old` is for its lines"),
        (vec!["dir/:1"], "\"dir\": the work of `bob` does not change it"),
        (vec!["dir/same.txt:1"], "does not change it"),
        (vec!["dir/same.txt:1", "--old"], "does not change it"),
        (vec!["none.txt"], "does not change it"),
    ] {
        let refused = comment(&words).expect(2);
        assert!(refused.stderr.contains(problem), "{words:?}: {refused:?}");
    }
    comment(&["old.txt:1", "--old"]).expect(0);
    stage.phalanx(&["down", "--force"]).expect(0);
}

/// RV-20: what a reviewer writes arrives once, as one message, with the code; the task goes back;
/// the answers come back as one message; only the reviewer settles.
#[test]
fn rv_20_review_goes_to_its_author_and_back() {
    let stage = with_task_in_review();
    let comment = |words: &[&str]| {
        let run = stage.phalanx(&[&["--json", "review", "comment"], words].concat()).expect(0);
        run.json()["id"].as_str().expect("an id").to_owned()
    };
    assert_eq!(comment(&["bob", "Say why.", "--at", "a.txt:2-3", "--kind", "question"]), "R1");
    assert_eq!(comment(&["1", "Nice.", "--kind", "note"]), "R2");
    assert_eq!(comment(&["bob", "Never mind."]), "R3");
    for (words, problem) in [
        (["--at", "a.txt:9"], "a.txt has 3 line(s), not 9"),
        (["--at", "b.txt:1"], "\"b.txt\": the work of `bob` does not change it"),
        (["--at", "a.txt:0"], "names no lines"),
    ] {
        let refused = stage.phalanx(&[&["review", "comment", "bob", "x"], &words[..]].concat());
        assert!(refused.stderr.contains(problem), "{refused:?}");
    }
    stage.phalanx(&["review", "discard", "R3"]).expect(0);
    let before = mail(&stage, "bob");
    assert!(before.iter().all(|text| !text.contains("[R1]")), "a draft is not sent: {before:?}");
    // Drafts are visible to their reviewer only.
    let seen = stage.phalanx(&["--json", "--as", "bob", "review", "list"]).expect(0).json();
    assert_eq!(seen, json!([]));

    let sent = stage.phalanx(&["review", "send", "#1"]).expect(0).stdout;
    assert_eq!(sent, "sent R1, R2 to bob; task 1 is sent back\n");
    let after = mail(&stage, "bob");
    let new: Vec<&String> = after.iter().filter(|text| !before.contains(text)).collect();
    let [message] = new.as_slice() else { panic!("one message: {new:?}") };
    for part in
        ["1 question, 1 note", "[R1] question · a.txt:2-3 (new)\n    two\n    three\n  Say why."]
    {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(task_state(&stage), "in_progress");
    let again = stage.phalanx(&["review", "send", "bob"]).expect(4);
    assert!(again.stderr.contains("there are no drafts"), "{again:?}");

    // The author answers, and its lines have moved.
    let dir = "work/.worktrees/alpha-bob";
    fs::write(stage.at(dir).join("a.txt"), "zero\none\ntwo\nthree\n").expect("a file");
    worktree::git(&stage, dir, &["commit", "--quiet", "-am", "zero"]);
    let shown = stage.phalanx(&["--json", "review", "show", "bob"]).expect(0).json();
    assert_eq!(shown["comments"][0]["now"], json!({"lines": "same", "first": 3, "last": 4}));
    let cannot = stage.phalanx(&["--as", "bob", "review", "resolve", "R1"]).expect(4);
    assert!(cannot.stderr.contains("R1 is a comment of `team-lead`"), "{cannot:?}");
    stage.phalanx(&["--as", "bob", "review", "answer", "R1", "reply", "to count on"]).expect(0);
    assert_eq!(state(&stage, "R1"), "answered");
    let lead = mail(&stage, "team-lead");
    assert!(lead.iter().all(|text| !text.contains("has answered")), "one is open: {lead:?}");
    stage.phalanx(&["--as", "bob", "review", "answer", "R2", "done"]).expect(0);
    let lead = mail(&stage, "team-lead");
    let told: Vec<_> = lead.iter().filter(|text| text.contains("has answered")).collect();
    let [told] = told.as_slice() else { panic!("one message: {lead:?}") };
    assert!(told.contains("[R1] reply: to count on\n[R2] done\n"), "{told}");

    stage.phalanx(&["review", "resolve", "R1", "R2"]).expect(0);
    stage.phalanx(&["--as", "bob", "review", "answer", "R1", "done"]).expect(4);
    let reopened = stage.phalanx(&["review", "reopen", "R1", "No, why?"]).expect(0).stdout;
    assert_eq!(reopened, "sent R1 to bob\n");
    assert_eq!((state(&stage, "R1"), state(&stage, "R2")), ("sent".into(), "resolved".into()));
    let last = mail(&stage, "bob").pop().expect("a message");
    assert!(last.contains("  Say why.\n  \n  Reopened: No, why?"), "{last}");
    let journal = stage.journal("alpha");
    let kinds = ["review_sent", "comment_answered", "comment_resolved"].map(|kind| {
        journal.iter().filter(|event| event["event"] == kind && event["member"] == "bob").count()
    });
    assert_eq!(kinds, [2, 2, 2]);
    stage.phalanx(&["down", "--force"]).expect(0);
}

/// RV-20: agents review and answer by their tool, each as itself.
#[test]
fn rv_20_agents_review_and_answer_by_their_tool() {
    let stage = with_task_in_review();
    let mut lead = Client::start(&stage, &["mcp", "--team", "alpha"]);
    let found = lead.call("Reviews", json!({"action": "overview"}));
    assert_eq!((&found["work"][0]["name"], &found["work"][0]["added"]), (&json!("bob"), &json!(2)));
    let comment = json!({"action": "comment", "name": "bob", "at": "a.txt:2", "text": "Why?"});
    assert_eq!(lead.call("Reviews", comment)["id"], "R1");
    let sent = lead.call("Reviews", json!({"action": "send", "name": "bob"}));
    assert_eq!((&sent["comments"], &sent["returned"]), (&json!(["R1"]), &json!("1")));
    let mut bob = Client::start(&stage, &["--as", "bob", "mcp"]);
    let answer = json!({"action": "answer", "id": "R1", "answer": "done", "text": "counted"});
    bob.call("Reviews", answer);
    let refused = bob.refused("Reviews", json!({"action": "resolve", "ids": ["R1"]})).to_string();
    assert!(refused.contains("R1 is a comment of `team-lead`"), "{refused}");
    let shown = lead.call("Reviews", json!({"action": "show", "name": "bob"}));
    assert_eq!(shown["comments"][0]["answer"]["text"], "counted");
    lead.call("Reviews", json!({"action": "resolve", "ids": ["R1"]}));
    assert_eq!(state(&stage, "R1"), "resolved");
    bob.end();
    lead.end();
    stage.phalanx(&["down", "--force"]).expect(0);
}

/// RV-21: a reviewer that is a member cannot send a task back, and sees no drafts of others.
#[test]
fn rv_21_member_reviews_without_deciding() {
    let stage = with_task_in_review();
    stage.phalanx(&["spawn", "rita", "--profile", "silent"]).expect(0);
    stage.phalanx(&["review", "comment", "bob", "of the lead"]).expect(0);
    stage.phalanx(&["--as", "rita", "review", "comment", "bob", "of rita"]).expect(0);
    let revised = stage.phalanx(&["--as", "rita", "review", "discard", "R1"]).expect(2);
    assert!(revised.stderr.contains("there is no comment R1"), "{revised:?}");
    let sent = stage.phalanx(&["--as", "rita", "review", "send", "bob"]).expect(0).stdout;
    assert_eq!(sent, "sent R2 to bob\n");
    assert_eq!(task_state(&stage), "in_review");
    stage.phalanx(&["--as", "bob", "review", "answer", "R2", "declined", "it is right"]).expect(0);
    let told = mail(&stage, "rita").pop().expect("a message");
    assert!(told.contains("[R2] declined: it is right"), "{told}");
    stage.phalanx(&["down", "--force"]).expect(0);
}
