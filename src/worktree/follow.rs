//! Finds a worktree again that was moved, whose branch was renamed, or whose entry was pruned.

use std::path::{Path, PathBuf};

use super::error::WorktreeError;
use super::list::list_worktrees;
use super::repository::{LINK, Repository};
use model::team::worktree::{Checkout, check_branch};
use sys::fs;

impl Repository {
    /// Returns a worktree with the path and the branch by which git knows it now.
    ///
    /// # Errors
    /// [`WorktreeError::Git`] and [`WorktreeError::File`] if git or a file operation fails.
    pub fn follow(&self, checkout: &Checkout) -> Result<Checkout, WorktreeError> {
        let Checkout { path, branch, .. } = checkout;
        if has_checked_out(Path::new(path), branch) {
            return Ok(checkout.clone());
        }
        let all = list_worktrees(&self.git)?;
        let mut found = all.iter().find(|one| one.path == *path);
        if found.is_none() && !fs::exists(path.as_ref()) {
            // The first is the main working directory.
            for one in all.iter().skip(1) {
                let its = one.branch.as_deref().unwrap_or_default();
                if its == branch || self.was_renamed(branch, its)? {
                    found = Some(one);
                }
            }
        }
        if found.is_none() && !all.iter().any(|one| one.branch.as_ref() == Some(branch)) {
            self.register(checkout)?;
        }
        let mut now = checkout.clone();
        if let Some(entry) = found {
            now.path.clone_from(&entry.path);
            let its = entry.branch.as_deref().unwrap_or_default();
            if self.was_renamed(branch, its)? {
                now.branch = its.to_owned();
            }
        }
        Ok(now)
    }

    /// Makes the entry of a worktree again, with an index as of its branch, if it was pruned.
    fn register(&self, checkout: &Checkout) -> Result<(), WorktreeError> {
        let (path, what) = (Path::new(&checkout.path), "register a worktree that was pruned");
        let Some(entry) = linked_entry(path) else { return Ok(()) };
        if entry.parent() != Some(&self.git.own_path("worktrees")?)
            || fs::exists(&entry)
            || self.tip(&checkout.branch)?.is_none()
        {
            return Ok(());
        }
        let head = format!("ref: refs/heads/{}\n", checkout.branch);
        fs::private_dir(&entry)?;
        fs::write_atomic(&entry.join("commondir"), b"../..\n")?;
        fs::write_atomic(&entry.join("HEAD"), head.as_bytes())?;
        self.git.get(what, &["worktree", "repair", &checkout.path])?;
        self.in_worktree(path)?.patient().get(what, &["reset", "--quiet"]).map(drop)
    }

    /// Returns true if `branch` is the former branch `old` under a new name.
    fn was_renamed(&self, old: &str, branch: &str) -> Result<bool, WorktreeError> {
        if branch == old || check_branch(branch).is_err() || self.tip(old)?.is_some() {
            return Ok(false);
        }
        let of = format!("refs/heads/{branch}");
        let log = self.git.ask(&["reflog", "show", "--format=%gs", &of, "--"])?.unwrap_or_default();
        let renamed = format!("Branch: renamed refs/heads/{old} to refs/heads/");
        Ok(log.lines().any(|line| line.starts_with(&renamed)))
    }
}

/// Returns true for a worktree that is where it says, on this branch: git need not be asked.
fn has_checked_out(path: &Path, branch: &str) -> bool {
    let head = linked_entry(path).and_then(|entry| fs::read(&entry.join("HEAD"), LINK).ok()?);
    head.is_some_and(|head| head == format!("ref: refs/heads/{branch}\n").as_bytes())
}

/// Returns the entry that the `.git` of a worktree names.
fn linked_entry(path: &Path) -> Option<PathBuf> {
    let link = fs::read(&path.join(".git"), LINK).ok()??;
    let link = String::from_utf8_lossy(&link);
    // A relative path starts in the worktree.
    Some(path.join(link.trim_end().strip_prefix("gitdir: ")?))
}
