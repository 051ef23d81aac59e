//! Teams, mailboxes, tasks, requests and the journal, stored in the files that Claude Code also
//! uses, or in PostgreSQL. Callers name teams, members and tasks rather than paths.

mod board;
mod decisions;
mod error;
mod files;
mod mail;
mod members;
mod review;
mod shared;
mod team;
#[cfg(test)]
mod tests;

pub use board::tasks::{
    ClaimKind, NewTask, ReleasedTasks, TargetStatus, TaskChanged, TaskChanges, TaskImport,
    TaskOwner, TaskRevision, TaskStep,
};
pub use board::workspace::WorkspaceListing;
pub use database::DatabaseError;
pub use error::StoreError;
pub use files::reread::Reread;
pub use files::watch::{TeamChanges, TeamWatch};
pub use mail::handoffs::ReceivedHandoffs;
pub use mail::mailbox::Marking;
pub use members::environments::{KeptEnvironment, read_environment};
pub use members::specs::take_spec;
pub use shared::access::StoreAccess;
pub use shared::bridge::FileBridge;
pub use team::TeamStore;
pub use team::broken::Broken;
pub use team::ended::EndedTeam;
pub use team::journal::{JournalReader, now};
pub use team::lease::{LeadPresence, LeadRecord, Lease};
pub use team::leftovers::{Leftover, LeftoverKind, parse_spec_path};
pub use team::teams::Store;
