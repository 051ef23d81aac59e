//! Health: a member that owes an answer is told of, and is never ended for it.

use serde_json::{Value, json};

use crate::harness::{Stage, wait_for};

const QUICK: &str = "[team]\nname = \"quick\"\nfinish = \"manual\"\nunresponsive_after = 1\n[[member]]\nname = \"ada\"\n\
                     profile = \"mute\"\n";

/// A program that could read its mail and does not.
const MUTE: &str = r#"
about = "says nothing"
runs = "native"
[launch]
argv = [["sh", "-c", "echo thinking hard; exec sleep 300"]]
prompt = "mailbox"
[ready]
when = "settled"
settle_ms = 100
"#;

fn ada(stage: &Stage) -> Value {
    stage.phalanx(&["--json", "status"]).expect(0).json()["members"][0].clone()
}

/// CR-02, CR-07: a program that hangs is unresponsive, lives on, and owes nothing any more once the task is taken from it.
#[test]
fn cr_02_a_member_that_hangs_is_told_of_and_lives() {
    let stage = Stage::without_tmux();
    stage.profile("mute", MUTE);
    let manifest = stage.file("quick.toml", QUICK);
    stage.phalanx(&["up", &manifest, "--detach"]).expect(0);
    let pid = ada(&stage)["pid"].clone();
    stage.phalanx(&["task", "create", "Look", "--owner", "ada", "--", "true"]).expect(0);
    let told = stage.wait_event("quick", "member_health", "ada");
    assert_eq!(
        (&told["detail"]["state"], &told["detail"]["prev_state"], &told["detail"]["timeout_triggered"]),
        (&json!("unresponsive"), &json!("idle"), &json!(true))
    );
    assert_eq!(told["task"], json!("1"));
    let shown = ada(&stage);
    assert_eq!((&shown["state"], &shown["pid"]), (&json!("unresponsive"), &pid));
    let reason = shown["reason"].as_str().expect("a reason");
    assert!(
        reason.starts_with("task #1 was given to it ")
            && reason.ends_with("its screen ends with: thinking hard"),
        "{reason}"
    );
    let mail = wait_for("the lead is told", || {
        let mail = stage.phalanx(&["--json", "inbox", "--peek"]).expect(0).json();
        let mine = |m: &&Value| m["text"].as_str().is_some_and(|t| t.starts_with("ada is unresponsive: "));
        Some(mail.as_array()?.iter().filter(mine).count()).filter(|n| *n > 0)
    });
    assert_eq!(mail, 1);
    stage.phalanx(&["task", "update", "1", "--no-owner"]).expect(0);
    let well = wait_for("it is well again", || {
        stage.journal("quick").into_iter().filter(|e| e["event"] == "member_health").nth(1)
    });
    assert_eq!(well["detail"]["prev_state"], json!("unresponsive"));
    wait_for("status knows", || (ada(&stage)["state"] == "idle").then_some(()));
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}
