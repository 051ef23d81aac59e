//! The calls, one method for each function of the schema. `team` is the name of a team, and every
//! call that names one fails with [`DatabaseError::NoSuchTeam`] if it does not exist.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::DatabaseError;
use super::rows::{
    Actor, Appended, ClaimCall, ClaimReply, DocumentKind, DocumentWrite, Interest, LogEntry,
    LogKind, LogRow, LogScope, MailEntry, MailRow, MailScope, StoreChange, StoredDocument,
    StoredTasks, TaskScope, TaskWrite,
};
use super::transport::{HeldLease, HeldLock, Subscription, Transport};
use crate::sys::rand;

/// A connection to the shared store. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Database {
    transport: Transport,
    actor: Actor,
}

/// The arguments of a call, as a JSON object under construction.
struct Arguments(String);

impl Arguments {
    fn with(mut self, name: &str, value: &impl Serialize) -> Arguments {
        self.0.push_str(if self.0.is_empty() { "" } else { "," });
        self.0.push_str(&json(name));
        self.0.push(':');
        self.0.push_str(&json(value));
        self
    }

    /// Adds the fields of a struct.
    fn with_fields(mut self, value: &impl Serialize) -> Arguments {
        let object = json(value);
        self.0.push(',');
        self.0.push_str(&object[1..object.len() - 1]);
        self
    }
}

fn json(value: &(impl Serialize + ?Sized)) -> String {
    serde_json::to_string(value).expect("the types of this layer have string keys")
}

impl Database {
    pub(super) fn new(transport: Transport) -> Database {
        Database { transport, actor: Actor::default() }
    }

    /// Returns the same connection for another author.
    pub(crate) fn acting_as(&self, actor: Actor) -> Database {
        Database { transport: self.transport.clone(), actor }
    }

    fn arguments(&self) -> Arguments {
        Arguments(String::new()).with("actor", &self.actor)
    }

    /// Returns the same connection for the holder of the lease with this number.
    pub(crate) fn led_with(&self, fence: i64) -> Database {
        self.acting_as(Actor { fence: Some(fence), ..self.actor.clone() })
    }

    fn call<R: DeserializeOwned>(
        &self,
        function: &'static str,
        arguments: &Arguments,
    ) -> Result<R, DatabaseError> {
        let reply = self.transport.call(function, &format!("{{{}}}", arguments.0))?;
        serde_json::from_str(&reply).map_err(|e| DatabaseError::bad_reply(function, &e))
    }

    /// Returns the names of all teams, sorted.
    pub(crate) fn teams(&self) -> Result<Vec<String>, DatabaseError> {
        let arguments = self.arguments();
        self.call("teams", &arguments)
    }

