//! The operations on teams, and the only layer in which store, backends and profiles meet. Nothing
//! here depends on the command line, the screen or the loops.
//!
//! From the ground up, the rooms are `authority` (who may do what), `hosts` (how others are
//! reached), `members` (the roster, each member's state and place, and who leads), `mail`, `team`,
//! `board`, `ending` (from a request to a closed pane), `decisions` (what members ask), `starting`
//! (from a launch request to a proven member), `views` (read only), `serving` (this host for a lead
//! on another one) and `doctor`. A room uses only those before it. `effects` has what only the
//! loops carry out.

pub(crate) mod authority;
pub(crate) mod board;
mod context;
pub(crate) mod decisions;
pub(crate) mod doctor;
pub(crate) mod effects;
pub(crate) mod ending;
mod error;
pub(crate) mod hosts;
pub(crate) mod mail;
pub(crate) mod members;
mod own_files;
pub(crate) mod serving;
pub(crate) mod starting;
pub(crate) mod team;
pub(crate) mod views;

pub(in crate::ops) use context::resolve_dir;
pub(crate) use context::{Caller, Context, now};
pub(crate) use error::{Kind, NO_TEAM, OpsError};
pub(crate) use mail::post::Post;

pub(crate) use crate::store::{
    ClaimKind, EndedTeam, JournalReader, Lease, NewTask, Store, TargetStatus, TaskChanges,
    TaskOwner, TaskStep, TeamChanges, TeamStore,
};
