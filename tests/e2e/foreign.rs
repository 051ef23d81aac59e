//! Teams of another program beside those of phalanx: each session of Claude Code makes one. Their
//! members are found in the process table, here those of a script with the name and the command
//! line of Claude Code.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::harness::{Stage, wait_for};

/// Writes the files of a session of Claude Code 2.1.332, as recorded, with one teammate.
fn session(stage: &Stage, name: &str, lead_pid: u32) {
    let dir = stage.root().join("teams").join(name);
    fs::create_dir_all(dir.join("inboxes")).expect("dir");
    fs::create_dir_all(stage.root().join("tasks").join(name)).expect("dir");
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).expect("mode");
    let at = format!("{LEAD}@{name}");
    let mut file = json!({
        "name": name, "createdAt": 1, "leadAgentId": at, "leadSessionId": "db2e36e0-7156-414f-a97f-21f1e0f8d10f",
        "leadProcess": {"pid": lead_pid, "pidSpace": "", "claimedAt": 1, "procStart": "1"},
        "members": [
            {"agentId": at, "name": LEAD, "agentType": LEAD, "joinedAt": 1, "tmuxPaneId": "leader",
             "cwd": stage.at("work"), "subscriptions": [], "backendType": "in-process"},
            {"agentId": format!("mate@{name}"), "name": "mate", "color": "blue", "joinedAt": 2,
             "tmuxPaneId": "%7", "subscriptions": [], "agentType": "general-purpose",
             "planModeRequired": false, "cwd": stage.at("work"), "backendType": "tmux"},
        ],
    });
    // Without a process on record, the lead has ended.
    if lead_pid == 0 {
        file.as_object_mut().expect("an object").remove("leadProcess");
        file["leadSessionId"] = json!(format!("gone of {}", stage.root().display()));
        file["members"][0]["cwd"] = json!("/nowhere");
    }
    fs::write(dir.join("config.json"), file.to_string()).expect("team file");
}

const LEAD: &str = "team-lead";

/// Starts a process with the command line of a teammate. It ends with its input.
fn teammate(stage: &mut Stage, team: &str, more: &[&str]) -> Child {
    stage.shadow("claude", "#!/bin/sh\nread line\n");
    let mut command = stage.command("claude");
    command.args([
        "--agent-id",
        &format!("mate@{team}"),
        "--agent-name",
        "mate",
        "--team-name",
        team,
    ]);
    command.args(more).env("CLAUDE_CONFIG_DIR", stage.root()).env("CLAUDECODE", "1");
    command.stdin(Stdio::piped()).spawn().expect("the script runs")
}

/// A request of the teammate.
fn asked() -> Value {
    json!({"type": "permission_request", "request_id": "perm-1", "agent_id": "mate",
        "tool_name": "Bash", "tool_use_id": "t", "description": "", "permission_suggestions": [],
        "input": {"command": "make"}})
}

fn files(stage: &Stage, team: &str) -> bool {
    stage.root().join("teams").join(team).exists()
}

/// The lead of another program deletes its team when it exits, with members of phalanx in it.
#[test]
fn sd_22_members_of_a_team_that_its_lead_deletes_are_ended_or_listed() {
    let stage = Stage::without_tmux();
    let script = stage.at("agent");
    stage.script(&script, "#!/bin/sh\nexec sleep 601\n");
    let sheet = format!(
        "about = \"native\"\nruns = \"native\"\n[launch]\nargv = [[\"{}\"]]\n\
         prompt = \"mailbox\"\n[ready]\nwhen = \"settled\"\n[usage]\ntranscript = \"claude\"\n",
        script.display()
    );
    stage.profile("agent", &sheet);
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["spawn", "ann", "--profile", "agent", "--backend", "pty"]).expect(0);
    stage.phalanx(&["spawn", "srv", "--backend", "pty", "--", "sleep", "602"]).expect(0);
    for files in ["teams/alpha", "tasks/alpha"] {
        fs::remove_dir_all(stage.root().join(files)).expect("the files of the team");
    }
    wait_for("the end of the agent", || {
        (!stage.processes().iter().any(|line| line.contains("sleep 601"))).then_some(())
    });
    let listed = || {
        let all = stage.phalanx(&["--json", "ps"]).expect(0).json();
        let root = json!(stage.root().to_string_lossy());
        let mut own = all.as_array().expect("teams").clone();
        own.retain(|team| team["root"] == root);
        own
    };
    let problem = wait_for("the program alone", || {
        let problem = listed().first()?["problem"].as_str()?.to_owned();
        problem.contains("members that still run: 1").then_some(problem)
    });
    let (_, line) = problem.split_once('`').expect("a command");
    let words = shlex::split(line.trim_end_matches('`')).expect("words");
    let words: Vec<&str> = words[1..].iter().map(String::as_str).collect();
    stage.phalanx(&words).expect(0);
    assert_eq!(listed(), Vec::<Value>::new());
    stage.assert_clean();
}

