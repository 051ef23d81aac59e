//! Nested teams are refused unless the team sets `max_depth`.

use serde_json::json;

use crate::harness::{Run, Stage, binary, wait_for};

/// Runs phalanx as teammate ada of team demo.
fn as_ada(stage: &Stage, depth: &str, args: &[&str]) -> Run {
    let mut command = stage.command(binary());
    command
        .env("PHALANX_AGENT_NAME", "ada")
        .env("PHALANX_TEAM", "demo")
        .env("PHALANX_DEPTH", depth);
    Run::from(command.args(args).output().expect("phalanx runs"))
}

fn team(stage: &Stage, depth: &str) {
    let text = format!(
        "[team]\nname = \"demo\"\nfinish = \"manual\"\n{depth}[[member]]\nname = \"ada\"\n"
    );
    stage.phalanx(&["up", &stage.file("demo.toml", &text), "--detach"]).expect(0);
}

#[test]
fn sp_11_teammate_may_not_spawn_or_create_teams() {
    let stage = Stage::without_tmux();
    team(&stage, "");
    let manifest =
        stage.file("other.toml", "[team]\nname = \"other\"\n[[member]]\nname = \"bob\"\n");
    for args in [&["spawn", "bob"][..], &["team", "create", "other"], &["up", &manifest]] {
        let run = as_ada(&stage, "1", &[&["--json"], args].concat()).expect(4);
        assert!(
            run.stderr.contains("`ada` is a teammate") && run.stderr.contains("max_depth"),
            "{run:?}"
        );
        assert_eq!(run.json()["error"]["kind"], json!("refused"));
    }
    // Another config root does not lift the limit of the caller's team.
    let mut command = stage.command(binary());
    command.env("PHALANX_AGENT_NAME", "ada").env("PHALANX_TEAM", "demo");
    let elsewhere = stage.at("elsewhere");
    command.arg("--config-dir").arg(&elsewhere).args(["team", "create", "other"]);
    Run::from(command.output().expect("phalanx runs")).expect(4);
    assert!(!elsewhere.exists());
    // Other commands of a teammate still work.
    as_ada(&stage, "1", &["send", "team-lead", "I need bob"]).expect(0);
    let teams = stage.phalanx(&["--json", "team", "list"]).expect(0).json();
    assert_eq!(teams.as_array().map(Vec::len), Some(1));
    assert_eq!(teams[0]["members"], json!(["ada"]));
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

#[test]
fn max_depth_limits_nesting_and_members_get_their_depth() {
    let stage = Stage::without_tmux();
    team(&stage, "max_depth = 2\n");
    as_ada(&stage, "2", &["spawn", "bob"]).expect(4);
    as_ada(
        &stage,
        "1",
        &["spawn", "bob", "--", "sh", "-c", "echo depth=$PHALANX_DEPTH.; exec sleep 300"],
    )
    .expect(0);
    wait_for("bob has printed how deep it stands", || {
        stage.phalanx(&["logs", "bob"]).expect(0).stdout.contains("depth=2.").then_some(())
    });
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

/// SP-11: a teammate may not run an agent lead, which could spawn members, unless the team allows
/// deeper nesting.
#[test]
fn sp_11_teammate_may_not_run_an_agent_lead() {
    for (depth, code, says) in
        [("", 4, "`ada` is a teammate"), ("max_depth = 2\n", 1, "no terminal")]
    {
        let stage = Stage::without_tmux();
        team(&stage, depth);
        stage.phalanx(&["team", "create", "other"]).expect(0);
        let run = as_ada(&stage, "1", &["-t", "other", "lead", "--", "sh"]).expect(code);
        assert!(run.stderr.contains(says), "{run:?}");
        stage.phalanx(&["-t", "demo", "down"]).expect(0);
        stage.phalanx(&["-t", "other", "team", "delete"]).expect(0);
        stage.assert_clean();
    }
}

#[test]
fn sp_11_nested_team_cannot_raise_the_parents_max_depth() {
    let stage = Stage::without_tmux();
    team(&stage, "max_depth = 2\n");
    let other = |depth: usize| {
        let text = format!("[team]\nname = \"other\"\nfinish = \"manual\"\nmax_depth = {depth}\n");
        as_ada(&stage, "1", &["-t", "other", "up", &stage.file("other.toml", &text), "--detach"])
    };
    let refused = other(3).expect(4);
    assert!(
        refused.stderr.contains("max_depth = 3") && refused.stderr.contains("parent team: 2"),
        "{refused:?}"
    );
    assert!(!stage.root().join("teams/other").exists());
    other(2).expect(0);
    stage.phalanx(&["-t", "other", "down"]).expect(0);
    stage.phalanx(&["-t", "demo", "down"]).expect(0);
    stage.assert_clean();
}
