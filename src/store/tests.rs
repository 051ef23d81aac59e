//! Tests of the store on real files. Several threads stand in for several processes: each call
//! opens its own gates and locks, as a process would.

mod journal;
mod mail;
mod records;
mod review;
mod torn;
mod usage;

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::shared::access::SharedStore;
use crate::team::teams::MAX_TEAMS;
use crate::{
    ClaimKind, Marking, NewTask, Store, StoreError, TaskStep, TeamStore, read_environment,
    take_spec,
};
use database::DocumentKind;
use fixture::TestDatabase;
use model::board::Refusal;
use model::board::task::{CommandOutcome, TaskAction, TaskState};
use model::id::{HostName, Incarnation, MemberName, TaskId, TeamName};
use model::mail::envelope::{Envelope, MAX_TEXT};
use model::members::spec::{LauncherSpec, OsText, Terminal};
use model::team::event::EventKind;
use model::team::settings::Settings;
use model::team::{Member, Team};
use model::time::Timestamp;
use sys::{clock, fs};

pub(crate) use mail::wrapped;

pub(crate) const NOW: Timestamp = Timestamp(1_795_214_628_804);
const LIMIT: u64 = 1 << 20;

fn settings() -> Settings {
    Settings::by_hand(8)
}

fn new_team(root: &Path) -> TeamStore {
    let name = TeamName::new("demo").expect("name");
    let file = Team::found(&name, "d", "team-lead", "s-1", "/w", NOW);
    Store::at(root).create(&name, &file, &settings()).expect("team")
}

pub(crate) fn fresh() -> (TempDir, TeamStore) {
    let dir = tempfile::tempdir().expect("tempdir");
    let team = new_team(&dir.path().join("root"));
    (dir, team)
}

/// Runs a test on a team of files, and on one in PostgreSQL if that is installed.
pub(crate) fn on_both_stores(test: impl Fn(&TeamStore)) {
    let (_dir, team) = fresh();
    test(&team);
    let Some(database) = TestDatabase::create() else { return };
    let (_dir, team) = fresh_in(&database);
    test(&team);
}

/// Returns a team in the shared store.
pub(crate) fn fresh_in(database: &TestDatabase) -> (TempDir, TeamStore) {
    let dir = tempfile::tempdir().expect("tempdir");
    let url = database.store_url().into();
    let host = HostName::new("here").expect("name");
    let shared = SharedStore { database: database.connect(dir.path()), url, host };
    let store = Store::connected(&dir.path().join("root"), shared);
    let name = TeamName::new("demo").expect("name");
    let file = Team::found(&name, "d", "team-lead", "s-1", "/w", NOW);
    (dir, store.create(&name, &file, &settings()).expect("team"))
}

pub(crate) fn who(name: &str) -> MemberName {
    MemberName::new(name).expect("name")
}

fn teammate(name: &str) -> Member {
    let mut member = Member::read(
        json!({"name": name, "agentId": format!("{name}@demo")}).as_object().expect("object"),
    )
    .expect("member");
    member.joined_at = NOW;
    member
}

pub(crate) fn join(team: &TeamStore, name: &str) {
    team.change_roster(|roster| roster.join(&teammate(name))).expect("join");
    team.mailbox(&who(name)).create(None).expect("mailbox");
}

pub(crate) fn message(from: &str, text: &str, id: &str) -> Envelope {
    Envelope::new(from, text, id.to_owned(), NOW)
}

pub(crate) fn command(subject: &str) -> NewTask {
    let mut task = NewTask { subject: subject.to_owned(), ..NewTask::default() };
    task.fields.command = vec!["true".to_owned()];
    task
}

fn raw(path: &Path) -> String {
    String::from_utf8(fs::read(path, LIMIT).expect("read").expect("file")).expect("text")
}

#[test]
fn team_is_created_and_deleted_completely() {
    let (dir, team) = fresh();
    let store = Store::at(&dir.path().join("root"));
    assert_eq!(store.teams().expect("teams"), [team.name().clone()]);
    assert!(!raw(&team.layout.team_file()).ends_with('\n'));
    assert_eq!(raw(&team.layout.inbox(&MemberName::lead())), "[]");
    let again =
        store.create(team.name(), &Team::found(team.name(), "", "t", "s", "/", NOW), &settings());
    assert!(matches!(again, Err(StoreError::TeamTaken { .. })));
    team.delete().expect("delete");
    assert!(store.teams().expect("teams").is_empty());
    assert!(matches!(store.team(team.name()), Err(StoreError::NoSuchTeam { .. })));
    for parent in ["teams", "tasks"] {
        assert!(
            fs::list(&dir.path().join("root").join(parent)).expect("list").is_empty(),
            "{parent}"
        );
    }
}

