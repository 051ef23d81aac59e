//! Conventions that every verb follows: `--quiet`, `--json`, exit codes, and errors that name the
//! exhausted limit.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::harness::{Run, Stage, binary, wait_for};

#[test]
fn every_verb_exits_3_without_a_team() {
    let stage = Stage::without_tmux();
    let verbs: [&[&str]; 35] = [
        &["status"],
        &["down"],
        &["lead"],
        &["adopt"],
        &["resume"],
        &["restart", "ann"],
        &["team", "show"],
        &["team", "delete"],
        &["spawn", "ann", "--dry-run"],
        &["send", "ann", "hello"],
        &["broadcast", "hello"],
        &["handoff", "send", "ann", "--type", "note", "--body", "{}"],
        &["handoff", "list"],
        &["inbox"],
        &["task", "list"],
        &["task", "create", "x"],
        &["task", "graph"],
        &["task", "search", "x"],
        &["task", "import", "x.md"],
        &["task", "export"],
        &["requests"],
        &["mode", "ann", "plan"],
        &["rules"],
        &["shutdown", "ann"],
        &["worktree", "list"],
        &["answer", "p-1@ann", "--approve"],
        &["explain", "ann"],
        &["focus", "ann"],
        &["popup"],
        &["wait", "--until", "idle"],
        &["events"],
        &["peek", "ann"],
        &["rm", "no-such-team"],
        &["workspace", "list"],
        &["task", "scopes"],
    ];
    for verb in verbs {
        let run = stage.phalanx(&[&["--json"], verb].concat()).expect(3);
        assert_eq!(run.json()["error"]["kind"], json!("not_found"), "{verb:?}");
        assert!(run.stderr.contains("phalanx team create NAME"), "{verb:?} {run:?}");
    }
}

#[test]
fn quiet_omits_confirmations_and_keeps_data() {
    let stage = Stage::without_tmux();
    let silent = |args: &[&str]| {
        let run = stage.phalanx(&[&["-q"], args].concat()).expect(0);
        assert!(run.stdout.is_empty() && run.stderr.is_empty(), "{args:?} {run:?}");
    };
    // What creates something prints its name or id.
    let names = |args: &[&str], name: &str| {
        let run = stage.phalanx(&[&["-q"], args].concat()).expect(0);
        assert_eq!((run.stdout, run.stderr.as_str()), (format!("{name}\n"), ""), "{args:?}");
    };
    names(&["team", "create", "demo"], "demo");
    names(&["spawn", "ann"], "ann");
    names(&["spawn", "ben"], "ben");
    silent(&["wait", "--until", "idle"]);
    silent(&["send", "ann", "hello"]);
    silent(&["broadcast", "hello"]);
    silent(&["handoff", "send", "ann", "--type", "note", "--body", "{}"]);
    silent(&["handoff", "list"]);
    names(&["task", "create", "Say hello", "--", "true"], "1");
    silent(&["wait", "--until", "task=1"]);
    silent(&["task", "delete", "1"]);
    silent(&["task", "list"]);
    silent(&["task", "graph"]);
    silent(&["task", "search", "x"]);
    silent(&["task", "import", &stage.file("todo.md", "- [ ] Do it\n")]);
    silent(&["rules", "deny", "Bash(git push:*)"]);
    silent(&["mode", "--all", "plan"]);
    silent(&["restart", "ann"]);
    silent(&["shutdown", "ben"]);
    silent(&["resume", "ben"]);
    assert!(stage.phalanx(&["-q", "status"]).expect(0).stdout.contains("ann"));
    assert!(stage.phalanx(&["-q", "ls"]).expect(0).stdout.contains("demo"));
    assert!(stage.phalanx(&["-q", "explain", "ann"]).expect(0).stdout.contains("ann"));
    assert!(
        stage.phalanx(&["-q", "--json", "send", "ann", "hi"]).expect(0).json()["success"]
            == json!(true)
    );
    assert!(stage.phalanx(&["-q", "rm", "demo"]).expect(4).stderr.contains("error:"));
    silent(&["down"]);
    let manifest = "[team]\nname = \"t\"\n[[member]]\nname = \"x\"\n[[task]]\nkey = \"a\"\nsubject = \"a\"\nrun = ";
    silent(&["up", &stage.file("good.toml", &format!("{manifest}[\"true\"]\n"))]);
    let failed =
        stage.phalanx(&["-q", "up", &stage.file("bad.toml", &format!("{manifest}[\"false\"]\n"))]);
    assert!(failed.expect(1).stdout.contains("failed"));
    stage.assert_clean();
}

