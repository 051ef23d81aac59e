//! Mailboxes: single delivery, archiving, and files that belong to other programs or cannot be
//! read.

use serde_json::{Value, json};

use super::{fresh, join, message, raw, who};
use crate::{Marking, StoreError, TeamStore};
use model::id::{Incarnation, MemberName};
use model::members::record::MemberRecord;
use sys::fs;

const LARGE: u64 = 1 << 30;

pub(crate) fn wrapped(team: &TeamStore, name: &str, profile: &str) {
    join(team, name);
    let incarnation = Incarnation::parse("00000000-0000-4000-8000-000000000000").expect("uuid");
    let record = json!({
        "format": 1, "name": name, "incarnation": incarnation, "token": "t", "state": "starting", "state_since": 1,
        "backend": "pty", "asked_at": 1, "host": team.host(),
        "wish": {"profile": profile, "argv": ["x"], "cwd": "/", "color": "blue"},
    });
    let record: MemberRecord = serde_json::from_value(record).expect("a record");
    team.begin_record(&record).expect("written");
}

fn fill(team: &TeamStore, name: &str, count: usize) -> Vec<String> {
    fill_box(team, &who(name), count)
}

fn fill_box(team: &TeamStore, owner: &MemberName, count: usize) -> Vec<String> {
    let entry = |n: usize| {
        let mut entry = message("alice", "text", &format!("m-{n}")).to_entry();
        entry.insert("theirs".to_owned(), json!(n));
        Value::Object(entry)
    };
    let entries: Vec<Value> = (0..count).map(entry).collect();
    let text = serde_json::to_vec_pretty(&entries).expect("json");
    fs::write_atomic(&team.layout.inbox(owner), &text).expect("writable");
    (0..count).map(|n| format!("m-{n}")).collect()
}

fn ids(of: Vec<model::mail::envelope::Envelope>) -> Vec<String> {
    of.into_iter().map(|e| e.msg_id).collect()
}

