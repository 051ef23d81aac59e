//! Git worktrees for members: finds the repository, creates a checkout, reports its condition and
//! removes it. Removal is never forced where work could be lost (EN-07).

mod condition;
mod conflict;
mod content;
mod copy;
mod error;
mod exchange;
mod follow;
mod git;
mod landing;
mod line_moves;
mod list;
mod lock;
mod make;
mod merged;
mod patch;
mod pending;
mod preview;
mod push;
mod repository;
mod snapshot;
mod start;
#[cfg(test)]
mod tests;
mod tracking;

use std::path::{Path, PathBuf};

use sys::fs;

pub use condition::{RemovalOutcome, changed_paths};
pub use conflict::{ConflictHunk, ConflictedFile};
pub use copy::{CopyTraits, HostRepository, WORKTREES, WorktreeState};
pub use error::WorktreeError;
pub use exchange::LARGEST_BUNDLE;
pub use git::MISLEADING;
pub use landing::Landing;
pub use line_moves::{Followed, LineMoves};
pub use make::BuiltWorktree;
pub use patch::{ChangedFile, PatchOptions};
pub use pending::PendingWork;
pub use preview::Preview;
pub use repository::Repository;
pub use snapshot::WorkSnapshot;

/// Finds the checkout that contains a directory by its `.git` entry (TK-09). Does not run git, so
/// it is cheap.
pub fn checkout_of(dir: &Path) -> Option<PathBuf> {
    let dir = fs::canonical(dir).ok()?;
    dir.ancestors().find(|dir| fs::exists(&dir.join(".git"))).map(Path::to_owned)
}