#[test]
fn next_team_finishes_an_interrupted_deletion() {
    let (dir, team) = fresh();
    let root = dir.path().join("root");
    let aside = root.join("teams/.deleted-demo-x");
    fs::rename(&team.layout.team_dir(), &aside).expect("rename");
    let store = Store::at(&root);
    assert!(store.teams().expect("teams").is_empty());
    let name = TeamName::new("other").expect("name");
    store.create(&name, &Team::found(&name, "", "t", "s", "/", NOW), &settings()).expect("create");
    assert!(!fs::exists(&aside));
}

#[test]
fn sd_04_interrupted_deletion_leaves_no_tasks_to_next_team() {
    for finish in [true, false] {
        let (dir, team) = fresh();
        let store = Store::at(&dir.path().join("root"));
        team.create_tasks(&[command("old work")], "team-lead", NOW).expect("a task");
        let aside = dir.path().join("root/teams/.deleted-demo@5");
        fs::rename(&team.layout.team_dir(), &aside).expect("cut short here");
        let other = TeamName::new("other").expect("name");
        store
            .create(&other, &Team::found(&other, "", "t", "s", "/", NOW), &settings())
            .expect("another one");
        assert!(fs::exists(&aside), "the moved directory stays until the deletion is finished");
        if finish {
            assert!(store.finish_deletion(team.name()).expect("finished"));
            assert!(!store.finish_deletion(team.name()).expect("once"));
            assert!(!fs::exists(&team.layout.tasks()) && !fs::exists(&aside));
        }
        let file = Team::found(team.name(), "", "t", "s", "/", NOW);
        let again = store.create(team.name(), &file, &settings()).expect("the name is free");
        assert!(again.board().expect("board").tasks.is_empty());
        assert!(!store.finish_deletion(team.name()).expect("a living team has nothing to finish"));
        assert!(again.exists());
    }
}

#[test]
fn msg_05_no_mailbox_is_created_for_an_unknown_name() {
    on_both_stores(|team| {
        join(team, "bob");
        let sent = team.mailbox(&who("bobb")).append(&message("team-lead", "hi", "1"));
        let Err(StoreError::NoSuchMember { known, .. }) = sent else { panic!("{sent:?}") };
        assert_eq!(
            known.iter().map(MemberName::to_string).collect::<Vec<_>>(),
            ["team-lead", "bob"]
        );
        assert_eq!(team.mailbox(&who("bobb")).all().expect("no messages"), []);
        team.change_roster(|roster| Ok(roster.leave(&who("bob")))).expect("leave");
        assert!(team.mailbox(&who("bob")).append(&message("team-lead", "hi", "2")).is_err());
    });
}

#[test]
fn too_long_message_is_refused() {
    on_both_stores(|team| {
        let lead = team.mailbox(&MemberName::lead());
        let sent = lead.append(&message("bob", &"x".repeat(MAX_TEXT + 1), "1"));
        assert!(matches!(sent, Err(StoreError::MessageTooLong { .. })));
        lead.append(&message("bob", &"x".repeat(MAX_TEXT), "2")).expect("fits");
        assert_eq!(lead.unread().expect("unread").len(), 1);
    });
}

/// MSG-06 on a small scale, with concurrent writers and a marker; the order per sender is kept.
#[test]
fn msg_06_writers_markers_and_removers_lose_nothing() {
    on_both_stores(|team| {
        join(team, "bob");
        let (writers, each) = (4, 25);
        thread::scope(|scope| {
            for writer in 0..writers {
                let team = &team;
                scope.spawn(move || {
                    for n in 0..each {
                        let id = format!("{writer}-{n}");
                        team.mailbox(&who("bob"))
                            .append(&message(&format!("w{writer}"), &n.to_string(), &id))
                            .expect("append");
                    }
                });
            }
            scope.spawn(|| {
                for n in 0..each {
                    let ids = vec![format!("0-{n}")];
                    team.mailbox(&who("bob")).acknowledge(&ids, Marking::Always).expect("mark");
                }
            });
        });
        let entries = team.mailbox(&who("bob")).entries().expect("entries");
        assert_eq!(entries.len(), writers * each);
        for writer in 0..writers {
            let texts: Vec<String> = entries
                .iter()
                .filter(|e| e.from == format!("w{writer}"))
                .map(|e| e.text.clone())
                .collect();
            assert_eq!(texts, (0..each).map(|n| n.to_string()).collect::<Vec<_>>());
        }
        team.mailbox(&who("bob")).remove(&[entries[0].msg_id.clone()]).expect("remove");
        assert_eq!(team.mailbox(&who("bob")).entries().expect("entries").len(), writers * each - 1);
    });
}

