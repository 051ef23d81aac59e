//! Reports to the lead at the end of a turn of a wrapped program.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{FAKE_TUI, Stage, binary, wait_for};

/// Creates a team whose member `ada` is a slow wrapped program.
fn wrapped() -> Stage {
    let stage = Stage::new();
    stage.fake_tui(|sheet| sheet);
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let log = stage.at("log").display().to_string();
    let words =
        ["spawn", "ada", "--profile", "fake", "--backend", "pty", "--", FAKE_TUI, &log, "slowly"];
    stage.phalanx(&words).expect(0);
    stage
}

/// Waits for `count` reports in the mailbox of the lead.
fn reports(stage: &Stage, count: usize) -> Vec<Value> {
    wait_for(&format!("{count} reports"), || {
        let mail = stage.phalanx(&["--json", "inbox", "team-lead", "--all"]).expect(0).json();
        let texts =
            mail.as_array().expect("entries").iter().filter_map(|entry| entry["text"].as_str());
        let read = texts.filter_map(|text| serde_json::from_str::<Value>(text).ok());
        let reports: Vec<Value> =
            read.filter(|message| message["type"] == "idle_notification").collect();
        (reports.len() == count).then_some(reports)
    })
}

/// MSG-04: the report names the completed task, the last message to a peer, and the end of the
/// screen, each once and without control characters.
#[test]
fn wrap_msg_04_turn_end_report_has_task_message_and_screen() {
    let stage = wrapped();
    stage.phalanx(&["spawn", "bob", "--backend", "pty"]).expect(0);
    stage.phalanx(&["task", "create", "the parser"]).expect(0);
    for words in [
        &["task", "claim", "1"][..],
        &["task", "complete", "1"],
        &["send", "bob", "the parser\nis done"],
    ] {
        stage.phalanx(&[&["--as", "ada"], words].concat()).expect(0);
    }
    stage.phalanx(&["send", "ada", "hello there"]).expect(0);
    let first = reports(&stage, 1).remove(0);
    assert_eq!(
        (
            &first["from"],
            &first["idleReason"],
            &first["completedTaskId"],
            &first["completedStatus"]
        ),
        (&json!("ada"), &json!("available"), &json!("1"), &json!("resolved"))
    );
    let summary = first["summary"].as_str().expect("a summary");
    assert!(
        summary.starts_with("[to bob] the parser␊is done\n") && summary.contains("* hello there"),
        "{summary}"
    );
    stage.phalanx(&["send", "ada", "and again"]).expect(0);
    let second = reports(&stage, 2).remove(1);
    let summary = second["summary"].as_str().expect("a summary");
    assert!(
        second["completedTaskId"].is_null() && !summary.contains("bob"),
        "each thing once: {second}"
    );
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// MSG-04: if a hook reports the final message of the program, the lead gets that. The hook never
/// fails or prints, whatever its input and wherever it runs.
#[test]
fn wrap_msg_04_hook_reports_the_final_message_and_never_fails() {
    let stage = wrapped();
    let record =
        fs::read(stage.root().join("teams/alpha/phalanx/members/ada.json")).expect("a record");
    let record: Value = serde_json::from_slice(&record).expect("json");
    let hook = |run: &str, told: &str| {
        let mut command = stage.command(binary());
        command.args(["hook", told]).env("PHALANX_TEAM", "alpha").env("PHALANX_AGENT_NAME", "ada");
        let output = command.env("PHALANX_INCARNATION", run).output().expect("phalanx runs");
        assert_eq!(
            (output.status.code(), output.stdout.len(), output.stderr.len()),
            (Some(0), 0, 0),
            "{output:?}"
        );
    };
    let said = |words: &str| {
        json!({"type": "agent-turn-complete", "last-assistant-message": words}).to_string()
    };
    stage.phalanx(&["send", "ada", "hello there"]).expect(0);
    hook(record["incarnation"].as_str().expect("a run"), &said("All\u{1b}[2J done."));
    for stranger in ["00000000-0000-4000-8000-000000000001", "no run", ""] {
        hook(stranger, &said("Somebody else."));
    }
    hook(record["incarnation"].as_str().expect("a run"), "{");
    let report = reports(&stage, 1).remove(0);
    assert_eq!(report["summary"], json!("All␛[2J done."));
    for outside in [
        &["hook", "{"][..],
        &["hook", &said("x")],
        &["hook"],
        &["-t", "nowhere", "hook", &said("x")],
    ] {
        let run = stage.phalanx(outside).expect(0);
        assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", ""));
    }
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}
