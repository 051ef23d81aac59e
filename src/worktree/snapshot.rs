//! Snapshots of a member's worktree: a commit with everything in it, also what is not committed.
//! The member's index is copied and never written.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::WorktreeError;
use super::git::{self, Git};
use super::repository::Repository;
use model::team::worktree::Checkout;
use sys::{fs, rand};

/// Settings that would refuse a file, or change the id of a snapshot.
const SETTINGS: [&str; 4] = [
    "core.splitIndex=false",
    "core.safecrlf=false",
    "diff.orderFile=/dev/null",
    "i18n.commitEncoding=UTF-8",
];

/// Author and committer of snapshots.
const NAME: &str = "phalanx";
const EMAIL: &str = "phalanx@localhost";
const MESSAGE: &[u8] = b"Uncommitted work\n";

/// Everything in a worktree at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkSnapshot {
    /// The commit that is checked out.
    pub head: String,
    /// The branch that is checked out; `None` if HEAD is detached.
    pub branch: Option<String>,
    /// The commit that holds the files as they are: `head`, or a child of it on no branch. The same
    /// files on the same `head` give the same commit.
    pub commit: String,
    /// Number of files that differ from `head`.
    pub uncommitted: usize,
    /// Paths of the repositories inside the worktree that git does not track. They are left out.
    pub nested: Vec<String>,
    /// Filters that could not run, or that are off because only the repository defines them. Files
    /// of these filters that are not committed are held as they are on disk.
    pub unfiltered: Vec<String>,
}

impl Repository {
    /// Takes a snapshot of a worktree. Adds objects to the repository, and changes nothing else.
    ///
    /// # Errors
    /// [`WorktreeError::NoDirectory`] for a worktree that is gone; [`WorktreeError::Unborn`] for a
    /// branch without a commit; [`WorktreeError::Git`] if git fails, for example for a file that it
    /// may not read; [`WorktreeError::Exec`] if it is cancelled, times out or cannot be run.
    pub fn snapshot(&self, checkout: &Checkout) -> Result<WorkSnapshot, WorktreeError> {
        let dir = Path::new(&checkout.path);
        if !fs::is_dir(dir) {
            return Err(WorktreeError::NoDirectory { path: checkout.path.clone() });
        }
        let git = self.in_worktree(dir)?.configured(&SETTINGS);
        let mut stager = Stager { git, unfiltered: BTreeSet::new() };
        let mut status = stager.status()?;
        let unborn = || WorktreeError::Unborn { dir: checkout.path.clone() };
        let head = status.head.take().ok_or_else(unborn)?;
        let (commit, uncommitted) =
            if status.is_changed { stager.commit(&head, &status)? } else { (head.clone(), 0) };
        let (branch, nested) = (status.branch, status.nested);
        let unfiltered = stager.unfiltered.into_iter().collect();
        Ok(WorkSnapshot { head, branch, commit, uncommitted, nested, unfiltered })
    }
}

/// The status of a worktree.
#[derive(Default)]
struct WorktreeStatus {
    head: Option<String>,
    branch: Option<String>,
    /// A tracked file is changed or staged, or there are new files.
    is_changed: bool,
    /// Paths of the files that differ from the index and of new files, each with a NUL at its end.
    files: Vec<u8>,
    /// Paths of the files that are gone, in the same form.
    gone: Vec<u8>,
    nested: Vec<String>,
}