#[test]
fn marking_keeps_unknown_fields_of_entries() {
    let (_dir, team) = fresh();
    let theirs = r#"[{"zeta":1.50,"from":"a","text":"t","timestamp":"x","read":false,"deep":{"n":123456789012345678901}}]"#;
    let path = team.layout.inbox(&MemberName::lead());
    fs::write_atomic(&path, theirs.as_bytes()).expect("write");
    let mailbox = team.mailbox(&MemberName::lead());
    let id = mailbox.unread().expect("unread")[0].msg_id.clone();
    mailbox.acknowledge(&[id], Marking::Always).expect("mark");
    assert!(mailbox.unread().expect("unread").is_empty());
    let stored: Value = serde_json::from_str(&raw(&path)).expect("json");
    assert_eq!(stored.to_string(), theirs.replace("false", "true"));
}

#[test]
fn msg_07_corrupt_mailboxes_are_not_overwritten() {
    for bad in ["[{\"from\":\"a\"", "", "\0\0\0", "\u{feff}[]", "[\"raw\nnewline\"]"] {
        let (_dir, team) = fresh();
        let path = team.layout.inbox(&MemberName::lead());
        fs::write_atomic(&path, bad.as_bytes()).expect("write");
        let sent = team.mailbox(&MemberName::lead()).append(&message("bob", "hi", "1"));
        let Err(StoreError::Corrupt { copy, .. }) = sent else { panic!("{bad:?}: {sent:?}") };
        assert_eq!(raw(&path), bad);
        assert_eq!(raw(&copy), bad);
        assert!(team.mailbox(&MemberName::lead()).entries().is_err());
        let events = team.events().expect("events");
        let kinds: Vec<EventKind> = events.iter().map(|e| e.event).collect();
        assert_eq!(kinds, [EventKind::FileQuarantined], "reported once for each content");
    }
}

/// ID-04, ID-05, ID-07.
#[test]
fn id_07_concurrent_joins_and_leaves_all_take_effect() {
    on_both_stores(|team| {
        thread::scope(|scope| {
            for n in 0..10 {
                let team = &team;
                scope.spawn(move || {
                    join(team, &format!("m{n}"));
                    if n % 2 == 0 {
                        let name = who(&format!("m{n}"));
                        assert!(
                            team.change_roster(|roster| Ok(roster.leave(&name))).expect("leave")
                        );
                    }
                });
            }
        });
        let mut names: Vec<String> =
            team.team().expect("team").teammates().map(|m| m.name.to_string()).collect();
        names.sort();
        assert_eq!(names, ["m1", "m3", "m5", "m7", "m9"]);
        let twice = team.change_roster(|roster| roster.join(&teammate("M1")));
        assert!(matches!(twice, Err(StoreError::MemberTaken { .. })), "{twice:?}");
    });
}

#[test]
fn id_07_a_foreign_unlocked_rewrite_is_not_lost() {
    let (_dir, team) = fresh();
    let path = team.layout.team_file();
    let mut first = true;
    team.change_roster(|roster| {
        if std::mem::take(&mut first) {
            // Claude Code rewrites the team file without a lock, between our read and our write.
            let mut theirs: Value = serde_json::from_str(&raw(&path)).expect("json");
            theirs["theirs"] = json!(true);
            fs::write_atomic(&path, theirs.to_string().as_bytes()).expect("write");
        }
        roster.join(&teammate("bob"))
    })
    .expect("join");
    let stored: Value = serde_json::from_str(&raw(&path)).expect("json");
    assert_eq!(stored["theirs"], json!(true));
    assert_eq!(stored["members"].as_array().map(Vec::len), Some(2));
}

#[test]
fn tasks_get_increasing_ids_and_two_sided_edges() {
    on_both_stores(|team| {
        let batch = [command("a"), NewTask { after: vec![0], ..command("b") }];
        let made = team.create_tasks(&batch, "team-lead", NOW).expect("tasks");
        assert_eq!(made.iter().map(|t| t.id.0).collect::<Vec<_>>(), [1, 2]);
        let later = NewTask { blocked_by: vec![TaskId(1)], ..command("c") };
        team.create_tasks(&[later], "team-lead", NOW).expect("task");
        let board = team.board().expect("board");
        assert_eq!(board.tasks[&TaskId(1)].blocks, [TaskId(2), TaskId(3)]);
        assert_eq!(board.tasks[&TaskId(3)].blocked_by, [TaskId(1)]);
        let dangling = NewTask { blocked_by: vec![TaskId(77)], ..command("d") };
        assert!(team.create_tasks(&[command("x"), dangling], "team-lead", NOW).is_err());
        assert_eq!(team.board().expect("board").tasks.len(), 3);
    });
}

