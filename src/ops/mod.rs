//! The operations on teams, and the only layer in which store, backends and profiles meet. Nothing
//! here depends on the command line, the screen or the loops.
//!
//! - Commands have one file each: `answer`, `spawn`, `task` and so on; `effects` has what only the
//!   loops carry out.
//! - Policy decides what a caller may do: `access`, `authority`, `claude_settings`, `depth`,
//!   `foreign_lead`, `lease`, `names`, `routing`, `speaker`.
//! - The others are steps that several commands and effects share: the end of a run (`terminate`,
//!   `retire`, `verify`, `recover`), a member's state (`presence`, `turn`, `dialog`), notifications
//!   (`owners`), places (`backends`, `label`, `launchers`).

mod access;
pub(crate) mod agent_lead;
pub(crate) mod agents;
pub(crate) mod answer;
pub(crate) mod ask;
pub(crate) mod assess;
pub(crate) mod attach;
pub(crate) mod authority;
mod backends;
pub(crate) mod brief;
pub(crate) mod broken;
mod budget;
pub(crate) mod catch_up;
mod claude_settings;
mod context;
pub(crate) mod decide;
mod depth;
pub(crate) mod dialog;
pub(crate) mod doctor;
pub(crate) mod effects;
pub(crate) mod ending;
mod error;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod focus;
pub(crate) mod force;
mod foreign_lead;
pub(crate) mod foreign_members;
mod forget;
pub(crate) mod handoff;
pub(crate) mod hooks;
pub(crate) mod hosts;
pub(crate) mod ids;
pub(crate) mod inbox;
pub(crate) mod input;
pub(crate) mod label;
mod launchers;
pub(crate) mod lease;
mod log_part;
pub(crate) mod logs;
pub(crate) mod manifest;
pub(crate) mod mark_read;
pub(crate) mod modes;
pub(crate) mod names;
pub(crate) mod one_shot;
pub(crate) mod output;
mod own_files;
mod owners;
pub(crate) mod popup;
mod post;
pub(crate) mod presence;
pub(crate) mod profiles;
pub(crate) mod project;
pub(crate) mod ps;
pub(crate) mod recover;
pub(crate) mod remote;
pub(crate) mod report;
pub(crate) mod requests;
pub(crate) mod resume;
pub(crate) mod retire;
pub(crate) mod roles;
mod routing;
pub(crate) mod rules;
pub(crate) mod screen;
pub(crate) mod send;
pub(crate) mod settings;
pub(crate) mod shutdown;
pub(crate) mod snapshot;
pub(crate) mod spawn;
pub(crate) mod speaker;
pub(crate) mod status;
pub(crate) mod task;
pub(crate) mod task_export;
pub(crate) mod task_import;
pub(crate) mod task_search;
pub(crate) mod team;
pub(crate) mod templates;
pub(crate) mod terminate;
pub(crate) mod transfer;
pub(crate) mod turn;
pub(crate) mod unseen;
pub(crate) mod verify;
pub(crate) mod wait;
pub(crate) mod workspace;
pub(crate) mod worktree;

pub(crate) use context::{Caller, Context, now};
pub(crate) use error::{Kind, NO_TEAM, OpsError};
pub(crate) use post::Post;

pub(crate) use crate::store::{
    ClaimKind, EndedTeam, JournalReader, Lease, NewTask, Store, TargetStatus, TaskChanges,
    TaskOwner, TaskStep, TeamChanges, TeamStore,
};
