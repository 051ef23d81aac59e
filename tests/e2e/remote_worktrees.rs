//! Worktrees of members on other hosts: commits go there and come back in bundles or through a git
//! remote.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::{Run, binary, wait_for};
use crate::remote_stage::RemoteStage;
use crate::review_decisions::waiting_check;

/// A program that commits a change in its worktree once, and stays.
const COMMITS: &str = "cat .env >seen; echo theirs >a.txt; git commit -qam theirs; exec sleep 300";

impl RemoteStage {
    /// Makes the working directory of the lead's machine a repository with one commit.
    fn make_repository(&self) {
        self.hosts.stage.file("a.txt", "one\n");
        self.hosts.stage.file(".gitignore", ".env\nseen\n");
        self.hosts.stage.file(".env", "KEY=1\n");
        for args in [
            &["init", "--quiet", "-b", "main"][..],
            &["config", "user.name", "t"],
            &["config", "user.email", "t@example.org"],
            &["add", "a.txt", ".gitignore"],
            &["commit", "--quiet", "-m", "first"],
        ] {
            self.git(args);
        }
    }

    /// Runs git in the repository of the lead's machine.
    fn git(&self, args: &[&str]) -> String {
        let mut command = self.hosts.stage.command("git");
        let output = command.args(args).output().expect("git runs");
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    fn spawn_committer(&self, name: &str) -> PathBuf {
        let args = ["spawn", name, "--host", "h1", "--worktree", "--", "sh", "-c", COMMITS];
        let made = self.phalanx(&[&["--json"], &args[..]].concat()).expect(0).json();
        let path = self.hosts.at("h1", &format!("work/worktrees/demo-{name}"));
        assert_eq!(made["cwd"], json!(path.canonicalize().expect("there").to_string_lossy()));
        path
    }

    /// Returns the row of a member in `worktree list`; null if there is none.
    fn worktree(&self, name: &str) -> Value {
        let list = self.phalanx(&["--json", "worktree", "list"]).expect(0).json();
        let rows = list.as_array().expect("worktrees");
        rows.iter().find(|row| row["name"] == name).cloned().unwrap_or_default()
    }

    /// Merges on the host with a command that leaves a conflict, and resolves it.
    fn resolve_on_host(&self, worktree: &Path, merge: &str) {
        let line = format!(
            "cd '{}' && ! {merge} >&2 && printf 'ours and theirs\\n' >a.txt && git commit --quiet -am both",
            worktree.display()
        );
        let resolved = self.on_host("h1", &line).output().expect("ssh runs");
        assert!(resolved.status.success(), "{resolved:?}");
    }

    fn wait_for_condition(&self, name: &str, condition: &str) {
        wait_for(&format!("the worktree of {name} to be {condition}"), || {
            (self.worktree(name)["condition"] == condition).then_some(())
        });
    }
}

#[test]
fn en_07_remote_worktree_is_merged_and_removed_by_bundles() {
    let Some(mut stage) = RemoteStage::start(&["h1"]) else { return };
    stage.make_repository();
    stage.phalanx(&["team", "set", "worktree.copy", "[\".env\"]"]).expect(0);
    let path = stage.spawn_committer("bob");
    stage.wait_for_condition("bob", "unmerged");
    assert_eq!(fs::read_to_string(path.join("seen")).expect("copied"), "KEY=1\n");
    assert_eq!(stage.worktree("bob")["host"], "h1");
    let transfers = fs::read_dir(stage.hosts.at("h1", "work/transfers")).expect("a directory");
    assert_eq!(transfers.count(), 0, "what was on its way is removed");

    fs::write(path.join("draft.txt"), "draft\n").expect("a file");
    let diff = stage.phalanx(&["worktree", "diff", "bob"]).expect(0).stdout;
    for part in ["2 files changed", "-one", "+theirs", "+draft"] {
        assert!(diff.contains(part), "{part}: {diff}");
    }
    assert_eq!(stage.git(&["for-each-ref", "refs/phalanx"]), "", "no ref of a transfer is left");
    assert_eq!(stage.git(&["log", "--format=%s", "h1/demo-bob"]), "theirs\nfirst");
    fs::remove_file(path.join("draft.txt")).expect("removed");
    stage.wait_for_condition("bob", "unmerged");
    let preview = stage.phalanx(&["--json", "worktree", "merge", "--dry-run", "bob"]).expect(0);
    let preview = preview.json();
    assert_eq!(
        (&preview["from"], &preview["into"], &preview["commits"], &preview["conflicts"]),
        (&json!("h1/demo-bob"), &json!("main"), &json!(1), &json!([]))
    );
    let refused = stage.phalanx(&["worktree", "remove", "bob"]).expect(4);
    assert!(refused.stderr.contains("is still running"), "{refused:?}");
    stage.phalanx(&["restart", "bob"]).expect(0);
    assert_eq!(stage.member("bob")["host"], "h1");
    assert_eq!(stage.git(&["log", "--format=%s", "h1/demo-bob"]), "theirs\nfirst", "one worktree");
    stage.phalanx(&["shutdown", "bob"]).expect(0);
    let kept = stage.phalanx(&["worktree", "remove", "bob"]).expect(4);
    assert!(kept.stdout.contains("1 commit(s) on no other branch"), "{kept:?}");

    let squashed = stage.phalanx(&["worktree", "merge", "bob", "--squash"]).expect(0).stdout;
    assert!(squashed.starts_with("h1/demo-bob squashed into one commit on main: "), "{squashed}");
    assert_eq!(stage.git(&["show", "HEAD:a.txt"]), "theirs");
    fs::write(path.join("new.txt"), "x").expect("a file");
    let kept = stage.phalanx(&["worktree", "remove", "bob"]).expect(4);
    assert!(kept.stdout.contains("uncommitted work in 1 file(s)"), "{kept:?}");
    fs::remove_file(path.join("new.txt")).expect("removed");
    assert_eq!(stage.worktree("bob")["condition"], "merged");

    stage.hosts.perform("stop h1");
    assert_eq!(stage.worktree("bob")["condition"], "unknown");
    stage.phalanx(&["worktree", "remove", "bob"]).expect(6);
    assert!(path.exists());
    stage.hosts.perform("start h1");
    stage.phalanx(&["worktree", "remove", "bob"]).expect(0);
    assert!(!path.exists());
    assert_eq!(stage.git(&["for-each-ref", "refs/remotes", "refs/phalanx"]), "");
    assert_eq!(stage.worktree("bob"), Value::Null);

    // The copy has the first commit, so that only the merged one goes there.
    let path = stage.spawn_committer("cleo");
    assert_eq!(fs::read_to_string(path.join("a.txt")).expect("checked out"), "theirs\n");
    stage.phalanx(&["down"]).expect(0);
    assert!(!path.exists(), "it had nothing to commit");
}

/// RV-24: a check runs where the files are, and its result counts for them. RV-34: its author can
/// resolve a conflict there.
#[test]
fn rv_24_rv_34_work_on_another_host_is_checked_there_and_lands_here() {
    let Some(stage) = RemoteStage::start(&["h1"]) else { return };
    stage.make_repository();
    let path = stage.spawn_committer("bob");
    stage.wait_for_condition("bob", "unmerged");
    let command = "[\"sh\", \"-c\", \"pwd; grep -q theirs a.txt\"]";
    stage.phalanx(&["team", "set", "check.test.run", command]).expect(0);
    let checked = stage.phalanx(&["--json", "review", "check", "bob"]).expect(0).json();
    let last = &checked["checks"][0]["last"];
    assert_eq!(last["result"], "passed", "{checked}");
    assert_eq!(last["output"], json!(path.canonicalize().expect("there").to_string_lossy()));
    let row = || stage.phalanx(&["--json", "review"]).expect(0).json()["work"][0].clone();
    assert_eq!(
        (&row()["host"], &row()["checks"][0]["last"]["result"]),
        (&json!("h1"), &json!("passed"))
    );
    // RV-23: an interrupt ends a check there, too.
    let marker = path.join("check.pid");
    let waits = waiting_check(&marker);
    stage.phalanx(&["team", "set", "check.wait.run", &waits]).expect(0);
    for signal in ["INT", "KILL"] {
        let words = ["-t", "demo", "review", "check", "bob", "wait"];
        let running = stage.hosts.stage.start(&words);
        let pid = wait_for("the check", || fs::read_to_string(&marker).ok());
        fs::remove_file(&marker).expect("a file");
        let lives = || {
            let line = format!("kill -0 {}", pid.trim());
            stage.on_host("h1", &line).status().expect("ssh runs").success()
        };
        assert!(lives());
        running.signal(signal);
        let run = running.end();
        if signal == "INT" {
            assert!(run.stderr.contains("the checks were ended"), "{run:?}");
        }
        wait_for("the end of the check", || (!lives()).then_some(()));
    }
    stage.phalanx(&["team", "set", "--unset", "check.wait"]).expect(0);
    stage.hosts.stage.file("a.txt", "ours\n");
    stage.git(&["commit", "--quiet", "-am", "ours"]);
    let shown = stage.phalanx(&["review", "conflicts", "bob"]).expect(0).stdout;
    assert!(shown.contains("  ours\n  =======\n  theirs\n"), "{shown}");
    let given = stage.phalanx(&["--json", "review", "conflicts", "bob", "--task"]).expect(0).json();
    let task = stage.phalanx(&["--json", "task", "get", "1"]).expect(0).json();
    let described = task["description"].as_str().expect("a text");
    let command = described.lines().find_map(|line| line.strip_prefix("2. ")).expect("a command");
    assert!(command.starts_with("git merge "), "{given}: {described}");
    stage.resolve_on_host(&path, command);
    let landed = stage.phalanx(&["worktree", "merge", "bob", "--check"]).expect(0).stdout;
    assert!(landed.contains("merged into main"), "{landed}");
    assert_eq!(stage.git(&["show", "HEAD:a.txt"]), "ours and theirs");
    stage.phalanx(&["down", "--force"]).expect(0);
}

/// RV-34: the screen of a review does the same as its commands for work on another host.
#[test]
fn tmux_rv_34_review_screen_resolves_checks_and_lands_work_on_another_host() {
    let Some(stage) = RemoteStage::start(&["h1"]) else { return };
    stage.make_repository();
    let path = stage.spawn_committer("bob");
    stage.wait_for_condition("bob", "unmerged");
    let command = "[\"sh\", \"-c\", \"uname -n; grep theirs a.txt\"]";
    stage.phalanx(&["team", "set", "check.test.run", command]).expect(0);
    stage.hosts.stage.file("a.txt", "ours\n");
    stage.git(&["commit", "--quiet", "-am", "ours"]);
    stage.opens("review");
    stage.shows("✗ 1 file");
    stage.presses(&["Enter"]);
    stage.shows("+ theirs");
    stage.presses(&["q", "x"]);
    stage.shows(">>>>>>> ");
    stage.presses(&["t"]);
    stage.shows("bob has task #1");
    let merge = stage.git(&["rev-parse", "--short", "HEAD"]);
    stage.resolve_on_host(&path, &format!("git merge {merge}"));
    stage.presses(&["R"]);
    stage.shows("clean");
    stage.presses(&["T"]);
    stage.shows("has not run");
    stage.presses(&["y"]);
    stage.shows("checks: test passed");
    stage.presses(&["T"]);
    stage.shows("ours and theirs");
    stage.presses(&["Escape"]);
    stage.shows("Enter changes");
    stage.presses(&["M"]);
    stage.shows("Land the commits of bob");
    stage.presses(&["y"]);
    stage.shows("the work of bob is on main");
    assert_eq!(stage.git(&["show", "HEAD:a.txt"]), "ours and theirs");
    stage.presses(&["q"]);
    stage.shows("end=0");
    stage.phalanx(&["down", "--force"]).expect(0);
}

#[test]
fn en_07_remote_worktree_is_kept_and_its_commits_go_through_a_remote() {
    let Some(stage) = RemoteStage::start(&["h1"]) else { return };
    stage.make_repository();
    let remote = stage.hosts.stage.at("shared.git");
    let shown = remote.display().to_string();
    stage.git(&["init", "--quiet", "--bare", &shown]);
    stage.git(&["remote", "add", "shared", &shown]);
    let log = remote.join("log");
    let script = format!("#!/bin/sh\necho \"$1\" >>'{}'\n", log.display());
    stage.hosts.stage.script(&remote.join("hooks/update"), &script);
    let hosts = stage.hosts.stage.root().join("phalanx/hosts.toml");
    let table = fs::read_to_string(&hosts).expect("hosts");
    fs::write(&hosts, format!("{table}remote = \"shared\"\n")).expect("hosts");

    let missing = ["spawn", "ann", "--host", "h1", "--worktree", "--", "/no/such/program"];
    stage.phalanx(&missing).expect(1);
    assert_eq!(stage.worktree("ann"), Value::Null);
    assert!(!stage.hosts.at("h1", "work/worktrees/demo-ann").exists(), "rolled back");
    fs::remove_file(&log).expect("a push");
    let path = stage.spawn_committer("bob");
    stage.wait_for_condition("bob", "unmerged");
    let pushed = fs::read_to_string(&log).expect("pushes");
    assert!(!pushed.is_empty(), "its commit came through the remote");
    assert!(pushed.lines().all(|name| name.starts_with("refs/phalanx/passing/")), "{pushed}");
    let left = ["--git-dir", &shown, "for-each-ref"];
    assert_eq!(stage.git(&left), "", "what was on its way is removed");
    let merge = stage.phalanx(&["worktree", "merge", "--dry-run", "bob"]).expect(0).stdout;
    assert!(merge.contains("phalanx worktree merge bob --head "), "{merge}");

    // A machine that does not have the repository.
    let elsewhere = |args: &[&str]| other_machine(&stage, args);
    let refused = elsewhere(&["worktree", "diff", "bob"]).expect(4);
    assert!(refused.stderr.contains("is on host `"), "{refused:?}");
    let listed = elsewhere(&["--json", "worktree", "list"]).expect(0).json();
    assert_eq!(listed[0]["condition"], "unknown");

    let down = stage.phalanx(&["down"]).expect(0);
    assert!(down.stderr.contains("1 commit(s) on no other branch"), "{down:?}");
    assert!(path.join("a.txt").exists());
    stage.git(&["merge", "--quiet", "--no-edit", "h1/demo-bob"]);
}

fn other_machine(stage: &RemoteStage, args: &[&str]) -> Run {
    let root: &Path = &stage.hosts.stage.at("other");
    let mut command = stage.hosts.stage.command(binary());
    command.env("PHALANX_CONFIG_DIR", root).env("PHALANX_HOST", "other").args(["-t", "demo"]);
    Run::from(command.args(args).output().expect("phalanx runs"))
}