#[test]
fn json_output_is_valid_for_every_verb() {
    let stage = Stage::without_tmux();
    let given = |args: &[&str]| stage.phalanx(&[&["--json"], args].concat()).expect(0).json();
    given(&["team", "create", "demo"]);
    given(&["spawn", "ann"]);
    given(&["wait", "ann", "--until", "idle"]);
    let todo = stage.file("todo.md", "- [ ] Do it\n");
    let verbs: [&[&str]; 43] = [
        &[],
        &["ls"],
        &["ps"],
        &["team", "list"],
        &["team", "show"],
        &["status"],
        &["explain", "ann"],
        &["brief"],
        &["peek", "ann"],
        &["send", "ann", "hello"],
        &["broadcast", "hello"],
        &["handoff", "send", "ann", "--type", "note", "--body", "{}"],
        &["handoff", "types"],
        &["handoff", "list"],
        &["inbox"],
        &["inbox", "ann", "--peek"],
        &["task", "create", "x"],
        &["task", "list"],
        &["task", "graph"],
        &["task", "search", "x"],
        &["task", "get", "1"],
        &["task", "export"],
        &["task", "import", &todo],
        &["task", "update", "1", "--subject", "y"],
        &["task", "delete", "1", "--force"],
        &["requests"],
        &["rules"],
        &["worktree", "list"],
        &["profile", "list"],
        &["profile", "show", "worker"],
        &["template", "list"],
        &["template", "show", "review"],
        &["manifest", "schema"],
        &["resume"],
        &["version"],
        &["completions", "zsh"],
        &["man", "team", "create"],
        &["help", "--all"],
        &["docs"],
        &["docs", "manifest", "roles"],
        &["workspace", "list"],
        &["workspace", "path"],
        &["task", "scopes"],
    ];
    for verb in verbs {
        assert_ne!(given(verb), Value::Null, "{verb:?}");
    }
    let events = stage.phalanx(&["--json", "events"]).expect(0);
    assert!(
        events.stdout.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()),
        "{events:?}"
    );
    stage.phalanx(&["--json", "inbox", "--format", "text"]).expect(2);
    given(&["shutdown", "ann"]);
    assert_eq!(given(&["down"]), json!([]));
    stage.assert_clean();
}

