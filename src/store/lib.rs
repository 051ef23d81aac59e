//! Teams, mailboxes, tasks, requests and the journal, stored in the files that Claude Code also
//! uses, or in PostgreSQL. Callers name teams, members and tasks rather than paths.

mod access;
mod ack_log;
mod append;
mod archive;
mod bridge;
mod broken;
mod dirs;
mod document;
mod documents;
mod ended;
mod error;
mod format;
mod handoffs;
mod journal;
mod layout;
mod lease;
mod leftovers;
mod machine;
mod mailbox;
mod members;
mod questions;
mod repair_surrogates;
mod requests;
mod roster;
mod shared;
mod shared_mail;
mod specs;
mod tasks;
mod team;
mod teams;
#[cfg(test)]
mod tests;
mod transfer;
mod usage;
mod watch;
mod workspace;

pub use access::StoreAccess;
pub use bridge::FileBridge;
pub use broken::Broken;
pub use database::DatabaseError;
pub use ended::EndedTeam;
pub use error::StoreError;
pub use handoffs::ReceivedHandoffs;
pub use journal::{JournalReader, now};
pub use lease::{LeadPresence, LeadRecord, Lease};
pub use leftovers::{Leftover, LeftoverKind, parse_spec_path};
pub use mailbox::Marking;
pub use specs::take_spec;
pub use tasks::{
    ClaimKind, NewTask, TargetStatus, TaskChanged, TaskChanges, TaskImport, TaskOwner,
    TaskRevision, TaskStep,
};
pub use team::TeamStore;
pub use teams::Store;
pub use watch::{TeamChanges, TeamWatch};
pub use workspace::WorkspaceListing;
