//! Worktrees with submodules, from the spawn to the end of the team, with real git.

use std::fs;

use serde_json::json;

use crate::harness::Stage;
use crate::worktree::{git, stage};

/// Runs git with submodules from this machine.
fn submodule(stage: &Stage, dir: &str, args: &[&str]) {
    let head = ["-c", "protocol.file.allow=always", "submodule", "--quiet"];
    git(stage, dir, &[&head[..], args].concat());
}

/// EN-13: `down` removes the worktree in which nothing was changed, and keeps the one of which a
/// submodule has a commit that is nowhere else.
#[test]
fn en_13_down_removes_a_clean_worktree_with_submodules() {
    let stage = stage();
    git(&stage, "work", &["clone", "--quiet", ".", "../lib"]);
    let lib = stage.at("lib").to_string_lossy().into_owned();
    submodule(&stage, "work", &["add", &lib, "lib"]);
    git(&stage, "work", &["commit", "--quiet", "-m", "lib"]);
    for name in ["ann", "bob"] {
        let spawn = ["spawn", name, "--backend", "pty", "--worktree", "--", "sleep", "300"];
        stage.phalanx(&spawn).expect(0);
        submodule(&stage, &format!("work/.worktrees/alpha-{name}"), &["update", "--init"]);
    }
    let inside = "work/.worktrees/alpha-bob/lib";
    let author = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
    fs::write(stage.at(inside).join("new.txt"), "new\n").expect("a file");
    git(&stage, inside, &["checkout", "--quiet", "-b", "mine"]);
    git(&stage, inside, &["add", "new.txt"]);
    git(&stage, inside, &[&author[..], &["commit", "--quiet", "-m", "only here"]].concat());
    git(&stage, inside, &["checkout", "--quiet", "--detach", "HEAD~"]);
    let listed = stage.phalanx(&["--json", "worktree", "list"]).expect(0).json();
    assert_eq!(listed[0]["condition"], json!("clean"));
    assert_eq!(listed[1]["condition"], json!("submodule"));
    let down = stage.phalanx(&["down", "--force"]).expect(0);
    assert!(!stage.at("work/.worktrees/alpha-ann").exists());
    assert!(down.stderr.contains("1 commit(s) on no remote of its submodule"), "{down:?}");
    let kept = git(&stage, inside, &["log", "-1", "--format=%s", "mine"]);
    assert_eq!(kept, "only here\n");
}
