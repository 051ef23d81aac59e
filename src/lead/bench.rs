//! Benchmark of the lead's step function: a full team at rest and the events that its lead handles.

use serde_json::json;

use super::event::Event;
use super::react::react;
use super::state::{Goal, State};
use model::board::Board;
use model::board::task::{Task, TaskState};
use model::id::TaskId;
use model::mail::envelope::Envelope;
use model::members::launch::{Demand, LaunchSpec, Template};
use model::members::record::MemberRecord;
use model::team::settings::Finish;
use model::time::Timestamp;

const MEMBERS: usize = 50;
const TASKS: u64 = 200;
const NOW: Timestamp = Timestamp(0);
const REST: &str = r#"{"type":"idle_notification","from":"m1","idleReason":"available"}"#;

/// A lead of 50 standing members with 200 tasks, and the events that it is about to handle.
pub struct StepBench {
    state: State,
    events: Vec<Event>,
}

impl StepBench {
    /// Prepares `count` events in the mix that the driver produces when members report idle: each
    /// message comes with a read of all records and requests, and with ticks.
    #[must_use]
    pub fn new(count: usize) -> StepBench {
        let mut state =
            State::new(Goal::Lead(Finish::Manual), (0..MEMBERS).map(template).collect());
        let records: Vec<MemberRecord> = (0..MEMBERS).filter_map(record).collect();
        react(&mut state, Event::Members(records.clone()), NOW);
        react(&mut state, Event::Board(board()), NOW);
        let event = |n: usize| match n % 5 {
            0 => Event::Members(records.clone()),
            1 => Event::Requests(Vec::new()),
            2 => {
                let from = format!("m{}", n % MEMBERS);
                Event::Mail(vec![Envelope::new(&from, REST, n.to_string(), NOW)])
            }
            3 => Event::Filed(Vec::new()),
            _ => Event::Tick,
        };
        StepBench { state, events: (0..count).map(event).collect() }
    }

    /// Handles all events and returns the number of effects.
    #[must_use]
    pub fn run(mut self) -> usize {
        self.events.into_iter().map(|event| react(&mut self.state, event, NOW).len()).sum()
    }
}

fn template(n: usize) -> Template {
    Template {
        spec: LaunchSpec { name: format!("m{n}"), ..LaunchSpec::default() },
        demand: Demand::Standing,
    }
}

fn record(n: usize) -> Option<MemberRecord> {
    let process = json!({ "pid": n, "start": 7 });
    let record = json!({
        "format": 1, "name": format!("m{n}"), "incarnation": format!("00000000-0000-4000-8000-{n:012}"),
        "token": "t", "state": "idle", "state_since": 0, "backend": "pty", "asked_at": 0,
        "wish": { "profile": "worker", "argv": ["x"], "cwd": "/", "color": "blue" },
        "start": { "launcher": process, "program": process, "tty": null, "cwd": "/", "at": 0 },
    });
    serde_json::from_value(record).ok()
}

/// Every second task is completed.
fn board() -> Board {
    let task = |id: TaskId| {
        let state = if id.0.is_multiple_of(2) { TaskState::Completed } else { TaskState::Pending };
        (id, Task { state, ..Task::new(id, "s", "d") })
    };
    Board { tasks: (1..=TASKS).map(TaskId).map(task).collect(), ..Board::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_bench_has_all_members_and_acknowledges_each_message() {
        assert_eq!((0..MEMBERS).filter_map(record).count(), MEMBERS);
        assert_eq!(StepBench::new(100).run(), 20, "each message is acknowledged");
    }
}
