//! `type` and `keys`: the bytes that reach the program on each backend, and the inputs that are
//! refused.

use std::fs;

use serde_json::json;

use crate::harness::{Stage, wait_for};

/// Text that some layer on the way might alter: quotes, formats, separators, options, wide
/// characters.
const ODD: &str = "-n; #{pane_id} #(true) $HOME ~ `x` \"q\" 'q' \\; %1 ü 漢 \u{1f600};";

/// Creates a team whose member `raw` writes every byte that it reads to the file `got-raw`.
fn reader(backend: &str) -> Stage {
    let stage = Stage::new();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    spawn_reader(&stage, "raw", backend, "");
    stage
}

/// Spawns a member on a terminal without echo that first prints `modes`.
fn spawn_reader(stage: &Stage, name: &str, backend: &str, modes: &str) {
    let script = format!(
        "stty raw -echo; printf '{modes}ready'; exec cat >>'{}'",
        stage.at(&format!("work/got-{name}")).display()
    );
    stage.phalanx(&["spawn", name, "--backend", backend, "--", "sh", "-c", &script]).expect(0);
    wait_for("the reader to be ready", || {
        stage.phalanx(&["peek", name]).stdout.contains("ready").then_some(())
    });
}

fn received(stage: &Stage, name: &str) -> Vec<u8> {
    fs::read(stage.at(&format!("work/got-{name}"))).unwrap_or_default()
}

fn assert_gets(stage: &Stage, name: &str, expected: &[u8]) {
    let shown = || String::from_utf8_lossy(&received(stage, name)).into_owned();
    wait_for(
        &format!("{:?} to arrive; there is {:?}", String::from_utf8_lossy(expected), shown()),
        || (received(stage, name).len() >= expected.len()).then_some(()),
    );
    assert_eq!(received(stage, name), expected, "{:?}", shown());
}