/// SD-17: no verb removes the files of a team under its living members; once the team is adopted,
/// its members are ended like those of phalanx.
#[test]
fn sd_17_members_of_another_programs_team_are_kept_until_it_is_adopted_and_then_ended() {
    let mut stage = Stage::without_tmux();
    session(&stage, "session-1", 0);
    let mut mate = teammate(&mut stage, "session-1", &[]);
    let pid = mate.id();
    for args in [
        &["down", "-t", "session-1"][..],
        &["down", "-t", "session-1", "--force"],
        &["team", "delete", "-t", "session-1"],
        &["team", "delete", "-t", "session-1", "--force"],
        &["rm", "session-1"],
    ] {
        let run = stage.phalanx(args).expect(4);
        assert!(run.stderr.contains(&format!("process {pid} is its member mate")), "{run:?}");
        assert!(run.stderr.contains("phalanx adopt -t session-1"), "{run:?}");
        assert!(files(&stage, "session-1"));
    }
    assert!(mate.try_wait().expect("a child").is_none(), "nothing was ended");
    stage.phalanx(&["adopt", "-t", "session-1", "--force", "--detach"]).expect(0);
    let member = || {
        let status = stage.phalanx(&["--json", "status"]).expect(0).json();
        status["members"].as_array().into_iter().flatten().find(|m| m["name"] == "mate").cloned()
    };
    let found = member().expect("the member");
    assert_eq!((&found["state"], &found["pid"]), (&json!("working"), &json!(pid)), "{found}");
    // Its requests are filed and answered.
    stage.phalanx(&["--as", "mate", "send", LEAD, &asked().to_string()]).expect(0);
    stage.wait_event("session-1", "request_filed", "mate");
    wait_for("its wait", || (member()?["needs"] == "permission").then_some(()));
    stage.phalanx(&["answer", "mate", "--approve"]).expect(0);
    // It ends as any member does.
    stage.phalanx(&["kill", "mate"]).expect(0);
    let ended = wait_for("its end", || mate.try_wait().expect("a child"));
    assert!(!ended.success());
    stage.phalanx(&["down"]).expect(0);
    assert!(!files(&stage, "session-1"));
    stage.assert_clean();
}

#[test]
fn sd_17_down_of_an_adopted_team_ends_its_members_first() {
    let mut stage = Stage::without_tmux();
    session(&stage, "session-1", 0);
    let mut mate = teammate(&mut stage, "session-1", &["--lead-verify-key", "1.k"]);
    stage.phalanx(&["adopt", "-t", "session-1", "--force", "--detach"]).expect(0);
    // No answer of phalanx has the signature of the lead that started it.
    stage.phalanx(&["--as", "mate", "send", LEAD, &asked().to_string()]).expect(0);
    stage.wait_event("session-1", "request_filed", "mate");
    for verdict in ["--approve", "--reject"] {
        let refused = stage.phalanx(&["answer", "mate", verdict]).expect(4).stderr;
        assert!(refused.contains("signed by the lead that started it"), "{refused}");
    }
    let warned = stage.phalanx(&["events"]).expect(0).stdout;
    assert!(warned.contains("accepts answers only from the lead that started it"), "{warned}");
    stage.phalanx(&["down", "--force"]).expect(0);
    assert!(wait_for("its end", || mate.try_wait().expect("a child")).code().is_none());
    assert!(!files(&stage, "session-1"));
    stage.assert_clean();
}

/// SD-17, SD-05: the pane that the team file and the member's process name is that of the member;
/// any other one is a person's.
#[test]
fn sd_17_tmux_pane_of_an_adopted_member_is_read_and_closed() {
    for is_its in [true, false] {
        let mut stage = Stage::new();
        stage.shadow("claude", "#!/bin/sh\necho at work\nread line\n");
        let tmux = |args: &[&str]| stage.tmux(args).expect("tmux").trim().to_owned();
        tmux(&["new-session", "-d", "-x", "80", "-y", "24", "-s", "theirs", "sh"]);
        let pane = tmux(&["split-window", "-d", "-P", "-F", "#{pane_id}", "-t", "theirs:", "sh"]);
        session(&stage, "session-1", 0);
        if is_its {
            let file = stage.root().join("teams/session-1/config.json");
            let text = fs::read_to_string(&file).expect("a file").replace("%7", &pane);
            fs::write(&file, text).expect("team file");
        }
        let line = format!(
            "CLAUDECODE=1 CLAUDE_CONFIG_DIR='{}' PATH='{}' claude --agent-id mate@session-1",
            stage.root().display(),
            stage.path()
        );
        let shown = || stage.tmux(&["capture-pane", "-p", "-t", &pane]);
        wait_for("the prompt of its shell", || (!shown()?.trim().is_empty()).then_some(()));
        tmux(&["send-keys", "-t", &pane, &line, "Enter"]);
        wait_for("its program", || shown()?.lines().any(|line| line == "at work").then_some(()));
        stage.phalanx(&["adopt", "-t", "session-1", "--force", "--detach"]).expect(0);
        let peeked = stage.phalanx(&["peek", "mate"]);
        assert_eq!(peeked.code == 0 && peeked.stdout.contains("at work"), is_its, "{peeked:?}");
        stage.phalanx(&["kill", "mate"]).expect(0);
        let left = tmux(&["list-panes", "-a", "-F", "#{pane_id}"]);
        assert_eq!(left.lines().any(|id| id == pane), !is_its, "{left}");
        assert_eq!(left.lines().count(), if is_its { 1 } else { 2 }, "no other pane is closed");
        stage.phalanx(&["down"]).expect(0);
        tmux(&["kill-server"]);
        stage.assert_clean();
    }
}

