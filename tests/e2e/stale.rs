//! Stale tasks, with seconds for minutes: a silent task becomes stale once, and recovers once.

use serde_json::{Value, json};

use crate::harness::{Stage, binary, wait_for};
use crate::reminders::{down, events, led, texts};

/// No reminders: the task is stale after one interval.
const AT_ONCE: &str = "followup_max_reminders = 0";

/// Creates a task that ada works on.
fn begin(stage: &Stage) {
    stage.phalanx(&["task", "create", "Write it"]).expect(0);
    stage.phalanx(&["--as", "ada", "task", "claim", "1"]).expect(0);
}

fn task(stage: &Stage) -> Value {
    stage.phalanx(&["--json", "task", "get", "1"]).expect(0).json()
}

fn wait_count(stage: &Stage, kind: &str, count: usize) {
    wait_for(kind, || (events(stage, kind).len() >= count).then_some(()));
}

/// The events about the task, without its creation and claim.
fn history(stage: &Stage) -> Vec<String> {
    let events = task(stage)["events"].as_array().expect("events").clone();
    let kinds = events.iter().map(|event| event["event"].as_str().expect("a kind").to_owned());
    kinds.filter(|kind| kind == "task_stale" || kind == "task_recovered").collect()
}

#[test]
fn silent_task_becomes_stale_and_recovers_by_any_sign_of_life() {
    let stage = Stage::without_tmux();
    let lead = led(&stage, AT_ONCE);
    begin(&stage);
    let signs: [&[&str]; 4] = [
        &["send", "team-lead", "half done"],
        &["task", "comment", "1", "half done"],
        &["task", "progress", "1", "50"],
        &["task", "attach", "1", "/etc/hosts"],
    ];
    for (nth, sign) in (1..).zip(signs) {
        wait_count(&stage, "task_stale", nth);
        let seen = task(&stage);
        assert_eq!((&seen["state"], &seen["status"]), (&json!("stale"), &json!("in_progress")));
        stage.phalanx(&[&["--as", "ada"], sign].concat()).expect(0);
        wait_count(&stage, "task_recovered", nth);
        assert_eq!(events(&stage, "task_recovered").len(), nth, "once by {sign:?}");
    }
    wait_count(&stage, "task_stale", 5);
    let told = wait_for("the lead to be told", || {
        let told = texts(&stage, "team-lead");
        (told.len() == 5).then_some(told)
    });
    assert!(
        told[0].starts_with("ada: task #1 (Write it) is in progress, but has had no update. ")
            && told[0].contains("phalanx task retry 1"),
        "{told:?}"
    );
    assert_eq!(texts(&stage, "ada"), Vec::<String>::new(), "there are no reminders");
    assert_eq!((events(&stage, "escalated").len(), events(&stage, "task_recovered").len()), (5, 4));
    drop(down(&stage, lead));
}

/// A lead that is killed at any step of the escalation is followed by one that completes it.
#[test]
fn stall_is_announced_once_across_leads() {
    for point in ["task.stalled", "task.stall_said"] {
        let stage = Stage::without_tmux();
        let first = led(&stage, AT_ONCE);
        first.signal("KILL");
        drop(first.end());
        begin(&stage);
        let mut lead = stage.command(binary());
        let mut lead = lead.env("PHALANX_FAILPOINT", point).arg("lead").spawn().expect("a lead");
        wait_for(point, || lead.try_wait().expect("wait"));
        assert_eq!(task(&stage)["state"], "stale", "{point}");
        assert_eq!(events(&stage, "task_stale").len(), 0, "{point}");
        let next = stage.start(&["lead"]);
        wait_count(&stage, "escalated", 1);
        // The log of tasks follows the journal.
        wait_for(point, || (history(&stage) == ["task_stale"]).then_some(()));
        assert_eq!(texts(&stage, "team-lead").len(), 1, "{point}");
        next.signal("KILL");
        drop(next.end());
        // No lead sees this sign of life.
        stage.phalanx(&["--as", "ada", "send", "team-lead", "half done"]).expect(0);
        assert_eq!(task(&stage)["state"], "stale", "{point}");
        let last = stage.start(&["lead"]);
        wait_count(&stage, "task_recovered", 1);
        wait_count(&stage, "task_stale", 2);
        let all = ["task_stale", "task_recovered", "task_stale"];
        wait_for(point, || (history(&stage) == all).then_some(()));
        assert_eq!(events(&stage, "escalated").len(), 2, "{point}");
        drop(down(&stage, last));
    }
}

#[test]
fn former_owner_is_told_that_its_stale_task_is_free() {
    let stage = Stage::without_tmux();
    let lead = led(&stage, AT_ONCE);
    begin(&stage);
    for (nth, verb) in [(1, "retry"), (2, "release")] {
        wait_count(&stage, "task_stale", nth);
        stage.phalanx(&["task", verb, "1"]).expect(0);
        let seen = task(&stage);
        assert_eq!((&seen["state"], &seen["owner"]), (&json!("pending"), &Value::Null), "{verb}");
        assert_eq!(seen["metadata"]["phalanx"]["stalled_at"], Value::Null, "{verb}");
        let inbox = stage.phalanx(&["--json", "inbox", "ada", "--all"]).expect(0).json();
        let told = inbox.as_array().expect("entries").iter().filter(|one| {
            one["text"].as_str().expect("text").contains("was taken from you by team-lead")
        });
        assert_eq!(told.count(), nth, "{verb}");
        stage.phalanx(&["--as", "ada", "task", "claim", "1"]).expect(0);
    }
    drop(down(&stage, lead));
}
