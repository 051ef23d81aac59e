//! The calls, one method for each function of the schema. `team` is the name of a team, and every
//! call that names one fails with [`DatabaseError::NoSuchTeam`] if it does not exist.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::client::BrokerLink;
use super::error::DatabaseError;
use super::protocol::Request;
use super::rows::{
    Actor, Appended, ClaimCall, ClaimReply, DocumentKind, DocumentWrite, LogEntry, LogKind, LogRow,
    LogScope, MailEntry, MailRow, MailScope, StoredDocument, StoredTasks, TaskScope, TaskWrite,
};
use sys::rand;

/// A connection to the shared store. Clones share it.
#[derive(Debug, Clone)]
pub struct Database {
    pub(super) link: Arc<BrokerLink>,
    pub(super) actor: Actor,
}

/// Parses the reply to a call or an operation.
pub(super) fn parse_reply<R: DeserializeOwned>(
    what: &str,
    reply: &RawValue,
) -> Result<R, DatabaseError> {
    serde_json::from_str(reply.get()).map_err(|e| DatabaseError::bad_reply(what, &e))
}

impl Database {
    pub(super) fn new(link: Arc<BrokerLink>) -> Database {
        Database { link, actor: Actor::default() }
    }

    /// Returns the same connection for another author.
    pub fn acting_as(&self, actor: Actor) -> Database {
        Database { link: Arc::clone(&self.link), actor }
    }

    /// Returns the same connection for the holder of the lease with this number.
    pub fn led_with(&self, fence: i64) -> Database {
        self.acting_as(Actor { fence: Some(fence), ..self.actor.clone() })
    }

    /// Returns a call by this author, under an id by which the database recognizes a repetition.
    fn call_request(&self, function: &str, mut arguments: Value) -> Request {
        arguments["actor"] = json!(self.actor);
        arguments["write"] = json!(rand::uuid());
        let arguments = to_raw_value(&arguments).expect("a JSON value can be written");
        Request::Call { function: function.to_owned(), arguments }
    }

    fn call<R: DeserializeOwned>(
        &self,
        function: &str,
        arguments: Value,
    ) -> Result<R, DatabaseError> {
        let (reply, _) = self.link.request(&self.call_request(function, arguments))?;
        parse_reply(function, &reply)
    }

    /// Returns the names of all teams, sorted.
    pub fn teams(&self) -> Result<Vec<String>, DatabaseError> {
        self.call("teams", json!({}))
    }

