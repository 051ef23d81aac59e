//! Errors of the store. Each variant carries the file, name or id that it is about.

use std::path::PathBuf;

use database::DatabaseError;
use model::board::Refusal;
use model::board::limits::Full;
use model::board::task::{TaskAction, TaskState};
use model::board::workspace::FileFault;
use model::id::{HostName, IdError, MemberName, RequestId, TaskId, TeamName};
use sys::fs::FsError;
use sys::lock::LockError;

/// Reason why the store did not complete an operation.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// `known` lists the existing teams, to suggest one.
    #[error("team `{}` does not exist", name.escape_debug())]
    NoSuchTeam { name: String, known: Vec<TeamName> },
    #[error("team `{name}` already exists")]
    TeamTaken { name: TeamName },
    /// `known` lists the members, to suggest one.
    #[error("team `{team}` has no member `{name}`")]
    NoSuchMember { team: TeamName, name: MemberName, known: Vec<MemberName> },
    /// `holder` may differ from the requested name in case.
    #[error("team `{team}` already has a member `{holder}`")]
    MemberTaken { team: TeamName, holder: MemberName },
    #[error("team `{team}` is full: it has its maximum of {max} members")]
    TeamFull { team: TeamName, max: usize },
    /// `known` are the last teams whose journals are kept, with the times of their ends.
    #[error("no journal of an ended team `{name}` is kept for that time")]
    NoEndedTeam { name: TeamName, known: Vec<String> },
    #[error("request `{id}` does not exist")]
    NoSuchRequest { id: RequestId },
    /// A rule of the task board forbids it.
    #[error("{0} ({code})", code = .0.code())]
    Refused(#[from] Refusal),
    #[error("task {id} is {}; `{}` needs one that is {}", .state.as_str(), .action.as_str(), from_states(*.action))]
    Transition { id: TaskId, state: TaskState, action: TaskAction },
    #[error("task {id} is {}, not in progress", .state.as_str())]
    NotRunning { id: TaskId, state: TaskState },
    #[error("task {id}: only the lead may {} it", .action.as_str())]
    LeadOnly { id: TaskId, action: TaskAction },
    /// The caller is not the owner or the lead.
    #[error("task {id} belongs to {}", .owner.as_deref().unwrap_or("nobody"))]
    NotYours { id: TaskId, owner: Option<String> },
    #[error("task {id} is {}", .state.as_str())]
    NotOver { id: TaskId, state: TaskState },
    #[error("task {id} is already {}; its owner and dependencies can no longer change", .state.as_str())]
    Over { id: TaskId, state: TaskState },
    /// `path` is the cycle, each task before the next.
    #[error("task {blocker} cannot block task {task}: {} would form a cycle", circle(.path))]
    Circle { task: TaskId, blocker: TaskId, path: Vec<TaskId> },
    #[error("`{}` is at capacity ({}/{}), open{}: {}", .0.owner, .0.open.len(), .0.limit, from(.0), ids(.0))]
    AtCapacity(Full),
    #[error("a message of {bytes} bytes is too long; the limit is {limit}")]
    MessageTooLong { bytes: usize, limit: usize },
    #[error("the mailbox of {owner} is full; the limit is {limit} bytes")]
    BoxFull { owner: MemberName, limit: u64 },
    #[error("{path} is full (limit: {limit} bytes); its team can move the file away", path = path.display())]
    HandoffsFull { path: PathBuf, limit: u64 },
    /// `copy` is in the quarantine.
    #[error("cannot parse {path}: {problem}; the file was left unchanged, with a copy at {copy}", path = path.display(), copy = copy.display())]
    Corrupt { path: PathBuf, problem: String, copy: PathBuf },
    #[error("the task list has no {wanted} free ids in a row below {}", TaskId::MAX)]
    NoFreeIds { wanted: u64 },
    /// A newer phalanx wrote the file.
    #[error("{path} has format version {found}; this phalanx supports version {known}", path = path.display())]
    NewerFormat { path: PathBuf, found: u64, known: u32 },
    /// Other programs wrote the file during every attempt to change it.
    #[error("{path} was changed by another program during each of {tries} attempts to write it", path = path.display())]
    Contended { path: PathBuf, tries: u32 },
    /// Another program took over the lock directory.
    #[error("the lock of {path} was lost before the change was written", path = path.display())]
    LockLost { path: PathBuf },
    /// A document of the shared store has another form.
    #[error("cannot parse {what} in the shared store: {problem}")]
    BadDocument { what: String, problem: String },
    /// A machine cannot be two hosts of a team: their files would be the same.
    #[error("this machine is host `{known}` of team `{team}`, not host `{given}`")]
    OtherHost { team: TeamName, known: HostName, given: HostName },
    /// Two machines must not have one name: each would take the other's processes for its own.
    #[error("host `{host}` of team `{team}` is another machine than this one")]
    HostTaken { team: TeamName, host: HostName },
    #[error(transparent)]
    Database(DatabaseError),
    #[error(transparent)]
    Workspace(#[from] FileFault),
    #[error(transparent)]
    Name(#[from] IdError),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    File(#[from] FsError),
    #[error(transparent)]
    Watch(#[from] sys::watch::WatchError),
}

/// Formats a cycle as `1 → 3 → 1`.
/// Returns the problem of a file that may hold secrets, without the text that serde quotes.
pub(crate) fn without_text(error: &serde_json::Error) -> String {
    let problem = error.to_string();
    match problem.rsplit_once("\", expected") {
        Some((_, wanted)) => format!("a text in place of{wanted}"),
        None => problem,
    }
}

fn circle(path: &[TaskId]) -> String {
    path.iter().chain(path.first()).map(TaskId::to_string).collect::<Vec<_>>().join(" → ")
}

fn from(full: &Full) -> String {
    full.from.as_ref().map(|by| format!(" from `{by}`")).unwrap_or_default()
}

fn ids(full: &Full) -> String {
    full.open.iter().map(|id| format!("#{id}")).collect::<Vec<_>>().join(", ")
}

impl From<DatabaseError> for StoreError {
    fn from(error: DatabaseError) -> StoreError {
        match error {
            DatabaseError::NoSuchTeam { team } => {
                StoreError::NoSuchTeam { name: team, known: Vec::new() }
            }
            other => StoreError::Database(other),
        }
    }
}

impl From<Full> for StoreError {
    fn from(full: Full) -> StoreError {
        StoreError::AtCapacity(full)
    }
}

impl StoreError {
    /// Returns true if the file exists but may not be read or has unusable content.
    pub(crate) fn is_about_content(&self) -> bool {
        match self {
            StoreError::Corrupt { .. }
            | StoreError::BadDocument { .. }
            | StoreError::File(FsError::TooLarge { .. } | FsError::Refused { .. }) => true,
            StoreError::File(e) => e.is_denied(),
            _ => false,
        }
    }
}

fn from_states(action: TaskAction) -> String {
    action.from().iter().map(|state| state.as_str()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn sec_13_text_of_a_file_is_not_in_its_problem() {
        let problem = |text: &str| {
            let error = serde_json::from_str::<Vec<u8>>(text).expect_err("no list of numbers");
            without_text(&error)
        };
        assert_eq!(
            problem(r#""hunter2\", expected""#),
            "a text in place of a sequence at line 1 column 21"
        );
        assert_eq!(problem("[1"), "EOF while parsing a list at line 1 column 2");
    }

    #[test]
    fn a_file_without_permission_is_unusable_and_a_missing_one_is_not() {
        let error = |kind: io::ErrorKind| {
            StoreError::File(FsError::Io {
                op: "read",
                path: "/t/1.json".into(),
                source: kind.into(),
            })
        };
        assert!(error(io::ErrorKind::PermissionDenied).is_about_content());
        assert!(!error(io::ErrorKind::NotFound).is_about_content());
        let linked =
            FsError::Refused { op: "read", path: "/t/1.json".into(), reason: String::new() };
        assert!(StoreError::File(linked).is_about_content());
    }
}
