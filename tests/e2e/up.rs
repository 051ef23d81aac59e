//! `up` from manifest to clean disk, in every environment that it can run in.

use serde_json::{Value, json};

use crate::harness::{Run, binary, wait_for};

/// Three workers and four tasks with dependencies.
const CHECKS: &str = r#"
[team]
name = "checks"
description = "a small run"

[[member]]
name = "ada"
[[member]]
name = "ben"
prompt = "be quick"
[[member]]
name = "cleo"

[[task]]
key = "fmt"
subject = "Check the format"
run = ["echo", "formatted"]

[[task]]
key = "lint"
subject = "Lint"
run = ["sh", "-c", "echo linted; exit 0"]
after = ["fmt"]

[[task]]
key = "docs"
subject = "Docs"
run = ["true"]
after = ["fmt"]

[[task]]
key = "test"
subject = "Run the tests"
run = ["sh", "-c", "echo tested > tested.txt"]
after = ["lint", "docs"]
"#;

/// The report without the parts that vary: times, claimants, backend.
fn comparable(report: &Value) -> Value {
    let members: Vec<Value> = report["members"]
        .as_array()
        .expect("members")
        .iter()
        .map(|m| json!([m["name"], m["profile"], m["state"], m["shutdown"], m["exit_code"]]))
        .collect();
    let tasks: Vec<Value> = report["tasks"]
        .as_array()
        .expect("tasks")
        .iter()
        .map(|t| {
            json!([t["id"], t["key"], t["subject"], t["state"], t["exit_code"], t["blocked_by"]])
        })
        .collect();
    json!({"team": report["team"], "success": report["success"], "members": members, "tasks": tasks})
}

fn expected() -> Value {
    let member = |name: &str| json!([name, "worker", "completed", "closed", 0]);
    json!({
        "team": "checks",
        "success": true,
        "members": [member("ada"), member("ben"), member("cleo")],
        "tasks": [
            ["1", "fmt", "Check the format", "completed", 0, []],
            ["2", "lint", "Lint", "completed", 0, []],
            ["3", "docs", "Docs", "completed", 0, []],
            ["4", "test", "Run the tests", "completed", 0, []],
        ],
    })
}

fn backend_of(report: &Value) -> &str {
    report["members"][0]["backend"].as_str().expect("backend")
}

#[test]
fn tmux_up_outside_tmux_runs_to_a_clean_end() {
    let stage = super::stage();
    let manifest = stage.file("checks.toml", CHECKS);
    let run = stage.phalanx(&["--json", "up", &manifest]).expect(0);
    let report = run.json();
    assert_eq!(comparable(&report), expected());
    assert_eq!(backend_of(&report), "tmux");
    assert!(
        run.stderr.lines().any(|l| l.contains("phalanx attach")),
        "how to watch is said: {}",
        run.stderr
    );
    assert!(stage.at("work/tested.txt").exists());
    stage.assert_clean();
}

#[test]
fn up_with_tmux_removed_from_path_runs_on_own_ptys() {
    let stage = super::stage_without_tmux();
    let manifest = stage.file("checks.toml", CHECKS);
    let run = stage.phalanx(&["--json", "up", &manifest]).expect(0);
    let report = run.json();
    assert_eq!(comparable(&report), expected());
    assert_eq!(backend_of(&report), "pty");
    assert!(run.stderr.contains("tmux"), "the choice and its reason are said: {}", run.stderr);
    stage.assert_clean();
}

#[test]
fn tmux_up_inside_tmux_uses_its_own_window_of_the_session() {
    let stage = super::stage();
    let manifest = stage.file("checks.toml", CHECKS);
    let (out, err, code) = (stage.at("out"), stage.at("err"), stage.at("code"));
    let line = format!(
        "'{}' --json up '{manifest}' >'{}' 2>'{}'; echo $? >'{}.new'; mv '{}.new' '{}'; exec sleep 300",
        binary(),
        out.display(),
        err.display(),
        code.display(),
        code.display(),
        code.display()
    );
    stage
        .tmux(&["new-session", "-d", "-s", "mine", "-x", "200", "-y", "50", "sh", "-c", &line])
        .expect("session");
    let ended = wait_for("up to end inside tmux", || std::fs::read_to_string(&code).ok());
    let text = |path: &std::path::Path| std::fs::read_to_string(path).expect("output");
    let run =
        Run { code: ended.trim().parse().expect("code"), stdout: text(&out), stderr: text(&err) };
    let run = run.expect(0);
    assert_eq!(comparable(&run.json()), expected());
    assert_eq!(backend_of(&run.json()), "tmux");
    let sessions =
        stage.tmux(&["list-sessions", "-F", "#{session_name} #{session_windows}"]).expect("server");
    assert_eq!(sessions.trim(), "mine 1", "no session of ours, and our window is gone");
    assert!(run.stderr.contains("window"), "which window is said: {}", run.stderr);
}

