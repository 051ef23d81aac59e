//! What a member has changed, and whether it would merge. Changes nothing.

use std::path::Path;

use super::git;
use super::{Repository, WorktreeError};
use crate::model::worktree::Checkout;

/// What a merge would come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Preview {
    /// What it would be merged into: the branch of the main working directory, or its commit.
    pub(crate) into: String,
    /// How many commits it would bring.
    pub(crate) commits: usize,
    /// Files in which both sides changed the same; empty: it merges.
    pub(crate) conflicts: Vec<String>,
    /// Files that are not committed and would not come along.
    pub(crate) uncommitted: usize,
}

impl Repository {
    /// All that changed since the member's branch left the main one, committed or not, as git shows it. New files that
    /// git was not told of are not in it.
    ///
    /// # Errors
    /// Git cannot compare.
    pub(crate) fn diff(&self, checkout: &Checkout) -> Result<String, WorktreeError> {
        let there = self.git.at(Path::new(&checkout.path));
        let main = self.git.get("ask for the main commit", &["rev-parse", "HEAD"])?;
        let base = there.ask(&["merge-base", main.trim_end(), "HEAD"])?;
        let base = base.unwrap_or_else(|| checkout.base.clone());
        there.get("compare", &["diff", "--no-ext-diff", "--no-color", &base, "--"])
    }

    /// Whether the member's commits would merge into what the main working directory is on.
    ///
    /// # Errors
    /// Git cannot try: it is older than 2.38, or the two have no commit in common.
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
            // The tree comes first, then the files.
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
