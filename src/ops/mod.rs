//! One file per verb; the only layer in which store, backends and profiles meet. Nothing here
//! depends on the command line, on the screen or on the lead's loop.

pub(crate) mod announce;
pub(crate) mod answer;
pub(crate) mod ask;
pub(crate) mod attach;
pub(crate) mod authority;
mod backends;
pub(crate) mod brief;
pub(crate) mod broken;
mod claude_settings;
mod context;
pub(crate) mod decide;
mod depth;
pub(crate) mod dialog;
pub(crate) mod doctor;
mod error;
pub(crate) mod events;
pub(crate) mod exec;
pub(crate) mod explain;
pub(crate) mod focus;
pub(crate) mod force;
mod foreign_lead;
mod forget;
pub(crate) mod health;
pub(crate) mod hooks;
pub(crate) mod inbox;
pub(crate) mod input;
pub(crate) mod label;
mod launchers;
pub(crate) mod lease;
pub(crate) mod logs;
pub(crate) mod manifest;
pub(crate) mod modes;
pub(crate) mod names;
pub(crate) mod output;
mod owners;
pub(crate) mod presence;
pub(crate) mod profiles;
pub(crate) mod ps;
pub(crate) mod recover;
pub(crate) mod remind;
pub(crate) mod report;
pub(crate) mod rest;
pub(crate) mod results;
pub(crate) mod resume;
pub(crate) mod retire;
pub(crate) mod roles;
pub(crate) mod rules;
pub(crate) mod run;
pub(crate) mod seat;
pub(crate) mod send;
pub(crate) mod settings;
pub(crate) mod shutdown;
pub(crate) mod spawn;
mod speaker;
pub(crate) mod status;
pub(crate) mod task;
pub(crate) mod team;
pub(crate) mod terminate;
pub(crate) mod turn;
pub(crate) mod verify;
pub(crate) mod wait;
pub(crate) mod worktree;

pub(crate) use context::{Caller, Context, now};
pub(crate) use error::{Kind, NO_TEAM, OpsError};

pub(crate) use crate::store::{
    JournalReader, Lease, NewTask, Store, TargetStatus, TaskChanges, TaskEnding, TaskOwner,
    TeamStore,
};
