//! Lists the worktrees of a repository, and locks those of members that run.

use std::path::Path;

use super::error::WorktreeError;
use super::git::Git;
use super::repository::Repository;
use model::team::worktree::Checkout;
use model::text;

/// The beginning of the reason of each lock of phalanx. Such a lock does not keep a worktree: the
/// callers know whether its member runs.
const LOCK: &str = "phalanx: ";

/// One worktree, as `git worktree list --porcelain` reports it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct WorktreeEntry {
    pub(super) path: String,
    pub(super) head: Option<String>,
    /// The branch without `refs/heads/`; `None` if HEAD is detached.
    pub(super) branch: Option<String>,
    /// The reason of the lock, which may be empty. A lock of phalanx is in `user`.
    pub(super) locked: Option<String>,
    /// The member that works in it, in words.
    pub(super) user: Option<String>,
    pub(super) bare: bool,
}

/// Lists all worktrees of a repository, the main one first.
pub(super) fn list_worktrees(git: &Git) -> Result<Vec<WorktreeEntry>, WorktreeError> {
    let text = git.get("list the worktrees", &["worktree", "list", "--porcelain", "-z"])?;
    Ok(parse(&text))
}

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

/// Parses `key value` fields that end with NUL; an empty field ends a worktree.
fn parse(text: &str) -> Vec<WorktreeEntry> {
    let mut all: Vec<WorktreeEntry> = Vec::new();
    for field in text.split('\0') {
        let (key, value) = field.split_once(' ').unwrap_or((field, ""));
        if key == "worktree" {
            all.push(WorktreeEntry { path: value.to_owned(), ..WorktreeEntry::default() });
            continue;
        }
        let Some(last) = all.last_mut() else { continue };
        match key {
            "HEAD" => last.head = Some(value.to_owned()),
            "branch" => {
                last.branch = Some(value.strip_prefix("refs/heads/").unwrap_or(value).to_owned())
            }
            "locked" => match value.strip_prefix(LOCK) {
                Some(user) => last.user = Some(text::line(user)),
                None => last.locked = Some(value.to_owned()),
            },
            "bare" => last.bare = true,
            _ => {}
        }
    }
    all
}
