//! Reports the condition of a worktree and removes one if no work would be lost. Queries git each
//! time and caches nothing.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::WorktreeError;
use super::git::{self, Git};
use super::list::{WorktreeEntry, list_worktrees};
use super::repository::Repository;
use model::team::worktree::{Checkout, Condition, MergeEvidence};
use sys::fs;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RemovalOutcome {
    /// The worktree no longer exists. `branch_left` is its branch if git refused to delete it.
    Gone { branch_left: Option<String> },
    /// The worktree was left unchanged; `why` is the reason.
    Kept { why: String },
}

/// The entry of a worktree in its repository, and what decides its condition before its commits do.
pub(super) struct FoundWorktree {
    pub(super) obstacle: Option<Condition>,
    pub(super) entry: Option<WorktreeEntry>,
}

/// Returns the condition of a worktree in which nothing is uncommitted. `merged` is the result of
/// [`Repository::evidence`].
pub(super) fn condition_of(
    merged: Result<MergeEvidence, usize>,
    is_there: bool,
    head: Option<String>,
    checkout: &Checkout,
) -> Condition {
    match (merged, is_there) {
        (Err(commits), _) => Condition::Unmerged { commits },
        (Ok(_), false) => Condition::Missing,
        (Ok(_), true) if head.as_ref() == Some(&checkout.base) => Condition::Clean,
        (Ok(by), true) => Condition::Merged { by },
    }
}

/// Returns the paths that `git status` lists in a directory, which can be any.
///
/// # Errors
/// [`WorktreeError::Git`] if the directory is in no checkout; [`WorktreeError::Exec`] if git cannot
/// be run or times out.
pub fn changed_paths(
    dir: &Path,
    caller: &[(OsString, OsString)],
) -> Result<Vec<String>, WorktreeError> {
    let what = format!("ask git how {} stands", dir.display());
    let args = ["status", "--porcelain", "--ignore-submodules=dirty"];
    let listed = Git::new(dir, caller).get(&what, &args)?;
    // Two letters of state and a blank come before the path.
    Ok(listed.lines().map(|line| line.get(3..).unwrap_or(line).to_owned()).collect())
}

impl Repository {
    /// Determines the condition of a worktree.
    ///
    /// # Errors
    /// [`WorktreeError::Exec`] if git cannot be run or times out, [`WorktreeError::Git`] if it
    /// fails. The condition is unknown then, so the worktree must not be removed.
    pub fn condition(&self, checkout: &Checkout) -> Result<Condition, WorktreeError> {
        let found = self.find_worktree(checkout)?;
        let entry = match (found.obstacle, found.entry) {
            (Some(obstacle), _) => return Ok(obstacle),
            (None, Some(entry)) => entry,
            (None, None) => return Ok(Condition::Gone),
        };
        let merged = self.own_commits(checkout, &entry)?;
        Ok(condition_of(merged, fs::is_dir(Path::new(&checkout.path)), entry.head, checkout))
    }

    /// Finds a worktree, and what decides its condition before its commits do.
    pub(super) fn find_worktree(
        &self,
        checkout: &Checkout,
    ) -> Result<FoundWorktree, WorktreeError> {
        let path = Path::new(&checkout.path);
        if checkout.is_unfinished {
            return Ok(FoundWorktree { obstacle: Some(Condition::Unfinished), entry: None });
        }
        let all = list_worktrees(&self.git)?;
        let Some(entry) = all.iter().find(|one| one.path == checkout.path) else {
            let obstacle = if fs::exists(path) { Condition::Foreign } else { Condition::Gone };
            return Ok(FoundWorktree { obstacle: Some(obstacle), entry: None });
        };
        let inside = |other: &&WorktreeEntry| {
            other.path != entry.path && Path::new(&other.path).starts_with(path)
        };
        let obstacle = if let Some(reason) = &entry.locked {
            Some(Condition::Locked { reason: reason.clone() })
        } else if let Some(other) = all.iter().find(inside) {
            Some(Condition::Nested { other: other.path.clone() })
        } else if fs::is_dir(path) {
            let its = self.entry_of(path)?;
            match count_uncommitted(&self.by_entry(path, &its))? {
                0 => self.kept_by_submodule(&its)?,
                files => Some(Condition::Dirty { files }),
            }
        } else {
            None
        };
        Ok(FoundWorktree { obstacle, entry: Some(entry.clone()) })
    }

    /// Returns the evidence that the commits since the worktree's start are merged, or the number
    /// of those that no other branch contains, both from its HEAD, which may be detached, and from
    /// its branch.
    fn own_commits(
        &self,
        checkout: &Checkout,
        one: &WorktreeEntry,
    ) -> Result<Result<MergeEvidence, usize>, WorktreeError> {
        let tip = self.tip(&checkout.branch)?;
        let mut own: Vec<&str> = one.head.iter().chain(&tip).map(String::as_str).collect();
        own.dedup();
        // A member may have switched to a branch that it created itself.
        let branches = [Some(&checkout.branch), one.branch.as_ref()].into_iter().flatten();
        let branches: Vec<&str> = branches.map(String::as_str).collect();
        let exclude: Vec<String> =
            branches.iter().map(|branch| format!("--exclude={branch}")).collect();
        let mut args = vec!["rev-list", "--count"];
        args.extend(&own);
        // A branch that was taken from a remote starts from a commit that no other branch has.
        args.extend(["--not", &checkout.base]);
        args.extend(self.kept_landing(checkout, &branches)?);
        args.extend(exclude.iter().map(String::as_str));
        args.extend(["--branches", "--"]);
        Ok(self.evidence(checkout, self.count(&args)?, &own))
    }

