//! Teams, mail, tasks, requests and the journal on disk, in the files that Claude Code uses too. Knows nothing of
//! tmux, of processes, or of who is alive. Its interface speaks of nouns, never of paths, so that a shared database
//! can stand behind it later.

mod append;
mod archive;
mod broken;
mod document;
mod error;
mod handed;
mod journal;
mod layout;
mod lease;
mod leftovers;
mod lenient;
mod mailbox;
mod members;
mod questions;
mod requests;
mod roster;
mod specs;
mod tasks;
mod teams;
#[cfg(test)]
mod tests;

pub(crate) use broken::Broken;
pub(crate) use error::StoreError;
pub(crate) use lease::{LeadRecord, Lease};
pub(crate) use leftovers::{Left, Leftover, spec_of};
pub(crate) use specs::take_spec;
pub(crate) use tasks::{
    Changed as TaskChanged, Changes as TaskChanges, Ending, NewTask, Owner as TaskOwner,
    Status as TaskStatus,
};
pub(crate) use teams::{Store, TeamStore};
