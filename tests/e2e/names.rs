//! Exact names: teams and members are found only by their exact name; a near miss gets a hint.

use std::fs;

use serde_json::json;

use crate::harness::{Run, Stage};

/// Creates team `my-site` with member `ann`.
fn site() -> Stage {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "my-site"]).expect(0);
    stage.phalanx(&["spawn", "ann"]).expect(0);
    stage
}

/// Writes a team as Claude Code does: its directory is named differently from the team.
fn claude_team(stage: &Stage) {
    let dir = stage.root().join("teams/my-demo-");
    fs::create_dir_all(dir.join("inboxes")).expect("dir");
    let lead = json!({ "agentId": "team-lead@My Demo!", "name": "team-lead", "agentType": "team-lead",
                       "joinedAt": 1, "tmuxPaneId": "", "cwd": "/", "subscriptions": [] });
    let file = json!({ "name": "My Demo!", "createdAt": 1, "leadAgentId": "team-lead@My Demo!",
                       "leadSessionId": "6a3c7c05-8f0e-4a55-9d53-5b8b1a0f7a11", "members": [lead] });
    fs::write(dir.join("config.json"), file.to_string()).expect("team file");
}

fn is_hinted(run: &Run, name: &str) {
    assert!(run.stderr.contains(&format!("hint: did you mean `{name}`?")), "{run:?}");
}

#[test]
fn team_is_not_found_under_a_similar_name() {
    let stage = site();
    for given in ["MY-SITE", "my/site", "my site", "my-sit"] {
        for verb in [&["status"][..], &["down"], &["team", "delete"], &["lead"], &["task", "list"]]
        {
            let run = stage.phalanx(&[&["--json", "-t", given], verb].concat()).expect(3);
            assert_eq!(run.json()["error"]["kind"], json!("not_found"));
            is_hinted(&run, "my-site");
        }
        is_hinted(&stage.phalanx(&["rm", given]).expect(3), "my-site");
        is_hinted(&stage.phalanx(&["send", &format!("ann@{given}"), "hello"]).expect(3), "my-site");
    }
    stage.phalanx(&["status", "-t", "my-site"]).expect(0);
    stage.phalanx(&["down", "-t", "my-site"]).expect(0);
    stage.assert_clean();
}

#[test]
fn team_variable_needs_the_exact_name() {
    let stage = site();
    let status = |team: &str| {
        let mut command = stage.command(crate::harness::binary());
        let command = command.env("PHALANX_TEAM", team).args(["status"]);
        Run::from(command.output().expect("phalanx runs"))
    };
    is_hinted(&status("My-Site").expect(3), "my-site");
    status("my-site").expect(0);
    stage.phalanx(&["down"]).expect(0);
}

#[test]
fn claude_code_team_is_found_by_team_or_directory_name() {
    let stage = Stage::without_tmux();
    claude_team(&stage);
    for name in ["My Demo!", "my-demo-"] {
        let run = stage.phalanx(&["--json", "status", "-t", name]).expect(0);
        assert_eq!(run.json()["team"], json!("my-demo-"));
        stage.phalanx(&["send", &format!("team-lead@{name}"), "hello"]).expect(0);
    }
    for name in ["My demo!", "my demo?", "MY-DEMO-"] {
        is_hinted(&stage.phalanx(&["status", "-t", name]).expect(3), "my-demo-");
    }
}

#[test]
fn no_verb_finds_a_member_in_another_case() {
    let stage = site();
    let verbs: [&[&str]; 23] = [
        &["send", "ANN", "hello"],
        &["inbox", "ANN"],
        &["explain", "ANN"],
        &["peek", "ANN"],
        &["logs", "ANN"],
        &["attach", "ANN"],
        &["focus", "ANN"],
        &["hide", "ANN"],
        &["show", "ANN"],
        &["brief", "ANN"],
        &["mode", "ANN", "plan"],
        &["wait", "ANN", "--until", "idle"],
        &["wait", "ANN", "--until", "gone"],
        &["shutdown", "ANN"],
        &["kill", "ANN"],
        &["resume", "ANN"],
        &["restart", "ANN"],
        &["task", "create", "x", "--owner", "ANN"],
        &["worktree", "diff", "ANN"],
        &["worktree", "remove", "ANN"],
        &["--as", "ANN", "task", "list"],
        &["--as", "ANN@my-site", "inbox"],
        &["send", "ANN@my-site", "hello"],
    ];
    for verb in verbs {
        let run = stage.phalanx(&[&["--json"], verb].concat()).expect(3);
        assert_eq!(run.json()["error"]["kind"], json!("not_found"), "{verb:?}");
        is_hinted(&run, "ann");
    }
    stage.phalanx(&["shutdown", "ann"]).expect(0);
    // A former member is still known by its exact name only.
    is_hinted(&stage.phalanx(&["resume", "Ann"]).expect(3), "ann");
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

#[test]
fn member_is_found_by_name_at_team() {
    let stage = site();
    stage.phalanx(&["team", "create", "other"]).expect(0);
    stage.phalanx(&["status"]).expect(2);
    stage.phalanx(&["spawn", "ben@other"]).expect(0);
    stage.phalanx(&["send", "ann@my-site", "hello"]).expect(0);
    stage.phalanx(&["wait", "ann@my-site", "--until", "idle"]).expect(0);
    let task = stage.phalanx(&["--json", "task", "create", "x", "--owner", "ben@other"]).expect(0);
    assert_eq!(task.json()["owner"], json!("ben"));
    stage.phalanx(&["--as", "ben@other", "inbox"]).expect(0);
    stage.phalanx(&["explain", "ann@my-site", "-t", "my-site"]).expect(0);
    let run = stage.phalanx(&["--json", "explain", "ann@my-site", "-t", "other"]).expect(2);
    assert!(run.stderr.contains("`other`") && run.stderr.contains("`my-site`"), "{run:?}");
    stage.phalanx(&["shutdown", "ann@my-site", "ben@other"]).expect(2);
    is_hinted(&stage.phalanx(&["inbox", "--as", "ben@Other"]).expect(3), "other");
    stage.phalanx(&["down", "-t", "my-site"]).expect(0);
    stage.phalanx(&["down", "-t", "other"]).expect(0);
    stage.assert_clean();
}

#[test]
fn refused_name_comes_with_an_allowed_one() {
    let stage = site();
    let run = stage.phalanx(&["--json", "team", "create", "My Team!"]).expect(2);
    assert_eq!(run.json()["error"]["hint"], json!("use `my-team`"));
    let run = stage.phalanx(&["--json", "spawn", "Bob Smith"]).expect(2);
    assert_eq!(run.json()["error"]["hint"], json!("use `Bob-Smith`"));
    stage.phalanx(&["down"]).expect(0);
}
