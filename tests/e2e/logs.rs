//! `logs` and `peek` of several members: prefixes, times, JSON, and following.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::harness::{Stage, binary, wait_for};

fn team(backend: &str, members: &[(&str, &str)]) -> Stage {
    let stage = Stage::new();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    for (name, script) in members {
        stage.phalanx(&["spawn", name, "--backend", backend, "--", "sh", "-c", script]).expect(0);
    }
    stage
}

fn wait_lines(stage: &Stage, args: &[&str], lines: usize) -> String {
    wait_for(&format!("{lines} lines of {args:?}"), || {
        let shown = stage.phalanx(args).expect(0).stdout;
        (shown.lines().count() >= lines).then_some(shown)
    })
}

fn end(stage: &Stage) {
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

#[test]
fn logs_have_aligned_prefixes_and_outlive_their_members() {
    let stage = team(
        "pty",
        &[("ann", "echo one; echo two; read line"), ("benjamin", "echo three; exec sleep 300")],
    );
    let shown = wait_lines(&stage, &["logs"], 3);
    stage.phalanx(&["shutdown", "ann", "--force"]).expect(0);
    let mut lines: Vec<&str> = shown.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["ann      | one", "ann      | two", "benjamin | three"]);
    assert_eq!(stage.phalanx(&["logs", "ann"]).expect(0).stdout, "one\ntwo\n");
    assert_eq!(stage.phalanx(&["logs", "ann", "-n", "1"]).expect(0).stdout, "two\n");
    let colored = stage
        .phalanx(&["logs", "ann", "benjamin", "-n", "1", "--color", "always"])
        .expect(0)
        .stdout;
    assert!(
        colored.contains("m\u{1b}[0m two") || colored.contains("|\u{1b}[0m two"),
        "{colored:?}"
    );
    for line in stage.phalanx(&["--json", "logs", "ann"]).expect(0).stdout.lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(line["name"], json!("ann"));
        assert!(line["time"].as_str().is_some_and(|time| time.ends_with('Z')), "{line}");
    }
    stage.phalanx(&["logs", "nobody"]).expect(3);
    end(&stage);
}

#[test]
fn logs_since_shows_newer_lines_in_order_of_time() {
    let stage = team(
        "pty",
        &[("ann", "echo old; echo new; read line"), ("ben", "echo between; read line")],
    );
    wait_lines(&stage, &["logs"], 3);
    let times = |name: &str, text: &str| {
        let path = stage.root().join(format!("teams/alpha/phalanx/logs/{name}.log.times"));
        assert!(path.exists(), "{path:?}");
        fs::write(path, text).expect("writable");
    };
    times("ann", "1000000000000 0\n1000000200000 5\n");
    times("ben", "1000000100000 0\n");
    let shown = |since: &str| stage.phalanx(&["logs", "--since", since]).expect(0).stdout;
    assert_eq!(shown("2001-09-09T01:46:40Z"), "ann | old\nben | between\nann | new\n");
    assert_eq!(shown("2001-09-09T01:48:00Z"), "ben | between\nann | new\n");
    assert_eq!(shown("5m"), "");
    let refused = stage.phalanx(&["logs", "--since", "yesterday"]).expect(2);
    assert!(refused.stderr.contains("\"yesterday\" is not a time"), "{refused:?}");
    end(&stage);
}

