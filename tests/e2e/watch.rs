//! `status --watch` on a terminal and as a stream of JSON documents.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Stage, binary, wait_for};

/// LY-12: a member that was shut down is no longer listed, and the terminal modes are restored.
#[test]
fn tmux_ly_12_watch_follows_the_team_and_restores_the_terminal() {
    let stage = Stage::new();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["spawn", "ada", "--backend", "pty"]).expect(0);
    // The user's terminal: a pane of 80 columns whose shell prints the exit code of the watch.
    let script = format!("{} status --watch -t alpha; echo over=$?; exec sleep 300", binary());
    let session =
        ["new-session", "-d", "-x", "80", "-y", "24", "-P", "-F", "#{pane_id}", "bash", "-c"];
    let pane = stage.tmux(&[&session[..], &[&script]].concat()).expect("a pane").trim().to_owned();
    let screen = || stage.tmux(&["capture-pane", "-p", "-t", &pane]).expect("screen");
    wait_for("ada on the screen", || screen().contains("ada").then_some(()));
    stage.phalanx(&["spawn", "bob", "--backend", "pty", "--", "sleep", "600"]).expect(0);
    wait_for("bob on the screen", || screen().contains("bob").then_some(()));
    assert_eq!(screen().matches("team alpha").count(), 1, "drawn in its own place: {}", screen());
    // A narrow terminal shows fewer columns.
    stage.tmux(&["resize-window", "-t", &pane, "-x", "30", "-y", "24"]).expect("resized");
    wait_for("columns that are left out", || {
        let heads = screen().lines().find(|line| line.starts_with("NAME")).map(str::to_owned);
        heads.is_some_and(|heads| heads.contains("STATE") && !heads.contains("PID")).then_some(())
    });
    stage.phalanx(&["shutdown", "bob"]).expect(0);
    wait_for("bob off the screen", || {
        (!screen().contains("bob") && screen().contains("ada")).then_some(())
    });
    stage.phalanx(&["down"]).expect(0);
    wait_for("the end", || screen().contains("over=0").then_some(()));
    let left = screen();
    assert!(left.contains("team alpha is deleted") && !left.contains("ada"), "{left}");
    let flags =
        ["display-message", "-p", "-t", &pane, "#{cursor_flag} #{wrap_flag} #{alternate_on}"];
    assert_eq!(stage.tmux(&flags).expect("flags").trim(), "1 1 0");
}

#[test]
fn watch_prints_one_json_document_per_change() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let out = stage.at("work/out");
    let mut command = stage.command(binary());
    command.args(["--json", "status", "--watch"]).stdout(fs::File::create(&out).expect("file"));
    let mut child = command.spawn().expect("phalanx");
    let documents = || -> Vec<Value> {
        let text = fs::read_to_string(&out).expect("file");
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    };
    wait_for("the first document", || (documents().len() == 1).then_some(()));
    stage.phalanx(&["spawn", "ada"]).expect(0);
    wait_for("ada idle", || {
        documents().last().filter(|d| d["members"][0]["state"] == "idle").map(drop)
    });
    let before = documents().len();
    // Passing time is not a change: the new task causes one document, and growing ages cause none.
    stage.phalanx(&["task", "create", "One"]).expect(0);
    wait_for("the task", || documents().last().filter(|d| d["tasks"]["pending"] == 1).map(drop));
    assert_eq!(documents().len(), before + 1, "{:?}", documents());
    stage.phalanx(&["shutdown", "ada"]).expect(0);
    wait_for("nobody", || documents().last().filter(|d| d["members"] == json!([])).map(drop));
    stage.phalanx(&["down"]).expect(0);
    let ended = wait_for("the end", || child.try_wait().expect("wait"));
    assert_eq!(ended.code(), Some(0));
    let all = documents();
    assert!(all.windows(2).all(|pair| pair[0] != pair[1]), "{all:?}");
}

#[test]
fn interrupted_watch_exits_130_without_an_error() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let watch = stage.start(&["status", "--watch"]);
    watch.wait_for_output("team alpha");
    watch.signal("INT");
    let run = watch.end().expect(130);
    assert!(run.stdout.contains("team alpha") && run.stderr.is_empty(), "{run:?}");
    stage.phalanx(&["team", "delete"]).expect(0);
}
