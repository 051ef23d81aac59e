//! Hiding and showing against a team on disk and a fake backend: team file, record, journal and
//! placement stay consistent.

use std::path::Path;
use std::sync::Mutex;

use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::Store;
use backend::{BeforeClose, CloseOutcome, Mark, PlacementRequest};
use fixture::sample;
use model::id::TeamName;
use model::members::lifecycle::MemberState;
use model::members::placement::{BackendKind, ProcessId, PtyHold, TmuxPane};
use model::members::spec::Terminal;
use model::team::{Member, Team};
use model::time::Timestamp;
use store::StoreError;
use sys::fs;

const PANE: &str = "%7";

/// Runs right after the fake has moved the pane.
type Sabotage = Box<dyn Fn() + Send + Sync>;

/// A fake backend with one pane, in the team's window or in another.
struct Fake {
    window: Mutex<String>,
    verdict: Verdict,
    moves: Mutex<Vec<&'static str>>,
    then: Sabotage,
}

impl Fake {
    fn new() -> Fake {
        Fake {
            window: Mutex::new("@0".to_owned()),
            verdict: Verdict::Owned,
            moves: Mutex::default(),
            then: Box::new(|| ()),
        }
    }

    fn go(&self, verb: &'static str, window: &str) -> Result<Placement, BackendError> {
        window.clone_into(&mut self.window.lock().expect("one thread"));
        self.moves.lock().expect("one thread").push(verb);
        (self.then)();
        Ok(placement(window))
    }

    fn moves(&self) -> Vec<&'static str> {
        self.moves.lock().expect("one thread").clone()
    }
}

impl Backend for Fake {
    fn kind(&self) -> BackendKind {
        BackendKind::Tmux
    }

    fn terminal(&self, _member: &MemberName) -> Terminal {
        Terminal::Pane
    }

    fn place(&self, _launches: &[PlacementRequest]) -> Vec<Result<Placement, BackendError>> {
        Vec::new()
    }