fn end(stage: &Stage) {
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

fn text_and_keys_arrive_exactly(backend: &str) {
    let stage = reader(backend);
    let typed = stage.phalanx(&["--json", "type", "raw", "--", ODD]).expect(0).json();
    assert_eq!(typed, json!({"name": "raw", "typed": ODD.len()}));
    stage.phalanx(&["type", "raw", "yes", "--enter"]).expect(0);
    stage.phalanx(&["type", "raw", "one\ntwo\n"]).expect(0);
    let pressed =
        stage.phalanx(&["--json", "keys", "raw", "C-c", "Escape", "M-x", "Up", "F5", ";", "é"]);
    assert_eq!(pressed.expect(0).json(), json!({"name": "raw", "keys": 7}));
    let mut expected = ODD.as_bytes().to_vec();
    expected.extend_from_slice(b"yes\rone\rtwo\r\x03\x1b\x1bx\x1b[A\x1b[15~;\xc3\xa9");
    assert_gets(&stage, "raw", &expected);
    let typed = stage.wait_event("alpha", "typed", "raw");
    assert_eq!(typed["detail"], json!({"by": "team-lead", "bytes": ODD.len(), "enter": false}));
    assert!(
        !fs::read_to_string(stage.root().join("teams/alpha/phalanx/journal.jsonl"))
            .expect("journal")
            .contains("yes")
    );
    end(&stage);
}

#[test]
fn tmux_text_and_keys_arrive_byte_for_byte() {
    text_and_keys_arrive_exactly("tmux");
}

#[test]
fn pty_text_and_keys_arrive_byte_for_byte() {
    text_and_keys_arrive_exactly("pty");
}

fn modes_of_the_terminal_are_respected(backend: &str) {
    let stage = Stage::new();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    spawn_reader(&stage, "raw", backend, "\\033[?1h\\033[?2004h");
    stage.phalanx(&["keys", "raw", "Up", "C-Up"]).expect(0);
    stage.phalanx(&["type", "raw", "one\ntwo", "--enter"]).expect(0);
    stage.phalanx(&["type", "raw", "three"]).expect(0);
    assert_gets(&stage, "raw", b"\x1bOA\x1b[1;5A\x1b[200~one\rtwo\x1b[201~\rthree");
    end(&stage);
}

#[test]
fn tmux_cursor_keys_and_pastes_follow_the_terminal_modes() {
    modes_of_the_terminal_are_respected("tmux");
}

#[test]
fn pty_cursor_keys_and_pastes_follow_the_terminal_modes() {
    modes_of_the_terminal_are_respected("pty");
}

#[test]
fn tmux_long_text_arrives_whole_and_leaves_no_paste_buffer() {
    let stage = reader("tmux");
    let long = "0123456789abcde;".repeat(6_000);
    stage.phalanx(&["type", "raw", &long]).expect(0);
    assert_gets(&stage, "raw", long.as_bytes());
    assert_eq!(stage.tmux(&["list-buffers"]).as_deref(), Some(""));
    end(&stage);
}

#[test]
fn tmux_msg_10_pane_in_copy_mode_leaves_it_and_gets_the_input() {
    let stage = reader("tmux");
    let pane = stage.phalanx(&["--json", "status"]).expect(0).json()["members"][0]["pane"].clone();
    let pane = pane.as_str().expect("a pane").to_owned();
    for input in [["type", "raw", "hi"], ["keys", "raw", "Enter"]] {
        stage.tmux(&["copy-mode", "-t", &pane]).expect("tmux");
        stage.phalanx(&input).expect(0);
        let mode = stage.tmux(&["display-message", "-p", "-t", &pane, "#{pane_in_mode}"]);
        assert_eq!(mode.as_deref(), Some("0\n"));
    }
    assert_gets(&stage, "raw", b"hi\r");
    end(&stage);
}

#[test]
fn tmux_msg_10_synchronized_pane_is_refused_and_siblings_get_nothing() {
    let stage = reader("tmux");
    spawn_reader(&stage, "other", "tmux", "");
    stage
        .tmux(&["set-option", "-w", "-t", "phalanx-alpha:", "synchronize-panes", "on"])
        .expect("tmux");
    for input in [&["type", "raw", "hi", "--enter"][..], &["keys", "raw", "C-c"]] {
        let refused = stage.phalanx(input).expect(4);
        assert!(refused.stderr.contains("synchronize-panes is on"), "{refused:?}");
    }
    stage
        .tmux(&["set-option", "-w", "-t", "phalanx-alpha:", "synchronize-panes", "off"])
        .expect("tmux");
    stage.phalanx(&["type", "raw", "now"]).expect(0);
    assert_gets(&stage, "raw", b"now");
    assert_eq!(received(&stage, "other"), b"");
    end(&stage);
}

#[test]
fn tmux_sd_06_foreign_pane_with_the_same_id_gets_nothing() {
    let stage = reader("tmux");
    let pane = stage.phalanx(&["--json", "status"]).expect(0).json()["members"][0]["pane"].clone();
    let pane = pane.as_str().expect("a pane");
    // Same server, pane id and token, but another process.
    let script = format!(
        "stty raw -echo; printf foreign; exec cat >>'{}'",
        stage.at("work/foreign").display()
    );
    stage.tmux(&["set-option", "-p", "-t", pane, "remain-on-exit", "on"]).expect("tmux");
    stage.tmux(&["respawn-pane", "-k", "-t", pane, "sh", "-c", &script]).expect("tmux");
    wait_for("the other program", || {
        stage.tmux(&["capture-pane", "-p", "-t", pane])?.contains("foreign").then_some(())
    });
    for input in [["type", "raw", "secret"], ["keys", "raw", "C-c"]] {
        let refused = stage.phalanx(&input).expect(4);
        assert!(refused.stderr.contains("of `raw` is not touched"), "{refused:?}");
    }
    assert_eq!(fs::read(stage.at("work/foreign")).unwrap_or_default(), b"");
    stage.tmux(&["kill-pane", "-t", pane]).expect("tmux");
    end(&stage);
}

#[test]
fn only_the_lead_may_type_and_only_into_running_members() {
    let stage = reader("pty");
    stage.phalanx(&["spawn", "bob"]).expect(0);
    for input in [["--as", "bob", "type", "raw", "x"], ["--as", "bob", "keys", "raw", "x"]] {
        let refused = stage.phalanx(&input).expect(4);
        assert!(refused.stderr.contains("only the lead may"), "{refused:?}");
    }
    stage.phalanx(&["spawn", "short", "--", "sh", "-c", "read line"]).expect(0);
    stage.phalanx(&["keys", "short", "Enter"]).expect(0);
    wait_for("its end", || {
        let ended = stage.phalanx(&["type", "short", "x"]);
        (ended.code == 4 && ended.stderr.contains("cannot type into `short`: it has ended"))
            .then_some(())
    });
    stage.phalanx(&["type", "nobody", "x"]).expect(3);
    assert_eq!(received(&stage, "raw"), b"");
    end(&stage);
}

#[test]
fn control_characters_and_unknown_keys_are_refused_with_a_hint() {
    let stage = reader("pty");
    let refused = stage.phalanx(&["type", "raw", "a\u{3}"]).expect(2);
    assert!(refused.stderr.contains("contains the control character U+0003"), "{refused:?}");
    assert!(refused.stderr.contains("phalanx keys raw KEY…"), "{refused:?}");
    let refused = stage.phalanx(&["keys", "raw", "Entre"]).expect(2);
    assert!(refused.stderr.contains("did you mean `Enter`?"), "{refused:?}");
    assert_eq!(received(&stage, "raw"), b"");
    end(&stage);
}

#[test]
fn send_to_a_plain_command_suggests_type() {
    let stage = reader("pty");
    let refused = stage.phalanx(&["send", "raw", "hello"]).expect(4);
    assert!(
        refused.stderr.contains("hint: type into its terminal: `phalanx type raw TEXT --enter`"),
        "{refused:?}"
    );
    end(&stage);
}

#[test]
fn pty_typing_fails_if_the_program_does_not_read() {
    let stage = Stage::new();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let script = "stty raw -echo; printf ready; exec sleep 300";
    stage.phalanx(&["spawn", "raw", "--backend", "pty", "--", "sh", "-c", script]).expect(0);
    wait_for("it to be ready", || {
        stage.phalanx(&["peek", "raw"]).stdout.contains("ready").then_some(())
    });
    let refused = stage.phalanx(&["type", "raw", &"x".repeat(100_000)]).expect(4);
    assert!(refused.stderr.contains("its program has not read all of it"), "{refused:?}");
    end(&stage);
}
