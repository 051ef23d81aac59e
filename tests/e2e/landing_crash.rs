//! A command that lands work, or takes it back, is killed at each of its steps. The next command of
//! the lead finishes it or takes it back: the board, the branch and the journal agree.
#![cfg(debug_assertions)]

use std::fs;
use std::thread;

use crate::gear;
use crate::harness::{Run, Stage, binary};
use crate::worktree;

/// The steps of a landing: inside of each write, and between them.
const POINTS: [&str; 8] = [
    "rename.before",
    "rename.after",
    "land.recorded",
    "land.moved",
    "task.ended",
    "land.ended",
    "land.journaled",
    "rename.after:2",
];

/// RV-35: an approval that lands is done as a whole or not at all, also if it is killed.
#[test]
fn rv_35_killed_approval_is_finished_by_the_next_command() {
    let approve = ["review", "approve", "bob", "--merge"];
    each_point(&POINTS, |point| dies_while_landing(point, &approve));
}

/// RV-35: as an approval, with the end of the task.
#[test]
fn rv_35_killed_merge_is_finished_by_the_next_command() {
    let merge = ["worktree", "merge", "bob", "--squash", "--complete"];
    each_point(&POINTS, |point| dies_while_landing(point, &merge));
}

/// RV-35: work is taken back as a whole or not at all, and what is staged stays.
#[test]
fn rv_35_killed_undo_is_finished_by_the_next_command() {
    let points = [
        "rename.before",
        "rename.after",
        "land.recorded",
        "undo.files",
        "land.moved",
        "land.ended",
        "land.journaled",
        "rename.after:2",
    ];
    each_point(&points, |point| {
        let stage = team();
        stage.phalanx(&["review", "approve", "bob", "--merge"]).expect(0);
        fs::write(stage.at("work/staged.txt"), "mine\n").expect("a file");
        worktree::git(&stage, "work", &["add", "staged.txt"]);
        dies_at(&stage, point, &["worktree", "undo"]);
        stage.phalanx(&["status"]).expect(0);
        let again = stage.phalanx(&["worktree", "undo"]);
        let is_finished = count(&stage, "work_taken_back") == 1 && again.code == 4;
        assert!(is_finished || again.code == 0, "{point}: {again:?}");
        assert_eq!(count(&stage, "work_taken_back"), 1, "{point}");
        assert_eq!(text(&stage), "one\n", "{point}");
        let status = worktree::git(&stage, "work", &["status", "--porcelain"]);
        assert_eq!(status, "A  staged.txt\n", "{point}");
        let nothing = stage.phalanx(&["worktree", "undo"]).expect(4);
        assert!(nothing.stderr.contains("is left to take back"), "{point}: {nothing:?}");
        stage.phalanx(&["down", "--force"]).expect(0);
    });
}

/// RV-36: all landings of one member are taken back one by one, and reasons to refuse are true.
#[test]
fn rv_36_all_landings_of_a_member_are_taken_back() {
    let stage = team();
    let dir = "work/.worktrees/alpha-bob";
    let head = || worktree::git(&stage, "work", &["rev-parse", "HEAD"]);
    let mut heads = vec![head()];
    for n in 0..gear::sized(9, 45) {
        fs::write(stage.at(dir).join("a.txt"), format!("{n}\n")).expect("a file");
        worktree::git(&stage, dir, &["commit", "--quiet", "-am", "more"]);
        let kind = ["--squash", "--rebase"][n % 2];
        stage.phalanx(&["worktree", "merge", "bob", kind]).expect(0);
        heads.push(head());
    }
    worktree::git(&stage, "work", &["switch", "--quiet", "--create", "hotfix"]);
    let refused = stage.phalanx(&["worktree", "undo"]).expect(4).stderr;
    assert!(refused.contains("has hotfix checked out, and the commits are for main"), "{refused}");
    assert!(refused.contains("switch main`"), "{refused}");
    worktree::git(&stage, "work", &["switch", "--quiet", "main"]);
    worktree::git(&stage, "work", &["commit", "--quiet", "--allow-empty", "-m", "mine"]);
    let refused = stage.phalanx(&["worktree", "undo"]).expect(4).stderr;
    assert!(refused.contains("main has 1 commit(s) on top of "), "{refused}");
    assert!(refused.contains("git revert "), "{refused}");
    worktree::git(&stage, "work", &["reset", "--quiet", "--hard", "HEAD~1"]);
    while let Some(last) = heads.pop() {
        assert_eq!(head(), last);
        stage.phalanx(&["worktree", "undo"]).expect(if heads.is_empty() { 4 } else { 0 });
    }
    // One that a person takes off by hand.
    stage.phalanx(&["worktree", "merge", "bob", "--squash"]).expect(0);
    worktree::git(&stage, "work", &["reset", "--quiet", "--hard", "HEAD~1"]);
    let refused = stage.phalanx(&["worktree", "undo"]).expect(4).stderr;
    assert!(refused.contains("main was rewritten since "), "{refused}");
    stage.phalanx(&["down", "--force"]).expect(0);
}

