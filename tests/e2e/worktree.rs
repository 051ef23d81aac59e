//! Worktrees of members, from the spawn to the end of the team, with real git.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::gear;
use crate::harness::{Background, Run, SETTLED, Stage, binary, wait_for};
use crate::mcp::Client;

/// A stage whose working directory is a repository with one commit.
pub fn stage() -> Stage {
    with_repository(Stage::new())
}

/// As [`stage`], on another stage.
pub fn with_repository(stage: Stage) -> Stage {
    stage.file("a.txt", "one\n");
    for args in [
        &["init", "--quiet", "-b", "main"][..],
        &["config", "user.name", "t"],
        &["config", "user.email", "t@example.org"],
        &["add", "a.txt"],
        &["commit", "--quiet", "-m", "first"],
    ] {
        git(&stage, "work", args);
    }
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage
}

pub fn git(stage: &Stage, dir: &str, args: &[&str]) -> String {
    let output =
        stage.command("git").args(args).current_dir(stage.at(dir)).output().expect("git runs");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn place(stage: &Stage, name: &str) -> PathBuf {
    stage.at("work").canonicalize().expect("there").join(".worktrees").join(format!("alpha-{name}"))
}

pub fn spawn(stage: &Stage, name: &str, more: &[&str]) -> Value {
    let head = ["--json", "spawn", name, "--backend", "pty"];
    let tail = ["--", "sh", "-c", "pwd -P >where; exec sleep 300"];
    stage.phalanx(&[&head[..], more, &tail].concat()).expect(0).json()
}

fn member(stage: &Stage, name: &str) -> Value {
    let config = fs::read_to_string(stage.root().join("teams/alpha/config.json")).expect("config");
    let config: Value = serde_json::from_str(&config).expect("json");
    let members = config["members"].as_array().expect("members").clone();
    members.into_iter().find(|member| member["name"] == name).expect("on the roster")
}

/// EN-06, EN-07: the working directory of the program, the one that `spawn` reports, and those on
/// the roster are the same.
#[test]
fn en_07_worktree_path_agrees_in_program_spawn_and_roster() {
    let stage = stage();
    let made = spawn(&stage, "bob", &["--worktree"]);
    let path = place(&stage, "bob");
    assert_eq!(made["cwd"], json!(path.to_string_lossy()));
    let entry = member(&stage, "bob");
    assert_eq!((&entry["cwd"], &entry["worktreePath"]), (&made["cwd"], &made["cwd"]));
    let seen = wait_for("the program has looked", || {
        fs::read_to_string(path.join("where")).ok().filter(|text| text.ends_with('\n'))
    });
    assert_eq!(seen.trim_end(), path.to_string_lossy());
    assert_eq!(git(&stage, "work", &["status", "--porcelain"]), "");
    let listed = stage.phalanx(&["--json", "worktree", "list"]).expect(0).json();
    assert_eq!(
        (&listed[0]["name"], &listed[0]["branch"], &listed[0]["condition"]),
        (&json!("bob"), &json!("alpha-bob"), &json!("dirty"))
    );
    let run = stage.phalanx(&["worktree", "remove", "bob"]).expect(4);
    assert!(run.stderr.contains("is still running"), "{run:?}");
    stage.phalanx(&["shutdown", "bob"]).expect(0);
    stage.phalanx(&["worktree", "remove", "bob"]).expect(4);
    fs::remove_file(path.join("where")).expect("removed");
    stage.phalanx(&["worktree", "remove", "bob"]).expect(0);
    assert!(!path.exists());
    stage.phalanx(&["worktree", "remove", "bob"]).expect(3);
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

/// EN-07: `down` removes clean and merged worktrees; it keeps and names dirty, unmerged and locked
/// ones.
#[test]
fn en_07_down_keeps_worktrees_with_unmerged_work() {
    let stage = stage();
    let names = ["clean", "merged", "dirty", "unmerged", "locked"];
    for name in names {
        let tail = ["--", "sleep", "300"];
        stage
            .phalanx(&[&["spawn", name, "--backend", "pty", "--worktree"][..], &tail].concat())
            .expect(0);
    }
    let dir = |name: &str| format!("work/.worktrees/alpha-{name}");
    for name in ["merged", "unmerged"] {
        git(&stage, &dir(name), &["commit", "--quiet", "--allow-empty", "-m", name]);
    }
    git(&stage, "work", &["merge", "--quiet", "--no-ff", "--no-edit", "alpha-merged"]);
    fs::write(place(&stage, "dirty").join("work.txt"), "hours of it").expect("a file");
    // A person's lock in place of that of phalanx.
    for lock in ["unlock", "lock"] {
        git(&stage, "work", &["worktree", lock, &place(&stage, "locked").to_string_lossy()]);
    }
    let listed = stage.phalanx(&["--json", "worktree", "list"]).expect(0).json();
    for entry in listed.as_array().expect("a list") {
        assert_eq!(entry["name"], entry["condition"], "each is what it is called");
    }
    let down = stage.phalanx(&["down", "--force"]).expect(0);
    for name in names {
        let stays = ["dirty", "unmerged", "locked"].contains(&name);
        assert_eq!(place(&stage, name).exists(), stays, "{name}");
        assert_eq!(
            down.stderr.contains(&format!("of `{name}` stays")),
            stays,
            "{name}: {}",
            down.stderr
        );
    }
    let work = fs::read_to_string(place(&stage, "dirty").join("work.txt")).expect("the work");
    assert_eq!(work, "hours of it");
    let branches = git(&stage, "work", &["branch", "--format", "%(refname:short)"]);
    assert_eq!(branches, "alpha-dirty\nalpha-locked\nalpha-unmerged\nmain\n");
    stage.assert_clean();
}

/// EN-12: a squash by hand is named as such, waits for no review, and keeps nothing.
#[test]
fn en_12_down_removes_squashed_work() {
    let stage = with_work();
    git(&stage, "work", &["merge", "--quiet", "--squash", "alpha-bob"]);
    git(&stage, "work", &["commit", "--quiet", "-m", "squashed"]);
    let listed = stage.phalanx(&["worktree", "list"]).expect(0).stdout;
    assert!(listed.contains("merged (tree)"), "{listed}");
    let waiting = stage.phalanx(&["--json", "review", "overview"]).expect(0).json();
    assert_eq!(waiting["work"], json!([]));
    stage.phalanx(&["down", "--force"]).expect(0);
    assert!(!place(&stage, "bob").exists());
    assert_eq!(git(&stage, "work", &["branch", "--list", "alpha-bob"]), "");
}

/// SP-09, EN-07: a failed start leaves no worktree and no branch.
#[test]
fn sp_09_failed_spawn_removes_its_worktree() {
    let stage = stage();
    stage.profile("settled", SETTLED);
    let spawn = ["spawn", "bob", "--profile", "settled", "--backend", "pty", "--worktree", "--"];
    for (command, said) in [
        (&["sh", "-c", "exit 7"][..], "exit code 7"),
        (&["no-such-program", "x"], "no-such-program"),
    ] {
        let run = stage.phalanx(&[&spawn[..], command].concat()).expect(1);
        assert!(run.stderr.contains(said), "{run:?}");
        assert!(!place(&stage, "bob").exists());
        assert_eq!(git(&stage, "work", &["branch", "--format", "%(refname:short)"]), "main\n");
        assert_eq!(stage.phalanx(&["--json", "worktree", "list"]).expect(0).json(), json!([]));
    }
    // Files that the program wrote before it failed are work: they stay, and the next start reuses
    // the worktree.
    let run = stage.phalanx(&[&spawn[..], &["sh", "-c", "echo x >work.txt; exit 7"]].concat());
    run.expect(1);
    assert!(place(&stage, "bob").join("work.txt").exists());
    stage.phalanx(&[&spawn[..], &["sleep", "300"]].concat()).expect(0);
    assert!(place(&stage, "bob").join("work.txt").exists());
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

#[test]
fn nothing_starts_if_no_worktree_can_be_created() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    // This `PATH` has no git.
    let run = stage.phalanx(&["spawn", "bob", "--worktree", "--", "sleep", "300"]).expect(1);
    assert!(run.stderr.contains("cannot find the program git"), "{run:?}");
    let stage = Stage::new();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let run = stage.phalanx(&["spawn", "bob", "--worktree", "--", "sleep", "300"]).expect(2);
    assert!(run.stderr.contains("is not in a git repository"), "{run:?}");
    let manifest =
        "[team]\nname = \"beta\"\n[[member]]\nname = \"bob\"\nrun = [\"true\"]\nworktree = true\n";
    let file = stage.file("m.toml", manifest);
    let run = stage.phalanx(&["up", &file]).expect(2);
    assert!(run.stderr.contains("is not in a git repository"), "{run:?}");
    assert!(!stage.root().join("teams/beta").exists(), "nothing was made");
    assert_eq!(stage.phalanx(&["--json", "status"]).expect(0).json()["members"], json!([]));
}

/// The manifest sets the directory and the setup command; the end of the team removes the worktree.
#[test]
fn manifest_configures_worktrees() {
    let stage = stage();
    let manifest = "[team]\nname = \"beta\"\nbackend = \"pty\"\n[worktree]\ndir = \"trees\"\n\
        setup = [\"git\", \"config\", \"--local\", \"setup.ran\", \"yes\"]\n\
        [[member]]\nname = \"ada\"\nworktree = true\n\
        [[task]]\nkey = \"t\"\nsubject = \"look\"\nrun = [\"sh\", \"-c\", \"pwd -P >../../seen\"]\n";
    let file = stage.file(".git/m.toml", manifest);
    stage.phalanx(&["up", &file]).expect(0);
    let top = stage.at("work").canonicalize().expect("there");
    let seen = fs::read_to_string(top.join("seen")).expect("the task ran in the worktree");
    assert_eq!(seen.trim_end(), top.join("trees/beta-ada").to_string_lossy());
    assert_eq!(git(&stage, "work", &["config", "setup.ran"]), "yes\n");
    assert!(!top.join("trees/beta-ada").exists());
    stage.phalanx(&["team", "delete"]).expect(0);
    stage.assert_clean();
}

/// EN-09: a new branch starts from the caller's checkout, and `spawn` and the journal say so.
#[test]
fn en_09_spawn_says_what_a_new_branch_starts_from() {
    let stage = stage();
    git(&stage, "work", &["worktree", "add", "--quiet", "-b", "dev", "../dev"]);
    git(&stage, "dev", &["commit", "--quiet", "--allow-empty", "-m", "only dev"]);
    let dev = git(&stage, "dev", &["rev-parse", "--short=7", "HEAD"]);
    let from_dev = |args: &[&str]| {
        let mut command = stage.command(binary());
        let tail = ["-t", "alpha", "--backend", "pty", "--", "sleep", "300"];
        command.args(["spawn"]).args(args).args(tail).current_dir(stage.at("dev"));
        Run::from(command.output().expect("phalanx runs")).expect(0).stdout
    };
    let expected = [
        (&["ann", "--worktree"][..], format!(" on new branch alpha-ann from dev ({})", dev.trim())),
        (
            &["bob", "--worktree=feat/x", "--base", "main"],
            " on new branch feat/x from main (".to_owned(),
        ),
        (&["cleo", "--worktree=topic"], " on branch topic (".to_owned()),
    ];
    git(&stage, "work", &["branch", "topic"]);
    for (args, words) in expected {
        let said = from_dev(args);
        assert!(said.contains(&words), "{args:?}: {said}");
    }
    let made = stage.wait_event("alpha", "worktree_made", "ann");
    assert_eq!(
        (&made["detail"]["branch"], &made["detail"]["from"]),
        (&json!("alpha-ann"), &json!("dev"))
    );
    let refused = stage.phalanx(&["spawn", "eve", "--base", "main", "--", "true"]).expect(2);
    assert!(refused.stderr.contains("--worktree"), "{refused:?}");
    let unknown = stage
        .phalanx(&[
            "spawn",
            "eve",
            "--worktree",
            "--base",
            "no-such",
            "--backend",
            "pty",
            "--",
            "true",
        ])
        .expect(2);
    assert!(unknown.stderr.contains("git knows no commit `no-such`"), "{unknown:?}");
    stage.phalanx(&["down", "--force"]).expect(0);
    assert!(!place(&stage, "ann").exists());
    assert_eq!(git(&stage, "work", &["branch", "--list", "alpha-*", "feat/*"]), "");
    stage.assert_clean();
}

/// EN-08: in the same words on all ways in, and nothing is left.
#[test]
fn en_08_hook_that_fails_is_a_warning_and_a_filter_that_fails_a_refusal() {
    let stage = stage();
    let hook = "work/.git/hooks/post-checkout";
    stage.script(&stage.at(hook), "#!/bin/sh\necho 'lefthook: not found' >&2\nexit 127\n");
    let run = stage
        .phalanx(&["spawn", "ann", "--worktree", "--backend", "pty", "--", "sleep", "300"])
        .expect(0);
    assert!(run.stderr.contains("a git hook failed: lefthook: not found"), "{run:?}");
    let warned = stage.wait_event("alpha", "warning", "ann");
    assert!(
        warned["detail"]["text"].as_str().is_some_and(|text| text.contains("lefthook")),
        "{warned}"
    );
    fs::remove_file(stage.at(hook)).expect("removed");
    for (key, value) in [("required", "true"), ("clean", "cat"), ("smudge", "false")] {
        git(&stage, "work", &["config", &format!("filter.f.{key}"), value]);
    }
    stage.file(".gitattributes", "*.bin filter=f\n");
    stage.file("b.bin", "b\n");
    git(&stage, "work", &["add", "."]);
    git(&stage, "work", &["commit", "--quiet", "-m", "filtered"]);
    let run = stage
        .phalanx(&["spawn", "bob", "--worktree", "--backend", "pty", "--", "sleep", "300"])
        .expect(1);
    assert!(run.stderr.contains("smudge filter f failed"), "{run:?}");
    assert!(!place(&stage, "bob").exists());
    assert_eq!(git(&stage, "work", &["branch", "--list", "alpha-bob"]), "");
    let listed = stage.phalanx(&["--json", "worktree", "list"]).expect(0).json();
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

#[test]
fn worktree_merge_dry_run_reports_conflicts_without_merging() {
    let stage = stage();
    stage
        .phalanx(&["spawn", "bob", "--backend", "pty", "--worktree=feat/x", "--", "sleep", "300"])
        .expect(0);
    let path = place(&stage, "bob");
    fs::write(path.join("a.txt"), "theirs\n").expect("a file");
    let diff = stage.phalanx(&["worktree", "diff", "bob"]).expect(0).stdout;
    assert!(diff.contains("-one") && diff.contains("+theirs"), "{diff}");
    let dir = "work/.worktrees/alpha-bob";
    git(&stage, dir, &["commit", "--quiet", "-am", "theirs"]);
    let fine = stage.phalanx(&["--json", "worktree", "merge", "--dry-run", "bob"]).expect(0).json();
    assert_eq!(
        (&fine["into"], &fine["commits"], &fine["conflicts"]),
        (&json!("main"), &json!(1), &json!([]))
    );
    stage.file("a.txt", "ours\n");
    git(&stage, "work", &["commit", "--quiet", "-am", "ours"]);
    let clash = stage.phalanx(&["worktree", "merge", "--dry-run", "bob"]).expect(1);
    assert!(clash.stdout.contains("a.txt"), "{clash:?}");
    assert_eq!(git(&stage, "work", &["log", "--format=%s"]), "ours\nfirst\n", "nothing was merged");
    stage.phalanx(&["worktree", "merge", "bob"]).expect(1);
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// TK-09: two agents in one checkout cause a warning; agents in worktrees, agents that read and
/// plain commands do not.
#[test]
fn tk_09_two_agents_in_one_checkout_cause_a_warning() {
    let stage = stage();
    let sheet = "about = \"an agent\"\nruns = \"native\"\nreads_mail = false\n\
        [launch]\nargv = [[\"sleep\", \"300\"]]\nprompt = \"mailbox\"\n\
        [ready]\nwhen = \"settled\"\nsettle_ms = 50\n";
    stage.profile("agent", sheet);
    let agent = |name: &str, more: &[&str]| {
        let head = ["spawn", name, "--backend", "pty", "--profile", "agent"];
        stage.phalanx(&[&head[..], more].concat()).expect(0).stderr
    };
    let plain = ["spawn", "log", "--backend", "pty", "--", "sleep", "300"];
    assert!(!stage.phalanx(&plain).expect(0).stderr.contains("warning"));
    assert!(!agent("ann", &[]).contains("warning"));
    assert!(!agent("bob", &["--worktree"]).contains("warning"));
    assert!(!agent("rex", &["--role", "reviewer"]).contains("warning"));
    let said = agent("cleo", &[]);
    assert!(said.contains("warning: `ann` and `cleo` work in one checkout"), "{said}");
    let warned = stage.wait_event("alpha", "warning", "cleo");
    assert!(
        warned["detail"]["text"].as_str().is_some_and(|text| text.contains("--worktree")),
        "{warned}"
    );
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// EN-07, CR-05: a resumed member continues in its worktree with the files that are there.
#[test]
fn en_07_resumed_member_continues_in_its_worktree() {
    let stage = stage();
    let script = "pwd -P >>where; test -e fail || exec sleep 300; exit 3";
    let order = ["spawn", "bob", "--backend", "pty", "--worktree", "--", "sh", "-c", script];
    stage.phalanx(&order).expect(0);
    let path = place(&stage, "bob");
    wait_for("the program has looked", || path.join("where").exists().then_some(()));
    let record = stage.root().join("teams/alpha/phalanx/members/bob.json");
    let record = || -> Value {
        serde_json::from_slice(&fs::read(&record).expect("a record")).expect("json")
    };
    let pid = record()["start"]["program"]["pid"].to_string();
    assert!(stage.command("kill").arg(&pid).status().expect("kill runs").success());
    wait_for("bob has ended", || record().get("exit").is_some().then_some(()));
    let again = stage.phalanx(&["--json", "resume", "bob"]).expect(0).json();
    let cwd = &again[0]["started"]["cwd"];
    assert_eq!(*cwd, json!(path.to_string_lossy()), "{again}");
    assert_eq!(member(&stage, "bob")["worktreePath"], *cwd);
    let lines = wait_for("the program has looked again", || {
        fs::read_to_string(path.join("where")).ok().filter(|text| text.lines().count() == 2)
    });
    assert!(lines.lines().all(|line| line == path.to_string_lossy()), "{lines}");
    let down = stage.phalanx(&["down", "--force"]).expect(0);
    assert!(down.stderr.contains("of `bob` stays") && path.exists(), "{}", down.stderr);
}

/// The report of `up` ends with the work that is not merged, and the command that merges it.
#[test]
fn report_names_unmerged_branches_and_what_merges_them() {
    let stage = stage();
    let member = |name: &str| format!("[[member]]\nname = \"{name}\"\nworktree = true\n");
    let task = |owner: &str, script: &str| {
        format!(
            "[[task]]\nkey = \"{owner}\"\nsubject = \"work\"\nowner = \"{owner}\"\nrun = [\"sh\", \"-ec\", \"{script}\"]\n"
        )
    };
    let commit = "git add -A; git commit --quiet -m done";
    let text = [
        "[team]\nname = \"beta\"\nbackend = \"pty\"\n".to_owned(),
        ["ann", "ben", "cleo", "dora"].map(member).concat(),
        task("ann", &format!("echo ann >ann; {commit}")),
        task("ben", &format!("echo ben >same; {commit}")),
        task("cleo", "echo open >open"),
        task("dora", "true"),
    ]
    .concat();
    let file = stage.file(".git/m.toml", &text);
    let run = stage.phalanx(&["up", &file, "--keep"]).expect(0);
    let lines: Vec<&str> = run.stdout.lines().collect();
    let line = |name: &str| lines.iter().find(|line| line.starts_with(&format!("{name} ")));
    let ann = line("ann").expect("ann's branch");
    assert!(
        ann.contains("1 file changed, 1 insertion(+)") && ann.ends_with("git merge beta-ann"),
        "{ann}"
    );
    assert!(line("cleo").expect("cleo's files").contains("1 file not committed"), "{run:?}");
    assert_eq!(line("dora"), None, "nothing to merge");
    assert!(run.stdout.contains("to review one first: git diff main...beta-ann"), "{}", run.stdout);
    git(&stage, "work", &["merge", "--quiet", "beta-ann"]);
    assert_eq!(fs::read_to_string(stage.at("work/ann")).expect("merged"), "ann\n");

    fs::write(stage.at("work/same"), "main\n").expect("written");
    git(&stage, "work", &["add", "same"]);
    git(&stage, "work", &["commit", "--quiet", "-m", "same"]);
    let report = stage.phalanx(&["--json", "up", &file, "--keep", "--yes"]).expect(0).json();
    let branches = report["branches"].as_array().expect("branches");
    let ben = branches.iter().find(|of| of["name"] == json!("ben")).expect("ben's branch");
    assert_eq!((&ben["conflicts"], &ben["commits"]), (&json!(["same"]), &json!(1)));
    assert!(!branches.iter().any(|of| of["name"] == json!("ann")), "merged: {branches:?}");
    fs::remove_file(place(&stage, "cleo").with_file_name("beta-cleo").join("open")).expect("there");
    stage.phalanx(&["down", "-t", "beta", "--force"]);
    stage.phalanx(&["down", "-t", "alpha", "--force"]);
    stage.assert_clean();
}

/// A stage with one member, whose worktree has a commit that changes `a.txt`.
fn with_work() -> Stage {
    let stage = stage();
    spawn(&stage, "bob", &["--worktree"]);
    let path = place(&stage, "bob");
    wait_for("the program has looked", || path.join("where").exists().then_some(()));
    fs::remove_file(path.join("where")).expect("removed");
    commit(&stage, "work/.worktrees/alpha-bob", "a.txt", "two\n");
    stage
}

fn commit(stage: &Stage, dir: &str, file: &str, text: &str) {
    fs::write(stage.at(dir).join(file), text).expect("a file");
    git(stage, dir, &["add", file]);
    git(stage, dir, &["commit", "--quiet", "-m", &format!("{file} is {}", text.trim())]);
}

/// RV-01: each way to land, with what was checked, and back.
#[test]
fn rv_01_work_lands_as_checked_and_is_taken_back() {
    let ways: [(&[&str], &str, &str); 3] = [
        (&[], "merge", "alpha-bob merged into main: "),
        (&["--squash", "-m", "In one"], "squash", "alpha-bob squashed into one commit on main: "),
        (&["--rebase"], "rebase", "alpha-bob rebased onto main: "),
    ];
    for (options, kind, words) in ways {
        let stage = with_work();
        let check = ["--json", "worktree", "merge", "bob", "--dry-run"];
        let checked = stage.phalanx(&check).expect(0).json();
        let head = checked["head"].as_str().expect("a commit").to_owned();
        commit(&stage, "work/.worktrees/alpha-bob", "late.txt", "late\n");
        commit(&stage, "work", "mine.txt", "mine\n");
        let before = git(&stage, "work", &["rev-parse", "HEAD"]);
        let merge = [&["worktree", "merge", "bob", "--head", &head], options].concat();
        let said = stage.phalanx(&merge).expect(0).stdout;
        assert!(
            said.starts_with(words) && said.contains("1 later commit(s) of bob stay"),
            "{said}"
        );
        let read = |file: &str| fs::read_to_string(stage.at("work").join(file)).ok();
        assert_eq!((read("a.txt").as_deref(), read("late.txt")), (Some("two\n"), None));
        let subject = git(&stage, "work", &["log", "-1", "--format=%s"]);
        assert_eq!(subject == "In one\n", kind == "squash", "{subject}");
        let journal = stage.journal("alpha");
        let landed =
            journal.iter().find(|event| event["event"] == "work_landed").expect("an event");
        assert_eq!(
            (&landed["member"], &landed["detail"]["kind"], &landed["detail"]["head"]),
            (&json!("bob"), &json!(kind), &json!(head))
        );
        let undone = stage.phalanx(&["worktree", "undo"]).expect(0).stdout;
        assert!(undone.ends_with("again, without the work of bob\n"), "{undone}");
        assert_eq!(git(&stage, "work", &["rev-parse", "HEAD"]), before);
        assert_eq!(read("a.txt").as_deref(), Some("one\n"));
        let nothing = stage.phalanx(&["worktree", "undo"]).expect(4);
        assert!(
            nothing.stderr.contains("no landing of team `alpha` is left to take back"),
            "{nothing:?}"
        );
        // All of it, and the worktree goes with the team.
        stage.phalanx(&[&["worktree", "merge", "bob"], options].concat()).expect(0);
        assert_eq!(read("late.txt").as_deref(), Some("late\n"));
        let again = stage.phalanx(&["worktree", "merge", "bob"]).expect(4);
        assert!(again.stderr.contains("main has all its commits"), "{again:?}");
        let down = stage.phalanx(&["down"]).expect(0);
        assert!(!place(&stage, "bob").exists(), "{kind}: {down:?}");
        stage.assert_clean();
    }
}

/// RV-03: refusals name what to do, and change nothing.
#[test]
fn rv_03_refused_merges_say_what_to_do() {
    let stage = with_work();
    let dir = "work/.worktrees/alpha-bob";
    let refused = |args: &[&str], code: i32, words: &str| {
        let before = git(&stage, "work", &["rev-parse", "HEAD"]);
        let run = stage.phalanx(&[&["worktree", "merge", "bob"], args].concat()).expect(code);
        assert!(run.stderr.contains(words), "{words}: {run:?}");
        assert_eq!(git(&stage, "work", &["rev-parse", "HEAD"]), before);
        let changed = git(&stage, "work", &["status", "--porcelain", "--untracked-files=no"]);
        assert_eq!(changed, "", "{words}");
    };
    fs::write(stage.at(dir).join("draft.txt"), "x\n").expect("a file");
    refused(&[], 4, "1 file(s) of `bob` are not committed and would stay");
    refused(&["--head", "HEAD~9", "--leave-uncommitted"], 2, "`HEAD~9` is none of its commits");
    refused(&["--head=--all", "--leave-uncommitted"], 2, "`--all` is none of its commits");
    refused(&["--squash", "--rebase"], 2, "cannot be used with");
    commit(&stage, "work", "a.txt", "three\n");
    for kind in [&["--leave-uncommitted"][..], &["--leave-uncommitted", "--squash"]] {
        refused(kind, 1, "its commits conflict with main in a.txt");
        refused(kind, 1, "`phalanx review conflicts NAME`; with `--task` the member gets the task");
    }
    let unknown = stage.phalanx(&["worktree", "merge", "ann"]).expect(3);
    assert!(unknown.stderr.contains("ann"), "{unknown:?}");
    stage.phalanx(&["down"]).expect(0);
    assert!(place(&stage, "bob").exists());
}

/// RV-05: landings at once, beside commits of the person, lose nothing and leave nothing staged.
#[test]
fn rv_05_landings_at_once_revert_nothing() {
    let stage = stage();
    let names = ["ann", "bob", "cyd"];
    for name in names {
        let spawn = ["spawn", name, "--backend", "pty", "--worktree", "--", "sleep", "300"];
        stage.phalanx(&spawn).expect(0);
    }
    let rounds = gear::sized(3, 20);
    for round in 0..rounds {
        for name in names {
            let file = format!("{name}-{round}.txt");
            commit(&stage, &format!("work/.worktrees/alpha-{name}"), &file, "done\n");
        }
        // A commit that finds the index locked is refused by git itself, and its change stays.
        let person = "for i in 1 2 3; do echo $i >>a.txt; git commit --quiet -a -m mine; done; :";
        let mut command = stage.command("sh");
        command.args(["-c", person]).current_dir(stage.at("work"));
        let person = Background::start(command);
        let merges = names.map(|name| stage.start(&["worktree", "merge", name, "--squash"]));
        merges.into_iter().for_each(|merge| drop(merge.end().expect(0)));
        person.end();
        let left = git(&stage, "work", &["status", "--porcelain"]);
        assert!(["", " M a.txt\n"].contains(&left.as_str()), "round {round}: {left}");
        let kept = git(&stage, "work", &["ls-tree", "--name-only", "HEAD"]);
        for name in names {
            assert!(kept.contains(&format!("{name}-{round}.txt")), "round {round}: {kept}");
        }
    }
    stage.phalanx(&["down", "--force"]).expect(0);
}

/// RV-01: an agent lead checks, lands what it has checked, and takes it back.
#[test]
fn rv_01_agent_lead_lands_work_by_its_tool() {
    let stage = with_work();
    let mut lead = Client::start(&stage, &["mcp", "--team", "alpha"]);
    let text = || fs::read_to_string(stage.at("work/a.txt")).expect("a file");
    let check = json!({"action": "merge", "name": "bob", "dry_run": true});
    let checked = lead.call("Worktrees", check);
    assert_eq!((&checked["commits"], text().as_str()), (&json!(1), "one\n"));
    commit(&stage, "work/.worktrees/alpha-bob", "a.txt", "late\n");
    let merge = json!({"action": "merge", "name": "bob", "squash": true, "head": checked["head"]});
    let landed = lead.call("Worktrees", merge);
    assert_eq!((&landed["kind"], &landed["later"]), (&json!("squash"), &json!(1)));
    assert_eq!(text(), "two\n");
    let undone = lead.call("Worktrees", json!({"action": "undo"}));
    assert_eq!((&undone["name"], &undone["new"]), (&json!("bob"), &landed["new"]));
    assert_eq!(text(), "one\n");
    lead.end();
    stage.phalanx(&["down", "--force"]).expect(0);
}
