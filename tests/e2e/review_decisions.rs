//! Decisions about members' work: reviewers of the team, checks, conflicts, and landing.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use testing::TestDatabase;

use crate::harness::{Background, Stage, binary, wait_for};
use crate::mcp::Client;
use crate::review::{SILENT, mail};
use crate::worktree;

const CHECK: &str = "[\"sh\", \"-c\", \"grep -q three a.txt || { echo lost; exit 3; }\"]";

/// A stage whose members `ann` and `bob` have worktrees, with a reviewer `rex`.
fn stage() -> Stage {
    let stage = worktree::with_repository(super::stage());
    stage.profile("silent", SILENT);
    stage.phalanx(&["spawn", "ann", "bob", "--profile", "silent", "--worktree"]).expect(0);
    stage.phalanx(&["spawn", "rex", "--profile", "silent", "--role", "reviewer"]).expect(0);
    stage
}

fn commit(stage: &Stage, member: &str, text: &str) {
    let dir = format!("work/.worktrees/alpha-{member}");
    fs::write(stage.at(&dir).join("a.txt"), text).expect("a file");
    worktree::git(stage, &dir, &["commit", "--quiet", "-am", member]);
}

fn hand_in(stage: &Stage, member: &str) -> String {
    let made = stage.phalanx(&["--json", "task", "create", "Count", "--owner", member]).expect(0);
    let id = made.json()["id"].as_str().expect("an id").to_owned();
    stage.phalanx(&["--as", member, "task", "claim", &id]).expect(0);
    stage.phalanx(&["--as", member, "task", "review", &id, "--result", "counted"]).expect(0);
    id
}

fn state(stage: &Stage, id: &str) -> Value {
    stage.phalanx(&["--json", "task", "get", id]).expect(0).json()["state"].clone()
}

/// TK-18: a landing names the open task of the member, and completes it if asked.
#[test]
fn tk_18_task_of_work_that_lands_is_completed_if_asked() {
    let stage = stage();
    for member in ["ann", "bob"] {
        stage.phalanx(&["task", "create", "Count", "--owner", member]).expect(0);
    }
    commit(&stage, "ann", "one\ntwo\n");
    let landed = stage.phalanx(&["worktree", "merge", "ann"]).expect(0);
    let words = "#1 of ann is open; `phalanx task complete 1` ends it";
    assert!(landed.stderr.contains(words), "{landed:?}");
    assert_eq!(state(&stage, "1"), "pending");
    commit(&stage, "ann", "one\ntwo\nthree\n");
    let landed = stage.phalanx(&["worktree", "merge", "ann", "--complete"]).expect(0);
    assert!(landed.stderr.contains("task #1 of ann is completed"), "{landed:?}");
    assert_eq!((state(&stage, "1"), state(&stage, "2")), (json!("completed"), json!("pending")));
    commit(&stage, "ann", "none\n");
    let landed = stage.phalanx(&["worktree", "merge", "ann", "--complete"]).expect(0);
    assert!(!landed.stderr.contains("task"), "no task is left: {landed:?}");
    stage.phalanx(&["down", "--force"]).expect(0);
}

/// RV-27: a reviewer reads what is handed in before the lead decides, and cannot decide itself.
#[test]
fn rv_27_reviewer_reads_work_first_and_the_lead_decides() {
    let stage = stage();
    commit(&stage, "bob", "one\ntwo\n");
    let id = hand_in(&stage, "bob");
    let asked = mail(&stage, "rex").pop().expect("a message");
    for part in ["\"Count\" of bob is finished", "`phalanx review show bob`", "review pass bob"] {
        assert!(asked.contains(part), "{asked}");
    }
    let lead = mail(&stage, "team-lead").pop().expect("a message");
    assert!(lead.contains("rex reviews it first and then writes to you."), "{lead}");
    assert!(mail(&stage, "bob").iter().all(|text| !text.contains("review it before")));
    let as_rex = |words: &[&str]| stage.phalanx(&[&["--as", "rex", "review"], words].concat());
    as_rex(&["comment", "bob", "Why?", "--at", "a.txt:2"]).expect(0);
    let draft = as_rex(&["pass", "bob"]).expect(4);
    assert!(draft.stderr.contains("R1 is not resolved"), "{draft:?}");
    as_rex(&["send", "bob"]).expect(0);
    assert_eq!(state(&stage, &id), "in_review", "a reviewer sends no task back");
    assert!(as_rex(&["pass", "bob"]).expect(4).stderr.contains("R1 is not resolved"));
    for words in [&["approve", "bob", "--merge"][..], &["drop", "bob"], &["check", "bob"]] {
        as_rex(words).expect(4);
    }
    stage.phalanx(&["--as", "bob", "review", "answer", "R1", "reply", "to count"]).expect(0);
    as_rex(&["resolve", "R1"]).expect(0);
    let own = stage.phalanx(&["--as", "bob", "review", "pass", "bob"]).expect(4);
    assert!(own.stderr.contains("`bob` cannot pass its own work"), "{own:?}");
    as_rex(&["pass", "bob", "ran all tests"]).expect(0);
    let told = mail(&stage, "team-lead").pop().expect("a message");
    for part in ["nothing is left to change", "ran all tests", "phalanx review approve bob --merge"]
    {
        assert!(told.contains(part), "{told}");
    }
    let row = || stage.phalanx(&["--json", "review"]).expect(0).json()["work"][0].clone();
    assert_eq!(row()["passed_by"], json!(["rex"]));
    commit(&stage, "bob", "one\ntwo\nthree\n");
    assert_eq!(row()["passed_by"], json!([]), "the work has changed since");
    let refused = stage.phalanx(&["review", "pass", "bob"]).expect(4);
    assert!(refused.stderr.contains("a lead decides itself"), "{refused:?}");
    let journal = stage.journal("alpha");
    let passed = journal.iter().filter(|event| event["event"] == "review_passed");
    assert_eq!(passed.count(), 1);
    stage.phalanx(&["down", "--force"]).expect(0);
}

