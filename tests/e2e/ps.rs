//! `ps` lists every team on this machine, on any socket and in any config root.

use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{Stage, binary, wait_for};

/// Returns the teams under `root`; concurrent tests have teams of their own.
fn ps(stage: &Stage, root: &Path) -> Vec<Value> {
    let all = stage.phalanx(&["--json", "ps"]).expect(0).json();
    let of = |team: &&Value| team["root"] == json!(root.to_string_lossy());
    all.as_array().expect("teams").iter().filter(of).cloned().collect()
}

#[test]
fn tmux_sd_08_ps_lists_every_team_on_every_socket() {
    let stage = Stage::new();
    let other = stage.at("tmux/other.sock");
    for team in ["alpha", "beta"] {
        stage.phalanx(&["team", "create", team]).expect(0);
    }
    stage.phalanx(&["spawn", "ada", "-t", "alpha"]).expect(0);
    let socket = other.to_string_lossy().into_owned();
    let mut inside = stage.command("tmux");
    inside.args([
        "-S",
        &socket,
        "new-session",
        "-d",
        "-P",
        "-F",
        "#{pid} #{pane_id}",
        "sleep",
        "300",
    ]);
    let said = String::from_utf8(inside.output().expect("tmux").stdout).expect("text");
    let (server, pane) = said.trim().split_once(' ').expect("pid and pane");
    // Spawns as if from a pane of the other server.
    let mut spawn = stage.command(binary());
    spawn.env("TMUX", format!("{socket},{server},0")).env("TMUX_PANE", pane);
    assert!(spawn.args(["spawn", "bob", "-t", "beta"]).status().expect("phalanx").success());
    stage.phalanx(&["team", "create", "gamma", "--description", "nobody yet"]).expect(0);

    let listed = ps(&stage, &stage.root());
    let of = |team: &str| {
        let found = listed.iter().find(|t| t["team"] == team);
        found.cloned().unwrap_or_else(|| panic!("no {team}: {listed:?}"))
    };
    assert_eq!(of("beta")["sockets"], json!([socket]));
    assert_eq!(of("beta")["members"][0]["name"], json!("bob"));
    assert_eq!(of("beta")["members"][0]["alive"], json!("alive"));
    assert_eq!(of("beta")["members"][0]["socket"], json!(socket));
    assert_ne!(of("alpha")["sockets"], json!([socket]));
    assert_eq!(of("alpha")["members"][0]["backend"], json!("tmux"));
    assert_eq!(of("gamma")["members"], json!([]));
    let text = stage.phalanx(&["ps"]).expect(0).stdout;
    for word in ["alpha", "ada", "beta", "bob", "gamma", &socket] {
        assert!(text.contains(word), "{word} in {text}");
    }
    for team in ["alpha", "beta", "gamma"] {
        stage.phalanx(&["down", "-t", team]).expect(0);
    }
    let ended = stage.command("tmux").args(["-S", &socket, "kill-server"]).status().expect("tmux");
    assert!(ended.success());
    stage.assert_clean();
}

/// A member in another config root is found by the command line of its launcher.
#[test]
fn sd_08_ps_finds_teams_of_other_config_roots_by_their_launchers() {
    let stage = Stage::without_tmux();
    let (root, other) = (stage.at("other"), stage.at("other").to_string_lossy().into_owned());
    stage.phalanx(&["--config-dir", &other, "team", "create", "far"]).expect(0);
    assert_eq!(ps(&stage, &root), Vec::<Value>::new(), "no launcher tells of it yet");
    stage.phalanx(&["--config-dir", &other, "spawn", "zoe"]).expect(0);
    let listed = ps(&stage, &root);
    assert_eq!((listed.len(), &listed[0]["team"]), (1, &json!("far")), "{listed:?}");
    assert_eq!(listed[0]["members"][0]["name"], json!("zoe"));
    stage.phalanx(&["--config-dir", &other, "down"]).expect(0);
    assert_eq!(ps(&stage, &root), Vec::<Value>::new());
}

#[test]
fn ps_lists_claude_code_and_unreadable_teams() {
    let stage = Stage::without_tmux();
    let me = std::process::id();
    let write = |team: &str, text: &str| {
        let dir = stage.root().join("teams").join(team);
        std::fs::create_dir_all(&dir).expect("dir");
        std::fs::write(dir.join("config.json"), text).expect("file");
    };
    let team = |pid: u32, space: &str| {
        json!({"name": "native", "createdAt": 1, "leadAgentId": "team-lead@native", "leadProcess": {"pid": pid, "pidSpace": space, "claimedAt": 1},
            "members": [{"name": "team-lead"}, {"name": "ann\u{1b}]0;x\u{7}"}, {"name": "ann", "tmuxPaneId": "%1\u{1b}[2J",
            "backendType": "tmux", "isActive": true}]})
        .to_string()
    };
    write("native", &team(me, "elsewhere"));
    write("broken", "{");
    stage.phalanx(&["team", "create", "ours"]).expect(0);
    let teams = ps(&stage, &stage.root());
    let names: Vec<_> = teams.iter().map(|t| t["team"].as_str()).collect();
    assert_eq!(names, [Some("broken"), Some("native"), Some("ours")]);
    assert!(teams[0]["problem"].as_str().is_some_and(|p| p.contains("config.json")), "{teams:?}");
    assert_eq!(
        (&teams[1]["lead"]["pid"], &teams[1]["lead"]["program"]),
        (&json!(me), &json!("claude"))
    );
    assert_eq!(
        teams[1]["lead"]["alive"],
        json!("unknown"),
        "a pid of another machine proves nothing"
    );
    assert_eq!(teams[1]["members"][0]["alive"], json!(null));
    // SEC-10: foreign text reaches the terminal without control characters.
    let text = stage.phalanx(&["ps", "--color", "never"]).expect(0).stdout;
    assert!(text.contains("ann") && !text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
    let mut gone = std::process::Command::new("true").spawn().expect("true");
    gone.wait().expect("ended");
    write("native", &team(gone.id(), &crate::lease::space()));
    assert_eq!(ps(&stage, &stage.root())[1]["lead"]["alive"], json!("dead"));
    stage.phalanx(&["team", "delete", "-t", "ours"]).expect(0);
}

#[test]
fn sd_08_ps_shows_a_killed_lead_as_dead() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let lead = stage.start(&["lead"]);
    let of = || ps(&stage, &stage.root())[0]["lead"].clone();
    wait_for("the lead", || (of()["alive"] == "alive").then_some(()));
    assert_eq!(of()["pid"].to_string(), lead.pid());
    lead.signal("KILL");
    wait_for("the dead lead", || (of()["alive"] == "dead").then_some(()));
    stage.phalanx(&["down"]).expect(0);
}
