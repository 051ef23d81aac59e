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

pub(crate) use crate::database::DatabaseError;
pub(crate) use access::StoreAccess;
pub(crate) use bridge::FileBridge;
pub(crate) use broken::Broken;
pub(crate) use ended::EndedTeam;
pub(crate) use error::StoreError;
pub(crate) use handoffs::ReceivedHandoffs;
pub(crate) use journal::{JournalReader, now};
pub(crate) use lease::{LeadPresence, LeadRecord, Lease};
pub(crate) use leftovers::{Leftover, LeftoverKind, parse_spec_path};
pub(crate) use mailbox::Marking;
pub(crate) use specs::take_spec;
pub(crate) use tasks::{
    ClaimKind, NewTask, TargetStatus, TaskChanged, TaskChanges, TaskImport, TaskOwner,
    TaskRevision, TaskStep,
};
pub(crate) use team::TeamStore;
pub(crate) use teams::Store;
pub(crate) use watch::{TeamChanges, TeamWatch};
pub(crate) use workspace::WorkspaceListing;
