//! The tmux commands that phalanx runs, and unusual tmux configurations.

use serde_json::json;

use crate::harness::{Stage, wait_for, which};

const FIVE: &str = r#"
[team]
name = "five"
[[member]]
name = "m1"
[[member]]
name = "m2"
[[member]]
name = "m3"
[[member]]
name = "m4"
[[member]]
name = "m5"
[[task]]
key = "t"
subject = "T"
run = ["true"]
"#;

/// Shadows tmux with a script that logs the arguments of each call, separated by U+001F, and then
/// runs it.
fn traced(stage: &mut Stage) {
    let real = which("tmux", stage.path()).expect("tmux");
    let trace = stage.at("trace");
    let script = format!(
        "#!/bin/sh\nline=$(printf '%s\\037' \"$@\")\necho \"$line\" >>'{}'\nexec '{}' \"$@\"\n",
        trace.display(),
        real.display()
    );
    stage.shadow("tmux", &script);
}

/// Asserts that targets are ids; the one exception is a session that the same call has created
/// under an exact name.
fn check_command(command: &[&str], call: &[&str]) {
    if command.contains(&"if-shell") {
        assert!(command.contains(&"-F"), "a condition is never a shell's: {command:?}");
    }
    let target = command.iter().position(|w| *w == "-t").map(|at| command[at + 1]);
    if let Some(target) = target {
        let is_id = target.len() > 1 && target.starts_with(['%', '@', '$']);
        let just_made = call.contains(&"new-session") && target == "=phalanx-five:";
        assert!(is_id || just_made, "{target} in {call:?}");
    }
    let needs_target =
        ["split-window", "if-shell", "select-layout", "set-option", "capture-pane", "new-window"];
    if command.iter().any(|w| needs_target.contains(w)) {
        assert!(target.is_some(), "no target: {command:?}");
    }
    assert!(!command.contains(&"kill-pane"), "a pane is closed only under its proof: {command:?}");
}

#[test]
fn tmux_sp_01_launches_are_not_typed_and_targets_are_ids() {
    let mut stage = Stage::new();
    traced(&mut stage);
    let manifest = stage.file("five.toml", FIVE);
    stage.phalanx(&["up", &manifest]).expect(0);
    let trace = std::fs::read_to_string(stage.at("trace")).expect("trace");
    let calls: Vec<Vec<&str>> =
        trace.lines().map(|l| l.split('\u{1f}').filter(|w| !w.is_empty()).collect()).collect();
    assert!(calls.iter().any(|c| c.contains(&"split-window")), "{calls:?}");
    for call in calls.iter().filter(|c| **c != ["-V"]) {
        assert_eq!(call[0], "-u", "{call:?}");
        for typed in ["send-keys", "paste-buffer", "load-buffer", "set-buffer"] {
            assert!(!call.contains(&typed), "{call:?}");
        }
        // With `-C` it runs commands of tmux.
        let run_shell = call.iter().position(|word| *word == "run-shell");
        assert!(run_shell.is_none_or(|at| call[at + 1] == "-C"), "{call:?}");
        for command in call.split(|w| *w == ";") {
            check_command(command, call);
        }
    }
    stage.assert_clean();
}

/// SP-01, LY-01: a default shell that sleeps and flushes its input, indexes from 1, and panes that
/// remain.
#[test]
fn tmux_sp_01_ly_01_slow_shell_and_shifted_indexes_do_not_matter() {
    let stage = Stage::new();
    let shell = stage.at("slow-shell");
    stage.script(
        &shell,
        "#!/usr/bin/env python3\nimport sys, termios, time\nopen(sys.argv[0] + '.ran', 'w')\ntime.sleep(3)\ntermios.tcflush(0, termios.TCIFLUSH)\nimport os\nos.execv('/bin/sh', ['sh'] + sys.argv[1:])\n",
    );
    let conf = format!(
        "set -g default-shell {}\nset -g base-index 1\nsetw -g pane-base-index 1\nsetw -g remain-on-exit on\nset -g renumber-windows on\n",
        shell.display()
    );
    std::fs::write(stage.at("home/.tmux.conf"), conf).expect("conf");
    let manifest = stage.file("five.toml", FIVE);
    let report = stage.phalanx(&["--json", "up", &manifest]).expect(0).json();
    assert_eq!(report["members"].as_array().map(Vec::len), Some(5));
    for member in report["members"].as_array().expect("members") {
        assert_eq!(member["backend"], json!("tmux"));
        assert_eq!(member["state"], json!("completed"), "{member}");
    }
    assert!(!stage.at("slow-shell.ran").exists(), "no shell stands in between");
    stage.assert_clean();
}

