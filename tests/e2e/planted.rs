//! Commands that members plant for git in their worktrees, and the verbs that look at their work.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::harness::{Stage, wait_for};
use crate::worktree::{git, stage};

const MEMBERS: [&str; 3] = ["own", "nested", "shared"];

fn dir(name: &str) -> String {
    format!("work/.worktrees/alpha-{name}")
}

/// Starts a member in a worktree of its own.
fn spawn(stage: &Stage, name: &str) {
    let args = ["spawn", name, "--backend", "pty", "--worktree", "--", "sleep", "300"];
    stage.phalanx(&args).expect(0);
}

/// Kills the program of a member, and waits until its end is on record.
fn end(stage: &Stage, name: &str) {
    let record = stage.root().join(format!("teams/alpha/phalanx/members/{name}.json"));
    let record = || -> Value {
        serde_json::from_slice(&fs::read(&record).expect("a record")).expect("json")
    };
    let pid = record()["start"]["program"]["pid"].to_string();
    assert!(stage.command("kill").arg(&pid).status().expect("kill runs").success());
    wait_for("the program has ended", || record().get("exit").is_some().then_some(()));
}

/// Plants `run` as a monitor of files and as a filter in the repository of a directory.
fn plant(stage: &Stage, dir: &str, run: &Path) {
    let run = run.to_string_lossy();
    for key in ["core.fsmonitor", "filter.x.clean", "filter.x.smudge"] {
        git(stage, dir, &["config", key, &run]);
    }
    fs::write(stage.at(dir).join(".gitattributes"), "* filter=x\n").expect("a file");
}

/// A team with three members that have planted `run`: one by another `.git`, one in a repository
/// inside its worktree, and one in the configuration of the repository.
fn planted(run: &Path, stage: &Stage) {
    for name in MEMBERS {
        spawn(stage, name);
        fs::write(stage.at(&dir(name)).join("a.txt"), "changed\n").expect("a file");
    }
    let commit = ["-c", "user.name=t", "-c", "user.email=t@x", "commit", "--quiet", "-m", "x"];
    let own = dir("own");
    fs::remove_file(stage.at(&own).join(".git")).expect("removed");
    git(stage, &own, &["init", "--quiet", "--separate-git-dir", ".fake", "."]);
    git(stage, &own, &["add", "a.txt"]);
    git(stage, &own, &commit);
    let nested = format!("{}/sub", dir("nested"));
    git(stage, "work", &["init", "--quiet", &stage.at(&nested).to_string_lossy()]);
    fs::write(stage.at(&nested).join("s"), "s\n").expect("a file");
    git(stage, &nested, &["add", "s"]);
    git(stage, &nested, &commit);
    git(stage, &dir("nested"), &["add", "sub"]);
    git(stage, &dir("nested"), &commit);
    for place in [&own, &nested, &dir("shared")] {
        plant(stage, place, run);
    }
    fs::write(stage.at(&nested).join("s"), "x\n").expect("a file");
}

/// SEC-14: no verb that looks at the work of members runs what they have planted.
#[test]
fn sec_14_no_verb_runs_what_a_member_planted_for_git() {
    let stage = stage();
    let (run, ran) = (stage.at("run"), stage.at("ran"));
    stage.script(&run, &format!("#!/bin/sh\necho \"$*\" >>'{}'\ncat\n", ran.display()));
    planted(&run, &stage);
    let _ = fs::remove_file(&ran);
    let check = |args: &[&str], code: i32| {
        let run = stage.phalanx(args).expect(code);
        assert!(!ran.exists(), "{args:?}: {}", fs::read_to_string(&ran).unwrap_or_default());
        run
    };
    let listed = check(&["--json", "worktree", "list"], 0).json();
    let conditions: Vec<_> = listed.as_array().expect("a list").iter().collect();
    assert!(conditions.iter().all(|one| one["condition"] == "dirty"), "{listed}");
    for name in MEMBERS {
        let patch = check(&["worktree", "diff", name], 0);
        assert!(patch.stdout.contains("+changed"), "{name}: {patch:?}");
        check(&["review", "show", name], 0);
        check(&["worktree", "merge", name, "--dry-run"], 0);
    }
    let overview = check(&["--json", "review", "overview"], 0).json();
    assert_eq!(overview["work"].as_array().map(Vec::len), Some(3), "{overview}");
    check(&["status"], 0);
    end(&stage, "own");
    check(&["resume", "own"], 0);
    let down = check(&["down", "--force"], 0);
    for name in MEMBERS {
        assert!(down.stderr.contains(&format!("of `{name}` stays")), "{down:?}");
    }
    for name in ["own", "shared"] {
        git(&stage, &dir(name), &["status"]);
        assert!(ran.exists(), "plain git runs it: {name}");
        fs::remove_file(&ran).expect("removed");
    }
    git(&stage, &dir("nested"), &["-c", "core.fsmonitor=false", "status"]);
    assert!(ran.exists(), "plain git runs it in the nested repository");
    stage.assert_clean();
}

/// SEC-14: `down --force` does not wait for a filter that hangs, and names the worktree that it
/// keeps for that reason; the other one is removed.
#[test]
fn sec_14_down_does_not_wait_for_a_filter_that_hangs() {
    let stage = stage();
    spawn(&stage, "hung");
    spawn(&stage, "clean");
    git(&stage, "work", &["config", "--global", "filter.slow.clean", "exec sleep 1000"]);
    let hung = stage.at(&dir("hung"));
    fs::write(hung.join(".gitattributes"), "a.txt filter=slow\n").expect("a file");
    fs::write(hung.join("a.txt"), "two\n").expect("a file");
    let down = stage.phalanx(&["down", "--force"]).expect(0);
    let kept = down.stderr.lines().find(|line| line.contains("of `hung` stays"));
    assert!(kept.is_some_and(|line| line.contains("did not end within")), "{down:?}");
    assert!(hung.join("a.txt").exists() && !stage.at(&dir("clean")).exists(), "{down:?}");
    stage.assert_clean();
}