/// Another program deletes the task with the highest id.
#[test]
fn tk_07_ids_are_never_reused() {
    let (_dir, team) = fresh();
    team.create_tasks(&[command("a"), command("b")], "team-lead", NOW).expect("tasks");
    fs::remove_file(&team.layout.task(TaskId(2))).expect("remove");
    let next = team.create_tasks(&[command("c")], "team-lead", NOW).expect("task");
    assert_eq!(next[0].id, TaskId(3));
}

/// TK-02 on a small scale: every task is claimed exactly once.
#[test]
fn tk_02_claims_have_one_winner() {
    on_both_stores(|team| {
        let batch: Vec<NewTask> = (0..12).map(|n| command(&format!("t{n}"))).collect();
        team.create_tasks(&batch, "team-lead", NOW).expect("tasks");
        let claimed: Vec<TaskId> = thread::scope(|scope| {
            let claimers: Vec<_> = (0..4)
                .map(|n| {
                    let team = &team;
                    scope.spawn(move || {
                        let me = who(&format!("m{n}"));
                        let mut mine = Vec::new();
                        while let Some(task) =
                            team.claim_next(&me, None, ClaimKind::Command, NOW).expect("claim")
                        {
                            team.step_task(task.id, &me, &TaskStep::of(TaskAction::Complete), NOW)
                                .expect("end");
                            mine.push(task.id);
                        }
                        mine
                    })
                })
                .collect();
            claimers.into_iter().flat_map(|c| c.join().expect("thread")).collect()
        });
        let mut sorted = claimed.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (1..=12).map(TaskId).collect::<Vec<_>>());
    });
}

#[test]
fn tk_05_tasks_of_a_member_are_released() {
    on_both_stores(|team| {
        team.create_tasks(&[command("a"), command("b")], "team-lead", NOW).expect("tasks");
        let task = team.claim(TaskId(1), &who("bob"), false, NOW).expect("claim");
        assert_eq!(task.state, TaskState::InProgress);
        let refused = team.claim(TaskId(1), &who("ann"), false, NOW);
        assert!(matches!(refused, Err(StoreError::Refused(Refusal::AlreadyClaimed { .. }))));
        let stolen =
            team.step_task(TaskId(1), &who("ann"), &TaskStep::of(TaskAction::Complete), NOW);
        assert!(matches!(stolen, Err(StoreError::NotYours { .. })));
        let (mut released, _) =
            team.release_tasks_of(&[&who("ann"), &who("bob")]).expect("release");
        assert!(released.remove(0).expect("release").is_empty());
        let released = released.remove(0).expect("release");
        assert_eq!(
            released.iter().map(|t| (t.id, t.state, t.owner.clone())).collect::<Vec<_>>(),
            [(TaskId(1), TaskState::Pending, None)]
        );
        assert_eq!(released[0].extra.released, 1);
        assert_eq!(
            team.claim_next(&who("ann"), None, ClaimKind::Command, NOW)
                .expect("claim")
                .map(|t| t.id),
            Some(TaskId(1))
        );
    });
}

#[test]
fn failed_task_is_pending_on_the_wire_but_not_claimed() {
    let (_dir, team) = fresh();
    team.create_tasks(&[command("a")], "team-lead", NOW).expect("tasks");
    team.claim(TaskId(1), &who("bob"), false, NOW).expect("claim");
    let outcome =
        CommandOutcome { exit_code: Some(7), signal: None, tail: "no".to_owned(), elapsed_ms: 3 };
    team.step_task(
        TaskId(1),
        &who("bob"),
        &TaskStep::with_outcome(TaskAction::Fail, &outcome),
        NOW,
    )
    .expect("end");
    let file: Value = serde_json::from_str(&raw(&team.layout.task(TaskId(1)))).expect("json");
    assert_eq!(file["status"], json!("pending"));
    assert_eq!(file["metadata"]["phalanx"]["state"], json!("failed"));
    assert_eq!(team.claim_next(&who("ann"), None, ClaimKind::Command, NOW).expect("claim"), None);
}

#[test]
fn teams_are_listed_beside_more_entries_than_the_limit() {
    let dir = tempfile::tempdir().expect("tempdir");
    let team = new_team(dir.path());
    let teams = dir.path().join("teams");
    for n in 0..MAX_TEAMS {
        let other = teams.join(format!("Not A Team {n}"));
        fs::create_with(&other, b"", fs::Sync::Nothing).expect("writable");
    }
    assert_eq!(Store::at(dir.path()).teams().expect("listed"), [team.name().clone()]);
}

