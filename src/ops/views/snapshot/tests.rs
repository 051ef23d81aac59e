//! Reading a team part by part, also after a failed read.

use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::{Caller, NewTask, Store};
use fixture::sample;
use model::members::placement::{Placement, ProcessId, PtyHold};
use model::members::record::StartRecord;
use model::team::Team;
use sys::fs;

/// A team without teammates, and a reader of it.
fn stage() -> (TempDir, TeamStore, SnapshotReader) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let store = Store::at(&dir.path().join("root"));
    let name = TeamName::new("demo").expect("a name");
    let file = Team::found(&name, "d", "team-lead", "s", "/w", Timestamp(1));
    let settings = json!({"format": 1, "backend": "auto", "finish": "manual", "max_members": 8});
    let settings = serde_json::from_value(settings).expect("settings");
    let team = store.create(&name, &file, &settings).expect("a team");
    let caller = Caller { env: Vec::new(), cwd: "/".into(), exe: "/phalanx".into() };
    let ctx = Context { store, speaker: MemberName::lead(), caller };
    let reader = SnapshotReader::new(&ctx, &team);
    (dir, team, reader)
}

fn send(team: &TeamStore, text: &str) {
    let envelope = Envelope::new("ada", text, text.to_owned(), now());
    team.mailbox(&MemberName::lead()).append_all(&[envelope]).expect("writable");
}

fn texts(snapshot: &TeamSnapshot) -> Vec<&str> {
    snapshot.messages.iter().map(|message| message.envelope.text.as_str()).collect()
}

#[test]
fn only_changed_parts_are_read_again() {
    let (_dir, team, mut reader) = stage();
    let first = reader.read(&BTreeSet::new()).expect("readable");
    send(&team, "one");
    let unread = reader.read(&BTreeSet::from([Topic::Journal])).expect("readable");
    assert!(texts(&unread).is_empty(), "the mailbox was not reported");
    assert!(Arc::ptr_eq(&first.tasks, &unread.tasks));
    let mail = Topic::Mail(MemberName::lead().file_stem());
    let read = reader.read(&BTreeSet::from([mail])).expect("readable");
    assert_eq!(texts(&read), ["one"]);
}

#[test]
fn change_during_a_failed_read_is_not_lost() {
    let (_dir, team, mut reader) = stage();
    reader.read(&BTreeSet::new()).expect("readable");
    send(&team, "one");
    let path = team.team_file();
    let whole = fs::read(&path, 1 << 20).expect("readable").expect("it exists");
    fs::write_atomic(&path, b"[]").expect("writable");
    let mail = Topic::Mail(MemberName::lead().file_stem());
    assert!(reader.read(&BTreeSet::from([mail])).is_err());
    fs::write_atomic(&path, &whole).expect("writable");
    let read = reader.read(&BTreeSet::from([Topic::Roster])).expect("readable");
    assert_eq!(texts(&read), ["one"]);
}

/// PF-15: the members of a team with a large board are seen before its board is read.
#[test]
fn pf_15_first_state_does_not_wait_for_a_large_board() {
    for (count, has_board) in [(LARGE_BOARD, true), (LARGE_BOARD + 1, false)] {
        let (_dir, team, mut reader) = stage();
        let task = NewTask { subject: "t".to_owned(), ..NewTask::default() };
        let tasks = vec![task; count];
        team.create_tasks(&tasks, "team-lead", now()).expect("writable");
        assert!(!reader.must_read_on());
        let first = reader.read(&BTreeSet::new()).expect("readable");
        assert_eq!((first.is_board_read, first.tasks.is_empty()), (has_board, !has_board));
        assert_eq!(reader.must_read_on(), !has_board);
        let second = reader.read(&BTreeSet::new()).expect("readable");
        assert!(second.is_board_read && !reader.must_read_on());
        assert_eq!(second.tasks.len(), count);
    }
}

/// ST-10: a screen that is followed before its place is on record is not shown, and the same run is
/// not followed again.
#[test]
fn st_10_run_is_known_once_its_program_and_its_place_are() {
    let launcher = ProcessId { pid: 1, start: 1 };
    let start = StartRecord {
        launcher,
        program: launcher,
        tty: None,
        socket: None,
        cwd: "/".to_owned(),
        at: Timestamp(1),
    };
    let mut record = sample::record("ann", sample::run(1), "codex", Timestamp(1));
    let run = |record: &MemberRecord| details(Some(record), None, 0, None).run;
    record.start = Some(start);
    assert_eq!(run(&record), None, "its place is not on record");
    record.placement = Some(Placement::Pty(PtyHold { launcher, log: String::new() }));
    assert_eq!(run(&record), Some(sample::run(1)));
}