    /// Creates a team with its first documents. Returns false if the name is taken.
    pub fn create_team(
        &self,
        team: &str,
        documents: &[DocumentWrite<'_>],
    ) -> Result<bool, DatabaseError> {
        self.call("create_team", json!({ "team": team, "documents": documents }))
    }

    /// Deletes a team with all its data. Returns false if there was none.
    pub fn delete_team(&self, team: &str) -> Result<bool, DatabaseError> {
        self.call("delete_team", json!({ "team": team }))
    }

    pub fn document(
        &self,
        team: &str,
        kind: DocumentKind,
        key: &str,
    ) -> Result<Option<StoredDocument>, DatabaseError> {
        self.call("document", json!({ "team": team, "kind": kind, "key": key }))
    }

    /// Returns all documents of a kind, by key.
    pub fn documents(
        &self,
        team: &str,
        kind: DocumentKind,
    ) -> Result<Vec<StoredDocument>, DatabaseError> {
        self.call("documents", json!({ "team": team, "kind": kind }))
    }

    /// Writes a document in place of version `expected`, or a new one. Returns its new version;
    /// `None` if another version is stored.
    pub fn put_document(
        &self,
        team: &str,
        document: &DocumentWrite<'_>,
        expected: Option<i64>,
    ) -> Result<Option<i64>, DatabaseError> {
        let mut arguments = json!(document);
        arguments["team"] = json!(team);
        arguments["expected"] = json!(expected);
        self.call("put_document", arguments)
    }

    /// Removes version `expected` of a document. Returns false if it is not stored.
    pub fn delete_document(
        &self,
        team: &str,
        kind: DocumentKind,
        key: &str,
        expected: i64,
    ) -> Result<bool, DatabaseError> {
        self.call(
            "delete_document",
            json!({ "team": team, "kind": kind, "key": key, "expected": expected }),
        )
    }

    /// Appends messages to the mailbox `owner`, whose member's folded name is `name`, and lines to
    /// the journal, all or nothing.
    pub fn append_mail(
        &self,
        team: &str,
        owner: &str,
        name: &str,
        entries: &[MailEntry],
        journal: &[LogEntry],
    ) -> Result<Appended, DatabaseError> {
        self.call("append_mail", json!({ "team": team, "owner": owner, "name": name, "entries": entries, "journal": journal }))
    }

    /// Returns messages of a mailbox, oldest first; none if it does not exist.
    pub fn mail(
        &self,
        team: &str,
        owner: &str,
        scope: MailScope,
    ) -> Result<Vec<MailRow>, DatabaseError> {
        self.call("mail", json!({ "team": team, "owner": owner, "scope": scope }))
    }

    pub fn find_mail(
        &self,
        team: &str,
        owner: &str,
        msg_id: &str,
    ) -> Result<Option<MailRow>, DatabaseError> {
        self.call("find_mail", json!({ "team": team, "owner": owner, "msg_id": msg_id }))
    }

    /// Marks messages as delivered, and removes them if `remove` is set. Returns the ids that were
    /// not delivered before; a repeated call returns the same ids.
    pub fn deliver_mail(
        &self,
        team: &str,
        owner: &str,
        ids: &[String],
        remove: bool,
    ) -> Result<Vec<String>, DatabaseError> {
        self.call(
            "deliver_mail",
            json!({ "team": team, "owner": owner, "ids": ids, "remove": remove }),
        )
    }

    /// Returns the owners of all mailboxes, sorted.
    pub fn mailboxes(&self, team: &str) -> Result<Vec<String>, DatabaseError> {
        self.call("mailboxes", json!({ "team": team }))
    }

    /// Creates an empty mailbox. Returns false if it exists.
    pub fn create_mailbox(&self, team: &str, owner: &str) -> Result<bool, DatabaseError> {
        self.call("create_mailbox", json!({ "team": team, "owner": owner }))
    }

    /// Removes a mailbox with its messages, if it exists.
    pub fn delete_mailbox(&self, team: &str, owner: &str) -> Result<(), DatabaseError> {
        self.call("delete_mailbox", json!({ "team": team, "owner": owner }))
    }

    pub fn tasks(&self, team: &str, scope: &TaskScope) -> Result<StoredTasks, DatabaseError> {
        self.call("tasks", json!({ "team": team, "scope": scope }))
    }

    /// Writes tasks, all or none, and raises the mark to `mark`. Returns the new version of each,
    /// in order; `None` if one has another version than expected, or exists and should not.
    pub fn put_tasks(
        &self,
        team: &str,
        tasks: &[TaskWrite],
        mark: u64,
    ) -> Result<Option<Vec<i64>>, DatabaseError> {
        self.call("put_tasks", json!({ "team": team, "tasks": tasks, "mark": mark }))
    }

    /// Deletes version `expected` of a task and keeps its id on record. Returns false if it is not
    /// stored.
    pub fn delete_task(&self, team: &str, id: u64, expected: i64) -> Result<bool, DatabaseError> {
        self.call("delete_task", json!({ "team": team, "id": id, "expected": expected }))
    }

    /// Claims a task by the rules of [`Board::may_claim`](model::board::Board::may_claim),
    /// and for the scopes of several tasks in the order of
    /// [`Board::all_for_worker`](model::board::Board::all_for_worker).
    pub fn claim(&self, team: &str, claim: &ClaimCall<'_>) -> Result<ClaimReply, DatabaseError> {
        let mut arguments = json!(claim);
        arguments["team"] = json!(team);
        self.call("claim", arguments)
    }

    /// Appends lines to a log. They get their positions in the order in which calls are committed.
    pub fn append_log(
        &self,
        team: &str,
        log: LogKind,
        entries: &[LogEntry],
    ) -> Result<(), DatabaseError> {
        self.call("append_log", json!({ "team": team, "log": log, "entries": entries }))
    }

    /// Appends lines to a log, without waiting for the result: they are lost if this host's broker
    /// ends meanwhile, or the database cannot be reached for 30 s.
    pub fn post_log(&self, team: &str, log: LogKind, entries: &[LogEntry]) {
        let arguments = json!({ "team": team, "log": log, "entries": entries });
        self.link.post(&self.call_request("append_log", arguments));
    }

    /// Returns lines of a log, oldest first.
    pub fn log(
        &self,
        team: &str,
        log: LogKind,
        scope: &LogScope,
    ) -> Result<Vec<LogRow>, DatabaseError> {
        self.call("log", json!({ "team": team, "log": log, "scope": scope }))
    }

    /// Returns the position of the last line of a log; 0 if it is empty.
    pub fn log_end(&self, team: &str, log: LogKind) -> Result<i64, DatabaseError> {
        self.call("log_end", json!({ "team": team, "log": log }))
    }

    /// Refuses all later calls of this run, on every host.
    pub fn fence(&self, team: &str, incarnation: &str) -> Result<(), DatabaseError> {
        self.call("fence", json!({ "team": team, "incarnation": incarnation }))
    }

    /// Returns true if a process holds the lease of the team's lead.
    pub fn is_led(&self, team: &str) -> Result<bool, DatabaseError> {
        self.call("is_led", json!({ "team": team }))
    }
}
