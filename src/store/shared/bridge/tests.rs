//! The files of a host and PostgreSQL, with writes to the files as Claude Code makes them.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::FileBridge;
use crate::tests::{NOW, fresh_in, join, message, who, wrapped};
use crate::{Marking, NewTask, TargetStatus, TaskChanges, TaskOwner, TeamStore};
use fixture::TestDatabase;
use model::board::task::TaskState;
use model::id::{MemberName, TaskId};
use model::team::event::EventKind;
use model::topic::Topic;
use sys::fs;

const LIMIT: u64 = 1 << 20;

/// A team in PostgreSQL whose member `ann` reads its files on this host. `bob` does not.
struct Bridged {
    team: TeamStore,
    bridge: FileBridge,
    dir: TempDir,
    database: TestDatabase,
}

impl Bridged {
    fn new() -> Option<Bridged> {
        let database = TestDatabase::create()?;
        let (dir, team) = fresh_in(&database);
        wrapped(&team, "ann", "claude");
        join(&team, "bob");
        let mut bridge = team.take_bridge().expect("the gate").expect("free");
        bridge.copy(&everything()).expect("copied");
        Some(Bridged { team, bridge, dir, database })
    }

    fn copy(&mut self) {
        self.bridge.copy(&everything()).expect("copied");
    }

    /// Ends the bridge and starts another, as if the launcher had been killed.
    fn restart(self) -> Bridged {
        let Bridged { team, bridge, dir, database } = self;
        drop(bridge);
        let bridge = team.take_bridge().expect("the gate").expect("free");
        Bridged { team, bridge, dir, database }
    }

    fn inbox(&self, name: &str) -> Vec<Value> {
        read(&self.team.layout.inbox(&owner(name)))
    }

    /// Writes a mailbox as a whole, as Claude Code does.
    fn set_inbox(&self, name: &str, entries: &[Value]) {
        write(&self.team.layout.inbox(&owner(name)), &entries);
    }

    fn send(&self, to: &str, id: &str) {
        self.team.mailbox(&who(to)).append(&message("bob", id, id)).expect("sent");
    }

    fn unread(&self, name: &str) -> Vec<String> {
        let unread = self.team.mailbox(&owner(name)).unread().expect("unread");
        unread.into_iter().map(|envelope| envelope.text).collect()
    }

    fn all(&self, name: &str) -> usize {
        self.team.mailbox(&owner(name)).all().expect("all").len()
    }

    fn create(&self, subject: &str) -> TaskId {
        let task = NewTask { subject: subject.to_owned(), ..NewTask::default() };
        self.team.create_tasks(&[task], "team-lead", NOW).expect("created")[0].id
    }

    fn file(&self, id: u64) -> Option<Value> {
        let path = self.team.layout.task(TaskId(id));
        fs::exists(&path).then(|| read(&path))
    }

    fn set_file(&self, id: u64, fields: &Value) {
        let mut task = self.file(id).unwrap_or_else(|| json!({}));
        for (key, value) in fields.as_object().expect("fields") {
            task[key] = value.clone();
        }
        write(&self.team.layout.task(TaskId(id)), &task);
    }

    fn task(&self, id: u64) -> (TaskState, Option<String>, String) {
        let task = self.team.task(TaskId(id)).expect("read").expect("a task");
        (task.state, task.owner_name().map(str::to_owned), task.subject)
    }

    fn edit(&self, id: TaskId, changes: &TaskChanges) {
        self.team.update_task(id, &MemberName::lead(), changes, NOW).expect("edited");
    }

    fn warnings(&self) -> Vec<String> {
        let events = self.team.events().expect("events").into_iter();
        let warnings = events.filter(|event| event.event == EventKind::Warning);
        warnings.map(|event| serde_json::to_string(&event).expect("json")).collect()
    }
}

/// Like [`who`], also for the lead.
fn owner(name: &str) -> MemberName {
    MemberName::existing(name).expect("a name")
}

