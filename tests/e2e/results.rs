//! Reports of finished tasks to the lead.

use serde_json::{Value, json};

use crate::harness::{Stage, wait_for};

fn results(stage: &Stage) -> Vec<Value> {
    let mail = stage.phalanx(&["--json", "inbox", "--peek", "--all"]).expect(0).json();
    let all = mail.as_array().expect("a list").iter();
    all.filter(|one| one["msg_id"].as_str().is_some_and(|id| id.starts_with("results-")))
        .cloned()
        .collect()
}

fn waiting(stage: &Stage, ids: &[&str]) {
    wait_for("the results in the journal", || {
        let told =
            |e: &Value| e["detail"]["kind"] == "results" && e["detail"]["tasks"] == json!(ids);
        stage.journal("alpha").iter().any(told).then_some(())
    });
}

#[test]
fn tasks_that_end_together_are_reported_once_in_one_message() {
    let stage = super::stage_without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["task", "create", "quick", "--", "true"]).expect(0);
    stage
        .phalanx(&["task", "create", "broken", "--", "sh", "-c", "echo no such page; exit 3"])
        .expect(0);
    stage.phalanx(&["task", "create", "behind", "--blocked-by", "2", "--", "true"]).expect(0);
    let lead = stage.start(&["lead", "--on-exit", "detach"]);
    for name in ["ada", "ben"] {
        stage.phalanx(&["spawn", name]).expect(0);
    }
    waiting(&stage, &["1", "2"]);
    let told = results(&stage);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["from"], "system");
    assert_eq!(told[0]["summary"], "2 tasks ended: 1 completed, 1 failed");
    let text = told[0]["text"].as_str().expect("text");
    for part in [
        "#1 \"quick\": completed",
        "#2 \"broken\": failed",
        "exit code 3\n    no such page",
        "1 task left",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    lead.signal("TERM");
    lead.end().expect(0);
    stage.phalanx(&["lead", "--detach"]).expect(0);
    stage.phalanx(&["task", "create", "next", "--", "true"]).expect(0);
    waiting(&stage, &["4"]);
    assert_eq!(results(&stage).len(), 2);
    stage.phalanx(&["down", "--force"]).expect(0);
}
