//! The operations on teams, and the only layer in which store, backends and profiles meet. Nothing
//! here depends on the command line, the screen or the loops.
//!
//! From the ground up, the rooms are `authority` (who may do what), `hosts` (how others are
//! reached), `members` (the roster, each member's state and place, and who leads), `mail`, `team`,
//! `board`, `ending` (from a request to a closed pane), `decisions` (what members ask), `review`
//! (the work of members as a reviewer reads it), `starting` (from a launch request to a proven
//! member), `views` (read only), `serving` (this host for a lead on another one) and `doctor`. A
//! room uses only those before it. `effects` has what only the loops carry out.

pub mod authority;
pub mod board;
mod context;
pub mod decisions;
pub mod doctor;
pub mod effects;
pub mod ending;
mod error;
pub mod hosts;
pub mod mail;
pub mod members;
mod own_files;
pub mod review;
pub mod serving;
pub mod starting;
pub mod team;
pub mod views;

pub(crate) use context::resolve_dir;
pub use context::{Caller, Context, now};
pub use error::{Kind, NO_TEAM, OpsError};
pub use mail::post::Post;

pub use store::{
    ClaimKind, EndedTeam, JournalReader, KeptEnvironment, Lease, NewTask, Reread, Store,
    TargetStatus, TaskChanges, TaskOwner, TaskStep, TeamChanges, TeamStore,
};
