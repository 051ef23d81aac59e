//! `init`: its findings in five kinds of repository, its manifests, and its questions on a
//! terminal.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::{Run, Stage, binary, wait_for};

/// Runs phalanx in this directory.
fn phalanx_in(stage: &Stage, dir: &Path, args: &[&str]) -> Run {
    let mut command = stage.command(binary());
    Run::from(command.current_dir(dir).args(args).output().expect("phalanx runs"))
}

/// Creates a repository with these files.
fn repository(stage: &Stage, name: &str, files: &[(&str, &str)]) -> PathBuf {
    let dir = stage.at("work").join(name);
    fs::create_dir_all(&dir).expect("dir");
    for (file, text) in files {
        let path = dir.join(file);
        fs::create_dir_all(path.parent().expect("a directory")).expect("dir");
        fs::write(path, text).expect("file");
    }
    dir
}

/// An agent with a version and a login, which no test starts.
fn install_robot(stage: &mut Stage) {
    stage.shadow("robot", "#!/bin/sh\npwd >robot-was-here 2>/dev/null\necho \"robot 1.2.3\"\n");
    stage.profile(
        "robot",
        "about = \"a made-up agent\"\n[launch]\nargv = [[\"robot\"]]\n[login]\nenv = [\"ROBOT_KEY\"]\n\
         [[rule]]\nname = \"idle\"\nstate = \"idle\"\nmatch = [\"^>\"]\n",
    );
    stage.set_env("ROBOT_KEY", "made-up");
}

fn robot(made: &Value) -> Option<Value> {
    made["agents"].as_array()?.iter().find(|agent| agent["profile"] == "robot").cloned()
}

const PACKAGE: &str = r#"{"scripts": {"test": "vitest", "lint": "eslint ."}}"#;

type Kind<'a> = (&'a str, &'a [(&'a str, &'a str)], Value, &'a [&'a str]);

/// The programs are scripts that log their command lines, so that the test knows what was run.
#[test]
fn init_writes_a_manifest_that_runs_the_checks_of_each_kind_of_repository() {
    let mut stage = Stage::without_tmux();
    install_robot(&mut stage);
    for program in ["cargo", "npm", "python3", "go"] {
        let script = format!("#!/bin/sh\necho \"{program} $* $CI\" >>log\n");
        stage.shadow(program, &script);
    }
    let kinds: [Kind; 4] = [
        (
            "rust",
            &[("Cargo.toml", "[package]\nname = \"x\"\n"), ("rustfmt.toml", "")],
            json!(["Rust"]),
            &["cargo fmt --check", "cargo test"],
        ),
        (
            "node",
            &[("package.json", PACKAGE), ("tsconfig.json", "{}")],
            json!(["TypeScript"]),
            &["npm run lint", "npm run test true"],
        ),
        (
            "python",
            &[("pyproject.toml", "[tool.pytest.ini_options]\n")],
            json!(["Python"]),
            &["python3 -m pytest"],
        ),
        ("go", &[("go.mod", "module x\n")], json!(["Go"]), &["go vet ./...", "go test ./..."]),
    ];
    for (name, files, languages, commands) in kinds {
        let dir = repository(&stage, name, files);
        let made = phalanx_in(&stage, &dir, &["--json", "init"]).expect(0).json();
        assert_eq!((&made["languages"], &made["template"]), (&languages, &json!("checks")));
        assert_eq!(made["missing_programs"], json!([]), "{name}");
        assert_eq!(made["worktrees"], json!(false), "it is no git repository");
        let report = phalanx_in(&stage, &dir, &["--json", "up", "team.toml"]).expect(0).json();
        assert_eq!(report["success"], json!(true), "{name}: {report}");
        let log = fs::read_to_string(dir.join("log")).expect("a log");
        let mut ran: Vec<&str> = log.lines().map(str::trim).collect();
        let mut expected = commands.to_vec();
        ran.sort_unstable();
        expected.sort_unstable();
        assert_eq!(ran, expected, "{name}");
        assert!(
            !dir.join("robot-was-here").exists(),
            "versions are not asked for in the repository"
        );
    }
    stage.assert_clean();
}

#[test]
fn init_names_the_programs_of_checks_that_are_missing() {
    let mut stage = Stage::without_tmux();
    let bin = stage.at("bin").to_string_lossy().into_owned();
    stage.set_env("PATH", &bin);
    let dir = repository(&stage, "go", &[("go.mod", "module x\n")]);
    let made = phalanx_in(&stage, &dir, &["init"]).expect(0);
    assert!(made.stderr.contains("go vet ./...  (`go` is not on PATH)\n"), "{}", made.stderr);
    let dir = repository(&stage, "node", &[("package.json", PACKAGE)]);
    let made = phalanx_in(&stage, &dir, &["--json", "init"]).expect(0).json();
    assert_eq!(made["missing_programs"], json!(["npm"]));
    stage.assert_clean();
}

#[test]
fn init_reports_what_it_found_and_writes_examples_where_nothing_is_known() {
    let mut stage = Stage::without_tmux();
    install_robot(&mut stage);
    let dir = repository(&stage, "My Notes!", &[("notes.txt", "cargo test")]);
    let made = phalanx_in(&stage, &dir, &["--json", "init"]).expect(0).json();
    assert_eq!(made["team_name"], json!("my-notes"));
    assert_eq!((&made["languages"], &made["checks"]), (&json!([]), &json!([])));
    let agent = robot(&made).expect("the agent");
    assert_eq!((&agent["version"], &agent["login"]), (&json!("1.2.3"), &json!("logged_in")));
    let written = fs::read_to_string(dir.join("team.toml")).expect("a manifest");
    assert_eq!(written.matches("\n[[task]]\n").count(), 3, "{written}");
    let shown = phalanx_in(&stage, &dir, &["init", "other.toml"]).expect(0);
    assert!(shown.stderr.contains("robot  1.2.3  logged in"), "{shown:?}");
    assert_eq!(shown.stdout, "created other.toml; run it with `phalanx up other.toml`\n");
    let quiet = phalanx_in(&stage, &dir, &["-q", "init", "third.toml"]).expect(0);
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("", ""));
}