fn everything() -> BTreeSet<Topic> {
    BTreeSet::from([Topic::Everything])
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> T {
    let bytes = fs::read(path, LIMIT).expect("read").expect("a file");
    serde_json::from_slice(&bytes).expect("json")
}

fn write(path: &Path, value: &impl serde::Serialize) {
    fs::write_atomic(path, &serde_json::to_vec_pretty(value).expect("json")).expect("written");
}

fn entry(from: &str, text: &str) -> Value {
    json!({"from": from, "text": text, "timestamp": "2026-11-20T22:43:51.440Z", "read": false})
}

#[test]
fn message_of_a_program_reaches_the_store_once() {
    let Some(mut stage) = Bridged::new() else { return };
    stage.set_inbox("team-lead", &[entry("ann", "done"), entry("ann", "idle")]);
    stage.copy();
    assert_eq!(stage.unread("team-lead"), ["done", "idle"]);
    assert_eq!(stage.inbox("team-lead"), Vec::<Value>::new(), "the lead does not read the file");
    // A program that had read the file before writes its entries back.
    stage.set_inbox("team-lead", &[entry("ann", "done"), entry("ann", "more")]);
    let mut stage = stage.restart();
    stage.copy();
    assert_eq!(stage.unread("team-lead"), ["done", "idle", "more"]);
    assert_eq!(stage.all("team-lead"), 3);
}

#[test]
fn message_in_the_store_reaches_the_file_once_and_is_read_by_mark_or_removal() {
    let Some(mut stage) = Bridged::new() else { return };
    for id in ["a", "b", "c"] {
        stage.send("ann", id);
    }
    stage.send("bob", "for bob");
    stage.copy();
    let mut entries = stage.inbox("ann");
    let ids: Vec<&Value> = entries.iter().map(|entry| &entry["msg_id"]).collect();
    assert_eq!(ids, ["a", "b", "c"]);
    assert_eq!(stage.inbox("bob"), Vec::<Value>::new(), "bob reads the store");
    assert_eq!(stage.unread("ann"), ["a", "b", "c"]);
    // 2.1.34 marks what it has read, 2.1.329 removes it.
    entries[0]["read"] = true.into();
    entries.remove(1);
    stage.set_inbox("ann", &entries);
    let mut stage = stage.restart();
    stage.copy();
    assert_eq!(stage.unread("ann"), ["c"]);
    assert_eq!(stage.inbox("ann"), entries);
    stage.send("ann", "d");
    stage.copy();
    stage.copy();
    let ids: Vec<Value> = stage.inbox("ann").iter().map(|entry| entry["msg_id"].clone()).collect();
    assert_eq!(ids, ["a", "c", "d"]);
}

#[test]
fn message_between_programs_of_one_host_is_in_the_store_and_not_repeated() {
    let Some(mut stage) = Bridged::new() else { return };
    stage.set_inbox("ann", &[entry("cid", "psst")]);
    stage.copy();
    stage.copy();
    assert_eq!(stage.inbox("ann"), [entry("cid", "psst")]);
    assert_eq!(stage.unread("ann"), ["psst"]);
    stage.set_inbox("ann", &[]);
    stage.copy();
    assert_eq!((stage.unread("ann"), stage.all("ann")), (Vec::<String>::new(), 1));
}

#[test]
fn message_that_was_marked_in_the_store_is_marked_in_the_file() {
    let Some(mut stage) = Bridged::new() else { return };
    stage.send("ann", "stale");
    stage.copy();
    let mailbox = stage.team.mailbox(&who("ann"));
    mailbox.acknowledge(&["stale".to_owned()], Marking::Always).expect("marked");
    stage.copy();
    assert_eq!(stage.inbox("ann")[0]["read"], true);
}

#[test]
fn message_to_a_stranger_stays_in_its_file_and_is_reported_once() {
    let Some(mut stage) = Bridged::new() else { return };
    let path = stage.team.layout.inboxes().join("stranger.json");
    write(&path, &[entry("ann", "hello?")]);
    stage.copy();
    stage.copy();
    assert_eq!(read::<Vec<Value>>(&path), [entry("ann", "hello?")]);
    let warnings = stage.warnings();
    assert!(matches!(&warnings[..], [one] if one.contains("stranger")), "{warnings:?}");
}

#[test]
fn mailbox_that_does_not_parse_is_left_alone() {
    let Some(mut stage) = Bridged::new() else { return };
    let path = stage.team.layout.inbox(&who("ann"));
    fs::write_atomic(&path, b"[{").expect("written");
    stage.send("ann", "waits");
    stage.copy();
    assert_eq!(fs::read(&path, LIMIT).expect("read").as_deref(), Some(&b"[{"[..]));
    assert_eq!(stage.warnings().len(), 1);
    fs::write_atomic(&path, b"[]").expect("written");
    stage.copy();
    assert_eq!(stage.inbox("ann").len(), 1);
}

#[test]
fn field_of_a_member_that_a_program_changed_is_in_the_store_and_others_are_not_lost() {
    let Some(mut stage) = Bridged::new() else { return };
    let path = stage.team.layout.team_file();
    let mut file: Value = read(&path);
    assert_eq!(file["members"][1]["name"], "ann");
    file["members"][1]["isActive"] = false.into();
    // The program does not know bob, as one that had read the file before he joined.
    file["members"].as_array_mut().expect("members").truncate(2);
    write(&path, &file);
    stage.team.change_roster(|roster| Ok(roster.set(&who("bob"), "color", "pink"))).expect("set");
    stage.copy();
    let team = stage.team.team().expect("team");
    assert_eq!(team.member(&who("ann")).expect("ann").is_active, Some(false));
    assert_eq!(team.member(&who("bob")).expect("bob").color.as_deref(), Some("pink"));
    let file: Value = read(&path);
    assert_eq!(
        (&file["members"][1]["isActive"], &file["members"][2]["color"]),
        (&false.into(), &"pink".into())
    );
}

#[test]
fn tasks_and_their_changes_are_on_both_sides() {
    let Some(mut stage) = Bridged::new() else { return };
    let first = stage.create("first");
    stage.copy();
    assert_eq!(stage.file(1).expect("a file")["subject"], "first");
    stage.edit(first, &TaskChanges { description: Some("more".into()), ..TaskChanges::default() });
    stage.set_file(1, &json!({"owner": "ann", "status": "in_progress", "theirs": 1}));
    stage.set_file(
        2,
        &json!({"id": "2", "subject": "second", "description": "", "status": "pending",
        "blocks": [], "blockedBy": []}),
    );
    stage.copy();
    let task = stage.file(1).expect("a file");
    assert_eq!((&task["description"], &task["theirs"]), (&"more".into(), &1.into()));
    assert_eq!(stage.task(1), (TaskState::InProgress, Some("ann".into()), "first".into()));
    assert_eq!(stage.task(2).2, "second");
    fs::remove_file(&stage.team.layout.task(TaskId(2))).expect("removed");
    let mut stage = stage.restart();
    stage.copy();
    assert_eq!(stage.team.task(TaskId(2)).expect("read"), None);
    stage.team.delete_task(TaskId(1), &MemberName::lead(), true).expect("deleted");
    stage.copy();
    assert_eq!(stage.file(1), None);
    assert_eq!(stage.create("third"), TaskId(3));
    stage.copy();
    let mark = fs::read(&stage.team.layout.high_water_mark(), 64).expect("read").expect("a mark");
    assert_eq!(mark, b"3");
}

#[test]
fn claim_in_the_store_wins_and_the_member_is_told() {
    let Some(mut stage) = Bridged::new() else { return };
    let id = stage.create("both want it");
    stage.copy();
    let taken = TaskChanges {
        owner: Some(TaskOwner::Member(who("bob"))),
        status: Some(TargetStatus::InProgress),
        ..TaskChanges::default()
    };
    stage.edit(id, &taken);
    stage.set_file(1, &json!({"owner": "ann", "status": "in_progress"}));
    stage.copy();
    stage.copy();
    assert_eq!(stage.task(1).1.as_deref(), Some("bob"));
    assert_eq!(stage.file(1).expect("a file")["owner"], "bob");
    let told = stage.inbox("ann");
    assert_eq!(told.len(), 1, "{told:?}");
    let text = told[0]["text"].as_str().expect("text");
    assert!(text.contains("task 1") && text.contains("belongs to bob"), "{text}");
}

#[test]
fn task_of_a_program_whose_id_is_taken_gets_another() {
    let Some(mut stage) = Bridged::new() else { return };
    stage.create("of the store");
    stage.set_file(1, &json!({"id": "1", "subject": "of the program", "status": "pending"}));
    stage.copy();
    stage.copy();
    assert_eq!(stage.task(1).2, "of the store");
    assert_eq!(stage.task(2).2, "of the program");
    assert_eq!(stage.file(1).expect("a file")["subject"], "of the store");
    let moved = stage.file(2).expect("a file");
    assert_eq!((&moved["id"], &moved["subject"]), (&"2".into(), &"of the program".into()));
    assert_eq!(stage.team.board().expect("board").tasks.len(), 2);
    assert_eq!(stage.warnings().len(), 1);
}

#[test]
fn task_that_does_not_parse_is_left_alone() {
    let Some(mut stage) = Bridged::new() else { return };
    stage.create("one");
    stage.copy();
    let path = stage.team.layout.task(TaskId(1));
    fs::write_atomic(&path, b"{\"id\":").expect("written");
    stage.copy();
    assert_eq!(fs::read(&path, LIMIT).expect("read").as_deref(), Some(&b"{\"id\":"[..]));
    assert_eq!(stage.task(1).2, "one");
}

#[test]
fn files_of_an_earlier_team_of_the_name_are_removed() {
    let Some(stage) = Bridged::new() else { return };
    stage.create("old");
    let mut stage = stage.restart();
    stage.copy();
    stage.set_inbox("team-lead", &[entry("ann", "for the old lead")]);
    let last = stage.team.layout.last_team_file();
    let mut file: Value = read(&last);
    file["createdAt"] = 1.into();
    write(&last, &file);
    let mut stage = stage.restart();
    stage.copy();
    assert_eq!(stage.unread("team-lead"), Vec::<String>::new());
    assert_eq!(stage.inbox("team-lead"), Vec::<Value>::new());
    assert_eq!(stage.task(1).2, "old", "of the store, and not deleted with the files");
}

#[test]
fn one_process_of_a_host_copies() {
    let Some(stage) = Bridged::new() else { return };
    assert!(stage.team.take_bridge().expect("the gate").is_none());
    assert!(stage.team.is_in_files(&who("ann")) && !stage.team.is_in_files(&who("cid")));
}