#[test]
fn up_exits_1_and_names_the_failed_task() {
    let stage = super::stage_without_tmux();
    let manifest = stage.file(
        "failing.toml",
        r#"
[team]
name = "failing"
[[member]]
name = "ada"
[[task]]
key = "good"
subject = "Goes well"
run = ["true"]
[[task]]
key = "bad"
subject = "Breaks"
run = ["sh", "-c", "echo it broke here; exit 7"]
[[task]]
key = "later"
subject = "Never runs"
run = ["true"]
after = ["bad"]
"#,
    );
    let run = stage.phalanx(&["up", &manifest]).expect(1);
    let said = format!("{}{}", run.stdout, run.stderr);
    for words in ["Breaks", "it broke here", "Never runs", "7"] {
        assert!(said.contains(words), "{words:?} is missing in:\n{said}");
    }
    stage.assert_clean();
    let report = stage.phalanx(&["--json", "up", &manifest]).expect(1).json();
    assert_eq!(report["success"], json!(false));
    let states: Vec<&str> = report["tasks"]
        .as_array()
        .expect("tasks")
        .iter()
        .filter_map(|t| t["state"].as_str())
        .collect();
    assert_eq!(states, ["completed", "failed", "blocked"]);
    assert_eq!(report["tasks"][2]["blocked_by"], json!(["2"]));
    stage.assert_clean();
}

#[test]
fn up_keep_leaves_the_finished_team_on_disk() {
    let stage = super::stage_without_tmux();
    let manifest = stage.file("checks.toml", CHECKS);
    stage.phalanx(&["up", &manifest, "--keep"]).expect(0);
    let tasks =
        stage.phalanx(&["--json", "task", "list", "--all", "-t", "checks"]).expect(0).json();
    assert_eq!(tasks.as_array().map(Vec::len), Some(4));
    assert_eq!(tasks[0]["status"], json!("completed"));
    assert_eq!(tasks[0]["metadata"]["phalanx"]["outcome"]["exit_code"], json!(0));
    stage.phalanx(&["up", &manifest]).expect(4);
    stage.phalanx(&["team", "delete", "-t", "checks"]).expect(0);
    stage.assert_clean();
}

#[test]
fn detached_up_finishes_and_cleans_up() {
    let stage = super::stage_without_tmux();
    let manifest = stage.file("checks.toml", CHECKS);
    stage.phalanx(&["up", &manifest, "--detach"]).expect(0);
    let left = |part: &str| std::fs::read_dir(stage.root().join(part)).expect("dir").count();
    wait_for("the detached team to be gone", || (left("teams") + left("tasks") == 0).then_some(()));
    assert!(stage.at("work/tested.txt").exists());
    stage.assert_clean();
}

#[test]
fn up_rolls_back_the_team_if_a_member_does_not_start() {
    let stage = super::stage_without_tmux();
    let manifest = stage.file(
        "broken.toml",
        r#"
[team]
name = "broken"
[[member]]
name = "ada"
[[member]]
name = "bob"
run = ["/no/such/program", "x"]
"#,
    );
    let run = stage.phalanx(&["up", &manifest]);
    assert_ne!(run.code, 0);
    assert!(run.stderr.contains("bob") && run.stderr.contains("/no/such/program"), "{run:?}");
    stage.assert_clean();
}