#[test]
fn init_fills_a_template_with_flags_and_refuses_what_does_not_fit() {
    let mut stage = Stage::without_tmux();
    install_robot(&mut stage);
    let dir = repository(&stage, "site", &[("go.mod", "module x\n")]);
    let init = |more: &[&str]| phalanx_in(&stage, &dir, &[&["--json", "init"], more].concat());
    let task = "Say \"hi\" to {agent}\nand '''end'''";
    let made =
        init(&["--template", "feature", "--agent", "robot", "--task", task]).expect(0).json();
    assert_eq!((&made["team_name"], &made["task"]), (&json!("site-feature"), &json!(task)));
    let written = fs::read_to_string(dir.join("team.toml")).expect("a manifest");
    assert_eq!(written.matches("profile = \"robot\"").count(), 5, "{written}");
    assert!(written.contains("run = [\"go\", \"test\", \"./...\"]"), "{written}");
    assert!(!written.contains("worktree = true"), "it is no git repository: {written}");

    let refused = |more: &[&str], said: &str| {
        let run = init(&[&["x.toml"], more].concat()).expect(2);
        assert!(run.stderr.contains(said), "{run:?}");
        assert!(!dir.join("x.toml").exists());
    };
    refused(&["--template", "feature", "--agent", "robot"], "`feature` needs a task");
    refused(&["--template", "fature"], "did you mean `feature`?");
    refused(&["--template", "review", "--agent", "robto"], "did you mean `robot`?");
    refused(&["--template", "review", "--agent", "worker"], "`worker` is not an agent");
    refused(&["--template", "checks", "--agent", "robot"], "workers without agents");
    refused(&["--task", "x"], "--template");
    refused(&["--template", "review", "--agent", "robot", "--task", " "], "the task is empty");
}

/// A shell in a pane of the stage's tmux server.
struct Terminal<'a> {
    stage: &'a Stage,
}