/// Approval with checks and a squash, then a conflict of the second, which its author resolves.
#[test]
fn work_of_two_members_is_checked_approved_and_landed() {
    let stage = stage();
    let text = |words: &[&str], code: i32| {
        let run = stage.phalanx(words).expect(code);
        format!("{}{}", run.stdout, run.stderr)
    };
    let none = text(&["review", "check", "ann"], 2);
    assert!(none.contains("has no checks") && none.contains("team set check.test.run"), "{none}");
    stage.phalanx(&["team", "set", "check.test.run", CHECK]).expect(0);
    commit(&stage, "ann", "one\n2\n");
    commit(&stage, "bob", "one\nzwei\nthree\n");
    let (first, second) = (hand_in(&stage, "ann"), hand_in(&stage, "bob"));
    let failed = text(&["review", "check", "ann"], 1);
    assert!(
        failed.contains("test failed with exit code 3") && failed.contains("  lost\n"),
        "{failed}"
    );
    let refused = text(&["review", "approve", "ann", "--squash", "--check"], 4);
    assert!(refused.contains("check test failed with exit code 3"), "{refused}");
    let mut lead = Client::start(&stage, &["mcp", "--team", "alpha"]);
    let merge = json!({"action": "merge", "name": "ann", "check": true});
    let unmerged = lead.refused("Worktrees", merge).to_string();
    assert!(unmerged.contains("check test failed"), "{unmerged}");
    commit(&stage, "ann", "one\n2\nthree\n");
    let report = ["--json", "review", "approve", "ann", "--squash", "--check"];
    let report = stage.phalanx(&report).expect(0).json();
    assert_eq!((&report["task"], &report["landed"]["kind"]), (&json!(first), &json!("squash")));
    assert_eq!(state(&stage, &first), "completed");
    let conflict = text(&["review", "approve", "bob", "--merge"], 1);
    assert!(conflict.contains("a.txt"), "{conflict}");
    assert_eq!(state(&stage, &second), "in_review");
    let shown = text(&["review", "conflicts", "bob"], 0);
    assert!(
        shown.contains("  <<<<<<< main\n  2\n  =======\n  zwei\n  >>>>>>> alpha-bob\n"),
        "{shown}"
    );
    let given = text(&["review", "conflicts", "bob", "--task"], 0);
    assert!(given.contains("Merge main into alpha-bob and resolve the conflicts"), "{given}");
    let asked = mail(&stage, "bob").join("\n");
    assert!(asked.contains("Merge main into alpha-bob"), "{asked}");
    let dir = "work/.worktrees/alpha-bob";
    let mut merge = stage.command("git");
    let merged = merge.args(["merge", "--quiet", "main"]).current_dir(stage.at(dir)).output();
    assert!(!merged.expect("git runs").status.success(), "it conflicts");
    commit(&stage, "bob", "one\n2 and zwei\nthree\n");
    let landed = text(&["review", "approve", "bob", "--merge", "--check"], 0);
    assert!(landed.contains(&format!("task #{second} of bob is completed")), "{landed}");
    let main = fs::read_to_string(stage.at("work/a.txt")).expect("a file");
    assert_eq!(main, "one\n2 and zwei\nthree\n");
    assert_eq!(text(&["review"], 0), "nothing waits for a review\n");
    lead.end();
    stage.phalanx(&["down", "--force"]).expect(0);
}

