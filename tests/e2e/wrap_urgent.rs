//! `send --urgent` interrupts the turn of a wrapped program and delivers the message.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{FAKE_TUI, Stage, wait_for};

fn stage(profile: fn(String) -> String, switches: &[&str]) -> Stage {
    let stage = Stage::new();
    stage.fake_tui(profile);
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let log = stage.at("log").display().to_string();
    let words = ["spawn", "ada", "--profile", "fake", "--backend", "pty", "--", FAKE_TUI, &log];
    stage.phalanx(&[&words[..], switches].concat()).expect(0);
    stage
}

/// Waits until the program has logged this number of lines.
fn logged(stage: &Stage, count: usize) -> Vec<Value> {
    wait_for("the lines", || {
        let text = fs::read_to_string(stage.at("log")).unwrap_or_default();
        let lines: Vec<Value> =
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        (lines.len() == count).then_some(lines)
    })
}

fn state(stage: &Stage) -> Value {
    stage.phalanx(&["--json", "status"]).expect(0).json()["members"][0]["state"].clone()
}

/// MSG-13: the interrupt key of the profile is pressed once; then the urgent message and earlier
/// mail are delivered in order.
#[test]
fn wrap_msg_13_urgent_message_interrupts_the_turn() {
    let stage = stage(|profile| profile, &[]);
    stage.phalanx(&["send", "ada", "think"]).expect(0);
    wait_for("it to work", || (state(&stage) == "working").then_some(()));
    stage.phalanx(&["send", "ada", "later"]).expect(0);
    stage.phalanx(&["send", "ada", "--urgent", "stop that"]).expect(0);
    let log = logged(&stage, 3);
    assert_eq!(log[1], json!({"broke_off": true}));
    let turn = log[2].as_str().expect("a turn");
    assert!(turn.find("later").expect("there") < turn.find("stop that").expect("there"), "{turn}");
    stage.wait_event("alpha", "turn_interrupted", "ada");
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// MSG-21: a program that puts the interrupted prompt back into its composer gets the next message
/// behind it, because nobody but phalanx has typed it.
#[test]
fn wrap_msg_21_message_follows_a_prompt_that_was_put_back() {
    let stage = stage(|profile| profile, &["returns"]);
    stage.phalanx(&["send", "ada", "think"]).expect(0);
    wait_for("it to work", || (state(&stage) == "working").then_some(()));
    stage.phalanx(&["send", "ada", "--urgent", "stop that"]).expect(0);
    let log = logged(&stage, 3);
    assert_eq!(log[1], json!({"broke_off": true}));
    let [first, last] = [&log[0], &log[2]].map(|turn| turn.as_str().expect("a turn"));
    assert!(last.starts_with(first) && last.contains("stop that"), "{last}");
    // Then both are put back.
    wait_for("it to work", || (state(&stage) == "working").then_some(()));
    stage.phalanx(&["send", "ada", "--urgent", "and this"]).expect(0);
    let log = logged(&stage, 5);
    let again = log[4].as_str().expect("a turn");
    assert!(again.starts_with(last) && again.contains("and this"), "{again}");
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// A member that cannot be interrupted refuses the message, and nothing is stored.
#[test]
fn wrap_msg_13_urgent_is_refused_if_the_turn_cannot_be_interrupted() {
    let stage = stage(|profile| profile.replace("interrupt = \"\\u0018\"\n", ""), &[]);
    stage.phalanx(&["spawn", "bob", "--backend", "pty"]).expect(0);
    for (name, why) in [
        ("ada", "profile `fake` has no `interrupt`"),
        ("bob", "profile `worker` reads its mail by itself"),
    ] {
        let refused = stage.phalanx(&["send", name, "--urgent", "stop"]).expect(4);
        assert!(
            refused.stderr.contains(why) && refused.stderr.contains("without `--urgent`"),
            "{refused:?}"
        );
        let shown = stage.phalanx(&["--json", "inbox", name, "--all"]).expect(0).json();
        assert_eq!(shown, json!([]), "{name}");
    }
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}
