//! Real Claude Code as a native member on another host, beside a worker on a third, in a team in
//! PostgreSQL. It runs on a host without a route out, against a stand-in of its API.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::gear;
use crate::harness::wait_for;
use crate::remote_stage::RemoteStage;

const KEY: &str = "sk-ant-api03-made-up-0000000000000000000000000000";

/// Runs that are tried until one does not drop what it says to the lead.
const LIVES: usize = 3;

const MANIFEST: &str = r#"
[team]
name = "pair"

[[member]]
name = "ann"
profile = "claude"
mode = "default"
host = "h1"

[[member]]
name = "bob"
host = "h2"

[[task]]
key = "count"
subject = "Count the files: please finish task 1"
owner = "ann"

[[task]]
key = "where"
subject = "Name the host"
owner = "bob"
after = ["count"]
run = ["hostname"]
"#;

#[test]
fn tmux_manifest_with_native_claude_on_one_of_two_hosts_runs_to_its_end() {
    if !gear::is_full() {
        return gear::skip("Claude Code on another host runs with --full");
    }
    let bin = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/interop/node_modules/.bin/claude");
    if !fs::exists(bin).expect("a path") {
        return gear::skip_without(
            "claude is missing: `npm ci --prefix tests/interop` installs it",
        );
    }
    let Some(mut stage) = RemoteStage::start(&["h1", "h2"]) else { return };
    let node = node();
    stage.hosts.shadow("h1", "claude", &format!("#!/bin/sh\nexec '{node}' '{bin}' \"$@\"\n"));
    let port = start_api(&stage);
    configure_claude(&mut stage, &port);

    let manifest = stage.hosts.stage.file("pair.toml", MANIFEST);
    let run = stage.hosts.stage.phalanx(&["up", &manifest, "--keep"]);
    let seen = |args: &[&str]| stage.hosts.stage.phalanx(&[&["-t", "pair"], args].concat()).stdout;
    let shown = || [&["status"][..], &["events"], &["peek", "ann"]].map(&seen).join("\n");
    assert_eq!(run.code, 0, "{}\n{}\n{}", run.stdout, run.stderr, shown());
    println!("$ phalanx up pair.toml --keep\n{}{}", run.stderr, run.stdout);
    // The reply of a member is read before its exit, which reaches the lead at the same time.
    assert!(run.stderr.contains("bob  stopped: as agreed"), "{}", run.stderr);
    println!("$ phalanx events\n{}", seen(&["events"]));
    let tasks = stage.hosts.stage.phalanx(&["-t", "pair", "task", "list", "--all", "--json"]);
    let tasks = tasks.expect(0).json();
    let states: Vec<_> = tasks.as_array().expect("tasks").iter().map(|t| &t["state"]).collect();
    assert_eq!(states, ["completed", "completed"]);

    let phalanx =
        |args: &[&str]| stage.hosts.stage.phalanx(&[&["-t", "pair"], args].concat()).expect(0);
    phalanx(&["lead", "--detach"]);
    let _shown = stage.hosts.stage.printed_if_failed("pair");
    let _log = LogIfFailed(&stage);
    spawn_cia(&stage);
    phalanx(&["send", "cia", "please report"]);
    let inbox = || seen(&["inbox", "team-lead", "--all", "--json"]);
    wait_for("the report", || inbox().contains("The report.").then_some(()));
    let request = said_to_lead(&stage, "please touch", || {
        let requests = phalanx(&["requests", "--json"]).json();
        requests[0]["request_id"].as_str().map(str::to_owned)
    });
    phalanx(&["answer", &request, "--approve"]);
    let made = stage.hosts.at("h1", "work/made.txt");
    wait_for("the file", || made.exists().then_some(()));
    // No lead runs any more. The questions are read from its mailbox, the errors on its host.
    let needs = |what: &str| {
        let status = phalanx(&["status", "--json"]).json();
        (status["members"][0]["needs"] == what).then_some(())
    };
    said_to_lead(&stage, "please ask me", || needs("question"));
    phalanx(&["answer", "cia", "--answer", "2"]);
    let heard = || fs::read_to_string(stage.hosts.at("h1", "api.log")).unwrap_or_default();
    let answer = r#"Which colour?\\\"=\\\"blue"#;
    wait_for("the answer", || heard().contains(answer).then_some(()));
    said_to_lead(&stage, "please fail with 403", || needs("login"));
    let ended = phalanx(&["shutdown", "cia", "--json"]);
    assert!(ended.stdout.contains("\"outcome\":\"closed\""), "{}", ended.stdout);
    assert_eq!(inbox().matches("The report.").count(), 1, "{}", inbox());
    phalanx(&["down", "--force"]);
}