    fn verify_all(&self, marks: &[Mark<'_>]) -> Vec<Verdict> {
        vec![self.verdict.clone(); marks.len()]
    }

    fn close_all(&self, _marks: &[Mark<'_>], _before: &mut BeforeClose<'_>) -> Vec<CloseOutcome> {
        Vec::new()
    }

    fn screen(&self, _mark: Mark<'_>, _lines: usize) -> Result<String, BackendError> {
        Ok(String::new())
    }

    fn how_to_watch(&self, _placement: &Placement) -> String {
        String::new()
    }

    fn hide(&self, _mark: Mark<'_>) -> Result<Placement, BackendError> {
        self.go("hide", "@9")
    }

    fn show(&self, _mark: Mark<'_>) -> Result<Placement, BackendError> {
        self.go("show", "@0")
    }
}

fn placement(window: &str) -> Placement {
    let process = ProcessId { pid: 1, start: 1 };
    Placement::Tmux(TmuxPane {
        socket: "/s".to_owned(),
        server: process,
        session_id: "$0".to_owned(),
        session_name: "s".to_owned(),
        window_id: window.to_owned(),
        window_name: "w".to_owned(),
        pane_id: PANE.to_owned(),
        pane: process,
    })
}

fn record(name: &str) -> MemberRecord {
    MemberRecord {
        state: MemberState::Idle,
        backend: BackendKind::Tmux,
        placement: Some(placement("@0")),
        ..sample::record(name, sample::run(0), "worker", Timestamp(1))
    }
}

/// Creates a team with ada in pane %7.
fn stage() -> (TempDir, TeamStore, MemberRecord) {
    let dir = tempfile::tempdir().expect("tempdir");
    let name = TeamName::new("demo").expect("name");
    let file = Team::found(&name, "d", "team-lead", "s", "/w", Timestamp(1));
    let settings = json!({"format": 1, "backend": "auto", "finish": "manual", "max_members": 8});
    let settings = serde_json::from_value(settings).expect("settings");
    let team = Store::at(&dir.path().join("root")).create(&name, &file, &settings).expect("team");
    let record = record("ada");
    team.begin_record(&record).expect("record");
    let entry = json!({"name": "ada", "tmuxPaneId": PANE});
    let ada = Member::read(entry.as_object().expect("object")).expect("a member");
    team.change_roster(|roster| roster.join(&ada)).expect("joined");
    (dir, team, record)
}

fn turn_now(team: &TeamStore, fake: &Fake, visibility: Visibility) -> Result<bool, OpsError> {
    let name = MemberName::new("ada").expect("name");
    let (record, placement) = &placed(team, &name, "hide")?;
    let switch = VisibilitySwitch { team, record, placement, backend: fake, visibility };
    Ok(switch.carry_out()?.changed)
}

fn hidden(team: &TeamStore) -> Vec<String> {
    team.team().expect("team").hidden_pane_ids
}

fn window(team: &TeamStore) -> String {
    let record = team.member_record(&MemberName::new("ada").expect("name")).expect("record");
    match record.and_then(|record| record.placement) {
        Some(Placement::Tmux(pane)) => pane.window_id,
        other => panic!("{other:?}"),
    }
}

fn told(team: &TeamStore) -> Vec<EventKind> {
    let events = team.events().expect("journal");
    events.into_iter().map(|event| event.event).collect()
}

#[test]
fn hide_and_show_update_file_record_and_journal_and_are_idempotent() {
    let (_dir, team, _) = stage();
    let fake = Fake::new();
    assert!(turn_now(&team, &fake, Visibility::Hidden).expect("hidden"));
    assert_eq!((hidden(&team), window(&team)), (vec![PANE.to_owned()], "@9".to_owned()));
    assert!(!turn_now(&team, &fake, Visibility::Hidden).expect("hidden already"));
    assert!(turn_now(&team, &fake, Visibility::Shown).expect("shown"));
    assert_eq!((hidden(&team), window(&team)), (Vec::new(), "@0".to_owned()));
    assert!(!turn_now(&team, &fake, Visibility::Shown).expect("shown already"));
    assert_eq!(told(&team), [EventKind::MemberHidden, EventKind::MemberShown]);
}

#[test]
fn a_pane_moved_back_by_hand_is_hidden_again() {
    let (_dir, team, _) = stage();
    let fake = Fake::new();
    assert!(turn_now(&team, &fake, Visibility::Hidden).expect("hidden"));
    let name = MemberName::new("ada").expect("name");
    let run = record("ada").incarnation;
    team.change_record(&name, &run, |record| record.placement = Some(placement("@0")))
        .expect("moved");
    assert!(turn_now(&team, &fake, Visibility::Hidden).expect("hidden again"));
    assert_eq!((hidden(&team), window(&team)), (vec![PANE.to_owned()], "@9".to_owned()));
}

#[test]
fn sd_05_an_unproven_pane_is_not_moved() {
    let (_dir, team, _) = stage();
    for verdict in [
        Verdict::Gone,
        Verdict::Foreign { difference: "token".to_owned() },
        Verdict::Unknown { reason: "no answer".to_owned() },
    ] {
        let fake = Fake { verdict, ..Fake::new() };
        let refused = turn_now(&team, &fake, Visibility::Hidden).expect_err("not ours");
        assert!(matches!(refused, OpsError::NotProven { .. }), "{refused}");
        assert_eq!((fake.moves(), hidden(&team), told(&team)), (vec![], vec![], vec![]));
    }
}

#[test]
fn a_pane_moves_back_if_the_team_file_lock_fails() {
    let (dir, team, _) = stage();
    let lock = dir.path().join("root/teams/demo/config.json.lock");
    let spoil = move || fs::write_atomic(&lock, b"no directory").expect("writable");
    let fake = Fake { then: Box::new(spoil), ..Fake::new() };
    let failure = turn_now(&team, &fake, Visibility::Hidden).expect_err("there is no lock");
    assert!(matches!(failure, OpsError::Store(StoreError::Lock(_))), "{failure}");
    assert_eq!(fake.moves(), ["hide", "show"]);
    assert_eq!((hidden(&team), window(&team)), (Vec::new(), "@0".to_owned()));
}

#[test]
fn a_pane_moves_back_if_the_journal_cannot_be_written() {
    let (dir, team, _) = stage();
    let journal = dir.path().join("root/teams/demo/phalanx/journal.jsonl");
    let spoil = move || drop(fs::create_dir_exclusive(&journal));
    let fake = Fake { then: Box::new(spoil), ..Fake::new() };
    turn_now(&team, &fake, Visibility::Hidden).expect_err("no journal");
    assert_eq!(fake.moves(), ["hide", "show"]);
    assert_eq!((hidden(&team), window(&team)), (Vec::new(), "@0".to_owned()));
}

#[test]
fn a_placement_without_an_id_cannot_be_hidden() {
    let (_dir, team, record) = stage();
    let log = Path::new("/log").to_string_lossy().into_owned();
    let hold = Placement::Pty(PtyHold { launcher: ProcessId { pid: 1, start: 1 }, log });
    let (record, placement, fake) = (&record, &hold, Fake::new());
    let (team, backend, visibility) = (&team, &fake, Visibility::Shown);
    let switch = VisibilitySwitch { team, record, placement, backend, visibility };
    let refused = switch.carry_out().expect_err("no id");
    assert!(matches!(refused, OpsError::CannotDo(_)), "{refused}");
}

#[test]
fn a_member_that_leaves_is_removed_from_the_hidden_panes() {
    let (_dir, team, _) = stage();
    turn_now(&team, &Fake::new(), Visibility::Hidden).expect("hidden");
    team.change_roster(|roster| Ok(roster.leave(&MemberName::new("ada")?))).expect("left");
    assert_eq!(hidden(&team), Vec::<String>::new());
}
