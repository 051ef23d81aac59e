//! Worktrees that other programs move, lose or want, and the records of phalanx about them.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::harness::{Stage, wait_for};
use crate::worktree::{git, place, spawn, stage};

fn pid(stage: &Stage, name: &str) -> Value {
    let record = stage.root().join(format!("teams/alpha/phalanx/members/{name}.json"));
    let record: Value = serde_json::from_slice(&fs::read(record).expect("a record")).expect("json");
    record["start"]["program"]["pid"].clone()
}

/// EN-14: a member is started again where git has its worktree, and the record follows.
#[test]
fn en_14_restart_follows_a_moved_worktree_and_a_renamed_branch() {
    let stage = stage();
    spawn(&stage, "bob", &["--worktree"]);
    let (path, top) = (place(&stage, "bob"), stage.at("work").canonicalize().expect("there"));
    wait_for("the program has looked", || path.join("where").exists().then_some(()));
    fs::remove_file(path.join("where")).expect("removed");
    let locked = || git(&stage, "work", &["worktree", "list", "--porcelain"]);
    assert!(locked().contains("locked phalanx: `bob` of team `alpha` works in it"), "{}", locked());
    let moved = top.with_file_name("moved");
    let (from, to) = (path.to_string_lossy(), moved.to_string_lossy());
    git(&stage, "work", &["worktree", "move", "--force", "--force", &from, &to]);
    git(&stage, "moved", &["branch", "-m", "topic"]);
    let listed = stage.phalanx(&["--json", "worktree", "list"]).expect(0).json();
    assert_eq!(
        (&listed[0]["path"], &listed[0]["branch"], &listed[0]["condition"]),
        (&json!(to), &json!("topic"), &json!("clean"))
    );
    let again = stage.phalanx(&["--json", "restart", "bob", "--force"]).expect(0).json();
    assert_eq!(again[0]["started"]["cwd"], json!(to), "{again}");
    wait_for("the program has looked again", || moved.join("where").exists().then_some(()));
    assert!(!path.exists() && locked().contains("locked phalanx"), "{}", locked());
    stage.phalanx(&["shutdown", "bob", "--force"]).expect(0);
    assert!(!locked().contains("locked"), "{}", locked());
    fs::remove_file(moved.join("where")).expect("removed");
    stage.phalanx(&["down", "--force"]).expect(0);
    assert!(!moved.exists());
    assert_eq!(git(&stage, "work", &["branch", "--format", "%(refname:short)"]), "main\n");
    stage.assert_clean();
}

/// EN-14: a restart that cannot succeed leaves the run alone, and names a way out.
#[test]
fn en_14_restart_checks_the_worktree_before_it_ends_the_run() {
    let stage = stage();
    spawn(&stage, "bob", &["--worktree"]);
    let before = pid(&stage, "bob");
    fs::remove_dir_all(stage.at("work/.git/worktrees/alpha-bob")).expect("removed");
    git(&stage, "work", &["branch", "-D", "alpha-bob"]);
    for again in [&["restart", "bob", "--force"][..], &["rename", "bob", "rob", "--force"]] {
        let refused = stage.phalanx(again).expect(4);
        assert!(refused.stderr.contains("git worktree repair"), "{refused:?}");
        assert_eq!(pid(&stage, "bob"), before);
        let listed = stage.phalanx(&["--json", "worktree", "list"]).expect(0).json();
        assert_eq!(listed[0]["condition"], json!("foreign"), "{listed}");
    }
    let status = stage.phalanx(&["worktree", "remove", "bob"]).expect(4);
    assert!(status.stderr.contains("is still running"), "{status:?}");
    stage.phalanx(&["down", "--force"]).expect(0);
    assert!(place(&stage, "bob").exists());
    stage.assert_clean();
}

/// EN-14: the hint for a taken name does not propose to remove what a member of another team uses.
#[test]
fn en_14_worktree_of_another_team_is_named_with_its_member() {
    let stage = stage();
    stage.phalanx(&["team", "create", "x-y"]).expect(0);
    stage.phalanx(&["team", "create", "x"]).expect(0);
    let spawn = |team: &str, name: &str| {
        stage.phalanx(&[
            "-t",
            team,
            "spawn",
            name,
            "--worktree",
            "--backend",
            "pty",
            "--",
            "sleep",
            "300",
        ])
    };
    spawn("x-y", "z").expect(0);
    let refused = spawn("x", "y-z").expect(4);
    assert!(refused.stderr.contains("`z` of team `x-y`"), "{refused:?}");
    assert!(!refused.stderr.contains("worktree remove"), "{refused:?}");
    for team in ["x-y", "x", "alpha"] {
        stage.phalanx(&["-t", team, "down", "--force"]).expect(0);
    }
    stage.assert_clean();
}

/// EN-08: the team ends while a start is about to make a worktree.
#[test]
fn en_08_worktree_of_an_ended_team_is_not_made() {
    let stage = stage();
    let spawn = ["spawn", "bob", "--worktree", "--backend", "pty", "--", "sleep", "300"];
    let spawn = stage.start_and_stop_at("worktree.planned", &spawn);
    stage.phalanx(&["down", "--force"]).expect(0);
    spawn.signal("CONT");
    let ended = spawn.end();
    assert_ne!(ended.code, 0, "{ended:?}");
    assert!(!place(&stage, "bob").exists(), "{ended:?}");
    assert_eq!(git(&stage, "work", &["worktree", "list"]).lines().count(), 1);
    assert_eq!(git(&stage, "work", &["branch", "--list", "alpha-*"]), "");
}

/// EN-15: worktrees are not made outside of the repository because a commit brought a link.
#[test]
fn en_15_spawn_refuses_a_linked_directory_for_worktrees() {
    let stage = stage();
    symlink("../outside", stage.at("work/.worktrees")).expect("a link");
    git(&stage, "work", &["add", ".worktrees"]);
    git(&stage, "work", &["commit", "--quiet", "-m", "link"]);
    let spawn = ["spawn", "bob", "--worktree", "--backend", "pty", "--", "sleep", "300"];
    let refused = stage.phalanx(&spawn).expect(4);
    assert!(refused.stderr.contains("is a symbolic link to"), "{refused:?}");
    assert!(
        refused.stderr.contains("rm ") && refused.stderr.contains("worktree.dir"),
        "{refused:?}"
    );
    assert!(!stage.at("outside").exists());
    fs::remove_file(stage.at("work/.worktrees")).expect("removed");
    stage.phalanx(&spawn).expect(0);
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}
