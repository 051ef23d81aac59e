//! Teams and documents.

use serde_json::json;

use super::*;
use crate::{DatabaseError, Interest};

#[test]
fn team_is_created_once_and_deleted_with_its_data() {
    let Some(stage) = stage() else { return };
    let db = &stage.db;
    assert!(!db.create_team(TEAM, &[]).unwrap(), "the name is taken");
    assert!(db.create_team("alpha", &[]).unwrap());
    assert_eq!(db.teams().unwrap(), ["alpha", TEAM]);
    db.append_mail(TEAM, "ann", "ann", &[message("m1")], &[line("l1")]).unwrap();
    db.put_tasks(TEAM, &[new_task(1)], 1).unwrap().expect("new");
    assert!(db.delete_team(TEAM).unwrap());
    assert!(!db.delete_team(TEAM).unwrap());
    assert_eq!(db.teams().unwrap(), ["alpha"]);
    for table in ["document", "mail", "mailbox", "task", "log"] {
        let rows = stage.database.execute(&format!("select 1 from phalanx.{table}"));
        assert!(rows.is_empty(), "{table}");
    }
    let missing = DatabaseError::NoSuchTeam { team: TEAM.to_owned() };
    assert_eq!(db.document(TEAM, DocumentKind::Config, "").unwrap_err(), missing);
    assert_eq!(db.append_log(TEAM, super::super::LogKind::Journal, &[]).unwrap_err(), missing);
    assert_eq!(db.take_lease(TEAM).unwrap_err(), missing);
    assert_eq!(db.subscribe(TEAM, &Interest::All, drop).unwrap_err(), missing);
}

#[test]
fn document_is_replaced_only_at_the_expected_version() {
    let Some(stage) = stage() else { return };
    let db = &stage.db;
    let put = |body: &str, expected| {
        db.put_document(TEAM, &member_document("ann", body), expected).unwrap()
    };
    let first = put("{\"a\": 1,  \"b\":\"\\u0000\"}", None).expect("new");
    assert_eq!(put("{}", None), None, "it exists");
    let read = || db.document(TEAM, DocumentKind::Member, "ann").unwrap();
    let stored = read().expect("stored");
    assert_eq!((stored.version, &*stored.body), (first, "{\"a\": 1,  \"b\":\"\\u0000\"}"));
    let second = put("{\"a\":2}", Some(first)).expect("the version is right");
    assert!(second > first);
    assert_eq!(put("{}", Some(first)), None, "it has changed");
    put("[]", Some(second)).expect("the version is right");
    db.put_document(TEAM, &member_document("bob", "1"), None).unwrap().expect("new");
    let all = db.documents(TEAM, DocumentKind::Member).unwrap();
    assert_eq!(all.iter().map(|d| &*d.key).collect::<Vec<_>>(), ["ann", "bob"]);
    let version = read().expect("stored").version;
    assert!(!db.delete_document(TEAM, DocumentKind::Member, "ann", first).unwrap());
    assert!(db.delete_document(TEAM, DocumentKind::Member, "ann", version).unwrap());
    assert!(!db.delete_document(TEAM, DocumentKind::Member, "ann", version).unwrap());
    assert_eq!(read(), None);
}

#[test]
fn concurrent_writers_of_a_document_lose_no_update() {
    let Some(stage) = stage() else { return };
    let first = stage.db.put_document(TEAM, &member_document("n", "0"), None).unwrap();
    assert!(first.is_some());
    let others = [connect(&stage.database), connect(&stage.database)];
    std::thread::scope(|scope| {
        for db in [&stage.db, &others[0], &others[1], &others[1]] {
            scope.spawn(move || {
                for _ in 0..25 {
                    loop {
                        let now = db.document(TEAM, DocumentKind::Member, "n").unwrap().unwrap();
                        let next = (now.body.parse::<u32>().unwrap() + 1).to_string();
                        let write = member_document("n", &next);
                        if db.put_document(TEAM, &write, Some(now.version)).unwrap().is_some() {
                            break;
                        }
                    }
                }
            });
        }
    });
    let end = stage.db.document(TEAM, DocumentKind::Member, "n").unwrap().unwrap();
    assert_eq!(end.body, "100");
}

#[test]
fn repeated_writes_of_documents_have_one_effect_and_the_same_reply() {
    let Some(stage) = stage() else { return };
    let put = |expected: Option<i64>, write: &str| {
        json!({ "team": TEAM, "kind": "member", "key": "ann", "body": "1", "expected": expected,
                "write": write })
    };
    let first = stage.raw("put_document", &put(None, "w1"));
    let second = stage.raw("put_document", &put(first.as_i64(), "w2"));
    // Another write has come in between.
    assert_eq!(stage.raw("put_document", &put(None, "w1")), first);
    assert_eq!(stage.raw("put_document", &put(first.as_i64(), "w2")), second);
    let delete = put(second.as_i64(), "w3");
    assert_eq!(stage.raw("delete_document", &delete), true);
    let third = stage.raw("put_document", &put(None, "w4"));
    assert_eq!(stage.raw("delete_document", &delete), true);
    let stored = stage.db.document(TEAM, DocumentKind::Member, "ann").unwrap();
    assert_eq!(stored.map(|d| d.version), third.as_i64(), "the new document was not deleted");

    let create = json!({ "team": "other", "documents": [], "write": "w5" });
    assert_eq!(stage.raw("create_team", &create), true);
    assert_eq!(stage.raw("create_team", &create), true);
    let delete = json!({ "team": "other", "write": "w6" });
    assert_eq!(stage.raw("delete_team", &delete), true);
    assert_eq!(
        stage.raw("create_team", &json!({ "team": "other", "write": "w7", "documents": [] })),
        true
    );
    assert_eq!(stage.raw("delete_team", &delete), true);
    assert_eq!(stage.db.teams().unwrap(), [TEAM, "other"]);
}

#[test]
fn fenced_run_can_read_but_not_write() {
    let Some(stage) = stage() else { return };
    let lost = stage.db.acting_as(run_of("run-1"));
    let other = stage.db.acting_as(run_of("run-2"));
    lost.put_document(TEAM, &member_document("ann", "1"), None).unwrap().expect("new");
    stage.db.fence(TEAM, "run-1").unwrap();
    let refusal = DatabaseError::Fenced { team: TEAM.to_owned() };
    let write = member_document("bob", "1");
    assert_eq!(lost.put_document(TEAM, &write, None).unwrap_err(), refusal);
    assert_eq!(lost.append_mail(TEAM, "ann", "ann", &[message("m")], &[]).unwrap_err(), refusal);
    assert_eq!(lost.deliver_mail(TEAM, "ann", &[], false).unwrap_err(), refusal);
    assert_eq!(lost.put_tasks(TEAM, &[new_task(1)], 1).unwrap_err(), refusal);
    assert_eq!(lost.take_lease(TEAM).unwrap_err(), refusal);
    assert!(!stage.db.is_led(TEAM).unwrap(), "the refused lease is not held");
    assert!(lost.lock(TEAM, "x", Duration::ZERO).is_err());
    assert!(lost.document(TEAM, DocumentKind::Member, "ann").unwrap().is_some());
    other.put_document(TEAM, &write, None).unwrap().expect("new");
}
