//! The protocol's official clients run a whole team life through `phalanx mcp`. `scripts/test`
//! installs them.

use std::path::{Path, PathBuf};

use crate::gear;
use crate::harness::{NATIVE, Run, Stage, binary, which};

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
