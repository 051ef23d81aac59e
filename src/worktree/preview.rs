//! Shows what a member has changed and tries the merge, without changing branches or files.

use std::path::Path;

use super::error::WorktreeError;
use super::git::{self, Git};
use super::repository::Repository;
use model::team::worktree::Checkout;
use sys::{fs, rand};

/// Size limit of the index of a worktree, in bytes: some millions of files.
const LARGEST_INDEX: u64 = 1 << 30;

/// The expected result of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// The name by which `git merge` takes the member's commits: a branch or a commit.
    pub from: String,
    /// The merge target: the branch of the main working directory, or its abbreviated commit.
    pub into: String,
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
    /// Returns all changes since the member's branch diverged from the main one, committed or not,
    /// and new files like changed ones: a list of the files, then the changes as `git diff` prints
    /// them.
    ///
    /// # Errors
    /// [`WorktreeError::Exec`] if git cannot be run or times out, [`WorktreeError::Git`] if it
    /// fails.
    pub fn diff(&self, checkout: &Checkout) -> Result<String, WorktreeError> {
        let there = self.git.at(Path::new(&checkout.path));
        let main = self.git.get("ask for the main commit", &["rev-parse", "HEAD"])?;
        let base = there.ask(&["merge-base", main.trim_end(), "HEAD"])?;
        let base = base.unwrap_or_else(|| checkout.base.clone());
        self.diff_since(checkout, &base)
    }

    /// Returns all changes of a worktree since a commit.
    pub(super) fn diff_since(
        &self,
        checkout: &Checkout,
        base: &str,
    ) -> Result<String, WorktreeError> {
        let what = "compare";
        let there = self.git.at(Path::new(&checkout.path));
        // Git shows a new file only if it is in the index, and that of the member is its own.
        let index =
            there.get(what, &["rev-parse", "--path-format=absolute", "--git-path", "index"])?;
        let copy = there.own_path(&format!("phalanx-{}.index", rand::token()))?;
        let bytes = fs::read(Path::new(index.trim_end_matches('\n')), LARGEST_INDEX)?;
        fs::create_new(&copy, &bytes.unwrap_or_default())?;
        let there = there.with_index(&copy);
        let added = there.get(what, &["add", "--intent-to-add", "--", ":/"]);
        let diff = added.and_then(|_| {
            let args =
                ["diff", "--stat", "--patch", "--no-ext-diff", "--no-textconv", "--no-color"];
            there.get(what, &[&args[..], &[base, "--"]].concat())
        });
        fs::remove_file(&copy)?;
        diff
    }

    /// Tries to merge the member's commits into the commit of the main working directory.
    ///
    /// # Errors
    /// [`WorktreeError::Git`] if git cannot try the merge: it is older than 2.38, or the two
    /// histories are unrelated. [`WorktreeError::Exec`] if git cannot be run or times out.
    pub fn preview(&self, checkout: &Checkout) -> Result<Preview, WorktreeError> {
        let what = "try the merge";
        let there = self.git.at(Path::new(&checkout.path));
        let head = there.get(what, &["rev-parse", "HEAD"])?;
        let uncommitted = self.uncommitted(Path::new(&checkout.path))?;
        self.try_merge(head.trim_end(), name_of_head(&there, what)?, uncommitted)
    }

    /// Tries to merge a commit, which `from` names.
    pub(super) fn try_merge(
        &self,
        head: &str,
        from: String,
        uncommitted: usize,
    ) -> Result<Preview, WorktreeError> {
        let what = "try the merge";
        let into = name_of_head(&self.git, what)?;
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
        let commits = count.trim().parse().unwrap_or_default();
        let range = format!("HEAD...{head}");
        let size = self.git.get(what, &["diff", "--shortstat", &range, "--"])?.trim().to_owned();
        Ok(Preview { from, into, commits, size, conflicts, uncommitted })
    }
}

/// Returns the branch that is checked out, or its abbreviated commit.
pub(super) fn name_of_head(git: &Git, what: &str) -> Result<String, WorktreeError> {
    match git.ask(&["symbolic-ref", "--quiet", "--short", "HEAD"])? {
        Some(branch) => Ok(branch),
        None => Ok(git.get(what, &["rev-parse", "--short", "HEAD"])?.trim_end().to_owned()),
    }
}