fn spawn_cia(stage: &RemoteStage) {
    let words = ["-t", "pair", "spawn", "cia", "--profile", "claude", "--mode", "default"];
    stage.hosts.stage.phalanx(&[&words[..], &["--host", "h1"]].concat()).expect(0);
}

/// Sends `cia` the words that have it say something to the lead, and returns what `seen` makes of it.
/// Where Claude Code has logged that it dropped this, another run of it is asked.
fn said_to_lead<T>(stage: &RemoteStage, words: &str, seen: impl Fn() -> Option<T>) -> T {
    let phalanx =
        |args: &[&str]| stage.hosts.stage.phalanx(&[&["-t", "pair"], args].concat()).expect(0);
    let dropped = || log_of_claude(stage).lines().filter(|line| is_drop(line)).count();
    for life in 1..=LIVES {
        let before = dropped();
        phalanx(&["send", "cia", words]);
        let said =
            wait_for(words, || seen().map(Some).or_else(|| (dropped() > before).then_some(None)));
        if let Some(said) = said {
            return said;
        }
        eprintln!("{words}: Claude Code dropped what it said in life {life}");
        phalanx(&["shutdown", "cia", "--force"]);
        spawn_cia(stage);
    }
    panic!("{words}: Claude Code dropped what it said in {LIVES} lives");
}

/// Prints the mailbox of the lead and the end of the log of Claude Code if the test fails.
struct LogIfFailed<'s>(&'s RemoteStage);

impl Drop for LogIfFailed<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = log_of_claude(self.0);
            let lines: Vec<&str> = log.lines().collect();
            let read = ["-t", "pair", "inbox", "team-lead", "--all", "--peek"];
            println!("{}", self.0.hosts.stage.phalanx(&read).stdout);
            println!("{}", lines[lines.len().saturating_sub(80)..].join("\n"));
        }
    }
}

/// Returns what Claude Code on `h1` has logged.
fn log_of_claude(stage: &RemoteStage) -> String {
    let logs = fs::read_dir(stage.hosts.at("h1", "home/.claude/debug")).into_iter().flatten();
    logs.flatten().filter_map(|log| fs::read_to_string(log.path()).ok()).collect()
}

/// Returns true for a line about a message to the lead that was not sent (docs/profiles.md).
fn is_drop(line: &str) -> bool {
    ["Failed to write to inbox for team-lead", "leader name not found"]
        .iter()
        .any(|said| line.contains(said))
}

/// Returns the path of node, which hosts do not have on their PATH.
fn node() -> String {
    let found = Command::new("sh").args(["-c", "command -v node"]).output().expect("sh runs");
    String::from_utf8_lossy(&found.stdout).trim().to_owned()
}

/// Starts the stand-in on the host, and returns its port.
fn start_api(stage: &RemoteStage) -> String {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/api/native.py");
    let (log, port) = (stage.hosts.at("h1", "api.log"), stage.hosts.at("h1", "port"));
    let line = format!(
        "setsid -f python3 '{script}' '{}' >'{}' 2>/dev/null </dev/null",
        log.display(),
        port.display()
    );
    let ssh = stage.hosts.stage.at("hosts/bin/ssh");
    let started = Command::new(ssh).args(["h1", &line]).stdin(Stdio::null()).status();
    assert!(started.expect("ssh runs").success());
    wait_for("the stand-in", || {
        fs::read_to_string(&port).ok().map(|text| text.trim().to_owned()).filter(|t| !t.is_empty())
    })
}

/// Answers the questions of a first start, and gives Claude Code its key and address.
fn configure_claude(stage: &mut RemoteStage, port: &str) {
    let work = stage.hosts.at("h1", "work");
    let answers = json!({
        "hasCompletedOnboarding": true, "theme": "dark", "numStartups": 5,
        "customApiKeyResponses": {"approved": [&KEY[KEY.len() - 20..]], "rejected": []},
        "projects": {work.display().to_string():
            {"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true}},
    });
    fs::write(stage.hosts.at("h1", "home/.claude.json"), answers.to_string()).expect("answers");
    let env = format!(
        "env = {{ ANTHROPIC_API_KEY = \"{KEY}\", ANTHROPIC_BASE_URL = \"http://127.0.0.1:{port}\", \
         IS_SANDBOX = \"1\", DEBUG = \"1\", DISABLE_AUTOUPDATER = \"1\", DISABLE_TELEMETRY = \"1\", \
         CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC = \"1\", ENABLE_TOOL_SEARCH = \"false\" }}\n"
    );
    let path = stage.hosts.stage.root().join("phalanx/hosts.toml");
    let hosts = fs::read_to_string(&path).expect("hosts");
    let dir = format!("dir = \"{}\"\n", work.display());
    assert!(hosts.contains(&dir), "{hosts}");
    fs::write(&path, hosts.replace(&dir, &format!("{dir}{env}"))).expect("hosts");
}