/// Reads `git status --porcelain=v2 --branch -z` without renames.
fn parse_status(output: &[u8]) -> WorktreeStatus {
    let mut status = WorktreeStatus::default();
    for entry in output.split(|byte| *byte == 0) {
        let text = String::from_utf8_lossy(entry);
        if let Some(id) = text.strip_prefix("# branch.oid ") {
            status.head = (id != "(initial)").then(|| id.to_owned());
        } else if let Some(branch) = text.strip_prefix("# branch.head ") {
            status.branch = (branch != "(detached)").then(|| branch.to_owned());
        } else if let Some(path) = entry.strip_prefix(b"? ") {
            if path.ends_with(b"/") {
                status.nested.push(text[2..].trim_end_matches('/').to_owned());
            } else {
                status.is_changed = true;
                status.files.extend([path, b"\0"].concat());
            }
        } else if entry.starts_with(b"1 ") || entry.starts_with(b"u ") {
            status.is_changed = true;
            let words = if entry[0] == b'u' { 11 } else { 9 };
            let path = entry.splitn(words, |byte| *byte == b' ').nth(words - 1);
            let path = [path.unwrap_or_default(), b"\0"].concat();
            match (entry[0], entry.get(3)) {
                (b'1', Some(b'.')) => {}
                (b'1', Some(b'D')) => status.gone.extend(path),
                _ => status.files.extend(path),
            }
        }
    }
    status
}

/// Performs `work` with git on a copy of the index.
pub(super) fn on_index_copy<T>(
    git: &Git,
    work: impl FnOnce(Git) -> Result<T, WorktreeError>,
) -> Result<T, WorktreeError> {
    let args = ["rev-parse", "--path-format=absolute", "--git-path", "index", "--git-common-dir"];
    let paths = git.get("ask git for the index", &args)?;
    let mut paths = paths.lines().map(PathBuf::from);
    let (Some(index), Some(dir)) = (paths.next(), paths.next()) else {
        let message = format!("it gave no answer to {}", args.join(" "));
        return Err(WorktreeError::git("ask git for the index", message, None));
    };
    let copy = dir.join(format!("phalanx-{}.index", rand::token()));
    // Git compares times of files with that of the index, so the copy keeps it.
    let copied = fs::copy_new(&index, &copy).map_err(WorktreeError::from);
    let done = copied.and_then(|_| work(git.with("GIT_INDEX_FILE", &copy)));
    // A git that was killed leaves its lock file.
    let lock = copy.with_extension("index.lock");
    let (removed, _) = (fs::remove_file(&copy), fs::remove_file(&lock));
    let done = done?;
    removed?;
    Ok(done)
}

/// Git in a worktree. Clean filters are switched off as they fail, such as that of Git LFS where it
/// is not installed: git itself stops at the first file of such a filter.
struct Stager {
    git: Git,
    unfiltered: BTreeSet<String>,
}

impl Stager {
    fn status(&mut self) -> Result<WorktreeStatus, WorktreeError> {
        let args = [
            "status",
            "--porcelain=v2",
            "--branch",
            "--no-ahead-behind",
            "-z",
            "--untracked-files=all",
            "--no-renames",
            "--ignore-submodules=dirty",
        ];
        Ok(parse_status(&self.run(&args, &[])?))
    }

    /// Commits all files on top of `head`. Returns the commit and the number of changed files.
    fn commit(
        &mut self,
        head: &str,
        status: &WorktreeStatus,
    ) -> Result<(String, usize), WorktreeError> {
        let plain = self.git.clone();
        let tree = on_index_copy(&plain, |git| {
            self.git = git;
            self.stage(status)
        })?;
        self.git = plain;
        let changed = ["diff-tree", "-r", "-z", "--name-only", "--ignore-submodules=none", head];
        let changed =
            self.git.get("count the changed files", &[&changed[..], &[&tree]].concat())?;
        match changed.matches('\0').count() {
            0 => Ok((head.to_owned(), 0)),
            uncommitted => Ok((self.commit_tree(head, &tree)?, uncommitted)),
        }
    }

    /// Adds all files of the worktree to the index, and returns the tree of it. `git add` would run
    /// git in each submodule, with the configuration that it has there.
    fn stage(&mut self, status: &WorktreeStatus) -> Result<String, WorktreeError> {
        self.run(&["update-index", "--force-remove", "-z", "--stdin"], &status.gone)?;
        self.unfiltered.extend(self.git.filters_off()?);
        // A file that was removed meanwhile is skipped.
        let add = ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"];
        self.run(&add, &status.files)?;
        let tree = self.run(&["write-tree"], &[])?;
        Ok(String::from_utf8_lossy(&tree).trim_end().to_owned())
    }

