//! A team of files that is copied to PostgreSQL and back keeps everything.

use serde_json::{Value, json};

use super::*;
use crate::tests::{NOW, fresh, fresh_in, message, who};
use crate::{Marking, NewTask, Store, StoreError, TeamStore};
use fixture::TestDatabase;
use model::id::{MemberName, TaskId};
use model::team::event::{EventKind, Note};
use model::wire::Object;
use sys::fs;

const LIMIT: u64 = 1 << 20;

/// Returns a team of files in which every part of the contents has something, also fields of other
/// programs.
fn full_team() -> (tempfile::TempDir, TeamStore) {
    let (dir, team) = fresh();
    edit(&team.layout.team_file(), |file| {
        file.insert("claudeField".into(), json!({"kept": [1, 2]}));
    });
    let task = |subject: &str| NewTask { subject: subject.to_owned(), ..NewTask::default() };
    team.create_tasks(&[task("first"), task("second"), task("third")], "team-lead", NOW)
        .expect("created");
    edit(&team.layout.task(TaskId(1)), |file| {
        file.insert("foreign".into(), json!("kept"));
    });
    team.delete_task(TaskId(3), &MemberName::lead(), true).expect("deleted");
    let lead = team.mailbox(&MemberName::lead());
    for n in 0..80 {
        let envelope = message("bob", &format!("message {n}"), &n.to_string());
        lead.append(&envelope).expect("appended");
        if n < 70 {
            lead.acknowledge(&[envelope.msg_id], Marking::Always).expect("read");
        }
    }
    let inbox = team.layout.inbox(&MemberName::lead());
    let mut entries: Vec<Value> = read(&inbox);
    entries.push(json!({"from": "x", "text": "foreign", "read": false, "color": "blue"}));
    fs::write_atomic(&inbox, &serde_json::to_vec(&entries).expect("json")).expect("written");
    team.set_looked_at(&who("bob"), NOW).expect("noted");
    team.change_review(|review| {
        review.last = 7;
        Ok(())
    })
    .expect("reviewed");
    team.record(Note::of(EventKind::LeadStarted).with("pid", 7)).expect("recorded");
    (dir, team)
}

fn read<T: serde::de::DeserializeOwned>(path: &std::path::Path) -> T {
    let bytes = fs::read(path, LIMIT).expect("read").expect("a file");
    serde_json::from_slice(&bytes).expect("json")
}

fn edit(path: &std::path::Path, change: impl FnOnce(&mut Object)) {
    let mut file: Object = read(path);
    change(&mut file);
    fs::write_atomic(path, &serde_json::to_vec(&file).expect("json")).expect("written");
}

/// Describes the contents for a comparison.
fn described(team: &TeamStore) -> String {
    let mut contents = team.contents().expect("contents");
    // In files, the log of tasks is separate, and a mailbox keeps the flag in its entries.
    contents.events.sort_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
    contents.documents.sort_by(|a, b| a.key.cmp(&b.key));
    for mailbox in &mut contents.mailboxes {
        for message in &mut mailbox.messages {
            let delivered = message.delivered;
            let entry = message.entry.as_object_mut().expect("object");
            model::wire::put(entry, "read", delivered);
        }
    }
    format!("{contents:#?}")
}

#[test]
fn team_is_the_same_after_import_and_export() {
    let (_from, team) = full_team();
    let Some(database) = TestDatabase::create() else { return };
    let (_other, shared) = fresh_in(&database);
    let host = shared.host().expect("shared").clone();
    shared.delete().expect("makes room");
    let before = described(&team);
    let contents = team.contents().expect("contents");
    assert_eq!(contents.counts(), (2, 81));

    shared.shared.as_ref().expect("shared").create_with(&contents).expect("imported");
    assert_eq!(described(&shared), before);
    assert_eq!(shared.mailbox(&MemberName::lead()).unread().expect("unread").len(), 11);
    assert_eq!(shared.host(), Some(&host));

    let back = tempfile::tempdir().expect("tempdir");
    let contents = shared.contents().expect("contents");
    let copy = Store::at(back.path()).create_with(team.name(), &contents).expect("exported");
    assert_eq!(described(&copy), before);
    let file = |team: &TeamStore| read::<Value>(&team.layout.team_file());
    assert_eq!(file(&copy), file(&team));
    let task = |team: &TeamStore| read::<Value>(&team.layout.task(TaskId(1)));
    assert_eq!(task(&copy), task(&team));
    let new = NewTask { subject: "fourth".to_owned(), ..NewTask::default() };
    let made = copy.create_tasks(&[new], "team-lead", NOW).expect("created");
    assert_eq!(made[0].id, TaskId(4), "the id of the deleted task is not used again");

    let again = Store::at(back.path()).create_with(team.name(), &contents);
    assert!(matches!(again, Err(StoreError::TeamTaken { .. })), "{again:?}");
}

#[test]
fn key_that_is_no_file_name_is_refused_and_nothing_is_written() {
    let (_from, team) = full_team();
    let mut contents = team.contents().expect("contents");
    contents.mailboxes[0].owner = "../../escaped".to_owned();
    let dir = tempfile::tempdir().expect("tempdir");
    let made = Store::at(&dir.path().join("root")).create_with(team.name(), &contents);
    assert!(matches!(made, Err(StoreError::BadDocument { .. })), "{made:?}");
    assert!(!fs::exists(&dir.path().join("root")));
}

#[test]
fn team_that_cannot_be_written_whole_does_not_exist() {
    let (_from, team) = full_team();
    let mut contents = team.contents().expect("contents");
    let entry = json!({"from": "x", "text": "x".repeat(70 << 20), "read": false});
    contents.mailboxes[0].messages.push(MessageContents { entry, delivered: false });
    let dir = tempfile::tempdir().expect("tempdir");
    let store = Store::at(&dir.path().join("root"));
    let made = store.create_with(team.name(), &contents);
    assert!(matches!(made, Err(StoreError::BoxFull { .. })), "{made:?}");
    assert_eq!(store.teams().expect("teams"), []);
}