#[test]
fn newer_format_is_neither_read_nor_written() {
    let (_dir, team) = fresh();
    let path = team.layout.settings();
    let newer = raw(&path).replace("\"format\": 1", "\"format\": 9");
    fs::write_atomic(&path, newer.as_bytes()).expect("write");
    let read = team.settings();
    assert!(matches!(read, Err(StoreError::NewerFormat { found: 9, .. })), "{read:?}");
    let changed = team.change_settings(|s| s.max_members = 1);
    assert!(matches!(changed, Err(StoreError::NewerFormat { found: 9, .. })), "{changed:?}");
    assert_eq!(raw(&path), newer);
}

#[test]
fn newer_claim_of_a_host_name_is_refused_and_kept() {
    let Some(database) = TestDatabase::create() else { return };
    let (_dir, team) = fresh_in(&database);
    team.join_host().expect("the name is free");
    let claim = team.shared.as_ref().expect("shared").document(DocumentKind::Host, "here");
    let newer = json!({ "format": 9, "of": "a newer phalanx" });
    claim.change(|_| Ok((Some(newer.clone()), ()))).expect("written");
    let refused = team.join_host();
    assert!(matches!(refused, Err(StoreError::NewerFormat { found: 9, .. })), "{refused:?}");
    assert_eq!(claim.read().expect("readable"), Some(newer));
}

#[test]
fn keys_of_a_newer_phalanx_survive_a_change() {
    let (_dir, team) = fresh();
    let path = team.layout.settings();
    let newer = raw(&path).replace("\"max_members\": 8", "\"max_members\": 8,\n  \"newer\": 1");
    fs::write_atomic(&path, newer.as_bytes()).expect("write");
    team.change_settings(|s| s.max_members = 3).expect("change");
    assert_eq!(raw(&path), newer.replace("\"max_members\": 8", "\"max_members\": 3"));
}

#[test]
fn sec_06_environment_is_private_and_ends_with_its_run() {
    let (_dir, team) = fresh();
    let env = |value: &[u8]| {
        vec![("A".into(), OsString::from_vec(value.to_vec())), ("B".into(), OsString::new())]
    };
    let kept = team.keep_environment(&who("ann"), &env(b"\xff=\n")).expect("it is written");
    let path = kept.path().to_owned();
    assert_eq!(read_environment(&path).expect("it is read"), Some(env(b"\xff=\n")));
    let about = fs::about(&path).expect("it can be looked at").expect("it is there");
    assert_eq!(about.mode & 0o077, 0);
    let next = team.keep_environment(&who("ann"), &env(b"next")).expect("it is written");
    drop(kept);
    assert_eq!(read_environment(&path).expect("it is read"), Some(env(b"next")), "another run's");
    drop(next);
    assert_eq!(read_environment(&path).expect("it is gone"), None);
}

#[test]
fn sec_06_a_spec_is_read_once() {
    let (_dir, team) = fresh();
    let spec = LauncherSpec {
        format: 1,
        config_root: OsText::Text("/r".to_owned()),
        team: team.name().clone(),
        member: who("bob"),
        incarnation: Incarnation::parse("00000000-0000-4000-8000-000000000000").expect("uuid"),
        token: "t".to_owned(),
        argv: vec![OsText::Bytes(vec![0xff])],
        cwd: OsText::Text("/".to_owned()),
        env: Vec::new(),
        terminal: Terminal::Own { rows: 50, cols: 200, log: "/l".to_owned() },
        linger_ms: 1,
    };
    let path = team.keep_spec(&spec).expect("keep");
    assert_eq!(take_spec(&path).expect("take"), Some(spec));
    assert_eq!(take_spec(&path).expect("take"), None);
}

#[test]
fn sec_07_a_symlinked_team_directory_is_refused() {
    let dir = tempfile::tempdir().expect("tempdir");
    let root = dir.path().join("root");
    fs::private_dir(&dir.path().join("elsewhere")).expect("dir");
    fs::private_dir(&root).expect("dir");
    std::os::unix::fs::symlink(dir.path().join("elsewhere"), root.join("teams")).expect("symlink");
    let name = TeamName::new("demo").expect("name");
    let made =
        Store::at(&root).create(&name, &Team::found(&name, "", "t", "s", "/", NOW), &settings());
    assert!(made.is_err());
    assert!(fs::list(&dir.path().join("elsewhere")).expect("list").is_empty());
}
