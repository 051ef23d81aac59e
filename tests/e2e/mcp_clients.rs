//! Teams that a client of `phalanx mcp` leads, and the protocol's official clients, which run a
//! whole team life. `scripts/test` installs them.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::gear;
use crate::harness::{NATIVE, Run, Stage, binary, which};
use crate::mcp::Client;

/// Runs a client and checks that it has gone through the whole life.
fn live(program: &Path, args: &[&str]) {
    let program = program.to_str().expect("UTF-8");
    let stage = Stage::without_tmux();
    stage.profile("native", NATIVE);
    let run =
        Run::from(stage.command(program).args(args).output().expect("the client starts")).expect(0);
    for call in ["SpawnTeammate", "SubmitPlan", "broadcast", "Shutdown", "TeamDelete"] {
        assert!(run.stdout.contains(call), "{run:?}");
    }
    stage.assert_clean();
}

fn interop(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop").join(path)
}

fn python(line: &str) {
    let python = interop(&format!(".venv/{line}/bin/python"));
    if !python.exists() {
        return gear::skip("the Python clients of MCP are not installed: scripts/test --full does");
    }
    live(&python, &[&interop("mcp/life.py").to_string_lossy(), binary()]);
}

fn node(line: &str) {
    let node = which("node", &std::env::var("PATH").expect("PATH"));
    let Some(node) = node.filter(|_| interop("node_modules/@modelcontextprotocol/sdk").exists())
    else {
        return gear::skip_without("node and npm ci --prefix tests/interop");
    };
    live(&node, &[&interop("mcp/life.mjs").to_string_lossy(), binary(), line]);
}

#[test]
fn python_client_1_runs_a_team() {
    python("1");
}

#[test]
fn python_client_2_runs_a_team() {
    python("2");
}

#[test]
fn typescript_client_1_runs_a_team() {
    node("1");
}

#[test]
fn typescript_client_2_runs_a_team() {
    node("2");
}

/// SD-18: without any call, a member that has ended leaves the team while its server runs.
#[test]
fn sd_18_members_of_a_client_are_led_while_its_server_runs() {
    let stage = Stage::without_tmux();
    let lead_of = |stage: &Stage| {
        let status = stage.phalanx(&["--json", "status", "-t", "demo"]).expect(0).json();
        let led = status["lead"]["state"] == "running";
        led.then(|| status["lead"]["pid"].to_string())
    };
    let mut client = Client::start(&stage, &["mcp"]);
    client.call("TeamCreate", json!({"team_name": "demo"}));
    client.call("TaskCreate", json!({"subject": "one"}));
    assert_eq!(lead_of(&stage), None, "nothing to lead yet");
    client.call("SpawnTeammate", json!({"name": "ann"}));
    let first = lead_of(&stage).expect("a lead");
    client.call("SpawnTeammate", json!({"name": "ben"}));
    assert_eq!(lead_of(&stage).as_ref(), Some(&first), "one lead for all");
    let record = stage.root().join("teams/demo/phalanx/members/ann.json");
    let record: Value =
        serde_json::from_slice(&std::fs::read(record).expect("a record")).expect("JSON");
    let ann = record["start"]["launcher"]["pid"].to_string();
    assert!(stage.command("kill").args(["-9", &ann]).status().expect("kill").success());
    stage.wait_event("demo", "member_left", "ann");

    assert_eq!(client.end(), Some(0));
    assert_eq!(lead_of(&stage), None, "it leaves with its server");
    let mut observer = Client::start(&stage, &["mcp", "--read-only"]);
    observer.call("Status", json!({}));
    assert_eq!(observer.end(), Some(0));
    assert_eq!(lead_of(&stage), None, "an observer changes nothing");
    let mut next = Client::start(&stage, &["mcp"]);
    next.call("Status", json!({}));
    assert_eq!(lead_of(&stage), None);
    let made = next.call("TaskCreate", json!({"subject": "two"}));
    assert!(!made.to_string().contains("no lead"), "{made}");
    let second = lead_of(&stage).expect("a lead for the members of before");
    assert_ne!(first, second);
    stage.phalanx(&["down", "-t", "demo", "--force"]).expect(0);
    assert_eq!(next.tools().len(), 31, "it ended the lead, and not the server");
    assert_eq!(next.end(), Some(0));
    stage.assert_clean();
}
