//! Shows what a member has changed and tries the merge, without changing branches or files.

use std::path::Path;

use super::error::WorktreeError;
use super::git;
use super::repository::Repository;
use crate::model::worktree::Checkout;

/// The expected result of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Preview {
    /// The merge target: the branch of the main working directory, or its abbreviated commit.
    pub(crate) into: String,
    /// Number of commits that the merge would add.
    pub(crate) commits: usize,
    /// Files with conflicting changes; empty if the merge succeeds.
    pub(crate) conflicts: Vec<String>,
    /// Number of files with uncommitted changes, which the merge would not include.
    pub(crate) uncommitted: usize,
}

impl Repository {
    /// Returns all changes since the member's branch diverged from the main one, committed or not,
    /// as `git diff` prints them. Untracked files are not included.
    ///
    /// # Errors
    /// [`WorktreeError::Exec`] if git cannot be run or times out, [`WorktreeError::Git`] if it
    /// fails.
    pub(crate) fn diff(&self, checkout: &Checkout) -> Result<String, WorktreeError> {
        let there = self.git.at(Path::new(&checkout.path));
        let main = self.git.get("ask for the main commit", &["rev-parse", "HEAD"])?;
        let base = there.ask(&["merge-base", main.trim_end(), "HEAD"])?;
        let base = base.unwrap_or_else(|| checkout.base.clone());
        there.get("compare", &["diff", "--no-ext-diff", "--no-color", &base, "--"])
    }

    /// Tries to merge the member's commits into the commit of the main working directory.
    ///
    /// # Errors
    /// [`WorktreeError::Git`] if git cannot try the merge: it is older than 2.38, or the two
    /// histories are unrelated. [`WorktreeError::Exec`] if git cannot be run or times out.
    pub(crate) fn preview(&self, checkout: &Checkout) -> Result<Preview, WorktreeError> {
        let what = "try the merge";
        let there = self.git.at(Path::new(&checkout.path));
        let head = there.get(what, &["rev-parse", "HEAD"])?;
        let head = head.trim_end();
        let branch = self.git.ask(&["symbolic-ref", "--quiet", "--short", "HEAD"])?;
        let into = match branch {
            Some(branch) => branch,
            None => self.git.get(what, &["rev-parse", "--short", "HEAD"])?.trim_end().to_owned(),
        };
        let tried =
            ["merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", "HEAD", head];
        let output = self.git.call(&tried)?;
        let conflicts = match output.code {
            Some(0) => Vec::new(),
            // With -z, the id of the tree comes first, then the conflicting files.
            Some(1) => {
                let text = String::from_utf8_lossy(&output.stdout);
                text.split('\0')
                    .skip(1)
                    .filter(|file| !file.is_empty())
                    .map(str::to_owned)
                    .collect()
            }
            Some(_) | None => return Err(git::refused(what, &output)),
        };
        let count = self.git.get(what, &["rev-list", "--count", head, "--not", "HEAD", "--"])?;
        Ok(Preview {
            into,
            commits: count.trim().parse().unwrap_or_default(),
            conflicts,
            uncommitted: self.uncommitted(Path::new(&checkout.path))?,
        })
    }
}
