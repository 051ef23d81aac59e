//! Git worktrees for members: finds the repository, creates a checkout, reports its condition and
//! removes it. Removal is never forced where work could be lost (EN-07).

mod condition;
mod copy;
mod error;
mod exchange;
mod git;
mod list;
mod make;
mod preview;
mod repository;
#[cfg(test)]
mod tests;
mod tracking;

use std::path::{Path, PathBuf};

use crate::sys::fs;

pub(crate) use condition::RemovalOutcome;
pub(crate) use copy::{CopyTraits, HostRepository, WORKTREES, WorktreeState};
pub(crate) use error::WorktreeError;
pub(crate) use exchange::LARGEST_BUNDLE;
pub(crate) use git::MISLEADING;
pub(crate) use preview::Preview;
pub(crate) use repository::Repository;

/// Finds the checkout that contains a directory by its `.git` entry (TK-09). Does not run git, so
/// it is cheap.
pub(crate) fn checkout_of(dir: &Path) -> Option<PathBuf> {
    let dir = fs::canonical(dir).ok()?;
    dir.ancestors().find(|dir| fs::exists(&dir.join(".git"))).map(Path::to_owned)
}