#[test]
fn cr_12_output_of_a_failed_member_outlives_its_tmux_pane() {
    let stage = Stage::new();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let scripts = [
        ("ann", "echo starting; echo boom >&2; read line; exit 7", "starting\nboom\n"),
        // The last line arrives in tmux long after the program has ended.
        ("ben", "read line; seq 1 100000; echo last; exit 3", "100000\nlast\n"),
        ("cleo", "read line; printf 'odd \\033Pq open'; kill -9 $$", "odd\n"),
    ];
    for (name, script, _) in scripts {
        stage.phalanx(&["spawn", name, "--backend", "tmux", "--", "sh", "-c", script]).expect(0);
    }
    for (name, ..) in scripts {
        stage.phalanx(&["keys", name, "Enter"]).expect(0);
    }
    for (name, _, printed) in scripts {
        stage.phalanx(&["wait", name, "--until", "gone"]).expect(1);
        for verb in ["logs", "peek"] {
            let shown = stage.phalanx(&[verb, name, "-n", "9"]).expect(0).stdout;
            let ends: Vec<&str> = shown.lines().map(str::trim_end).collect();
            assert!((ends.join("\n") + "\n").contains(printed), "{verb} {name}: {shown}");
        }
        let found = stage.phalanx(&["--json", "explain", name]).expect(0).json();
        let lines = found["last_lines"].as_array().expect("lines").iter();
        let lines: Vec<&str> = lines.map(|line| line.as_str().expect("text").trim_end()).collect();
        assert!((lines.join("\n") + "\n").contains(printed), "explain {name}: {found}");
    }
    let exited = stage.wait_event("alpha", "member_exited", "ben");
    assert_eq!(exited["detail"]["last_line"], "last");
    let events = stage.phalanx(&["events", "ben", "-n", "1", "--since", "1h"]).expect(0).stdout;
    assert!(events.contains("exited with code 3") && events.ends_with(": last\n"), "{events}");
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

#[test]
fn logs_follow_includes_later_members_and_ends_with_the_last() {
    let stage = team("pty", &[("ann", "echo one; read line; echo bye")]);
    let follow = stage.start(&["logs", "-f"]);
    stage
        .phalanx(&["spawn", "ben", "--backend", "pty", "--", "sh", "-c", "echo two; read line"])
        .expect(0);
    wait_lines(&stage, &["logs"], 2);
    // `logs -f` also reads the log of a member that ended before it was noticed.
    stage.phalanx(&["keys", "ann", "Enter"]).expect(0);
    stage.phalanx(&["keys", "ben", "Enter"]).expect(0);
    let shown = follow.end().expect(0).stdout;
    for line in ["ann | one", "ben | two", "ann | bye"] {
        assert!(shown.lines().any(|found| found == line), "{line}: {shown}");
    }
    end(&stage);
}

/// `logs -f` is stopped after it has looked for members, while one joins and all end.
#[test]
fn logs_follow_shows_a_member_that_joined_just_before_the_others_ended() {
    let stage = team("pty", &[("ann", "echo one; read line")]);
    let follow = stage.start_and_stop_at("logs.admitted", &["logs", "-f"]);
    stage.phalanx(&["spawn", "ben", "--backend", "pty", "--", "echo", "two"]).expect(0);
    stage.phalanx(&["keys", "ann", "Enter"]).expect(0);
    for name in ["ann", "ben"] {
        stage.phalanx(&["wait", name, "--until", "gone"]).expect(0);
    }
    follow.signal("CONT");
    let shown = follow.end().expect(0).stdout;
    assert!(shown.contains("ann | one\n") && shown.contains("ben | two\n"), "{shown}");
    end(&stage);
}

/// `logs -f` looks for members while one has a record and no terminal.
#[test]
fn logs_follow_shows_a_member_that_was_being_started() {
    let stage = team("pty", &[("ann", "echo one; read line")]);
    let spawn = ["spawn", "ben", "--backend", "pty", "--", "sh", "-c", "echo two; read line"];
    let spawn = stage.start_and_stop_at("spawn.joined", &spawn);
    let now = stage.phalanx(&["logs"]).expect(0);
    assert!(
        now.stdout == "ann | one\n" && now.stderr.contains("`ben` is being started"),
        "{now:?}"
    );
    let follow = stage.start(&["logs", "-f"]);
    follow.wait_for_output("ann | one\n");
    spawn.signal("CONT");
    spawn.end().expect(0);
    follow.wait_for_output("ben | two\n");
    for name in ["ann", "ben"] {
        stage.phalanx(&["keys", name, "Enter"]).expect(0);
    }
    follow.end().expect(0);
    end(&stage);
}

#[test]
fn interrupted_logs_follow_exits_130() {
    let stage = team("pty", &[("ann", "echo one; exec sleep 300")]);
    let out = stage.at("work/out");
    let mut follow = stage.command("sh");
    let line = format!("'{}' logs -f >'{}' & echo $!; wait $!; echo $?", binary(), out.display());
    let follow = follow.args(["-c", &line]).stdout(Stdio::piped()).spawn().expect("sh");
    wait_for("the first line", || {
        fs::read_to_string(&out).is_ok_and(|text| text.contains("one")).then_some(())
    });
    let pid = stage
        .processes()
        .into_iter()
        .find(|line| line.contains("logs -f") && !line.contains("sh -c"));
    let pid = pid.expect("it runs").split(' ').next().expect("a pid").to_owned();
    assert!(
        std::process::Command::new("kill").args(["-TERM", &pid]).status().expect("kill").success()
    );
    let output = follow.wait_with_output().expect("sh ends");
    assert!(String::from_utf8_lossy(&output.stdout).ends_with("\n130\n"), "{output:?}");
    end(&stage);
}

#[test]
fn tmux_logs_since_is_refused_because_panes_have_no_times() {
    let stage =
        team("tmux", &[("ann", "echo one; exec sleep 300"), ("ben", "echo two; exec sleep 300")]);
    let shown = wait_lines(&stage, &["logs"], 2);
    assert_eq!(shown, "ann | one\nben | two\n");
    let line: Value =
        serde_json::from_str(&stage.phalanx(&["--json", "logs", "ann"]).expect(0).stdout)
            .expect("JSON");
    assert_eq!(line, json!({"name": "ann", "line": "one"}));
    let refused = stage.phalanx(&["logs", "ann", "--since", "5m"]).expect(4);
    assert!(refused.stderr.contains("the lines of `ann` have no times"), "{refused:?}");
    let refused = stage.phalanx(&["logs", "--since", "5m"]).expect(4);
    assert!(refused.stderr.contains("left out: the lines of `ben` have no times"), "{refused:?}");
    end(&stage);
}

#[test]
fn peek_shows_the_screens_of_several_members() {
    let stage =
        team("pty", &[("ann", "echo one; exec sleep 300"), ("ben", "echo two; exec sleep 300")]);
    wait_lines(&stage, &["logs"], 2);
    let shown = stage.phalanx(&["peek", "ann", "ben"]).expect(0).stdout;
    assert_eq!(shown, "==> ann <==\none\n\n==> ben <==\ntwo\n");
    assert_eq!(
        stage.phalanx(&["--json", "peek", "ann"]).expect(0).json(),
        json!({"name": "ann", "lines": ["one"]})
    );
    let both = stage.phalanx(&["--json", "peek", "ann", "ben"]).expect(0).json();
    assert_eq!(both, json!([{"name": "ann", "lines": ["one"]}, {"name": "ben", "lines": ["two"]}]));
    end(&stage);
}

/// CR-15: SIGXFSZ would end the launcher, and the program with it.
#[test]
fn cr_15_program_outlives_a_log_that_reaches_the_limit_of_file_sizes() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let line = "x".repeat(100);
    let script = format!(
        "i=0; while [ $i -lt 5000 ]; do echo {line}; i=$((i + 1)); done; echo >done; exec sleep 300"
    );
    let mut command = stage.command("bash");
    command.args(["-c", r#"ulimit -f 200; exec "$@""#, "bash", binary()]);
    command.args(["spawn", "ann", "--backend", "pty", "--", "sh", "-c", &script]);
    assert!(command.status().expect("bash runs").success());
    let warning = stage.wait_event("alpha", "warning", "ann");
    let text = warning["detail"]["text"].as_str().unwrap_or_default();
    assert!(text.starts_with("what it prints is no longer kept: ") && text.contains("too large"));
    wait_for("the program to go on", || stage.at("work/done").exists().then_some(()));
    assert!(stage.processes().iter().any(|line| line.ends_with("sleep 300 ")));
    let warnings = stage.journal("alpha").into_iter().filter(|e| e["event"] == "warning").count();
    assert_eq!(warnings, 1);
    end(&stage);
}

/// As in `phalanx logs -f ann | head -1`, when nothing follows the first line.
#[test]
fn pt_11_streams_end_with_the_process_that_reads_them() {
    let stage = team("pty", &[("ann", "echo one; exec sleep 300")]);
    for (args, has_line) in [
        (["logs", "-f"], true),
        (["events", "--follow"], true),
        (["status", "--watch"], true),
        (["inbox", "-f"], false),
    ] {
        let mut command = stage.command(binary());
        let mut child = command.args(args).stdout(Stdio::piped()).spawn().expect("phalanx runs");
        let mut reader = BufReader::new(child.stdout.take().expect("its output"));
        if has_line {
            assert!(reader.read_line(&mut String::new()).expect("readable") > 0, "{args:?}");
        }
        drop(reader);
        let status =
            wait_for(&format!("the end of {args:?}"), || child.try_wait().expect("a child"));
        assert_eq!(status.code(), Some(0), "{args:?}");
    }
    end(&stage);
}