/// The first command of the README: it runs real checks of this repository on three workers,
/// whatever they find.
#[test]
fn tmux_demo_inspects_this_repository_and_exits_0() {
    let stage = super::stage();
    let root = env!("CARGO_MANIFEST_DIR");
    let mut up = stage.command(binary());
    // cargo needs the toolchain and crates in the real home directory.
    for (name, folder) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
        let home = || std::env::var_os("HOME").map(|home| std::path::Path::new(&home).join(folder));
        up.envs(std::env::var_os(name).or(home().map(Into::into)).map(|value| (name, value)));
    }
    let up = up
        .args(["up", "fixtures/teams/inspect.toml"])
        .current_dir(root)
        .output()
        .expect("phalanx runs");
    let run = Run::from(up).expect(0);
    assert!(run.stdout.starts_with("inspect  10 completed  in "), "{}", run.stdout);
    let (_, table) = run.stdout.split_once("Summary of all checks\n").expect("its output");
    let checks: Vec<&str> =
        table.lines().filter_map(|line| line.split_whitespace().next()).collect();
    for check in
        ["languages", "files", "links", "markers", "licences", "duplicates", "history", "objects"]
    {
        assert!(checks.contains(&check), "{check}: {}", run.stdout);
    }
    assert!(table.contains("none broken"), "this repository's own links are right: {table}");
    assert!(run.stderr.contains("  began #1 Age of the lines"), "{}", run.stderr);
    stage.assert_clean();
}

#[test]
fn demo_runs_without_git_and_cargo_metadata() {
    let stage = super::stage_without_tmux();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    for program in [
        "awk", "xargs", "find", "grep", "sort", "sed", "head", "tail", "cut", "tr", "wc", "mkdir",
        "mv", "basename", "date",
    ] {
        let found = crate::harness::which(program, &std::env::var("PATH").expect("PATH"))
            .expect("installed");
        std::os::unix::fs::symlink(found, stage.at("bin").join(program)).expect("symlink");
    }
    // A directory without git and with two broken links.
    let teams = stage.at("work/fixtures/teams/inspect");
    std::fs::create_dir_all(&teams).expect("dir");
    for entry in std::fs::read_dir(root.join("fixtures/teams/inspect")).expect("scripts").flatten()
    {
        std::fs::copy(entry.path(), teams.join(entry.file_name())).expect("copied");
    }
    std::fs::copy(root.join("Cargo.lock"), stage.at("work/Cargo.lock")).expect("copied");
    stage.file("README.md", "# Here\n[there](docs/gone.md) [here](#here) [nowhere](#nowhere)\n");
    let manifest =
        std::fs::read_to_string(root.join("fixtures/teams/inspect.toml")).expect("manifest");
    let run = stage.phalanx(&["up", &stage.file("inspect.toml", &manifest)]).expect(0);
    for part in [
        "not a git checkout",
        "not known: cargo",
        "3 links on 1 pages, 2 broken, first README.md:2:",
    ] {
        assert!(run.stdout.contains(part), "{part}: {}", run.stdout);
    }
    stage.assert_clean();
}

#[test]
fn report_shows_states_reasons_and_the_last_lines_of_failed_members() {
    let stage = super::stage_without_tmux();
    let member = |name: &str, script: &str| {
        format!("[[member]]\nname = \"{name}\"\nrun = [\"sh\", \"-c\", \"{script}\"]\n")
    };
    let text = format!(
        "[team]\nname = \"demo\"\nfinish = \"manual\"\nbackend = \"pty\"\n{}{}{}",
        member("bad", "echo begun; read line; echo boom >&2; exit 7"),
        member("good", "read line"),
        member("lasting", "exec sleep 300"),
    );
    let up = stage.start(&["up", &stage.file("demo.toml", &text)]);
    for name in ["bad", "good", "lasting"] {
        stage.wait_event("demo", "member_ready", name);
    }
    for name in ["bad", "good"] {
        stage.phalanx(&["keys", name, "Enter"]).expect(0);
        stage.wait_event("demo", "member_left", name);
    }
    up.signal("INT");
    let shown = up.end().expect(130).stdout;
    let row = shown.lines().find(|line| line.starts_with("bad "));
    let row = row.unwrap_or_else(|| panic!("no row: {shown}"));
    assert!(row.contains(" failed ") && row.ends_with("exit code 7: boom"), "{shown}");
    let others = "\n\nleft on their own: good; ended as agreed: lasting\n\n";
    assert!(shown.contains(others), "{shown}");
    assert!(shown.contains("\n\nbad failed; its last lines:\n  begun\n"), "{shown}");
    assert!(shown.contains("\n  boom\n"), "{shown}");
    stage.assert_clean();
}