#[test]
fn pf_01_read_mailbox_stays_short_and_loses_nothing() {
    let (_dir, team) = fresh();
    wrapped(&team, "bob", "worker");
    let all = fill(&team, "bob", 10_000);
    let mailbox = team.mailbox(&who("bob"));
    mailbox.acknowledge(&all, Marking::IfReadByPhalanx).expect("acknowledged");
    assert_eq!(mailbox.entries().expect("entries").len(), 32);
    for n in 0..100 {
        let id = [format!("n-{n}")];
        mailbox.append(&message("alice", "more", &id[0])).expect("append");
        assert_eq!(ids(mailbox.unread().expect("unread")), id);
        mailbox.acknowledge(&id, Marking::IfReadByPhalanx).expect("acknowledged");
        assert!(mailbox.entries().expect("entries").len() < 64);
    }
    mailbox.append(&message("alice", "last", "unread")).expect("append");
    let known: Vec<String> = all.into_iter().chain((0..100).map(|n| format!("n-{n}"))).collect();
    assert_eq!(ids(mailbox.all().expect("all")), [known, vec!["unread".to_owned()]].concat());
    let kept = raw_large(&team.layout.archive(&who("bob")));
    assert!(
        kept.lines().next().expect("a line").contains(r#""theirs":0"#),
        "whole entries, with what others wrote"
    );
    let recorded = mailbox.acks.ids().expect("recorded").len();
    assert!(recorded <= 512, "the record is pruned: {recorded}");
}

/// A lead delivers first and marks later. It does not mark its mailbox in a team that another
/// program created.
#[test]
fn pf_01_deferred_marking_prunes_the_record_of_deliveries() {
    for is_ours in [true, false] {
        let (_dir, team) = fresh();
        if !is_ours {
            fs::remove_file(&team.layout.settings()).expect("removed");
        }
        let mailbox = team.mailbox(&MemberName::lead());
        let gone = fill_box(&team, &MemberName::lead(), 1000);
        assert_eq!(mailbox.record_delivered(&gone).expect("recorded"), gone);
        let here = fill_box(&team, &MemberName::lead(), 3);
        assert_eq!(mailbox.record_delivered(&here).expect("recorded"), [""; 0], "once");
        let read = || mailbox.entries().expect("entries").iter().filter(|e| e.read).count();
        assert_eq!((read(), ids(mailbox.unread().expect("unread"))), (0, Vec::new()));
        mailbox.mark_delivered().expect("marked");
        assert_eq!(read(), if is_ours { 3 } else { 0 });
        let recorded = mailbox.acks.ids().expect("recorded").len();
        assert!(recorded <= 512, "the record is pruned: {recorded}");
        assert_eq!(ids(mailbox.unread().expect("unread")), [""; 0]);
    }
}

#[test]
fn pf_11_reader_keeps_only_the_messages_that_it_has_a_use_for() {
    let (_dir, team) = fresh();
    let mailbox = team.mailbox(&MemberName::lead());
    let all = fill_box(&team, &MemberName::lead(), 100);
    mailbox.append(&message("bob", "{}", "protocol")).expect("append");
    let kept = || mailbox.unread_where(|envelope| envelope.text == "{}").expect("unread");
    assert_eq!(ids(kept()), ["protocol"]);
    assert_eq!(mailbox.unread().expect("unread").len(), all.len() + 1);
    mailbox.record_delivered(&["protocol".to_owned()]).expect("recorded");
    assert_eq!(ids(kept()), [""; 0]);
}

/// The archive is longer than one chunk of a read.
#[test]
fn pf_01_message_is_found_in_mailbox_and_archive() {
    let (_dir, team) = fresh();
    wrapped(&team, "bob", "worker");
    let all = fill(&team, "bob", 10_000);
    let mailbox = team.mailbox(&who("bob"));
    mailbox.acknowledge(&all, Marking::IfReadByPhalanx).expect("acknowledged");
    mailbox
        .append(&message("alice", "quotes m-17 and \"msgId\":\"m-18\"", "late \"one\""))
        .expect("append");
    for id in ["m-0", "m-5000", "m-9967", "m-9999", "late \"one\""] {
        assert_eq!(mailbox.find(id).expect("read").expect(id).msg_id, id);
    }
    mailbox.remove(&["m-17".to_owned(), "m-18".to_owned()]).expect("removed");
    for gone in ["m-17", "m-18", "m-", "m-10000"] {
        assert_eq!(mailbox.find(gone).expect("read"), None, "{gone}");
    }
}

/// MSG-22: also a message that its reader has taken is not appended again.
#[test]
fn msg_22_message_that_several_append_at_once_is_there_once() {
    let (_dir, team) = fresh();
    wrapped(&team, "bob", "worker");
    let append_all = || {
        for n in 0..50 {
            let mailbox = team.mailbox(&who("bob"));
            mailbox.append_once(&message("alice", "done", &format!("m-{n}"))).expect("appended");
        }
    };
    std::thread::scope(|scope| {
        (0..6).for_each(|_| drop(scope.spawn(append_all)));
    });
    let mailbox = team.mailbox(&who("bob"));
    let all = ids(mailbox.unread().expect("unread"));
    assert_eq!(all.len(), 50);
    mailbox.acknowledge(&all, Marking::IfReadByPhalanx).expect("acknowledged");
    append_all();
    assert_eq!(ids(mailbox.unread().expect("unread")), [""; 0]);
}

/// Two readers of a mailbox may acknowledge the same message; only the first gets its id back.
#[test]
fn msg_03_only_the_first_acknowledgement_counts() {
    let (_dir, team) = fresh();
    wrapped(&team, "bob", "worker");
    let ids = fill(&team, "bob", 3);
    let mailbox = team.mailbox(&who("bob"));
    assert_eq!(
        mailbox.acknowledge(&ids[..2], Marking::IfReadByPhalanx).expect("acknowledged"),
        ids[..2]
    );
    assert_eq!(
        mailbox.acknowledge(&ids[1..], Marking::IfReadByPhalanx).expect("acknowledged"),
        ids[2..]
    );
    assert_eq!(mailbox.remove(&ids).expect("removed"), Vec::<String>::new());
}

fn raw_large(path: &std::path::Path) -> String {
    String::from_utf8(fs::read(path, LARGE).expect("read").expect("file")).expect("text")
}

#[test]
fn entry_that_is_archived_twice_counts_once() {
    let (_dir, team) = fresh();
    wrapped(&team, "bob", "worker");
    let all = fill(&team, "bob", 100);
    let before = raw(&team.layout.inbox(&who("bob")));
    let mailbox = team.mailbox(&who("bob"));
    mailbox.acknowledge(&all, Marking::IfReadByPhalanx).expect("acknowledged");
    // As if the process had crashed after it wrote the archive and before it wrote the mailbox.
    fs::write_atomic(&team.layout.inbox(&who("bob")), before.as_bytes()).expect("writable");
    assert!(mailbox.unread().expect("unread").is_empty());
    assert_eq!(ids(mailbox.all().expect("all")).len(), 100);
    mailbox.append(&message("alice", "t", "new")).expect("append");
    mailbox.acknowledge(&["new".to_owned()], Marking::IfReadByPhalanx).expect("acknowledged");
    assert_eq!(ids(mailbox.all().expect("all")), [all, vec!["new".to_owned()]].concat());
    assert_eq!(mailbox.entries().expect("entries").len(), 32);
}

#[test]
fn torn_line_in_the_record_of_deliveries_is_skipped() {
    let (_dir, team) = fresh();
    wrapped(&team, "bob", "worker");
    let all = fill(&team, "bob", 4);
    let mailbox = team.mailbox(&who("bob"));
    mailbox.acknowledge(&all[..1], Marking::IfReadByPhalanx).expect("acknowledged");
    let path = team.layout.deliveries(&who("bob"));
    let torn = raw(&path) + r#"["m-1"#;
    fs::write_atomic(&path, torn.as_bytes()).expect("writable");
    assert_eq!(ids(mailbox.unread().expect("unread")), all[1..]);
    mailbox.acknowledge(&all[2..3], Marking::IfReadByPhalanx).expect("acknowledged");
    assert_eq!(mailbox.acks.ids().expect("recorded"), ["m-0", "m-2"]);
    assert_eq!(ids(mailbox.unread().expect("unread")), ["m-1", "m-3"]);
}

#[test]
fn acknowledging_does_not_rewrite_a_foreign_mailbox() {
    for profile in [None, Some("claude")] {
        let (_dir, team) = fresh();
        match profile {
            Some(profile) => wrapped(&team, "ned", profile),
            None => join(&team, "ned"),
        }
        let all = fill(&team, "ned", 100);
        let path = team.layout.inbox(&who("ned"));
        let mailbox = team.mailbox(&who("ned"));
        let before = raw(&path);
        mailbox.acknowledge(&all, Marking::IfReadByPhalanx).expect("acknowledged");
        assert_eq!(raw(&path), before, "{profile:?}");
        assert!(mailbox.unread().expect("unread").is_empty());
        mailbox.append(&message("alice", "t", "new")).expect("append");
        assert!(raw(&path).starts_with(before.trim_end_matches("\n]")), "{profile:?}");
        assert_eq!(mailbox.entries().expect("entries").len(), 101);
        mailbox.remove(&all).expect("removed");
        assert_eq!(ids(mailbox.entries().expect("entries")), ["new"]);
    }
    let (_dir, team) = fresh();
    assert!(team.mailbox(&MemberName::lead()).is_read_by_phalanx().expect("readable"));
    fs::remove_file(&team.layout.settings()).expect("there");
    assert!(
        !team.mailbox(&MemberName::lead()).is_read_by_phalanx().expect("readable"),
        "Claude Code leads"
    );
}

#[test]
fn removed_messages_leave_the_archive() {
    let (_dir, team) = fresh();
    wrapped(&team, "bob", "worker");
    let all = fill(&team, "bob", 100);
    let mailbox = team.mailbox(&who("bob"));
    mailbox.acknowledge(&all, Marking::IfReadByPhalanx).expect("acknowledged");
    mailbox.remove(&all[..99]).expect("removed");
    assert_eq!(ids(mailbox.all().expect("all")), ["m-99"]);
    mailbox.remove(&all).expect("removed");
    assert!(mailbox.all().expect("all").is_empty());
}

#[test]
fn append_refuses_a_foreign_rewrite_that_is_not_json() {
    let (_dir, team) = fresh();
    join(&team, "bob");
    let (mailbox, path) = (team.mailbox(&who("bob")), team.layout.inbox(&who("bob")));
    mailbox.append(&message("alice", "t", "1")).expect("append");
    fs::write_atomic(&path, b"[nonsense]").expect("writable");
    let sent = mailbox.append(&message("alice", "t", "2"));
    assert!(matches!(sent, Err(StoreError::Corrupt { .. })), "{sent:?}");
    assert_eq!(raw(&path), "[nonsense]");
}

#[test]
fn msg_07_files_other_than_mailboxes_are_left_unchanged() {
    let nul = "\0".repeat(4096);
    for bad in ["{}", "17", "\"[]\"", "null", nul.as_str(), "\u{feff}[]", ""] {
        let (_dir, team) = fresh();
        let (mailbox, path) =
            (team.mailbox(&MemberName::lead()), team.layout.inbox(&MemberName::lead()));
        fs::write_atomic(&path, bad.as_bytes()).expect("write");
        let about = &bad[..bad.len().min(8)];
        let results = [
            mailbox.append(&message("bob", "hi", "1")),
            mailbox.entries().map(drop),
            mailbox.unread().map(drop),
            mailbox.acknowledge(&["1".to_owned()], Marking::IfReadByPhalanx).map(drop),
            mailbox.remove(&["1".to_owned()]).map(drop),
        ];
        for result in results {
            assert!(matches!(result, Err(StoreError::Corrupt { .. })), "{about:?}: {result:?}");
        }
        assert!(raw(&path) == bad, "{about:?} is left as it is");
    }
}

/// An append checks the syntax only; readers limit the depth of what they parse.
#[test]
fn msg_07_array_that_is_too_deep_is_refused_by_readers() {
    let (_dir, team) = fresh();
    let (mailbox, path) =
        (team.mailbox(&MemberName::lead()), team.layout.inbox(&MemberName::lead()));
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    fs::write_atomic(&path, deep.as_bytes()).expect("write");
    mailbox.append(&message("bob", "hi", "1")).expect("appended");
    assert!(raw(&path).starts_with(&deep[..deep.len() - 1]), "the array is kept");
    for result in [
        mailbox.entries().map(drop),
        mailbox.acknowledge(&["1".to_owned()], Marking::IfReadByPhalanx).map(drop),
    ] {
        assert!(matches!(result, Err(StoreError::Corrupt { .. })), "{result:?}");
    }
}

#[test]
fn oversized_file_is_refused_and_left_unchanged() {
    let (_dir, team) = fresh();
    let (mailbox, path) =
        (team.mailbox(&MemberName::lead()), team.layout.inbox(&MemberName::lead()));
    let huge = vec![b' '; 100 << 20];
    fs::write_atomic(&path, &huge).expect("write");
    for result in [mailbox.append(&message("bob", "hi", "1")), mailbox.entries().map(drop)] {
        assert!(
            matches!(result, Err(StoreError::File(fs::FsError::TooLarge { .. }))),
            "{result:?}"
        );
    }
    assert_eq!(fs::len(&path).expect("there"), Some(100 << 20));
}

#[test]
fn mailbox_never_grows_beyond_the_readable_size() {
    let (_dir, team) = fresh();
    let (mailbox, path) =
        (team.mailbox(&MemberName::lead()), team.layout.inbox(&MemberName::lead()));
    let mut nearly = vec![b' '; (64 << 20) - 10];
    nearly[0] = b'[';
    nearly.extend_from_slice(b"\"x\"\n]");
    fs::write_atomic(&path, &nearly).expect("write");
    let sent = mailbox.append(&message("bob", "hi", "1"));
    assert!(matches!(sent, Err(StoreError::BoxFull { .. })), "{sent:?}");
    assert_eq!(mailbox.entries().expect("still readable").len(), 1);
}

/// `JSON.stringify` writes half an emoji for a text that was cut in two.
#[test]
fn msg_07_cut_emoji_is_read_and_left_unchanged() {
    let (_dir, team) = fresh();
    join(&team, "bob");
    let path = team.layout.inbox(&who("bob"));
    let theirs = r#"{"from":"ann","text":"so \ud83d","timestamp":"t","read":false}"#;
    fs::write_atomic(&path, format!("[{theirs}]").as_bytes()).expect("writable");
    let mailbox = team.mailbox(&who("bob"));
    mailbox.append(&message("alice", "hello", "id-1")).expect("appended");
    let unread = mailbox.unread().expect("readable");
    assert_eq!(
        unread.iter().map(|e| e.text.as_str()).collect::<Vec<_>>(),
        ["so \u{fffd}", "hello"]
    );
    assert!(raw(&path).starts_with(&format!("[{theirs},")), "an append touches nothing else");
}

/// MSG-19: the first message to a team of Claude Code creates the directory of the mailboxes, and
/// none brings a deleted team back.
#[test]
fn msg_19_first_message_creates_the_directory_of_the_mailboxes() {
    let (_dir, team) = fresh();
    join(&team, "bob");
    let (bob, inboxes) = (who("bob"), team.layout.inboxes());
    type Write = fn(&TeamStore, &MemberName) -> Result<(), StoreError>;
    let one: Write = |team, bob| team.mailbox(bob).append(&message("alice", "text", "m-1"));
    let several: Write = |team, bob| {
        team.mailbox(bob).append_all(&[message("alice", "a", "m-1"), message("alice", "b", "m-2")])
    };
    let create: Write = |team, bob| team.mailbox(bob).create(None).map(drop);
    for (write, count) in [(one, 1), (several, 2), (create, 0)] {
        fs::remove_dir_all(&inboxes).expect("removed");
        assert_eq!(team.mailbox(&bob).entries().expect("no messages"), []);
        write(&team, &bob).expect("written");
        assert_eq!(team.mailbox(&bob).entries().expect("readable").len(), count);
    }
    fs::remove_dir_all(&team.layout.team_dir()).expect("removed");
    for write in [one, several, create] {
        assert!(write(&team, &bob).is_err() && !fs::exists(&team.layout.team_dir()));
    }
}
