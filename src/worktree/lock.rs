//! Locks the worktrees of members that run.

use std::path::Path;

use super::error::WorktreeError;
use super::list::{LOCK, WorktreeEntry, list_worktrees};
use super::repository::Repository;
use model::team::worktree::Checkout;

impl Repository {
    /// Locks a worktree, so that other programs do not prune, move or remove it while `user` works
    /// in it. A lock that it has stays.
    pub fn lock(&self, checkout: &Checkout, user: &str) -> Result<(), WorktreeError> {
        let reason = format!("{LOCK}{user}");
        // Git refuses to lock twice.
        self.git.call(&["worktree", "lock", "--reason", &reason, &checkout.path]).map(drop)
    }

    /// Removes the lock of [`Repository::lock`]. One of a person stays.
    pub fn unlock(&self, checkout: &Checkout) -> Result<(), WorktreeError> {
        let is_ours = |one: &WorktreeEntry| one.path == checkout.path && one.user.is_some();
        if list_worktrees(&self.git)?.iter().any(is_ours) {
            self.git.call(&["worktree", "unlock", &checkout.path])?;
        }
        Ok(())
    }

    /// Rejects a worktree at `path`, or with `branch`, that a member uses.
    pub(super) fn must_be_unused(&self, path: &Path, branch: &str) -> Result<(), WorktreeError> {
        let is_it = |one: &WorktreeEntry| {
            Path::new(&one.path) == path || one.branch.as_deref() == Some(branch)
        };
        let used = list_worktrees(&self.git)?.into_iter().filter(is_it);
        match used.filter_map(|one| Some((one.path, one.user?))).next() {
            Some((path, user)) => Err(WorktreeError::InUse { path, user }),
            None => Ok(()),
        }
    }
}
