//! Tries the merge of a member's commits, without changing branches or files.

use std::path::Path;

use super::condition::count_uncommitted;
use super::error::WorktreeError;
use super::repository::Repository;
use model::team::worktree::Checkout;

/// The expected result of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// The name by which `git merge` takes the member's commits: a branch or a commit.
    pub from: String,
    /// The merge target: the branch of the main working directory, or its abbreviated commit.
    pub into: String,
    /// The commit that would be merged.
    pub head: String,
    /// Number of commits that the merge would add.
    pub commits: usize,
    /// Their size in git's words: `3 files changed, 40 insertions(+)`; empty without changes.
    pub size: String,
    /// Files with conflicting changes; empty if the merge succeeds.
    pub conflicts: Vec<String>,
    /// Number of files with uncommitted changes, which the merge would not include.
    pub uncommitted: usize,
}

impl Repository {
    /// Returns the commit since which the changes of `head` are not in the main branch.
    ///
    /// # Errors
    /// [`WorktreeError::Git`] if git fails.
    pub fn review_base(&self, checkout: &Checkout, head: &str) -> Result<String, WorktreeError> {
        if let Some(base) = self.landed_base(checkout, head)? {
            return Ok(base.to_owned());
        }
        let base = self.git.ask(&["merge-base", "HEAD", head])?;
        Ok(base.unwrap_or_else(|| checkout.base.clone()))
    }

    /// Tries to merge the member's commits into the commit of the main working directory.
    ///
    /// # Errors
    /// [`WorktreeError::Git`] if git cannot try the merge: it is older than 2.38, or the two
    /// histories are unrelated. [`WorktreeError::Exec`] if git cannot be run or times out.
    pub fn preview(&self, checkout: &Checkout) -> Result<Preview, WorktreeError> {
        let what = "try the merge";
        let there = self.in_worktree(Path::new(&checkout.path))?;
        let head = there.get(what, &["rev-parse", "HEAD"])?;
        let uncommitted = count_uncommitted(&there)?;
        self.try_merge(checkout, head.trim_end(), there.name_of_head(what)?, uncommitted)
    }

    /// Tries to merge a commit of the worktree, which `from` names.
    pub(super) fn try_merge(
        &self,
        checkout: &Checkout,
        head: &str,
        from: String,
        uncommitted: usize,
    ) -> Result<Preview, WorktreeError> {
        let what = "try the merge";
        let into = self.main_name()?;
        let base = self.landed_base(checkout, head)?;
        let conflicts = self.merged_tree(base, "HEAD", head)?.conflicts();
        let commits = self.unlanded(checkout, head, base)?;
        let range = match base {
            Some(base) => format!("{base}..{head}"),
            None => format!("HEAD...{head}"),
        };
        let args = ["diff", "--shortstat", "--no-ext-diff", "--no-textconv", &range, "--"];
        let size = self.git.get(what, &args)?.trim().to_owned();
        let head = head.to_owned();
        Ok(Preview { from, into, head, commits, size, conflicts, uncommitted })
    }
}