impl<'a> Terminal<'a> {
    fn open(stage: &'a Stage, dir: &Path) -> Terminal<'a> {
        let dir = dir.to_string_lossy();
        let session = ["new-session", "-d", "-s", "desk", "-x", "100", "-y", "40", "-c", &dir];
        let shell = ["env", "PS1=$ ", "sh"];
        stage.tmux(&[&["-f", "/dev/null"], &session[..], &shell].concat()).expect("a session");
        let terminal = Terminal { stage };
        terminal.wait("$");
        terminal
    }

    /// Types a line, without Enter.
    fn type_text(&self, text: &str) {
        self.stage.tmux(&["send-keys", "-t", "=desk:", "-l", text]).expect("typed");
    }

    fn press(&self, key: &str) {
        self.stage.tmux(&["send-keys", "-t", "=desk:", key]).expect("pressed");
    }

    fn enter(&self, text: &str) {
        self.type_text(text);
        self.press("Enter");
    }

    fn wait(&self, text: &str) -> String {
        let screen = || self.stage.tmux(&["capture-pane", "-p", "-t", "=desk:"]).expect("a screen");
        wait_for(&format!("{text}; the screen: {}", screen()), || {
            Some(screen()).filter(|screen| screen.contains(text))
        })
    }

    fn clear(&self) {
        self.enter("clear");
        let screen = || self.stage.tmux(&["capture-pane", "-p", "-t", "=desk:"]).expect("a screen");
        wait_for("a clear screen", || (screen().trim() == "$").then_some(()));
    }
}

#[test]
fn tmux_init_asks_three_questions_and_ctrl_c_writes_nothing() {
    let mut stage = Stage::new();
    install_robot(&mut stage);
    stage.shadow("phalanx", &format!("#!/bin/sh\nexec '{}' \"$@\"\n", binary()));
    let dir = repository(&stage, "site", &[("go.mod", "module x\n")]);
    let terminal = Terminal::open(&stage, &dir);

    terminal.enter("phalanx init; echo end=$?");
    let screen = terminal.wait("Number or name [checks]:");
    for part in ["Go", "go vet ./...", "robot", "1.2.3", "logged in", "2  review "] {
        assert!(screen.contains(part), "{part}: {screen}");
    }
    terminal.press("C-c");
    terminal.wait("end=130");
    assert!(!dir.join("team.toml").exists());
    terminal.clear();

    terminal.enter("phalanx init; echo end=$?");
    terminal.wait("Number or name [checks]:");
    terminal.enter("revew");
    terminal.wait("did you mean `review`?");
    terminal.enter("2");
    terminal.wait("Profiles");
    terminal.enter("robto");
    terminal.wait("did you mean `robot`?");
    terminal.enter("robot");
    terminal.wait("Task [Review the last commit.]:");
    terminal.press("C-c");
    terminal.wait("end=130");
    assert!(!dir.join("team.toml").exists(), "the last question was interrupted");
    terminal.clear();

    terminal.enter("phalanx init; echo end=$?");
    terminal.wait("Number or name [checks]:");
    terminal.enter("review");
    terminal.wait("Profiles");
    terminal.enter("robot");
    terminal.wait("Task [");
    terminal.enter("Say \"hi\"");
    terminal.wait("end=0");
    let written = fs::read_to_string(dir.join("team.toml")).expect("a manifest");
    assert!(written.contains("Say \"hi\"") && written.contains("profile = \"robot\""), "{written}");
    terminal.clear();

    terminal.enter("phalanx init checks.toml; echo end=$?");
    terminal.wait("Number or name [checks]:");
    terminal.press("Enter");
    terminal.wait("created checks.toml");
    terminal.wait("end=0");
    let written = fs::read_to_string(dir.join("checks.toml")).expect("a manifest");
    assert!(written.contains("run = [\"go\", \"vet\", \"./...\"]"), "{written}");
}

/// Without an agent on PATH every question has a way out, and none repeats without a reason.
#[test]
fn tmux_init_without_an_agent_leaves_with_q() {
    let mut stage = Stage::new();
    stage.shadow("phalanx", &format!("#!/bin/sh\nPATH= exec '{}' \"$@\"\n", binary()));
    let dir = repository(&stage, "site", &[("go.mod", "module x\n")]);
    let terminal = Terminal::open(&stage, &dir);
    for answers in [&["q"][..], &["2", "q"], &["2", "codex", "q"]] {
        terminal.enter("phalanx init; echo end=$?");
        terminal.wait("Number or name [checks]:");
        for (at, answer) in answers.iter().enumerate() {
            if at == 1 {
                let screen = terminal.wait("Profiles:");
                assert!(screen.contains("No agent program is on PATH"), "{screen}");
                terminal.press("Enter");
                terminal.wait("name a profile, or leave with q");
            }
            terminal.enter(answer);
        }
        let screen = terminal.wait("end=130");
        assert!(screen.contains("nothing was written"), "{screen}");
        assert!(!dir.join("team.toml").exists());
        terminal.clear();
    }
}
