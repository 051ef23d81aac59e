//! phalanx leads teams of command-line agents. This library is the body of the program; it exports
//! only what `main.rs` and the benches need, so that the compiler reports dead code.

pub(crate) mod backend;
mod cli;
pub mod drive;
pub(crate) mod hooks;
pub(crate) mod launcher;
pub(crate) mod lead;
pub(crate) mod model;
pub(crate) mod ops;
pub(crate) mod profile;
pub(crate) mod store;
pub(crate) mod sys;
pub(crate) mod teammate;
mod ui;
pub(crate) mod worktree;

/// Runs the program with the arguments of this process and returns its exit code.
#[must_use]
pub fn run() -> std::process::ExitCode {
    cli::run()
}
