//! Templates: the list, templates of the user, and runs of `up TEMPLATE` with a made-up agent.

use std::fs;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::fake;
use crate::harness::Stage;

/// A message that a made-up agent got.
#[derive(Debug, Deserialize)]
struct Mail {
    member: String,
    dir: String,
    text: String,
}

/// Installs the profile `fake`, whose agent completes every task that it can start, and returns the
/// function that reads the mail of all members.
fn install_agent(stage: &Stage) -> impl Fn() -> Vec<Mail> + use<> {
    let log = stage.at("mail");
    fake::profile(stage, "fake", &["approve", "--works", &log.to_string_lossy()]);
    move || {
        let text = fs::read_to_string(&log).unwrap_or_default();
        let entries = text.lines().map(|line| serde_json::from_str(line).expect("mail"));
        entries.collect()
    }
}

/// Keys of the tasks that were completed.
fn completed(report: &Value) -> Vec<&str> {
    let tasks = report["tasks"].as_array().expect("tasks").iter();
    let done = tasks.filter(|task| task["state"] == "completed");
    done.filter_map(|task| task["key"].as_str()).collect()
}

#[test]
fn up_runs_a_template_on_a_task_to_its_end() {
    let mut stage = Stage::without_tmux();
    let mail = install_agent(&stage);
    stage.shadow("cargo", "#!/bin/sh\necho \"all $1 passed\"\n");
    stage.file("Cargo.toml", "");
    // A directory of this name does not hide the template.
    fs::create_dir(stage.at("work/review")).expect("dir");
    let task = "Review \"src\" for {agent}";
    let args = ["--json", "up", "review", "--task", task, "--agent", "fake", "--keep"];
    let run = stage.phalanx(&args);
    let report = run.expect(0).json();
    assert_eq!((&report["team"], &report["success"]), (&json!("work-review"), &json!(true)));
    let mut keys = completed(&report);
    keys.sort_unstable();
    assert_eq!(keys, ["completeness", "correctness", "report", "tests"], "{report}");
    let mail = mail();
    for member in ["ann", "ben"] {
        let has = |mail: &Mail| {
            mail.member == member && mail.text.contains(r#"Review \"src\" for {agent}"#)
        };
        assert!(mail.iter().any(has), "{member} got the task: {mail:?}");
    }
    let id = |key: &str| {
        let mut tasks = report["tasks"].as_array().expect("tasks").iter();
        tasks.find(|task| task["key"] == key).map(|task| task["id"].clone())
    };
    let frees_the_report = |event: &Value| {
        event["event"] == "task_completed" && event["detail"]["freed"] == json!([id("report")])
    };
    let journal = stage.journal("work-review");
    let by =
        journal.iter().find(|event| frees_the_report(event)).map(|event| event["task"].clone());
    assert!(
        by.is_some() && [id("correctness"), id("completeness")].contains(&by),
        "the report waited for both reviews: {journal:?}"
    );
    stage.phalanx(&["team", "delete", "-t", "work-review"]).expect(0);
    stage.assert_clean();
}

/// The worktrees are removed at the end, because nothing was committed in them.
#[test]
fn up_gives_builders_of_a_template_worktrees_of_their_own() {
    let stage = Stage::new();
    let mail = install_agent(&stage);
    let git = |args: &[&str]| {
        let output = stage.command("git").args(args).output().expect("git runs");
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    git(&["init", "--quiet", "--initial-branch", "main"]);
    let me = ["-c", "user.name=me", "-c", "user.email=me@localhost"];
    git(&[&me[..], &["commit", "--quiet", "--allow-empty", "-m", "first"]].concat());
    let args =
        ["--json", "up", "feature", "--task", "Build it", "--agent", "fake", "--backend", "pty"];
    let report = stage.phalanx(&args).expect(0).json();
    let mut keys = completed(&report);
    keys.sort_unstable();
    assert_eq!(keys, ["build-1", "build-2", "plan", "report"], "no test command: {report}");
    let work = stage.at("work").canonicalize().expect("a path");
    let mail = mail();
    for (member, dir) in [
        ("archie", work.clone()),
        ("ben", work.join(".worktrees/work-feature-ben")),
        ("dora", work.join(".worktrees/work-feature-dora")),
    ] {
        let mut of_member = mail.iter().filter(|entry| entry.member == member).peekable();
        assert!(of_member.peek().is_some(), "{member} got mail: {mail:?}");
        assert!(of_member.all(|entry| entry.dir == dir.to_string_lossy()), "{dir:?}: {mail:?}");
    }
    assert_eq!(git(&["branch", "--format", "%(refname:short)"]), "main\n");
    // TK-09: none of the templates has two members that edit the files of one checkout.
    for template in ["bugs", "docs", "feature", "research", "review"] {
        let args = ["up", template, "--task", "Do it", "--agent", "fake", "--backend", "pty"];
        let run = stage.phalanx(&args).expect(0);
        assert!(!run.stderr.contains("one checkout"), "{template}: {}", run.stderr);
    }
    stage.assert_clean();
}

#[test]
fn up_names_what_is_missing_for_a_template() {
    let stage = Stage::without_tmux();
    fake::install(&stage);
    let refused = |args: &[&str], said: &[&str]| {
        let run = stage.phalanx(&[&["--json", "up"], args].concat()).expect(2);
        assert!(said.iter().all(|part| run.stderr.contains(part)), "{said:?}: {run:?}");
    };
    refused(&["review"], &["`review` needs a task", "phalanx up review --task"]);
    refused(&["revew", "--task", "x"], &["no file and no template `revew`", "`review`"]);
    refused(&["review", "--task", "x"], &["no agent program is on PATH", "--agent"]);
    refused(&["review", "--task", "x", "--agent", "fake"], &["`fake` is not an agent"]);
    let file = stage.file("team.toml", "[team]\nname = \"x\"\n");
    refused(&[&file, "--task", "x"], &["is a file", "phalanx template list"]);
    stage.assert_clean();
}

#[test]
fn own_templates_are_listed_shown_and_checked() {
    let stage = Stage::without_tmux();
    let dir = stage.root().join("phalanx/templates");
    fs::create_dir_all(&dir).expect("dir");
    let own = "[template]\nabout = \"one worker\"\n[team]\nname = \"{team}\"\n[[member]]\nname = \"ann\"\n\
               [[task]]\nkey = \"say\"\nsubject = \"Say it\"\nrun = [\"echo\", \"{task}\"]\n";
    fs::write(dir.join("say.toml"), own).expect("template");
    fs::write(dir.join("docs.toml"), own.replace("about", "abuot")).expect("template");
    let listed = stage.phalanx(&["--json", "template", "list"]).expect(0).json();
    let names: Vec<&str> =
        listed.as_array().expect("a list").iter().filter_map(|t| t["name"].as_str()).collect();
    assert_eq!(names, ["review", "feature", "bugs", "docs", "research", "say"]);
    assert_eq!(
        (&listed[0]["source"], &listed[5]["about"]),
        (&json!("built in"), &json!("one worker"))
    );
    let problem = listed[3]["problem"].as_str().expect("a problem");
    assert!(problem.contains("docs.toml:2:1: unknown key `abuot`"), "{problem}");
    assert_eq!(stage.phalanx(&["template", "show", "say"]).expect(0).stdout, own);
    let fault = stage.phalanx(&["up", "docs", "--task", "x"]).expect(2);
    assert!(fault.stderr.contains("docs.toml:2:1"), "{fault:?}");
    let unknown = stage.phalanx(&["template", "show", "sya"]).expect(2);
    assert!(unknown.stderr.contains("did you mean `say`?"), "{unknown:?}");
    let chosen = stage.phalanx(&["up", "say", "--task", "x", "--agent", "claude"]).expect(2);
    assert!(chosen.stderr.contains("no member whose agent can be chosen"), "{chosen:?}");
    // A template without agents needs none.
    let report = stage.phalanx(&["--json", "up", "say", "--task", "a {task} b"]).expect(0).json();
    assert_eq!(report["success"], json!(true), "{report}");
    stage.assert_clean();
}