    /// Makes a commit that depends on nothing but `tree` and `head`.
    fn commit_tree(&self, head: &str, tree: &str) -> Result<String, WorktreeError> {
        let what = "make the snapshot";
        // Git walks histories by date, so that a commit must not be older than its parent.
        let time =
            self.git.get(what, &["rev-list", "--max-count=1", "--format=%ct", head, "--"])?;
        let time = time.lines().last().unwrap_or_default();
        let mut git = self.git.clone();
        for role in ["AUTHOR", "COMMITTER"] {
            git = git.with(&format!("GIT_{role}_NAME"), NAME);
            git = git.with(&format!("GIT_{role}_EMAIL"), EMAIL);
            git = git.with(&format!("GIT_{role}_DATE"), format!("@{time} +0000"));
        }
        let args = ["commit-tree", "--no-gpg-sign", "-p", head, tree];
        let commit = git::take_stdout(what, git.feed(&args, MESSAGE.to_vec())?)?;
        Ok(String::from_utf8_lossy(&commit).trim_end().to_owned())
    }

    /// Runs git and returns its output; again without the filters that have failed.
    fn run(&mut self, args: &[&str], stdin: &[u8]) -> Result<Vec<u8>, WorktreeError> {
        loop {
            let output = self.git.feed(args, stdin.to_vec())?;
            if output.code == Some(0) {
                return Ok(output.stdout);
            }
            let filters = self.filters()?;
            let failed = failed_filters(&filters, &String::from_utf8_lossy(&output.stderr));
            if failed.is_empty() {
                return Err(git::refused("read the files of the worktree", &output));
            }
            for name in failed {
                let off = ["clean=", "process=", "required=false"];
                let off = off.map(|setting| format!("filter.{name}.{setting}"));
                self.git = self.git.configured(&off);
                self.unfiltered.insert(name);
            }
        }
    }

    /// Returns the filters that are on.
    fn filters(&self) -> Result<Vec<Filter>, WorktreeError> {
        let args = ["config", "-z", "--get-regexp", r"^filter\..*\.(clean|process)$"];
        let text = self.git.ask(&args)?.unwrap_or_default();
        let all = text.split('\0').filter_map(Filter::parse);
        Ok(all.filter(|filter| !self.unfiltered.contains(&filter.name)).collect())
    }
}

/// A command that git runs on files that it adds.
struct Filter {
    name: String,
    command: String,
    /// One process for all files.
    is_process: bool,
}

impl Filter {
    /// Reads an entry of `git config -z`.
    fn parse(entry: &str) -> Option<Filter> {
        let (key, command) = entry.split_once('\n')?;
        let (name, key) = key.strip_prefix("filter.")?.rsplit_once('.')?;
        let (name, command) = (name.to_owned(), command.to_owned());
        Some(Filter { name, command, is_process: key == "process" })
    }

    /// Returns true if a message names the filter, or its command as a shell names it.
    fn is_named(&self, stderr: &str) -> bool {
        stderr.contains(&format!("filter '{}' failed", self.name))
            || stderr.contains(&format!("'{}'", self.command))
            || stderr.contains(&format!("{}: ", self.command))
    }
}

/// Returns the filters that git reports as failed. Its message for one that does not answer names
/// none.
fn failed_filters(filters: &[Filter], stderr: &str) -> BTreeSet<String> {
    let name = |filter: &Filter| filter.name.clone();
    let named: BTreeSet<String> =
        filters.iter().filter(|filter| filter.is_named(stderr)).map(name).collect();
    if named.is_empty() && stderr.contains("hung up") {
        return filters.iter().filter(|filter| filter.is_process).map(name).collect();
    }
    named
}