/// SEC-10: JSON permits C1 controls and bidirectional overrides, and a terminal acts on them.
#[test]
fn sec_10_json_output_has_no_control_characters() {
    let stage = Stage::without_tmux();
    let hostile = "a\u{9b}2Jb\u{202e}c\u{7f}\u{2066}d";
    stage.phalanx(&["team", "create", "demo", "--description", hostile]).expect(0);
    stage.add_native("demo", &["ann"]);
    stage.phalanx(&["task", "create", hostile]).expect(0);
    stage.phalanx(&["send", "ann", hostile]).expect(0);
    let acts = |c: char| {
        c != '\n'
            && (c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'))
    };
    let verbs: [&[&str]; 8] = [
        &["ls"],
        &["team", "show"],
        &["status"],
        &["task", "list"],
        &["task", "get", "1"],
        &["task", "export"],
        &["inbox", "ann", "--peek"],
        &["events"],
    ];
    for verb in verbs {
        let shown = stage.phalanx(&[&["--json"], verb].concat()).stdout;
        assert!(!shown.contains(acts), "{verb:?}: {shown:?}");
        assert!(shown.contains("a\\u009b2Jb\\u202ec\\u007f\\u2066d"), "{verb:?}: {shown:?}");
    }
    let task = stage.phalanx(&["--json", "task", "get", "1"]).expect(0).json();
    assert_eq!(task["subject"], json!(hostile));
    stage.phalanx(&["team", "delete"]).expect(0);
}

#[test]
fn later_members_get_the_teams_chosen_backend() {
    let stage = Stage::new();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    let spawn = |args: &[&str]| {
        let started = stage.phalanx(&[&["--json", "spawn"], args].concat()).expect(0).json();
        started["backend"].as_str().map(str::to_owned)
    };
    assert_eq!(spawn(&["ann"]).as_deref(), Some("tmux"));
    assert_eq!(spawn(&["ben", "--backend", "pty"]).as_deref(), Some("pty"));
    assert_eq!(spawn(&["cleo"]).as_deref(), Some("tmux"));
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

#[test]
fn timeout_error_repeats_the_given_duration() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    stage.phalanx(&["spawn", "ann"]).expect(0);
    for (given, said) in [("0.3", "within 0.3 s"), ("1", "within 1 s")] {
        let run = stage.phalanx(&["wait", "ann", "--until", "gone", "--timeout", given]).expect(5);
        assert!(run.stderr.contains(said), "{run:?}");
    }
    stage.phalanx(&["down"]).expect(0);
}

/// Runs phalanx with the default config root under `home`.
fn at_home(stage: &Stage, home: &std::path::Path, args: &[&str]) -> Run {
    let mut command = stage.command(binary());
    command.env_remove("PHALANX_CONFIG_DIR").env("HOME", home).args(args);
    Run::from(command.output().expect("phalanx runs"))
}

#[test]
fn missing_home_is_not_created() {
    let stage = Stage::without_tmux();
    let home = stage.at("no-home");
    let run = at_home(&stage, &home, &["--json", "team", "create", "demo"]).expect(6);
    assert_eq!(run.json()["error"]["kind"], json!("backend"));
    assert!(run.stderr.contains("--config-dir"), "{run:?}");
    assert!(!home.exists());
}

#[test]
fn symlinked_config_root_works_for_every_verb() {
    let stage = Stage::without_tmux();
    let (home, real) = (stage.at("home"), stage.at("dotfiles"));
    fs::create_dir(&real).expect("dir");
    symlink(&real, home.join(".claude")).expect("link");
    let phalanx = |args: &[&str]| at_home(&stage, &home, args);
    phalanx(&["team", "create", "demo"]).expect(0);
    phalanx(&["spawn", "ann"]).expect(0);
    assert_eq!(phalanx(&["--json", "ps"]).expect(0).json()[0]["root"], json!(real));
    phalanx(&["send", "ann", "hello"]).expect(0);
    phalanx(&["wait", "ann", "--until", "idle"]).expect(0);
    phalanx(&["task", "create", "x", "--", "true"]).expect(0);
    phalanx(&["wait", "--until", "task=1"]).expect(0);
    phalanx(&["restart", "ann"]).expect(0);
    // Setting CLAUDE_CONFIG_DIR moves parts of the state of Claude Code, even when it names the
    // default directory.
    let native =
        phalanx(&["--json", "spawn", "cleo", "--profile", "claude", "--dry-run"]).expect(0).json();
    assert!(!native["env"].to_string().contains("CLAUDE_CONFIG_DIR"), "{native}");
    phalanx(&["doctor"]).expect(0);
    phalanx(&["down"]).expect(0);
    assert_eq!(fs::read_dir(real.join("teams")).expect("teams").count(), 0);
    // Symlinks below the root are still refused.
    let elsewhere = stage.at("elsewhere");
    fs::create_dir(&elsewhere).expect("dir");
    fs::remove_dir(real.join("tasks")).expect("empty");
    symlink(&elsewhere, real.join("tasks")).expect("link");
    assert!(phalanx(&["team", "create", "demo"]).expect(6).stderr.contains("symbolic link"));
    // A dangling root symlink is reported, and its target is not created.
    fs::remove_dir_all(&real).expect("removed");
    let dangling = phalanx(&["team", "create", "demo"]).expect(6);
    assert!(dangling.stderr.contains(".claude") && !real.exists(), "{dangling:?}");
}

#[test]
fn exhausted_open_file_limit_is_named() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    for limit in [6, 8] {
        let line = format!("ulimit -n {limit}; exec {} --json wait --until idle", binary());
        let output = stage.command("bash").args(["-c", &line]).output().expect("bash runs");
        let run = Run::from(output);
        // The number of files that the verb opens differs by system; if it fails, the error must
        // name the limit.
        let named = run.stdout.contains("no more open files") && run.code != 70;
        assert!(run.code == 0 || named, "{limit}: {run:?}");
    }
    stage.phalanx(&["team", "delete"]).expect(0);
}

#[test]
fn spawn_reports_that_its_team_was_deleted() {
    let stage = Stage::without_tmux();
    stage.profile(
        "slow",
        "about = \"never settles\"\nruns = \"native\"\nreads_mail = true\n[launch]\nargv = [[\"{command}\"]]\n\
         prompt = \"mailbox\"\n[launch.modes]\ndefault = []\n[ready]\nwhen = \"settled\"\nsettle_ms = 25000\n",
    );
    stage.phalanx(&["team", "create", "r3"]).expect(0);
    let spawn = stage.start(&["spawn", "ann", "--profile", "slow", "--", "sleep", "600"]);
    let settings = stage.root().join("teams/r3/phalanx/team.json");
    wait_for("the spawn to wait for its member alone", || {
        fs::read_to_string(&settings).ok().filter(|text| text.contains("\"chosen\""))
    });
    // Stopped, so that the spawn cannot notice the end of its member before the team is gone.
    spawn.signal("STOP");
    stage.phalanx(&["down", "--force"]).expect(0);
    spawn.signal("CONT");
    let ended = spawn.end();
    assert!(ended.code == 3 && ended.stderr.contains("team r3 is gone"), "{ended:?}");
    stage.assert_clean();
}