    /// Returns the condition of a worktree in which a submodule has uncommitted files, or commits
    /// that no remote has. The repositories of submodules are in the entry of the worktree, and are
    /// removed with it.
    fn kept_by_submodule(&self, entry: &Path) -> Result<Option<Condition>, WorktreeError> {
        let mut repositories = Vec::new();
        find_repositories(&entry.join("modules"), &mut repositories)?;
        for path in repositories {
            // Tags come with the clone, also those of no branch.
            let own = ["HEAD", "--exclude=refs/tags/*", "--all", "--not", "--remotes", "--"];
            let args = [&["--git-dir=.", "rev-list", "--count"], &own[..]].concat();
            let inside = self.with(self.git.at(&path));
            if let commits @ 1.. = inside.count(&args)? {
                let repository = path.to_string_lossy().into_owned();
                return Ok(Some(Condition::Submodule { repository, commits }));
            }
            let files = inside.git.ask(&["--git-dir=.", "config", "--get", "core.worktree"])?;
            if let Some(files) =
                files.map(|files| path.join(files)).filter(|files| fs::is_dir(files))
            {
                let git = inside.git.with("GIT_DIR", &path).with("GIT_WORK_TREE", files);
                if let files @ 1.. = count_uncommitted(&git)? {
                    return Ok(Some(Condition::Dirty { files }));
                }
            }
        }
        Ok(None)
    }

    /// Counts the commits that `args`, a call of `rev-list --count`, names.
    pub(super) fn count(&self, args: &[&str]) -> Result<usize, WorktreeError> {
        let what = "count the commits of a worktree";
        let count = self.git.get(what, args)?;
        let problem = |_| WorktreeError::git(what, format!("it said {count:?}"), None);
        count.trim().parse().map_err(problem)
    }

    /// Removes a worktree if no work would be lost, and the branch that was created for it.
    ///
    /// # Errors
    /// [`WorktreeError::Git`] if the worktree's condition cannot be determined, and nothing was
    /// removed, or if an unfinished one cannot be removed. [`WorktreeError::Exec`] if git cannot be
    /// run or times out, at worst between the removal of the worktree and that of its branch.
    pub fn remove(&self, checkout: &Checkout) -> Result<RemovalOutcome, WorktreeError> {
        self.unlock(checkout)?;
        let condition = self.condition(checkout)?;
        if let Some(why) = condition.keeps() {
            return Ok(RemovalOutcome::Kept { why });
        }
        let this = self.with(self.git.patient());
        if condition == Condition::Unfinished {
            this.discard(checkout)?;
        } else if condition != Condition::Gone
            && let Some(why) = this.remove_directory(checkout)?
        {
            return Ok(RemovalOutcome::Kept { why });
        }
        if !checkout.new_branch || this.tip(&checkout.branch)?.is_none() {
            return Ok(RemovalOutcome::Gone { branch_left: None });
        }
        let gone = this.is_elsewhere(checkout)?
            && this.git.call(&["branch", "--quiet", "-D", &checkout.branch])?.code == Some(0);
        Ok(RemovalOutcome::Gone { branch_left: (!gone).then(|| checkout.branch.clone()) })
    }

    /// Removes a worktree with its submodules, and returns the reason if it stays. Git refuses each
    /// that has submodules without `--force`, which only those get, once nothing would be lost.
    pub(super) fn remove_directory(
        &self,
        checkout: &Checkout,
    ) -> Result<Option<String>, WorktreeError> {
        let args = ["worktree", "remove", &checkout.path, "--force"];
        let mut output = self.git.call(&args[..3])?;
        // A repository that was added as a submodule has its git directory among the files.
        let absorb = ["submodule", "--quiet", "absorbgitdirs"];
        if String::from_utf8_lossy(&output.stderr).contains("containing submodules")
            && self.git.at(Path::new(&checkout.path)).ask(&absorb)?.is_some()
            && self.find_worktree(checkout)?.obstacle.is_none()
        {
            output = self.git.call(&args)?;
        }
        let is_kept = output.code != Some(0);
        Ok(is_kept.then(|| git::refused("remove it", &output).to_string()))
    }

    /// Returns whether all commits of the worktree's branch have landed, or are on other branches or
    /// those of a remote. Git itself would only look at its upstream and at HEAD.
    fn is_elsewhere(&self, checkout: &Checkout) -> Result<bool, WorktreeError> {
        let branch = &checkout.branch;
        let (own, exclude) = (format!("refs/heads/{branch}"), format!("--exclude={branch}"));
        let mut args = vec!["rev-list", "--count", &own, "--not", &exclude, "--branches"];
        args.push("--remotes");
        args.extend(self.kept_landing(checkout, &[branch])?);
        args.push("--");
        Ok(self.evidence(checkout, self.count(&args)?, &[&own]).is_ok())
    }
}

/// Counts the files that are changed, staged or untracked. Does not look into submodules, which have
/// a configuration of their own.
pub(super) fn count_uncommitted(git: &Git) -> Result<usize, WorktreeError> {
    let args =
        ["status", "--porcelain", "-z", "--untracked-files=all", "--ignore-submodules=dirty"];
    let text = git.get("ask how a worktree stands", &args)?;
    Ok(text.split('\0').filter(|entry| !entry.is_empty()).count())
}

/// Finds git directories, also of submodules that are not checked out. Does not follow links, which
/// could lead in a circle.
fn find_repositories(dir: &Path, found: &mut Vec<PathBuf>) -> Result<(), WorktreeError> {
    if fs::link_target(dir)?.is_some() || !fs::is_dir(dir) {
        return Ok(());
    }
    if fs::exists(&dir.join("HEAD")) {
        found.push(dir.to_owned());
        return find_repositories(&dir.join("modules"), found);
    }
    fs::names(dir)?.iter().try_for_each(|name| find_repositories(&dir.join(name), found))
}
