//! phalanx leads teams of command-line agents. This library is the body of the program; it exports
//! only what `main.rs`, tests and benches need, so that the compiler reports dead code.

pub(crate) mod backend;
mod cli;
pub(crate) mod config;
pub(crate) mod database;
pub(crate) mod event_loop;
pub(crate) mod hooks;
pub(crate) mod launcher;
pub(crate) mod lead;
pub(crate) mod model;
pub(crate) mod ops;
pub(crate) mod profile;
pub(crate) mod remote;
pub(crate) mod store;
pub(crate) mod sys;
pub(crate) mod teammate;
#[cfg(feature = "testing")]
pub mod testing;
mod ui;
pub(crate) mod worktree;

pub use cli::run;