/// ST-01: a member inside of its lead's process is not at work, and gone with its lead.
#[test]
fn st_01_member_inside_of_its_lead_is_gone_with_it() {
    let stage = Stage::without_tmux();
    let file = include_str!("../../fixtures/wire/2.1.332/session.json");
    let mut team: Value = serde_json::from_str(file).expect("json");
    let name = team["name"].as_str().expect("a name").to_owned();
    let dir = stage.root().join("teams").join(&name);
    fs::create_dir_all(dir.join("inboxes")).expect("dir");
    let mut child = stage.command("sleep").arg("600").spawn().expect("a process");
    for (pid, state) in [(child.id(), "running"), (i32::MAX.unsigned_abs(), "disappeared")] {
        team["leadProcess"] = json!({"pid": pid, "pidSpace": pid_space(), "claimedAt": 1});
        fs::write(dir.join("config.json"), team.to_string()).expect("team file");
        let status = stage.phalanx(&["--json", "status"]).expect(0).json();
        assert_eq!(status["members"][0]["state"], state, "{status}");
        // To adopt files without a process leads to nothing, but it works.
        let shown = stage.phalanx(&["status"]).expect(0).stdout;
        let dead = format!("died; `phalanx down -t {name}`");
        assert_eq!(shown.contains(&dead), state == "disappeared", "{shown}");
        assert!(!shown.contains("adopt"), "{shown}");
    }
    assert!(!stage.root().join("tasks").exists(), "it has no tasks yet");
    stage.phalanx(&["adopt", "-t", &name, "--force", "--detach"]).expect(0);
    let gone = stage.phalanx(&["down", "-t", &name]).expect(0);
    assert!(!gone.stderr.contains("mate") && !files(&stage, &name), "{gone:?}");
    child.kill().expect("a child");
    child.wait().expect("a child");
}

/// Each session of Claude Code leaves a team, which must not hide those of phalanx.
#[test]
fn many_teams_of_other_programs_do_not_hide_those_of_phalanx() {
    let stage = Stage::without_tmux();
    for nth in 0..120 {
        session(&stage, &format!("session-{nth:08x}"), 0);
    }
    let page = stage.phalanx(&[]).expect(0).stdout;
    assert!(page.contains("phalanx init") && !page.contains("phalanx down"), "{page}");
    assert!(page.contains("and 110 more: phalanx team list"), "{page}");
    let refused = stage.phalanx(&["status"]).expect(2).stderr;
    assert!(
        refused.contains("and 115 more: `phalanx team list`") && refused.len() < 400,
        "{refused}"
    );
    let found = stage.phalanx(&["--json", "doctor"]).json();
    let about: Vec<&Value> = found["findings"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|finding| finding.to_string().contains("session-"))
        .collect();
    assert_eq!(about, [] as [&Value; 0]);
    stage.phalanx(&["team", "create", "zeta"]).expect(0);
    let page = stage.phalanx(&[]).expect(0).stdout;
    assert!(page.lines().any(|line| line.starts_with("zeta")), "{page}");
    assert!(page.contains("phalanx status -t zeta"), "{page}");
    stage.phalanx(&["down", "-t", "session-00000000", "--force"]).expect(0);
    assert!(!files(&stage, "session-00000000"));
    stage.phalanx(&["down"]).expect(0);
    assert!(files(&stage, "session-00000001"));
}

/// The team whose lead runs in this directory is the default one.
#[test]
fn team_that_is_led_from_this_directory_is_the_default_one() {
    let stage = Stage::without_tmux();
    session(&stage, "session-dead", 0);
    session(&stage, "session-here", std::process::id());
    let file = stage.root().join("teams/session-here/config.json");
    let mut team: Value =
        serde_json::from_str(&fs::read_to_string(&file).expect("a file")).expect("json");
    team["leadProcess"] =
        json!({"pid": std::process::id(), "pidSpace": pid_space(), "claimedAt": 1});
    fs::write(&file, team.to_string()).expect("team file");
    let status = stage.phalanx(&["--json", "status"]).expect(0).json();
    assert_eq!(status["team"], "session-here");
}

/// The pid space of this machine, as Claude Code writes it.
fn pid_space() -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("a host");
    let space = fs::read_link("/proc/self/ns/pid").expect("a namespace");
    format!("{}#{}", host.trim(), space.display())
}