fn each_point(points: &[&'static str], dies: impl Fn(&str) + Sync) {
    let dies = &dies;
    thread::scope(|scope| {
        for half in points.chunks(points.len().div_ceil(2)) {
            scope.spawn(move || half.iter().copied().for_each(dies));
        }
    });
}

fn dies_while_landing(point: &str, words: &[&str]) {
    let stage = team();
    dies_at(&stage, point, words);
    let has_landed = || text(&stage) == "two\n";
    let task = fs::read_to_string(stage.root().join("tasks/alpha/1.json")).expect("a task");
    let is_completed = task.replace(' ', "").contains("\"status\":\"completed\"");
    assert!(has_landed() || !is_completed, "{point}: completed before it has landed");
    // The first command of the lead finishes it.
    let state = state_of(&stage, "1");
    assert_eq!(state == "completed", has_landed(), "{point}: {state}");
    let is_free = state_of(&stage, "2") == "pending";
    assert_eq!(is_free, has_landed(), "{point}");
    if !has_landed() {
        assert_eq!(count(&stage, "work_landed"), 0, "{point}");
        stage.phalanx(words).expect(0);
    }
    assert_eq!((text(&stage).as_str(), count(&stage, "work_landed")), ("two\n", 1), "{point}");
    assert_eq!(worktree::git(&stage, "work", &["status", "--porcelain"]), "", "{point}");
    stage.phalanx(&["worktree", "undo"]).expect(0);
    assert_eq!(text(&stage), "one\n", "{point}");
    stage.phalanx(&["down", "--force"]).expect(0);
}

fn dies_at(stage: &Stage, point: &str, words: &[&str]) {
    let mut command = stage.command(binary());
    let run = command.env("PHALANX_FAILPOINT", point).args(words).output().expect("phalanx runs");
    let run = Run::from(run);
    assert_eq!(run.code, -1, "{point}: {run:?}");
}

/// A team in which the work of bob waits for approval, and the next task for its.
fn team() -> Stage {
    let stage = worktree::stage();
    let spawn = ["spawn", "bob", "--backend", "pty", "--worktree", "--", "sleep", "300"];
    stage.phalanx(&spawn).expect(0);
    let dir = "work/.worktrees/alpha-bob";
    fs::write(stage.at(dir).join("a.txt"), "two\n").expect("a file");
    worktree::git(&stage, dir, &["commit", "--quiet", "-am", "two"]);
    stage.phalanx(&["task", "create", "Count", "--owner", "bob"]).expect(0);
    stage.phalanx(&["task", "create", "Sum", "--blocked-by", "1"]).expect(0);
    stage.phalanx(&["--as", "bob", "task", "claim", "1"]).expect(0);
    stage.phalanx(&["--as", "bob", "task", "review", "1"]).expect(0);
    stage
}

fn text(stage: &Stage) -> String {
    fs::read_to_string(stage.at("work/a.txt")).expect("a file")
}

fn state_of(stage: &Stage, id: &str) -> String {
    let task = stage.phalanx(&["--json", "task", "get", id]).expect(0).json();
    task["state"].as_str().expect("a state").to_owned()
}

fn count(stage: &Stage, kind: &str) -> usize {
    stage.journal("alpha").iter().filter(|event| event["event"] == kind).count()
}