    /// Creates a team with its first documents. Returns false if the name is taken.
    pub(crate) fn create_team(
        &self,
        team: &str,
        documents: &[DocumentWrite<'_>],
    ) -> Result<bool, DatabaseError> {
        let arguments = self
            .arguments()
            .with("team", &team)
            .with("documents", &documents)
            .with("write", &rand::uuid());
        self.call("create_team", &arguments)
    }

    /// Deletes a team with all its data. Returns false if there was none.
    pub(crate) fn delete_team(&self, team: &str) -> Result<bool, DatabaseError> {
        let arguments = self.arguments().with("team", &team).with("write", &rand::uuid());
        self.call("delete_team", &arguments)
    }

    pub(crate) fn document(
        &self,
        team: &str,
        kind: DocumentKind,
        key: &str,
    ) -> Result<Option<StoredDocument>, DatabaseError> {
        let arguments = self.arguments().with("team", &team).with("kind", &kind).with("key", &key);
        self.call("document", &arguments)
    }

    /// Returns all documents of a kind, by key.
    pub(crate) fn documents(
        &self,
        team: &str,
        kind: DocumentKind,
    ) -> Result<Vec<StoredDocument>, DatabaseError> {
        let arguments = self.arguments().with("team", &team).with("kind", &kind);
        self.call("documents", &arguments)
    }

    /// Writes a document in place of version `expected`, or a new one. Returns its new version;
    /// `None` if another version is stored.
    pub(crate) fn put_document(
        &self,
        team: &str,
        document: &DocumentWrite<'_>,
        expected: Option<i64>,
    ) -> Result<Option<i64>, DatabaseError> {
        let arguments = self
            .arguments()
            .with("team", &team)
            .with_fields(document)
            .with("expected", &expected)
            .with("write", &rand::uuid());
        self.call("put_document", &arguments)
    }

    /// Removes version `expected` of a document. Returns false if it is not stored.
    pub(crate) fn delete_document(
        &self,
        team: &str,
        kind: DocumentKind,
        key: &str,
        expected: i64,
    ) -> Result<bool, DatabaseError> {
        let arguments = self
            .arguments()
            .with("team", &team)
            .with("kind", &kind)
            .with("key", &key)
            .with("expected", &expected)
            .with("write", &rand::uuid());
        self.call("delete_document", &arguments)
    }

    /// Appends messages to the mailbox `owner`, whose member's folded name is `name`, and lines to
    /// the journal, all or nothing.
    pub(crate) fn append_mail(
        &self,
        team: &str,
        owner: &str,
        name: &str,
        entries: &[MailEntry],
        journal: &[LogEntry],
    ) -> Result<Appended, DatabaseError> {
        let arguments = self
            .arguments()
            .with("team", &team)
            .with("owner", &owner)
            .with("name", &name)
            .with("entries", &entries)
            .with("journal", &journal)
            .with("write", &rand::uuid());
        self.call("append_mail", &arguments)
    }

    /// Returns messages of a mailbox, oldest first; none if it does not exist.
    pub(crate) fn mail(
        &self,
        team: &str,
        owner: &str,
        scope: MailScope,
    ) -> Result<Vec<MailRow>, DatabaseError> {
        let arguments =
            self.arguments().with("team", &team).with("owner", &owner).with("scope", &scope);
        self.call("mail", &arguments)
    }

    pub(crate) fn find_mail(
        &self,
        team: &str,
        owner: &str,
        msg_id: &str,
    ) -> Result<Option<MailRow>, DatabaseError> {
        let arguments =
            self.arguments().with("team", &team).with("owner", &owner).with("msg_id", &msg_id);
        self.call("find_mail", &arguments)
    }

    /// Marks messages as delivered, and removes them if `remove` is set. Returns the ids that were
    /// not delivered before; a repeated call returns the same ids.
    pub(crate) fn deliver_mail(
        &self,
        team: &str,
        owner: &str,
        ids: &[String],
        remove: bool,
    ) -> Result<Vec<String>, DatabaseError> {
        let arguments = self
            .arguments()
            .with("team", &team)
            .with("owner", &owner)
            .with("ids", &ids)
            .with("remove", &remove)
            .with("write", &rand::uuid());
        self.call("deliver_mail", &arguments)
    }

    /// Returns the owners of all mailboxes, sorted.
    pub(crate) fn mailboxes(&self, team: &str) -> Result<Vec<String>, DatabaseError> {
        let arguments = self.arguments().with("team", &team);
        self.call("mailboxes", &arguments)
    }

    /// Creates an empty mailbox. Returns false if it exists.
    pub(crate) fn create_mailbox(&self, team: &str, owner: &str) -> Result<bool, DatabaseError> {
        let arguments =
            self.arguments().with("team", &team).with("owner", &owner).with("write", &rand::uuid());
        self.call("create_mailbox", &arguments)
    }

    /// Removes a mailbox with its messages, if it exists.
    pub(crate) fn delete_mailbox(&self, team: &str, owner: &str) -> Result<(), DatabaseError> {
        let arguments =
            self.arguments().with("team", &team).with("owner", &owner).with("write", &rand::uuid());
        self.call("delete_mailbox", &arguments)
    }

    pub(crate) fn tasks(
        &self,
        team: &str,
        scope: &TaskScope,
    ) -> Result<StoredTasks, DatabaseError> {
        let arguments = self.arguments().with("team", &team).with("scope", &scope);
        self.call("tasks", &arguments)
    }

    /// Writes tasks, all or none, and raises the mark to `mark`. Returns the new version of each,
    /// in order; `None` if one has another version than expected, or exists and should not.
    pub(crate) fn put_tasks(
        &self,
        team: &str,
        tasks: &[TaskWrite],
        mark: u64,
    ) -> Result<Option<Vec<i64>>, DatabaseError> {
        let arguments = self
            .arguments()
            .with("team", &team)
            .with("tasks", &tasks)
            .with("mark", &mark)
            .with("write", &rand::uuid());
        self.call("put_tasks", &arguments)
    }

    /// Deletes version `expected` of a task and keeps its id on record. Returns false if it is not
    /// stored.
    pub(crate) fn delete_task(
        &self,
        team: &str,
        id: u64,
        expected: i64,
    ) -> Result<bool, DatabaseError> {
        let arguments = self
            .arguments()
            .with("team", &team)
            .with("id", &id)
            .with("expected", &expected)
            .with("write", &rand::uuid());
        self.call("delete_task", &arguments)
    }

    /// Claims a task by the rules of [`Board::may_claim`](crate::model::board::Board::may_claim),
    /// and for the scopes of several tasks in the order of
    /// [`Board::all_for_worker`](crate::model::board::Board::all_for_worker).
    pub(crate) fn claim(
        &self,
        team: &str,
        claim: &ClaimCall<'_>,
    ) -> Result<ClaimReply, DatabaseError> {
        let arguments = self.arguments().with("team", &team).with_fields(claim);
        self.call("claim", &arguments)
    }

    /// Appends lines to a log. They get their positions in the order in which calls are committed.
    pub(crate) fn append_log(
        &self,
        team: &str,
        log: LogKind,
        entries: &[LogEntry],
    ) -> Result<(), DatabaseError> {
        let arguments =
            self.arguments().with("team", &team).with("log", &log).with("entries", &entries);
        self.call("append_log", &arguments)
    }

    /// Appends lines to a log, without waiting for the result: they are lost if this host's broker
    /// ends meanwhile, or the database cannot be reached for 30 s.
    pub(crate) fn post_log(&self, team: &str, log: LogKind, entries: &[LogEntry]) {
        let arguments =
            self.arguments().with("team", &team).with("log", &log).with("entries", &entries);
        self.transport.post("append_log", &format!("{{{}}}", arguments.0));
    }

    /// Returns lines of a log, oldest first.
    pub(crate) fn log(
        &self,
        team: &str,
        log: LogKind,
        scope: &LogScope,
    ) -> Result<Vec<LogRow>, DatabaseError> {
        let arguments =
            self.arguments().with("team", &team).with("log", &log).with("scope", &scope);
        self.call("log", &arguments)
    }

    /// Returns the position of the last line of a log; 0 if it is empty.
    pub(crate) fn log_end(&self, team: &str, log: LogKind) -> Result<i64, DatabaseError> {
        let arguments = self.arguments().with("team", &team).with("log", &log);
        self.call("log_end", &arguments)
    }

    /// Refuses all later calls of this run, on every host.
    pub(crate) fn fence(&self, team: &str, incarnation: &str) -> Result<(), DatabaseError> {
        let arguments = self.arguments().with("team", &team).with("incarnation", &incarnation);
        self.call("fence", &arguments)
    }

    /// Acquires the lock `name` of a team, which excludes other holders on every host until the
    /// guard is dropped or its process ends. `None` if it was not free within `deadline`.
    pub(crate) fn lock(
        &self,
        team: &str,
        name: &str,
        deadline: Duration,
    ) -> Result<Option<HeldLock>, DatabaseError> {
        self.transport.lock(&self.actor, team, name, deadline)
    }

    /// Acquires the lease of a team's lead; `None` if another process holds it.
    pub(crate) fn take_lease(&self, team: &str) -> Result<Option<HeldLease>, DatabaseError> {
        self.transport.take_lease(&self.actor, team)
    }

    /// Returns true if a process holds the lease of the team's lead.
    pub(crate) fn is_led(&self, team: &str) -> Result<bool, DatabaseError> {
        let arguments = self.arguments().with("team", &team);
        self.call("is_led", &arguments)
    }

    /// Calls `on_change` on a separate thread for every later change of a team that `interest`
    /// covers, until the subscription is dropped.
    pub(crate) fn subscribe(
        &self,
        team: &str,
        interest: &Interest,
        on_change: impl Fn(StoreChange) + Send + 'static,
    ) -> Result<Subscription, DatabaseError> {
        self.transport.subscribe(team, interest, Box::new(on_change))
    }
}
