//! Teams, mailboxes, tasks, requests and the journal, stored in the files that Claude Code also
//! uses. Callers name teams, members and tasks rather than paths, so that a shared database could
//! replace the files.

mod ack_log;
mod append;
mod archive;
mod broken;
mod dirs;
mod document;
mod error;
mod journal;
mod layout;
mod lease;
mod leftovers;
mod mailbox;
mod members;
mod questions;
mod repair_surrogates;
mod requests;
mod roster;
mod specs;
mod tasks;
mod teams;
#[cfg(test)]
mod tests;

pub(crate) use broken::Broken;
pub(crate) use error::StoreError;
pub(crate) use journal::{JournalReader, now};
pub(crate) use lease::{LeadRecord, Lease};
pub(crate) use leftovers::{Leftover, LeftoverKind, parse_spec_path};
pub(crate) use specs::take_spec;
pub(crate) use tasks::{
    NewTask, TargetStatus, TaskChanged, TaskChanges, TaskEnding, TaskImport, TaskOwner,
    TaskRevision,
};
pub(crate) use teams::{Store, TeamStore};