#[test]
fn tmux_ly_03_members_overflow_into_further_windows() {
    let stage = Stage::new();
    stage.phalanx(&["team", "create", "many"]).expect(0);
    let names: Vec<String> = (0..20).map(|n| format!("m{n}")).collect();
    let mut text = "[team]\nname = \"crowd\"\nfinish = \"manual\"\nmax_members = 20\n".to_owned();
    for name in &names {
        text.push_str(&format!("[[member]]\nname = \"{name}\"\n"));
    }
    let manifest = stage.file("crowd.toml", &text);
    stage.phalanx(&["up", &manifest, "--detach"]).expect(0);
    let sizes = stage
        .tmux(&["list-panes", "-a", "-F", "#{window_id} #{pane_width} #{pane_height}"])
        .expect("server");
    let rows: Vec<Vec<u32>> = sizes
        .lines()
        .map(|l| l.split(' ').skip(1).map(|n| n.parse().expect("number")).collect())
        .collect();
    assert_eq!(rows.len(), 20);
    for row in &rows {
        assert!(row[0] >= 40 && row[1] >= 10, "{sizes}");
    }
    stage.phalanx(&["down", "-t", "crowd"]).expect(0);
    stage.phalanx(&["team", "delete", "-t", "many"]).expect(0);
    stage.assert_clean();
}

/// SD-05: foreign panes that run the same program on the same server are left alone.
#[test]
fn tmux_sd_05_foreign_panes_are_not_touched() {
    let stage = Stage::new();
    for n in 0..5 {
        stage
            .tmux(&["new-session", "-d", "-s", &format!("phalanx-five{n}"), "sleep", "300"])
            .expect("session");
    }
    let before = stage
        .tmux(&["list-panes", "-a", "-F", "#{pane_id} #{pane_pid} #{session_name}"])
        .expect("server");
    let manifest = stage.file("five.toml", FIVE);
    stage.phalanx(&["up", &manifest]).expect(0);
    let after = stage
        .tmux(&["list-panes", "-a", "-F", "#{pane_id} #{pane_pid} #{session_name}"])
        .expect("server");
    assert_eq!(before, after);
}

/// The pane border shows name and role from the start, and the state as the lead sees it.
#[test]
fn tmux_pane_border_shows_name_role_and_state() {
    let stage = Stage::new();
    let manifest = stage.file(
        "shown.toml",
        r#"
[team]
name = "shown"
[[member]]
name = "ada"
role = "reviewer"
[[task]]
key = "slow"
subject = "Waits for a file"
run = ["sh", "-c", "until [ -e go ]; do sleep 0.05; done"]
"#,
    );
    let up = stage.start(&["up", &manifest]);
    let format = "#{@phalanx_name}/#{@phalanx_role}/#{@phalanx_state}/#{@phalanx_color}";
    wait_for("the border says what it does", || {
        let said = stage.tmux(&["list-panes", "-a", "-F", format])?;
        (said.trim() == "ada/reviewer/working/blue").then_some(())
    });
    std::fs::write(stage.at("work/go"), "").expect("go");
    up.end().expect(0);
    stage.assert_clean();
}

