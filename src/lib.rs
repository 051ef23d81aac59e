//! phalanx leads teams of command-line agents side by side. This library is the program's body; it exports only
//! what `main.rs` and the benches need, so that dead code is seen.

pub(crate) mod backend;
mod cli;
pub mod drive;
pub(crate) mod hooks;
pub(crate) mod lead;
pub(crate) mod model;
pub(crate) mod ops;
pub(crate) mod profile;
pub(crate) mod store;
pub(crate) mod sys;
pub(crate) mod teammate;
mod ui;
pub(crate) mod worktree;

/// Runs the program with this process's own arguments; gives its exit code.
#[must_use]
pub fn run() -> std::process::ExitCode {
    cli::run()
}
