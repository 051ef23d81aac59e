//! Shows what a member has changed and tries the merge, without changing branches or files.

use std::path::Path;

use super::error::WorktreeError;
use super::git::{self, Git};
use super::landing::MergedTree;
use super::repository::Repository;
use model::team::worktree::Checkout;
use sys::{fs, rand};

/// Size limit of the index of a worktree, in bytes: some millions of files.
const LARGEST_INDEX: u64 = 1 << 30;

/// Options of `git diff` that make its patches independent of the configuration, which may also
/// name programs to run.
const PINNED: [&str; 11] = [
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--default-prefix",
    "--unified=3",
    "--inter-hunk-context=0",
    "--find-renames",
    "--submodule=short",
    "--full-index",
    "--no-relative",
    "-O/dev/null",
];

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
        let head = there.get("ask for its commit", &["rev-parse", "HEAD"])?;
        let base = self.review_base(checkout, main.trim_end(), head.trim_end())?;
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
        let there = there.with("GIT_INDEX_FILE", &copy);
        let added = add_new_files(&there);
        let diff = added.and_then(|()| {
            there.get(what, &[&["diff", "--stat", "--patch"], &PINNED[..], &[base, "--"]].concat())
        });
        fs::remove_file(&copy)?;
        diff
    }

    /// Returns the commit since which the changes of `head` are not in `main`.
    pub(super) fn review_base(
        &self,
        checkout: &Checkout,
        main: &str,
        head: &str,
    ) -> Result<String, WorktreeError> {
        if let Some(base) = self.landed_base(checkout, head)? {
            return Ok(base.to_owned());
        }
        let base = self.git.ask(&["merge-base", main, head])?;
        Ok(base.unwrap_or_else(|| checkout.base.clone()))
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
        let conflicts = match self.merged_tree(base, "HEAD", head)? {
            MergedTree::Clean(_) => Vec::new(),
            MergedTree::Conflicts(files) => files,
        };
        let commits = self.unlanded(head, base)?;
        let range = match base {
            Some(base) => format!("{base}..{head}"),
            None => format!("HEAD...{head}"),
        };
        let size = self.git.get(what, &["diff", "--shortstat", &range, "--"])?.trim().to_owned();
        let head = head.to_owned();
        Ok(Preview { from, into, head, commits, size, conflicts, uncommitted })
    }
}

/// Adds the files that git does not track and does not ignore to an index, without their contents.
/// Leaves out repositories inside the worktree.
fn add_new_files(there: &Git) -> Result<(), WorktreeError> {
    let what = "list the new files";
    let list = ["ls-files", "--others", "--exclude-standard", "-z", "--full-name", ":/"];
    let output = there.call(&list)?;
    if output.code != Some(0) {
        return Err(git::refused(what, &output));
    }
    let names = output.stdout.split_inclusive(|byte| *byte == 0);
    let names: Vec<u8> = names.filter(|name| !name.ends_with(b"/\0")).flatten().copied().collect();
    if names.is_empty() {
        return Ok(());
    }
    let add = [
        "--literal-pathspecs",
        "add",
        "--intent-to-add",
        "--pathspec-from-file=-",
        "--pathspec-file-nul",
    ];
    let output = there.feed(&add, names)?;
    match output.code {
        Some(0) => Ok(()),
        Some(_) | None => Err(git::refused(what, &output)),
    }
}
