//! The tools of `phalanx mcp` with members on another host: of the lead, and of a member there.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::harness::{FAKE_TUI, wait_for};
use crate::mcp::Client;
use crate::remote_stage::RemoteStage;

#[test]
fn tools_of_the_lead_reach_a_member_on_another_host() {
    let Some(stage) = RemoteStage::start(&["h1"]) else { return };
    stage.hide_files_of_hosts();
    let mut lead = Client::start(&stage.hosts.stage, &["-t", "demo", "mcp"]);
    let spawned = lead.call("SpawnTeammate", json!({"name": "ann", "host": "h1"}));
    assert_eq!(spawned["host"], "h1");

    let run = json!(["sh", "-c", "echo on-$(hostname)"]);
    lead.call("TaskCreate", json!({"subject": "name it", "owner": "ann", "run": run}));
    let ended = lead.call("WaitFor", json!({"until": "task=1"}));
    assert_eq!(ended["states"][0]["state"], "completed", "{ended}");
    let message = json!({"type": "message", "recipient": "ann", "content": "by mail"});
    lead.call("SendMessage", message);
    lead.call("Type", json!({"name": "ann", "text": "by-keys"}));
    wait_for("the screen of ann", || {
        let screen = lead.call("Peek", json!({"names": ["ann"]})).to_string();
        ["on-h1", "by mail", "by-keys"].iter().all(|text| screen.contains(text)).then_some(())
    });
    let screen = lead.request("resources/read", json!({"uri": "team://members/ann/screen"}));
    assert!(screen.to_string().contains("by-keys"), "{screen}");

    // The killed launcher records nothing, and without a lead no other process asks the host.
    stage.kill_launcher("h1", "ann");
    let gone = lead.call("WaitFor", json!({"names": ["ann"], "until": "gone"}));
    assert_eq!(gone["states"], json!([{"name": "ann", "state": "gone"}]));
    let ended = lead.call("Shutdown", json!({"names": ["ann"], "force": true}));
    assert_eq!(ended["members"][0]["outcome"], "forced", "{ended}");
    let unknown = lead.refused("SpawnTeammate", json!({"name": "bob", "host": "nowhere"}));
    assert_eq!(unknown["hint"], "hosts: h1");
    lead.call("SpawnTeammate", json!({"name": "bob", "host": "h1"}));
    lead.call("Shutdown", json!({"all": true}));
    assert_eq!(lead.call("ListMembers", json!({}))["members"], json!([]));
}

#[test]
fn tools_of_a_member_on_another_host_act_with_its_token() {
    let Some(stage) = RemoteStage::start(&["h1"]) else { return };
    stage.hosts.stage.fake_tui(|sheet| sheet);
    let profiles = stage.hosts.at("h1", "home/.claude/phalanx");
    fs::create_dir_all(&profiles).expect("a directory");
    let sheet = stage.hosts.stage.root().join("phalanx/profiles");
    fs::create_dir(profiles.join("profiles")).expect("a directory");
    fs::copy(sheet.join("fake.toml"), profiles.join("profiles/fake.toml")).expect("a profile");
    let log = stage.hosts.at("h1", "work/turns");
    let line = format!("env | grep ^PHALANX_ >env; exec {FAKE_TUI} {}", log.display());
    let spawn = ["spawn", "ann", "--host", "h1", "--profile", "fake", "--", "sh", "-c", &line];
    stage.phalanx(&spawn).expect(0);
    let mut ann = server_of(&stage, "env");
    assert!(!ann.tools().iter().any(|tool| tool == "Shutdown"));

    ann.call("TaskCreate", json!({"subject": "by ann"}));
    ann.call("TaskUpdate", json!({"taskId": "1", "status": "in_progress"}));
    let done = json!({"action": "complete", "task_id": 1, "result": "done there"});
    ann.call("TeamTasks", done);
    let message = json!({"type": "message", "recipient": "team-lead", "content": "from h1"});
    ann.call("SendMessage", message);
    let filed = ann.call("SubmitPlan", json!({"plan": "# Look, then leap"}));
    let mut lead = Client::start(&stage.hosts.stage, &["-t", "demo", "mcp"]);
    let task = lead.call("TaskGet", json!({"taskId": "1"}));
    assert_eq!(task["task"]["metadata"]["phalanx"]["ended_by"], "ann", "{task}");
    let mail = lead.call("ReadInbox", json!({})).to_string();
    assert!(mail.contains("from h1"), "{mail}");
    lead.call("Answer", json!({"request_id": filed["request_id"], "approve": true}));
    wait_for("the answer to be typed on h1", || {
        let turns = fs::read_to_string(&log).unwrap_or_default();
        turns.contains("is approved").then_some(())
    });

    let env = fs::read_to_string(env_file(&stage, "env")).expect("an environment");
    let token = env.lines().find(|line| line.starts_with("PHALANX_TOKEN=")).expect("a token");
    let forged = env.replace(token, "PHALANX_TOKEN=0123456789abcdef0123456789abcdef");
    fs::write(env_file(&stage, "forged"), forged).expect("an environment");
    let refused = server_of(&stage, "forged").refused("Status", json!({}));
    assert_eq!(refused["kind"], "refused", "{refused}");
    let as_lead = env.replace("PHALANX_AGENT_NAME=ann", "PHALANX_AGENT_NAME=team-lead");
    fs::write(env_file(&stage, "lead"), as_lead).expect("an environment");
    let refused = server_of(&stage, "lead").refused("Shutdown", json!({"all": true}));
    let text = "this process cannot act as `team-lead`: its token belongs to `ann`";
    assert_eq!(refused["message"], Value::from(text));
}

fn env_file(stage: &RemoteStage, name: &str) -> PathBuf {
    stage.hosts.at("h1", "work").join(name)
}

/// Starts the server on h1 with the environment in a file of the work directory there.
fn server_of(stage: &RemoteStage, env: &str) -> Client {
    let (env, program) = (env_file(stage, env), stage.hosts.at("h1", "work/bin/phalanx"));
    let line = format!("set -a; . {}; exec {} mcp", env.display(), program.display());
    Client::start_command(stage.on_host("h1", &line))
}
