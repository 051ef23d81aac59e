//! The data that calls of the shared store pass and return.

use serde::{Deserialize, Serialize};

/// The author of the calls. The database refuses the calls of a fenced author.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Actor {
    /// The run that the calling process belongs to; `None` outside of members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<String>,
    /// The number of the lead's lease; `None` outside of leads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<i64>,
}

/// The kinds of documents of a team.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum DocumentKind {
    /// The team file; its key is empty.
    Config,
    /// Its key is empty.
    Settings,
    /// The record of the lead; its key is empty.
    Lead,
    /// The record of a member's run.
    Member,
    Request,
    Question,
    /// The comments of the team's reviews.
    Review,
    /// The time at which a member last read the board.
    Looked,
    /// The machine that has a host name.
    Host,
}

/// A document as stored.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct StoredDocument {
    pub key: String,
    /// Changes with each write and is never reused.
    pub version: i64,
    /// JSON text, byte for byte as written.
    pub body: String,
}

/// A document to write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DocumentWrite<'a> {
    pub kind: DocumentKind,
    pub key: &'a str,
    pub body: &'a str,
    /// For [`DocumentKind::Config`], the folded names of the members on the roster; `None` for
    /// other kinds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names: Option<&'a [String]>,
}

/// A message to append.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MailEntry {
    /// Unique within the mailbox; a second message with the same id is not stored.
    pub msg_id: String,
    /// The entry, as JSON text.
    pub body: String,
}

/// A message as stored.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct MailRow {
    pub msg_id: String,
    pub body: String,
    /// Its reader has it.
    pub delivered: bool,
}

/// The messages to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MailScope {
    All,
    /// Those that were not delivered, and the newest 32 others.
    Recent,
    Undelivered,
}

/// The result of appending messages.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Appended {
    /// The ids that were new to the mailbox, in the order of the entries.
    Stored(Vec<String>),
    /// The owner is not on the roster; nothing was stored.
    NoMember,
}

/// A task as stored.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct StoredTask {
    pub id: u64,
    pub version: i64,
    /// The content of the task file, as JSON text.
    pub body: String,
    /// A claim since `body` was written. The reader applies it to the task.
    pub claim: Option<StoredClaim>,
    pub age_ms: u64,
}

/// A claim of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredClaim {
    /// The member's name as given.
    pub by: String,
    /// Milliseconds since the epoch.
    pub at: u64,
    /// Random id of the claim, under which it is journaled. A repeated call has the same.
    pub event: String,
}

/// The tasks to read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskScope {
    All,
    /// All except completed and cancelled tasks.
    Open,
    /// These tasks and their direct blockers.
    WithBlockers(Vec<u64>),
}

/// The tasks that were read.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct StoredTasks {
    /// By id.
    pub tasks: Vec<StoredTask>,
    /// The ids of deleted tasks.
    pub deleted: Vec<u64>,
    /// The largest id that was ever assigned.
    pub mark: u64,
}

/// A task to write, with the fields by which claims select it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskWrite {
    pub id: u64,
    /// The version that the write replaces; `None` for a new task.
    pub expected: Option<i64>,
    pub body: String,
    /// The name of its state.
    pub state: &'static str,
    /// The owner's name in the form in which names are compared.
    pub owner: Option<String>,
    pub priority: i64,
    /// The required role in lower case.
    pub role: Option<String>,
    /// Internal to another program, and never claimed.
    pub internal: bool,
    pub has_command: bool,
    /// Patterns of the paths that the task may touch.
    pub files: Vec<String>,
    pub blocked_by: Vec<u64>,
    /// The part of the journal line of a claim that depends on the task: fields of a JSON object,
    /// without the braces.
    pub claim_line: String,
}

/// The tasks that a claim may take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimScope {
    /// Tasks with a command, for a member that has no task in progress.
    Command,
    /// Tasks without a command.
    Prompt,
    /// This task.
    Task(u64),
}

/// A claim to make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClaimCall<'a> {
    pub scope: ClaimScope,
    #[serde(flatten)]
    pub claim: &'a StoredClaim,
    /// The member's name in the form in which names are compared.
    pub who: String,
    /// The member's role in lower case; ignored for [`ClaimScope::Task`].
    pub role: Option<String>,
    /// Refuse a member that has a task in progress.
    pub busy_check: bool,
    /// The other part of the journal line, in the form of [`TaskWrite::claim_line`].
    pub line: String,
}

/// The result of a claim.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimReply {
    Claimed(StoredTask),
    /// The member has this task in progress.
    Busy(u64),
    /// No task can be claimed, or the one that was named cannot.
    Nothing,
    /// Another process holds the lock of the task list; try again.
    Locked,
}

/// The logs of a team.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LogKind {
    Journal,
    Handoff,
}

/// A line to append to a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogEntry {
    /// Unique within the log; a second line with the same id is not stored.
    pub id: String,
    /// Milliseconds since the epoch.
    pub at: u64,
    /// The task that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<u64>,
    /// JSON text.
    pub body: String,
}

/// A line of a log.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct LogRow {
    /// Position. A line that is committed later has a larger one.
    pub seq: i64,
    pub body: String,
}

/// The lines of a log to read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LogScope {
    /// After this position, at most `limit` lines.
    After { seq: i64, limit: u32 },
    /// From this time on, in milliseconds since the epoch.
    Since(u64),
    /// About this task.
    Task(u64),
    /// About any task.
    Tasks,
}

/// A change that another process, or this one, has committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoreChange {
    Document {
        kind: DocumentKind,
        key: String,
    },
    /// The mailbox of this owner.
    Mail(String),
    /// A claim of a task, which no other member has to react to.
    Claim,
    /// Any other change of tasks.
    Tasks,
    Journal,
    /// Changes may have been missed, since the connection was lost for a while.
    Everything,
}

/// The changes that a subscription reports. The broker drops the others, because each report wakes
/// a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interest {
    All,
    /// Changes that may concern the member with this mailbox and record.
    Member(String),
    /// Changes of the members' records.
    Records,
}

impl Interest {
    /// Returns true if the subscription reports this change.
    pub(super) fn covers(&self, change: &StoreChange) -> bool {
        use StoreChange::{Claim, Document, Everything, Journal, Mail, Tasks};
        match (self, change) {
            (Interest::All, _) | (_, Everything) => true,
            (Interest::Member(own), Document { kind, key }) => match kind {
                DocumentKind::Config | DocumentKind::Request | DocumentKind::Question => true,
                DocumentKind::Member => key == own,
                DocumentKind::Settings
                | DocumentKind::Lead
                | DocumentKind::Review
                | DocumentKind::Looked
                | DocumentKind::Host => false,
            },
            (Interest::Member(own), Mail(owner)) => owner == own,
            (Interest::Member(_), Tasks) => true,
            (Interest::Records, Document { kind, .. }) => *kind == DocumentKind::Member,
            (Interest::Member(_) | Interest::Records, Claim | Journal)
            | (Interest::Records, Mail(_) | Tasks) => false,
        }
    }
}
