//! Tests of the shared store on PostgreSQL.

use std::thread;
use std::time::Duration;

use super::calls::Database;
use super::rows::{
    Actor, Appended, ClaimCall, ClaimReply, ClaimScope, DocumentKind, DocumentWrite, LogEntry,
    MailEntry, StoredClaim, TaskWrite,
};
use super::url::StoreUrl;
use crate::fixture::TestDatabase;
use sys::clock::{self, Deadline};
use sys::rand;

mod broker;
mod claims;
mod documents;
mod faults;
mod holds;
mod logs;
mod mail;
mod setup;
mod tasks;

const TEAM: &str = "crew";
const PATIENCE: Duration = Duration::from_secs(60);

/// A database with one team, and a connection to it.
struct Stage {
    db: Database,
    // Dropped after the connection.
    database: TestDatabase,
}

/// Creates a team with ann and bob; `None` if PostgreSQL is not installed.
fn stage() -> Option<Stage> {
    TestDatabase::create().map(stage_on)
}

fn stage_on(database: TestDatabase) -> Stage {
    let db = connect(&database);
    let names = ["ann", "bob"].map(str::to_owned);
    let roster =
        DocumentWrite { kind: DocumentKind::Config, key: "", body: "{}", names: Some(&names) };
    assert!(db.create_team(TEAM, &[roster]).expect("the database works"));
    Stage { db, database }
}

fn connect(database: &TestDatabase) -> Database {
    Database::direct(&database.store_url())
}

fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Deadline::after(PATIENCE);
    while !condition() {
        assert!(!deadline.expired(), "waited for {what}");
        clock::sleep(Duration::from_millis(5));
    }
}

impl Stage {
    /// Calls a function with arguments as given, as a repeated call would.
    fn raw(&self, function: &str, arguments: &serde_json::Value) -> serde_json::Value {
        let quoted = arguments.to_string().replace('\'', "''");
        let rows = self.database.execute(&format!("select phalanx.{function}('{quoted}')"));
        let reply = rows[0][0].as_deref().expect("a reply");
        serde_json::from_str(reply).expect("JSON")
    }
}

fn member_document<'a>(key: &'a str, body: &'a str) -> DocumentWrite<'a> {
    DocumentWrite { kind: DocumentKind::Member, key, body, names: None }
}

fn message(id: &str) -> MailEntry {
    MailEntry { msg_id: id.to_owned(), body: format!("{{\"text\":\"{id} \\u0000 é\"}}") }
}

/// Sends a message to ann, which must be new.
fn send(db: &Database, id: &str) {
    let stored = db.append_mail(TEAM, "ann", "ann", &[message(id)], &[]);
    assert_eq!(stored.expect("the database works"), Appended::Stored(vec![id.to_owned()]));
}

fn line(id: &str) -> LogEntry {
    LogEntry { id: id.to_owned(), at: 1, task: None, body: format!("{{\"id\":\"{id}\"}}") }
}

fn new_task(id: u64) -> TaskWrite {
    TaskWrite {
        id,
        expected: None,
        body: format!("{{\"id\":\"{id}\"}}"),
        state: "pending",
        owner: None,
        priority: 0,
        role: None,
        internal: false,
        has_command: true,
        files: Vec::new(),
        blocked_by: Vec::new(),
        claim_line: format!("\"task\":{id}"),
    }
}

fn claim_as(
    db: &Database,
    who: &str,
    scope: ClaimScope,
    role: Option<&str>,
    busy_check: bool,
) -> ClaimReply {
    let claim = StoredClaim { by: who.to_owned(), at: 1, event: rand::uuid() };
    let role = role.map(str::to_owned);
    let line = format!("\"by\":\"{who}\"");
    let call = ClaimCall { scope, claim: &claim, who: who.to_owned(), role, busy_check, line };
    db.claim(TEAM, &call).expect("the database works")
}

fn run_of(incarnation: &str) -> Actor {
    Actor { incarnation: Some(incarnation.to_owned()), fence: None }
}
