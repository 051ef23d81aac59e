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
mod handoffs;
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
mod workspace;

pub(crate) use broken::Broken;
pub(crate) use error::StoreError;
pub(crate) use handoffs::ReceivedHandoffs;
pub(crate) use journal::{JournalReader, now};
pub(crate) use lease::{LeadRecord, Lease};
pub(crate) use leftovers::{Leftover, LeftoverKind, parse_spec_path};
pub(crate) use mailbox::Marking;
pub(crate) use specs::take_spec;
pub(crate) use tasks::{
    ClaimKind, NewTask, TargetStatus, TaskChanged, TaskChanges, TaskImport, TaskOwner,
    TaskRevision, TaskStep,
};
pub(crate) use teams::{Store, TeamStore};
pub(crate) use workspace::WorkspaceListing;
