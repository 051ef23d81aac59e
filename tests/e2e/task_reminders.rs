//! Reminders that members set on tasks, with seconds for minutes.

use serde_json::{Value, json};

use crate::harness::{Run, Stage, wait_for};
use crate::reminders::{down, events, killed_and_led_again, led, runs, texts};

/// A second, in minutes.
const SECOND: &str = "0.0166";

fn as_ada(stage: &Stage, verb: &[&str]) -> Run {
    stage.phalanx(&[&["--as", "ada", "task"], verb].concat())
}

fn reminder(stage: &Stage) -> Value {
    let task = stage.phalanx(&["--json", "task", "get", "1"]).expect(0).json();
    task["metadata"]["phalanx"]["reminder"].clone()
}

/// The lead is reminded twice, escalates once, even if it is killed in between, and the user's
/// program hears of each.
#[test]
fn reminders_of_a_task_are_sent_once_across_leads() {
    let stage = Stage::without_tmux();
    let told = stage.at("told");
    let notify = format!("notify = [\"sh\", \"-c\", \"cat >>{0}; echo >>{0}\"]", told.display());
    let lead = led(&stage, &notify);
    stage.phalanx(&["task", "create", "Pick a licence"]).expect(0);
    stage.phalanx(&["task", "create", "Other"]).expect(0);
    stage.phalanx(&["task", "remind", "1", "--every", SECOND, "--max", "2", "MIT?"]).expect(0);
    wait_for("the first reminder", || events(&stage, "reminded").pop());
    let page = stage.phalanx(&["task", "get", "1"]).expect(0).stdout;
    assert!(page.contains(" of 2 sent, every 0.9s, set by team-lead: MIT?"), "{page}");
    // The lead starts the program after the event, and would not if it were killed in between.
    wait_for("the user's program", || runs(&told).pop());
    let lead = killed_and_led_again(&stage, lead);
    let last = wait_for("the escalation", || events(&stage, "escalated").pop());
    assert_eq!(
        (&last["task"], &last["member"], &last["detail"]["text"], &last["detail"]["mode"]),
        (&json!("1"), &json!("team-lead"), &json!("MIT?"), &json!("notify_lead"))
    );
    let nth: Vec<Value> =
        events(&stage, "reminded").iter().map(|e| e["detail"]["nth"].clone()).collect();
    assert_eq!(nth, [json!(1), json!(2)]);
    let mine = texts(&stage, "team-lead");
    assert_eq!(mine.len(), 3, "{mine:?}");
    assert!(
        mine[0].starts_with(
            "Reminder 1 of 2 about task #1 (Pick a licence), set by team-lead: MIT?\n"
        ),
        "{mine:?}"
    );
    assert!(mine[2].contains("still waits for a decision after 2 reminders"), "{mine:?}");
    let heard = wait_for("the user's program", || Some(runs(&told)).filter(|runs| runs.len() >= 3));
    assert_eq!(heard.iter().map(|run| run["reminder"].clone()).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!((&heard[0]["task"], &heard[0]["text"]), (&json!("1"), &json!("MIT?")));
    let task = stage.phalanx(&["--json", "task", "get", "1"]).expect(0).json();
    assert_eq!((&task["state"], reminder(&stage)["sent"].clone()), (&json!("pending"), json!(3)));
    drop(down(&stage, lead));
}

#[test]
fn reminder_can_fail_its_task_and_ends_with_it() {
    let stage = Stage::without_tmux();
    let lead = led(&stage, "followup_max_reminders = 0");
    stage.phalanx(&["task", "create", "Pick a licence"]).expect(0);
    as_ada(&stage, &["claim", "1"]).expect(0);
    let fails = ["remind", "1", "MIT?", "--max", "1", "--escalation", "fail_task"];
    as_ada(&stage, &[&fails[..], &["--every", SECOND]].concat()).expect(0);
    let task = wait_for("the failure", || {
        let task = stage.phalanx(&["--json", "task", "get", "1"]).expect(0).json();
        (task["state"] == "failed").then_some(task)
    });
    let ours = &task["metadata"]["phalanx"];
    assert_eq!((&ours["ended_by"], &ours["reminder"]), (&json!("team-lead"), &Value::Null));
    let hers = wait_for("ada to be told", || texts(&stage, "ada").pop());
    assert!(hers.contains("has been marked as failed") && hers.contains("MIT?"), "{hers}");
    drop(down(&stage, lead));
}

#[test]
fn reminder_is_set_by_those_concerned_and_taken_back() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["spawn", "ada", "ben"]).expect(0);
    as_ada(&stage, &["create", "Pick a licence"]).expect(0);
    let none = as_ada(&stage, &["remind", "1", "MIT?"]).expect(2);
    assert!(none.stderr.contains("--every MINUTES"), "{none:?}");
    for every in ["0", "-1", "nan", "1e9", "soon"] {
        as_ada(&stage, &["remind", "1", "MIT?", &format!("--every={every}")]).expect(2);
    }
    as_ada(&stage, &["remind", "1", "MIT?", "--every", "30", "--max", "1001"]).expect(2);
    as_ada(&stage, &["remind", "1", " ", "--every", "30"]).expect(2);
    as_ada(&stage, &["remind", "1", "MIT?", "--every", "30"]).expect(0);
    let set = reminder(&stage);
    assert_eq!(
        (&set["every_ms"], &set["max"], &set["escalation"], &set["by"], &set["sent"]),
        (&json!(1_800_000), &json!(3), &json!("notify_lead"), &json!("ada"), &json!(0))
    );
    let ben = |verb: &[&str]| stage.phalanx(&[&["--as", "ben", "task"], verb].concat());
    ben(&["remind", "1", "GPL?", "--every", "1"]).expect(4);
    ben(&["unremind", "1"]).expect(4);
    ben(&["claim", "1"]).expect(0);
    let fails = ["remind", "1", "MIT?", "--every", "1", "--escalation", "fail_task"];
    as_ada(&stage, &fails).expect(4);
    ben(&fails).expect(0);
    as_ada(&stage, &["unremind", "1"]).expect(0);
    assert_eq!(reminder(&stage), Value::Null);
    as_ada(&stage, &["unremind", "1"]).expect(0);
    ben(&["complete", "1"]).expect(0);
    let over = ben(&["remind", "1", "MIT?", "--every", "1"]).expect(4);
    assert!(over.stderr.contains("completed"), "{over:?}");
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}
