//! Mailboxes.

use serde_json::json;

use super::*;
use crate::{LogKind, LogScope, MailScope};

fn ids(stage: &Stage, scope: MailScope) -> Vec<String> {
    stage.db.mail(TEAM, "ann", scope).unwrap().into_iter().map(|row| row.msg_id).collect()
}

#[test]
fn message_is_stored_once_and_only_for_members() {
    let Some(stage) = stage() else { return };
    let append = |name: &str, ids: &[&str]| {
        let entries: Vec<_> = ids.iter().map(|id| message(id)).collect();
        stage.db.append_mail(TEAM, "ann", name, &entries, &[line("l")]).unwrap()
    };
    assert_eq!(append("zoe", &["a"]), Appended::NoMember);
    assert!(stage.db.mail(TEAM, "ann", MailScope::All).unwrap().is_empty());
    assert_eq!(stage.db.log_end(TEAM, LogKind::Journal).unwrap(), 0, "all or nothing");
    let stored = |ids: &[&str]| Appended::Stored(ids.iter().map(|id| (*id).to_owned()).collect());
    assert_eq!(append("ann", &["b", "a"]), stored(&["b", "a"]));
    assert_eq!(append("ann", &["a", "c"]), stored(&["c"]));
    assert_eq!(ids(&stage, MailScope::All), ["b", "a", "c"]);
    let found = stage.db.find_mail(TEAM, "ann", "a").unwrap().expect("stored");
    assert_eq!((found.body, found.delivered), (message("a").body, false));
    assert_eq!(stage.db.find_mail(TEAM, "ann", "z").unwrap(), None);
    let scope = LogScope::After { seq: 0, limit: 9 };
    assert_eq!(stage.db.log(TEAM, LogKind::Journal, &scope).unwrap().len(), 1);
}

#[test]
fn delivered_messages_leave_the_unread_and_removed_ones_stay_away() {
    let Some(stage) = stage() else { return };
    let names: Vec<String> = (0..40).map(|n| format!("m{n:02}")).collect();
    let entries: Vec<_> = names.iter().map(|id| message(id)).collect();
    stage.db.append_mail(TEAM, "ann", "ann", &entries, &[]).unwrap();
    let deliver = |ids: &[String], remove| stage.db.deliver_mail(TEAM, "ann", ids, remove).unwrap();
    assert_eq!(deliver(&names[2..38], false), names[2..38]);
    assert_eq!(deliver(&names[30..39], false), [names[38].clone()], "the others were delivered");
    assert_eq!(
        ids(&stage, MailScope::Undelivered),
        [&names[0], &names[1], &names[39]].map(String::as_str)
    );
    let recent = ids(&stage, MailScope::Recent);
    assert_eq!((recent.len(), &*recent[0], &*recent[2]), (3 + 32, "m00", "m07"));
    assert_eq!(deliver(&names[38..40], true), [names[39].clone()], "removed, and one delivered");
    assert_eq!(ids(&stage, MailScope::All).len(), 38);
    assert_eq!(stage.db.find_mail(TEAM, "ann", "m39").unwrap(), None);
    let again = stage.db.append_mail(TEAM, "ann", "ann", &entries, &[]).unwrap();
    assert_eq!(again, Appended::Stored(Vec::new()), "also the removed ones are known");
    assert_eq!(ids(&stage, MailScope::All).len(), 38);
}

#[test]
fn mailbox_is_created_once_and_deleted_with_its_messages() {
    let Some(stage) = stage() else { return };
    assert!(stage.db.create_mailbox(TEAM, "ann").unwrap());
    assert!(!stage.db.create_mailbox(TEAM, "ann").unwrap());
    stage.db.append_mail(TEAM, "ann", "ann", &[message("a")], &[]).unwrap();
    stage.db.delete_mailbox(TEAM, "ann").unwrap();
    stage.db.delete_mailbox(TEAM, "ann").unwrap();
    assert!(ids(&stage, MailScope::All).is_empty());
    assert!(stage.db.create_mailbox(TEAM, "ann").unwrap());
}

#[test]
fn repeated_mail_calls_have_one_effect_and_the_same_reply() {
    let Some(stage) = stage() else { return };
    let append = json!({ "team": TEAM, "owner": "ann", "name": "ann", "write": "w1",
        "entries": [message("a"), message("b")], "journal": [line("l")] });
    let first = stage.raw("append_mail", &append);
    assert_eq!(first, json!({ "stored": ["a", "b"] }));
    let deliver = json!({ "team": TEAM, "owner": "ann", "ids": ["b", "a"], "remove": true,
        "write": "w2" });
    assert_eq!(stage.raw("append_mail", &append), first);
    assert_eq!(stage.raw("deliver_mail", &deliver), json!(["b", "a"]));
    assert_eq!(stage.raw("deliver_mail", &deliver), json!(["b", "a"]));
    assert_eq!(stage.raw("append_mail", &append), first);
    assert!(ids(&stage, MailScope::All).is_empty());
    assert_eq!(stage.db.log_end(TEAM, LogKind::Journal).unwrap(), 1);

    let create = json!({ "team": TEAM, "owner": "bob", "write": "w3" });
    let delete = json!({ "team": TEAM, "owner": "bob", "write": "w4" });
    assert_eq!(stage.raw("create_mailbox", &create), true);
    assert_eq!(stage.raw("create_mailbox", &create), true);
    stage.raw("delete_mailbox", &delete);
    assert!(stage.db.create_mailbox(TEAM, "bob").unwrap());
    stage.raw("delete_mailbox", &delete);
    assert!(!stage.db.create_mailbox(TEAM, "bob").unwrap(), "the new mailbox was not deleted");
}

#[test]
fn concurrent_readers_share_messages_without_overlap() {
    let Some(stage) = stage() else { return };
    let names: Vec<String> = (0..200).map(|n| format!("m{n}")).collect();
    let entries: Vec<_> = names.iter().map(|id| message(id)).collect();
    stage.db.append_mail(TEAM, "ann", "ann", &entries, &[]).unwrap();
    let others: Vec<_> = (0..4).map(|_| connect(&stage.database)).collect();
    let mut got: Vec<String> = std::thread::scope(|scope| {
        let readers: Vec<_> = others
            .iter()
            .enumerate()
            .map(|(at, db)| {
                let mut ids = names.clone();
                ids.rotate_left(at * 50);
                scope.spawn(move || {
                    let parts = ids
                        .chunks(10)
                        .map(|part| db.deliver_mail(TEAM, "ann", part, at % 2 == 0).unwrap());
                    parts.flatten().collect::<Vec<_>>()
                })
            })
            .collect();
        readers.into_iter().flat_map(|reader| reader.join().unwrap()).collect()
    });
    got.sort();
    let mut all = names;
    all.sort();
    assert_eq!(got, all);
}