/// SP-05, LY-04: `--layout split`, requested by a lead in a pane.
#[test]
fn tmux_ly_04_split_layout_places_members_beside_the_lead() {
    let stage = Stage::new();
    let wide =
        ["new-session", "-d", "-s", "mine", "-x", "200", "-y", "50", "--", "env", "sleep", "300"];
    stage.tmux(&wide).expect("a session");
    let tmux = stage
        .tmux(&["display-message", "-p", "-t", "=mine:", "#{socket_path},#{pid},0"])
        .expect("server");
    stage.phalanx(&["team", "create", "side"]).expect(0);
    let mut command = stage.command(crate::harness::binary());
    command.args(["spawn", "bob", "-t", "side", "--layout", "split", "--", "sleep", "300"]);
    let output = command.env("TMUX", tmux.trim()).env("TMUX_PANE", "%0").output().expect("runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let panes =
        || stage.tmux(&["list-panes", "-t", "=mine:", "-F", "#{pane_width} #{@phalanx_name}"]);
    assert_eq!(panes().expect("panes").trim(), "100 \n99 bob");
    stage.phalanx(&["shutdown", "bob", "-t", "side"]).expect(0);
    assert_eq!(panes().expect("panes").trim(), "200");
    let status = stage.phalanx(&["--json", "status", "-t", "side"]).expect(0).json();
    assert_eq!(status["members"], json!([]), "LY-12");
    stage.phalanx(&["team", "delete", "-t", "side"]).expect(0);
    stage.tmux(&["kill-session", "-t", "=mine"]).expect("ended");
    stage.assert_clean();
}

/// LY-17: four commands at the same moment cut one column, not one each.
#[test]
fn tmux_ly_17_spawns_at_once_leave_the_leads_pane_its_half() {
    let stage = Stage::new();
    let wide =
        ["new-session", "-d", "-s", "mine", "-x", "200", "-y", "50", "--", "env", "sleep", "300"];
    stage.tmux(&wide).expect("a session");
    let tmux = stage
        .tmux(&["display-message", "-p", "-t", "=mine:", "#{socket_path},#{pid},0"])
        .expect("server");
    stage.phalanx(&["team", "create", "side"]).expect(0);
    let spawns: Vec<_> = ["ann", "bob", "cyd", "dan"]
        .iter()
        .map(|name| {
            let mut command = stage.command(crate::harness::binary());
            command.args(["spawn", name, "-t", "side", "--layout", "split", "--", "sleep", "300"]);
            command.env("TMUX", tmux.trim()).env("TMUX_PANE", "%0").spawn().expect("runs")
        })
        .collect();
    for mut spawn in spawns {
        assert!(spawn.wait().expect("ends").success());
    }
    let panes = stage.tmux(&["list-panes", "-t", "=mine:", "-F", "#{pane_width}x#{pane_height}"]);
    let panes = panes.expect("panes");
    let (lead, column) = panes.split_once('\n').expect("several");
    assert_eq!(lead, "100x50");
    assert!(column.lines().all(|pane| pane.starts_with("99x")), "{column}");
    assert_eq!(column.lines().count(), 4, "{column}");
    stage.phalanx(&["down", "-t", "side", "--force"]).expect(0);
    stage.tmux(&["kill-session", "-t", "=mine"]).expect("ended");
    stage.assert_clean();
}

#[test]
fn tmux_team_stays_on_its_configured_socket() {
    let stage = Stage::new();
    let socket = stage.at("own.sock");
    let other = socket.to_string_lossy().into_owned();
    stage.phalanx(&["team", "create", "alpha", "--tmux-socket", "../own.sock"]).expect(0);
    for name in ["ada", "ben"] {
        let made = stage.phalanx(&["--json", "spawn", name]).expect(0).json();
        assert_eq!(made["backend"], json!("tmux"));
    }
    let there = stage
        .command("tmux")
        .args(["-S", &other, "list-panes", "-a", "-F", "#{@phalanx_name}"])
        .output();
    let there = String::from_utf8_lossy(&there.expect("tmux").stdout).into_owned();
    assert_eq!(there.lines().collect::<Vec<_>>(), ["ada", "ben"]);
    assert_eq!(stage.panes(), Vec::<String>::new(), "nothing on the default server");
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}
