//! MemberStop of a batch against a backend with scripted verdicts.

use std::collections::VecDeque;
use std::sync::Mutex;

use serde_json::json;
use tempfile::TempDir;

use super::*;
use backend::{BackendError, BeforeClose, PlacementRequest};
use model::id::{MemberName, TeamName};
use model::members::placement::BackendKind;
use model::members::spec::Terminal;
use model::team::Team;
use model::team::settings::Settings;
use model::time::Timestamp;
use store::Store;

/// Returns each scripted answer once, and records the size of each query.
#[derive(Default)]
struct FakeBackend {
    answers: Mutex<VecDeque<Vec<Verdict>>>,
    asked: Mutex<Vec<usize>>,
    closed: Mutex<Vec<String>>,
}

impl FakeBackend {
    fn with_verdicts(answers: &[&[Verdict]]) -> FakeBackend {
        let answers = answers.iter().map(|answer| answer.to_vec()).collect();
        FakeBackend { answers: Mutex::new(answers), ..FakeBackend::default() }
    }
}

impl Backend for FakeBackend {
    fn kind(&self) -> BackendKind {
        BackendKind::Pty
    }

    fn terminal(&self, _member: &MemberName) -> Terminal {
        Terminal::Pane
    }

    fn place(&self, _launches: &[PlacementRequest]) -> Vec<Result<Placement, BackendError>> {
        Vec::new()
    }

    fn verify_all(&self, marks: &[Mark<'_>]) -> Vec<Verdict> {
        self.asked.lock().expect("no panics in here").push(marks.len());
        self.answers
            .lock()
            .expect("no panics in here")
            .pop_front()
            .expect("a question that was foreseen")
    }

    fn close_all(&self, marks: &[Mark<'_>], before: &mut BeforeClose<'_>) -> Vec<CloseOutcome> {
        let verdicts = self.verify_all(marks);
        assert!(before(&verdicts), "the journal is writable");
        let close = |(mark, verdict): (&Mark<'_>, Verdict)| match verdict {
            Verdict::Owned => {
                self.closed.lock().expect("no panics in here").push(mark.token.to_owned());
                CloseOutcome::Closed
            }
            Verdict::Gone => CloseOutcome::Gone,
            Verdict::Foreign { difference } => CloseOutcome::Foreign { difference },
            Verdict::Unknown { reason } => CloseOutcome::Unknown { reason },
        };
        marks.iter().zip(verdicts).map(close).collect()
    }

    fn screen(&self, _: Mark<'_>, _: usize) -> Result<String, BackendError> {
        Ok(String::new())
    }

    fn how_to_watch(&self, _: &Placement) -> String {
        String::new()
    }
}

fn team() -> (TempDir, TeamStore) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let name = TeamName::new("demo").expect("name");
    let settings =
        json!({"format": 1, "backend": "auto", "finish": "manual", "keep": true, "max_members": 8});
    let settings: Settings = serde_json::from_value(settings).expect("settings");
    let file = Team::found(&name, "", "team-lead", "session", "/", Timestamp(1));
    let team = Store::at(dir.path()).create(&name, &file, &settings).expect("a team");
    (dir, team)
}

/// Builds a run whose launcher has exited: no process has this start time.
fn ended(token: &str) -> MemberStop {
    let dead = json!({"pid": 1, "start": u64::MAX});
    let record = json!({
        "format": 1, "name": token, "incarnation": "00000000-0000-4000-8000-000000000000", "token": token,
        "state": "idle", "state_since": 1, "backend": "pty", "asked_at": 1,
        "wish": {"profile": "worker", "argv": ["x"], "cwd": "/", "color": "blue"},
        "start": {"launcher": dead, "program": dead, "tty": null, "cwd": "/", "at": 1},
    });
    let record: MemberRecord = serde_json::from_value(record).expect("a record");
    let launcher = record.launcher().expect("a launcher");
    let hold = model::members::placement::PtyHold { launcher, log: String::new() };
    MemberStop {
        record: MemberRecord { placement: Some(Placement::Pty(hold)), ..record },
        mode: StopMode::Agreed,
    }
}

fn end(team: &TeamStore, backend: &FakeBackend, stops: &[MemberStop]) -> Vec<Result<(), OpsError>> {
    let mut results: Vec<Result<(), OpsError>> = stops.iter().map(|_| Ok(())).collect();
    for group in groups(stops) {
        end_group(team, backend, &group, &mut results);
    }
    results
}

fn verdicts(team: &TeamStore) -> Vec<String> {
    let events = team.events().expect("events");
    let said = events.iter().filter(|e| e.event == EventKind::PlacementVerdict);
    said.map(|e| {
        format!(
            "{} {}",
            e.member.as_ref().expect("whose"),
            e.detail["verdict"].as_str().unwrap_or("")
        )
    })
    .collect()
}

#[test]
fn sd_05_sd_13_a_batch_is_one_query_and_closes_only_owned_placements() {
    let (_dir, team) = team();
    let unknown = || Verdict::Unknown { reason: "no answer".to_owned() };
    let foreign = || Verdict::Foreign { difference: "its process".to_owned() };
    let backend = FakeBackend::with_verdicts(&[
        &[Verdict::Gone, Verdict::Owned, unknown(), foreign()],
        &[Verdict::Gone],
    ]);
    let batch = ["ann", "bob", "cat", "dan"].map(ended);
    let results = end(&team, &backend, &batch);
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    assert_eq!(*backend.asked.lock().expect("one thread"), [4, 1]);
    assert_eq!(*backend.closed.lock().expect("one thread"), ["bob"]);
    let said = ["ann gone", "bob owned", "dan foreign (its process)", "cat gone"];
    assert_eq!(verdicts(&team), said);
}

#[test]
fn a_run_that_was_never_placed_ends_without_a_verdict() {
    let (dir, team) = team();
    let caller = crate::context::Caller { env: Vec::new(), cwd: "/".into(), exe: "/x".into() };
    let store = Store::at(dir.path());
    let ctx = Context { store, speaker: MemberName::lead(), caller };
    let mut never = ended("ann");
    never.record.placement = None;
    let results = stop_all(&ctx, &team, &[never, ended("bob")]);
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    assert_eq!(verdicts(&team), ["bob gone"]);
}
