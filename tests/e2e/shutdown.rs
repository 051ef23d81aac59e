//! Shutdown by request and reply, with and without a lead.

use serde_json::json;

use crate::harness::{Stage, wait_for};

fn team_with_ada(stage: &Stage) {
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["spawn", "ada"]).expect(0);
}

#[test]
fn worker_shuts_down_on_request_without_a_lead() {
    let stage = super::stage_without_tmux();
    team_with_ada(&stage);
    let outcome =
        stage.phalanx(&["--json", "shutdown", "ada", "--reason", "done"]).expect(0).json();
    assert_eq!(outcome[0]["name"], json!("ada"));
    assert_eq!(outcome[0]["outcome"], json!("closed"));
    let handled: Vec<_> =
        stage.journal("alpha").into_iter().filter(|e| e["event"] == "member_left").collect();
    assert_eq!(handled.len(), 1);
    let told = |event: &str| {
        stage.journal("alpha").into_iter().find(|e| e["event"] == event).expect("told")
    };
    assert_eq!(told("shutdown_ended")["cause"], told("shutdown_requested")["id"]);
    for (kind, cause) in [
        ("shutdown_request", "shutdown_requested"),
        ("shutdown_approved", "shutdown_requested"),
        ("teammate_terminated", "member_left"),
    ] {
        let sent =
            stage.journal("alpha").into_iter().find(|e| e["detail"]["kind"] == kind).expect("told");
        assert_eq!(
            (&sent["event"], &sent["cause"]),
            (&json!("message_sent"), &told(cause)["id"]),
            "{kind}"
        );
    }
    assert_eq!(stage.phalanx(&["--json", "status"]).expect(0).json()["members"], json!([]));
    let inbox = stage.phalanx(&["--json", "inbox", "--all"]).expect(0).json();
    let texts: Vec<&str> =
        inbox.as_array().expect("entries").iter().filter_map(|e| e["text"].as_str()).collect();
    assert!(texts.iter().any(|t| t.contains("shutdown_approved")), "{texts:?}");
    assert!(texts.iter().any(|t| t.contains("teammate_terminated")), "{texts:?}");
    stage.phalanx(&["team", "delete"]).expect(0);
    stage.assert_clean();
}

#[test]
fn second_shutdown_reports_the_member_as_gone() {
    let stage = super::stage_without_tmux();
    team_with_ada(&stage);
    stage.phalanx(&["shutdown", "ada"]).expect(0);
    let again = stage.phalanx(&["--json", "shutdown", "ada"]).expect(0).json();
    assert_eq!(again[0]["outcome"], json!("gone"));
    stage.phalanx(&["shutdown", "bob"]).expect(3);
}

/// SD-21: a busy worker ends its command and gives its task back, with the reason.
#[test]
fn sd_21_busy_worker_gives_its_task_back_and_agrees() {
    let stage = super::stage_without_tmux();
    team_with_ada(&stage);
    let long = ["task", "create", "Long", "--", "sh", "-c", "while :; do sleep 0.05; done"];
    stage.phalanx(&long).expect(0);
    stage.wait_event("alpha", "task_claimed", "1");
    let asked = ["--json", "shutdown", "ada", "--deadline", "30", "--reason", "tea time"];
    let outcome = stage.phalanx(&asked).expect(0).json();
    assert_eq!(outcome[0]["outcome"], json!("closed"), "{outcome}");
    let task = stage.phalanx(&["--json", "task", "get", "1"]).expect(0).json();
    assert_eq!((&task["state"], &task["owner"]), (&json!("pending"), &json!(null)), "{task}");
    assert_eq!(task["reason"], json!("its command was ended: tea time"));
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

#[test]
fn running_lead_carries_out_a_shutdown_request() {
    let stage = super::stage_without_tmux();
    let manifest =
        stage.file("idle.toml", "[team]\nname = \"idle\"\nfinish = \"manual\"\n[[member]]\nname = \"ada\"\n[[member]]\nname = \"ben\"\n");
    let up = stage.start(&["--json", "up", &manifest]);
    stage.wait_event("idle", "member_ready", "ben");
    wait_for("the lead", || {
        stage.phalanx(&["--json", "status"]).expect(0).json()["lead"]["pid"].as_i64()
    });
    let outcome = stage.phalanx(&["--json", "shutdown", "ada"]).expect(0).json();
    assert_eq!(outcome[0]["outcome"], json!("closed"));
    stage.phalanx(&["down"]).expect(0);
    up.end();
    stage.assert_clean();
}

#[test]
fn sd_04_team_with_live_members_is_not_deleted() {
    let stage = super::stage_without_tmux();
    team_with_ada(&stage);
    let run = stage.phalanx(&["--json", "team", "delete"]).expect(4);
    assert!(run.stderr.contains("ada") && run.stderr.contains("phalanx shutdown"), "{run:?}");
    stage.phalanx(&["shutdown", "--all"]).expect(0);
    stage.phalanx(&["team", "delete"]).expect(0);
    stage.assert_clean();
}
