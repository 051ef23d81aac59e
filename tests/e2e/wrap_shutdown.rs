//! Wrapped programs that answer shutdown requests themselves (`shutdown = "ask"`).

use std::fs;

use crate::harness::{FAKE_TUI, Stage, binary};

/// Creates a team with `ada`, whose program answers a shutdown request as `switch` says.
fn team(switch: &str) -> Stage {
    let mut stage = Stage::new();
    stage.shadow("phalanx", &format!("#!/bin/sh\nexec {} \"$@\"\n", binary()));
    stage.fake_tui(|sheet| format!("shutdown = \"ask\"\n{sheet}"));
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let log = stage.at("log").display().to_string();
    let words =
        ["spawn", "ada", "--profile", "fake", "--backend", "pty", "--", FAKE_TUI, &log, switch];
    stage.phalanx(&words).expect(0);
    stage
}

/// SD-02: the agent agrees with the command that the request names.
#[test]
fn wrap_sd_02_asked_agent_agrees_to_shut_down() {
    let stage = team("agrees");
    let closed = stage.phalanx(&["--json", "shutdown", "ada", "--deadline", "30"]).expect(0).json();
    assert_eq!(closed[0]["outcome"], "closed");
    let turns = fs::read_to_string(stage.at("log")).expect("a log");
    assert_eq!(turns.matches("You are asked to shut down").count(), 1, "{turns}");
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

#[test]
fn wrap_sd_02_asked_agent_refuses_to_shut_down() {
    let stage = team("refuses");
    let refused =
        stage.phalanx(&["--json", "shutdown", "ada", "--deadline", "30"]).expect(4).json();
    assert_eq!(refused[0]["outcome"], "rejected");
    assert!(refused.to_string().contains("what is left to do"), "in its own words: {refused}");
    stage.phalanx(&["shutdown", "ada", "--force"]).expect(0);
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}
