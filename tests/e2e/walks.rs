//! Whole decision dialogues with a member that acts on its answers (`fixtures/fake-agent`).
//! `docs/decisions.md` shows them as transcripts.

use serde_json::{Value, json};

use crate::fake;
use crate::harness::{Background, Stage, wait_for};

/// Starts a team with a foreground lead and a member with the given instructions.
fn led(stage: &Stage, more: &str, words: &[&str]) -> Background {
    fake::install(stage);
    let manifest =
        format!("[team]\nname = \"alpha\"\nfinish = \"manual\"\nbackend = \"pty\"\n{more}\n");
    let lead = stage.start(&["up", &stage.file("team.toml", &manifest)]);
    wait_for("the lead", || {
        stage.journal("alpha").into_iter().find(|e| e["event"] == "lead_started")
    });
    stage
        .phalanx(&[&["spawn", "ada", "--profile", "fake", "--", "approve"], words].concat())
        .expect(0);
    lead
}

fn waits(stage: &Stage, id: &str) {
    wait_for(&format!("{id} to wait"), || {
        let open = stage.phalanx(&["--json", "requests"]).expect(0).json();
        open.as_array().expect("a list").iter().any(|r| r["request_id"] == id).then_some(())
    });
}

/// Waits until ada has sent `count` texts to the lead, and returns them.
fn texts_from_ada(stage: &Stage, count: usize) -> Vec<String> {
    wait_for(&format!("{count} texts from ada"), || {
        let inbox = stage.phalanx(&["--json", "inbox", "--all", "--peek"]).expect(0).json();
        let hers = inbox.as_array().expect("entries").iter().filter(|e| e["from"] == "ada");
        let texts = hers.filter_map(|e| e["text"].as_str()).filter(|text| !text.starts_with('{'));
        let texts: Vec<String> = texts.map(str::to_owned).collect();
        (texts.len() >= count).then_some(texts)
    })
}

fn down(stage: &Stage, lead: Background) {
    stage.phalanx(&["down", "--force"]).expect(0);
    drop(lead.end());
    std::fs::remove_dir_all(stage.root().join("phalanx")).expect("profiles");
    stage.assert_clean();
}

/// PM-07: the rejection reaches the program with the feedback, the approval with the mode, each
/// once.
#[test]
fn pm_07_program_revises_its_plan_and_starts_when_approved() {
    let stage = Stage::without_tmux();
    let lead = led(&stage, "", &["--plans"]);
    waits(&stage, "plan-1");
    stage
        .phalanx(&["answer", "plan-1", "--reject", "--reason", "leave the schema alone"])
        .expect(0);
    waits(&stage, "plan-2");
    let revised =
        stage.phalanx(&["--json", "requests"]).expect(0).json()[0]["body"]["planContent"].clone();
    assert_eq!(
        revised,
        json!("# Move the parser\n1. Move the files.\n2. As you said: leave the schema alone.")
    );
    stage.phalanx(&["answer", "plan-2", "--approve", "--mode", "acceptEdits"]).expect(0);
    assert_eq!(texts_from_ada(&stage, 1), ["beginning, in mode acceptEdits"]);
    stage.phalanx(&["answer", "plan-2", "--approve"]).expect(4);
    assert_eq!(texts_from_ada(&stage, 1).len(), 1, "it is woken once");
    down(&stage, lead);
}

/// PM-04: a program can tell apart approvals by a rule and by the user, a denial, and a timeout.
#[test]
fn pm_04_program_tells_apart_rule_user_denial_and_timeout() {
    let stage = Stage::without_tmux();
    let commands = ["git status", "make", "git push", "curl x"];
    let words: Vec<&str> = commands.iter().flat_map(|command| ["--runs", command]).collect();
    let lead = led(&stage, "answer_within = 6\n[rules]\nallow = [\"Bash(git status)\"]", &words);
    waits(&stage, "perm-2");
    stage.phalanx(&["answer", "perm-2", "--approve"]).expect(0);
    waits(&stage, "perm-3");
    stage.phalanx(&["answer", "perm-3", "--reject", "--reason", "not on a Friday"]).expect(0);
    assert_eq!(
        texts_from_ada(&stage, 4),
        [
            "ran git status",
            "ran make",
            "did not run git push: not on a Friday",
            "did not run curl x: the request timed out without an answer; this is not a rejection, and you may ask again"
        ]
    );
    let all = stage.phalanx(&["--json", "requests", "--all"]).expect(0).json();
    let by = |r: &Value| (r["state"].clone(), r["by"].clone());
    assert_eq!(
        all.as_array().expect("a list").iter().map(by).collect::<Vec<_>>(),
        [
            ("allowed", "rule"),
            ("allowed", "team-lead"),
            ("denied", "team-lead"),
            ("timed_out", "nobody")
        ]
        .map(|(state, by)| (json!(state), json!(by)))
    );
    down(&stage, lead);
}
