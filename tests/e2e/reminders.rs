//! Reminders and escalation, with seconds for minutes: about open requests to the user and about
//! tasks to their owners, each sent once.

use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{Background, Stage, wait_for};

/// Starts a team with the worker `ada`, who reads mail but runs no task without a command.
/// Reminders are due after one second.
pub fn led(stage: &Stage, more: &str) -> Background {
    let text = format!(
        "[team]\nname = \"alpha\"\nfinish = \"manual\"\nbackend = \"pty\"\nfollowup_interval_minutes = 0.0166\n{more}\n\
         [[member]]\nname = \"ada\"\n"
    );
    let lead = stage.start(&["up", &stage.file("team.toml", &text)]);
    stage.wait_event("alpha", "member_ready", "ada");
    lead
}

pub fn events(stage: &Stage, kind: &str) -> Vec<Value> {
    stage.journal("alpha").into_iter().filter(|e| e["event"] == kind).collect()
}

pub fn texts(stage: &Stage, owner: &str) -> Vec<String> {
    let inbox = stage.phalanx(&["--json", "inbox", owner, "--all"]).expect(0).json();
    let said = inbox.as_array().expect("entries").iter().filter(|e| e["from"] == "system");
    said.map(|e| e["text"].as_str().expect("text").to_owned()).collect()
}

pub fn killed_and_led_again(stage: &Stage, lead: Background) -> Background {
    lead.signal("KILL");
    drop(lead.end());
    let next = stage.start(&["lead"]);
    wait_for("the next lead", || (events(stage, "lead_started").len() == 2).then_some(()));
    next
}

pub fn down(stage: &Stage, lead: Background) -> String {
    stage.phalanx(&["down", "--force"]).expect(0);
    let said = lead.end().stderr;
    stage.assert_clean();
    said
}

/// Returns what the user's program was started with, from the file that it appends to.
pub fn runs(told: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(told).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// PM-03: announced once, reminded twice, escalated once, even if the lead is killed in between;
/// the request stays open.
#[test]
fn pm_03_reminders_and_escalation_are_sent_once_across_leads() {
    let stage = super::stage_without_tmux();
    let told = stage.at("told");
    let notify = format!("notify = [\"sh\", \"-c\", \"cat >>{0}; echo >>{0}\"]", told.display());
    let lead = led(&stage, &format!("followup_max_reminders = 2\n{notify}"));
    let question = json!({"type": "permission_request", "request_id": "perm-1", "agent_id": "ada", "tool_name": "Bash",
        "input": {"command": "make"}, "permission_suggestions": []});
    stage.phalanx(&["--as", "ada", "send", "team-lead", &question.to_string()]).expect(0);
    wait_for("the first reminder", || (runs(&told).len() == 2).then_some(()));
    let lead = killed_and_led_again(&stage, lead);
    let last = wait_for("the escalation", || events(&stage, "escalated").pop());
    assert_eq!(
        (&last["detail"]["request_id"], &last["detail"]["after"]),
        (&json!("perm-1"), &json!(2))
    );
    let nth: Vec<Value> =
        events(&stage, "reminded").iter().map(|e| e["detail"]["nth"].clone()).collect();
    assert_eq!((events(&stage, "request_announced").len(), nth), (1, vec![json!(1), json!(2)]));
    wait_for("the user's program to have heard of all", || (runs(&told).len() >= 4).then_some(()));
    assert_eq!(
        runs(&told).iter().map(|run| run["reminder"].clone()).collect::<Vec<_>>(),
        [0, 1, 2, 3]
    );
    let mine = texts(&stage, "team-lead");
    assert!(mine.len() == 1 && mine[0].contains("phalanx answer perm-1 --approve"), "{mine:?}");
    stage.phalanx(&["answer", "perm-1", "--approve"]).expect(0);
    let said = down(&stage, lead);
    assert!(
        said.contains("reminder 2 of 2: waits for an answer to permission perm-1: Bash: make"),
        "{said}"
    );
}

/// With `fail_task`, a task without updates finally fails; its owner and the lead are notified.
#[test]
fn task_without_updates_is_reminded_and_fails() {
    let stage = super::stage_without_tmux();
    let lead = led(&stage, "followup_max_reminders = 2\nescalation_mode = \"fail_task\"");
    stage.phalanx(&["task", "create", "Write it"]).expect(0);
    stage.phalanx(&["--as", "ada", "task", "claim", "1"]).expect(0);
    wait_for("the first reminder", || events(&stage, "reminded").pop());
    let lead = killed_and_led_again(&stage, lead);
    wait_for("the escalation", || events(&stage, "escalated").pop());
    let task = wait_for("the failure", || {
        let task = stage.phalanx(&["--json", "task", "get", "1"]).expect(0).json();
        (task["metadata"]["phalanx"]["state"] == "failed").then_some(task)
    });
    assert_eq!(task["metadata"]["phalanx"]["ended_by"], json!("team-lead"));
    wait_for("both to be told", || (texts(&stage, "team-lead").len() == 1).then_some(()));
    let hers = texts(&stage, "ada");
    let begin: Vec<&str> = hers.iter().filter_map(|text| text.split(':').next()).collect();
    assert_eq!(begin, ["Reminder 1 of 2", "Reminder 2 of 2"]);
    let inbox = stage.phalanx(&["--json", "inbox", "ada", "--all"]).expect(0).json();
    let failed = "Task #1 \"Write it\" was marked as failed by team-lead: no update after 2 reminders. \
                  Stop working on it.";
    let said = inbox.as_array().expect("entries").iter().filter(|e| e["text"] == failed);
    assert_eq!(said.count(), 1, "{inbox}");
    assert!(texts(&stage, "team-lead")[0].ends_with("It has been marked as failed."));
    assert_eq!((events(&stage, "reminded").len(), events(&stage, "escalated").len()), (2, 1));
    drop(down(&stage, lead));
}

/// By default an escalation only notifies the lead, and a message from the owner restarts the
/// reminders.
#[test]
fn message_from_the_owner_restarts_the_reminders() {
    let stage = super::stage_without_tmux();
    let lead = led(&stage, "followup_max_reminders = 1");
    stage.phalanx(&["task", "create", "Write it"]).expect(0);
    stage.phalanx(&["--as", "ada", "task", "claim", "1"]).expect(0);
    wait_for("the first reminder", || events(&stage, "reminded").pop());
    stage.phalanx(&["--as", "ada", "send", "team-lead", "half done"]).expect(0);
    wait_for("a reminder that begins anew", || {
        (events(&stage, "reminded").len() == 2).then_some(())
    });
    assert_eq!(events(&stage, "reminded")[1]["detail"]["nth"], json!(1));
    wait_for("the escalation", || events(&stage, "escalated").pop());
    let mine = wait_for("the lead to be told", || {
        texts(&stage, "team-lead")
            .into_iter()
            .find(|text| text.contains("has had no update after 1 reminder"))
    });
    assert!(mine.contains("phalanx peek ada"), "{mine}");
    let task = stage.phalanx(&["--json", "task", "get", "1"]).expect(0).json();
    assert_eq!((&task["status"], &task["state"]), (&json!("in_progress"), &json!("stale")));
    drop(down(&stage, lead));
}
