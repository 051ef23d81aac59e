//! A command that changes a task is killed at each of its steps. The next lead finishes what it
//! began: each event is journaled once, and each member is told once.
#![cfg(debug_assertions)]

use std::fs;
use std::thread;
use std::time::Duration;

use crate::harness::{Run, Stage, binary, wait_for};

/// The steps: inside the write of the task, after it, after the messages, after the journal.
const POINTS: [&str; 6] =
    ["rename.before", "rename.after", "task.ended", "task.told", "task.freed", "journal.appended"];

/// A verb with the member that gives it, the state and events that it leads to, and the words of
/// the message that its recipients get once.
struct Case {
    by: &'static str,
    verb: &'static [&'static str],
    state: &'static str,
    events: &'static [&'static str],
    told: &'static [(&'static str, &'static str)],
}

const CASES: [Case; 4] = [
    Case {
        by: "ann",
        verb: &["complete", "1"],
        state: "completed",
        events: &["task_completed"],
        told: &[("team-lead", "task_completed"), ("ben", "no longer blocked")],
    },
    Case {
        by: "ann",
        verb: &["review", "1"],
        state: "in_review",
        events: &["task_submitted"],
        told: &[("team-lead", "waits for approval")],
    },
    Case {
        by: "team-lead",
        verb: &["cancel", "1", "--reason", "not needed"],
        state: "cancelled",
        events: &["task_cancelled"],
        told: &[("ben", "no longer blocked")],
    },
    Case {
        by: "team-lead",
        verb: &["fail", "1", "--reason", "no disk"],
        state: "failed",
        events: &["task_failed"],
        told: &[],
    },
];

#[test]
fn tk_04_killed_change_of_a_task_is_finished_once_by_the_next_lead() {
    thread::scope(|scope| {
        for case in &CASES {
            scope.spawn(move || POINTS.iter().for_each(|point| dies_at(case, point)));
        }
    });
}

fn dies_at(case: &Case, point: &str) {
    let stage = team();
    let verb = [&["--as", case.by, "task"], case.verb].concat();
    let mut command = stage.command(binary());
    let run = command.env("PHALANX_FAILPOINT", point).args(&verb).output().expect("phalanx runs");
    let run = Run::from(run);
    // Only the end of a task passes these points.
    let may_pass = ["task.told", "task.freed"].contains(&point) && case.state == "in_review";
    assert!(run.code == -1 || may_pass, "{point}: {run:?}");

    // The lead leaves recent changes to the process that made them.
    let file = stage.root().join("tasks/demo/1.json");
    wait_for("the change to settle", || {
        let age = fs::metadata(&file).and_then(|meta| meta.modified()).ok()?.elapsed().ok()?;
        (age > Duration::from_secs(5)).then_some(())
    });
    let lead = stage.start(&["lead"]);
    wait_for("the lead", || (count(&stage, "lead_started") == 1).then_some(()));
    if state(&stage) != case.state {
        stage.phalanx(&verb).expect(0);
    }
    let what = format!("{:?} at {point}", case.verb);
    assert_eq!(state(&stage), case.state, "{what}");
    for kind in case.events {
        wait_for(&format!("{kind} of {what}"), || (count(&stage, kind) >= 1).then_some(()));
        assert_eq!(count(&stage, kind), 1, "{what}: {kind}");
    }
    for (name, words) in case.told {
        wait_for(&format!("{name} to be told of {what}"), || {
            (messages(&stage, name, words) >= 1).then_some(())
        });
        assert_eq!(messages(&stage, name, words), 1, "{what}: {name}");
    }
    stage.phalanx(&["down", "--force"]).expect(0);
    lead.end().expect(0);
    stage.assert_clean();
}

/// A team in which ann works on task 1, for which ben's task 2 waits.
fn team() -> Stage {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    stage.add_native("demo", &["ann", "ben"]);
    stage.phalanx(&["task", "create", "a"]).expect(0);
    stage.phalanx(&["task", "create", "b", "--blocked-by", "1", "--owner", "ben"]).expect(0);
    stage.phalanx(&["--as", "ann", "task", "claim", "1"]).expect(0);
    stage
}

fn state(stage: &Stage) -> String {
    let task = stage.phalanx(&["--json", "task", "get", "1"]).expect(0).json();
    task["state"].as_str().expect("a state").to_owned()
}

fn count(stage: &Stage, kind: &str) -> usize {
    stage.journal("demo").iter().filter(|event| event["event"] == kind).count()
}

fn messages(stage: &Stage, of: &str, words: &str) -> usize {
    let mail = stage.phalanx(&["--json", "inbox", of, "--peek", "--all"]).expect(0).json();
    let texts = mail.as_array().expect("a list").iter().filter_map(|one| one["text"].as_str());
    texts.filter(|text| text.contains(words)).count()
}