#[test]
fn dropped_work_comes_back_when_it_changes() {
    let stage = stage();
    commit(&stage, "bob", "one\ntwo\n");
    let id = hand_in(&stage, "bob");
    let dropped = stage.phalanx(&["review", "drop", "bob"]).expect(0).stdout;
    assert!(dropped.contains("is cancelled; the work of bob is off the list"), "{dropped}");
    assert_eq!(state(&stage, &id), "cancelled");
    let listed = || stage.phalanx(&["--json", "review"]).expect(0).json()["work"].clone();
    assert_eq!(listed(), json!([]));
    commit(&stage, "bob", "one\nmore\n");
    assert_eq!(listed()[0]["name"], "bob");
    stage.phalanx(&["down", "--force"]).expect(0);
}

/// RV-29: comments, answers and the worktree go to the new name.
#[test]
fn rv_29_renamed_member_keeps_the_comments_on_its_work() {
    let stage = stage();
    commit(&stage, "bob", "one\ntwo\n");
    stage.phalanx(&["review", "comment", "bob", "Why?"]).expect(0);
    stage.phalanx(&["review", "send", "bob"]).expect(0);
    stage.phalanx(&["rename", "bob", "bert"]).expect(0);
    let shown = stage.phalanx(&["review", "show", "bert"]).expect(0).stdout;
    assert!(shown.contains("[R1] must"), "{shown}");
    stage.phalanx(&["--as", "bert", "review", "answer", "R1", "reply", "so"]).expect(0);
    stage.phalanx(&["down", "--force"]).expect(0);
}

/// Returns a command for a check that writes its process id to `marker`, and does not end.
pub fn waiting_check(marker: &Path) -> String {
    let script = format!("echo $$ >{0}.new; mv {0}.new {0}; exec sleep 300", marker.display());
    json!(["sh", "-c", script]).to_string()
}

/// RV-23: an interrupt ends the check with the command that runs it, and nothing is decided.
#[test]
fn rv_23_interrupt_ends_the_check_of_each_command() {
    let stage = stage();
    commit(&stage, "bob", "one\ntwo\n");
    let id = hand_in(&stage, "bob");
    let marker = stage.at("check.pid");
    let command = waiting_check(&marker);
    stage.phalanx(&["team", "set", "check.test.run", &command]).expect(0);
    for words in [
        &["review", "check", "bob"][..],
        &["review", "approve", "bob", "--merge", "--check"],
        &["worktree", "merge", "bob", "--check"],
    ] {
        let running = stage.start(words);
        let pid = wait_for("the check", || fs::read_to_string(&marker).ok());
        fs::remove_file(&marker).expect("a file");
        running.signal("INT");
        let run = running.end();
        assert!(run.stderr.contains("the checks were ended"), "{words:?}: {run:?}");
        let process = format!("/proc/{}", pid.trim());
        wait_for("the end of the check", || (!Path::new(&process).exists()).then_some(()));
    }
    assert_eq!(state(&stage, &id), "in_review");
    assert_eq!(fs::read_to_string(stage.at("work/a.txt")).expect("a file"), "one\n");
    stage.phalanx(&["down", "--force"]).expect(0);
}

/// RV-23: the server of a host ends the check that its lead cancels, and answers both calls.
#[test]
fn rv_23_server_of_a_host_ends_a_check_that_is_cancelled() {
    let Some(database) = TestDatabase::create() else { return };
    let mut stage = super::stage_without_tmux();
    stage.set_env("PHALANX_STORE", &database.url());
    stage.set_env("PHALANX_HOST", "here");
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let dir = stage.at("work");
    let hello = json!({
        "release": env!("CARGO_PKG_VERSION"), "team": "alpha", "store": database.url(), "host": "here",
        "dir": dir,
    });
    let check = json!({ "name": "wait", "run": ["sh", "-c", "touch begun; exec sleep 300"] });
    let checkout = json!({
        "repository": dir, "path": dir, "branch": "b", "base": "0", "new_branch": false,
    });
    let check = json!({ "check": { "checkout": checkout, "check": check, "env": {} } });
    let mut command = stage.command(binary());
    command.args(["host", "serve"]).stdin(Stdio::piped());
    let mut server = Background::start(command);
    let mut calls = server.take_stdin();
    writeln!(calls, "{hello}\n{}", json!({ "id": 1, "request": check })).expect("written");
    wait_for("the check", || dir.join("begun").exists().then_some(()));
    writeln!(calls, "{}", json!({ "id": 2, "request": { "cancel": 1 } })).expect("written");
    wait_for("the replies", || (server.output().lines().count() == 3).then_some(()));
    let replies = server.output();
    assert!(replies.contains(r#"{"id":1,"result":{"Ok":{"#), "{replies}");
    drop(calls);
    server.end().expect(0);
}
