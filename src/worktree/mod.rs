//! Git worktrees for members: finds the repository, creates a checkout, reports its condition and
//! removes it. Removal is never forced where work could be lost (EN-07).

mod condition;
mod git;
mod make;
mod preview;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use crate::model::worktree::DIR;
use crate::sys::exec::ExecError;
use crate::sys::fs::{self, FsError};

pub(crate) use condition::Removed;
use git::Git;
pub(crate) use git::MISLEADING;
pub(crate) use preview::Preview;

/// A failed worktree operation, with git's own message where git refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorktreeError {
    #[error("{dir} is not in a git repository")]
    NotARepository { dir: String },
    #[error("{dir} belongs to a bare repository, which has no directory for worktrees")]
    Bare { dir: String },
    #[error("the repository {dir} has no commit yet")]
    Unborn { dir: String },
    /// The path exists, and this team did not create it.
    #[error("{path} is there already, and is not a worktree that this team made")]
    Taken { path: String },
    /// The member's branch exists, and its commits may be unrelated to this team.
    #[error("there is a branch `{branch}` already")]
    BranchTaken { branch: String },
    /// Git failed; `said` is its own message.
    #[error("cannot {what}: {said}")]
    Git { what: String, said: String },
    #[error("`{file}` cannot be copied into the worktree: {problem}")]
    Copy { file: String, problem: String },
    #[error("the worktree's setup command failed: {problem}")]
    Setup { problem: String },
    #[error(transparent)]
    Exec(#[from] ExecError),
    #[error(transparent)]
    File(#[from] FsError),
}

/// A repository, with its main working directory.
#[derive(Debug, Clone)]
pub(crate) struct Repository {
    git: Git,
    top: PathBuf,
}

impl Repository {
    /// Finds the repository that contains this directory. From inside a worktree, returns the main
    /// repository, because a worktree inside a worktree would be removed with the outer one.
    ///
    /// # Errors
    /// [`WorktreeError::NotARepository`], [`WorktreeError::Bare`] or [`WorktreeError::Unborn`] if
    /// the directory has no usable repository, [`WorktreeError::Exec`] if git cannot be run,
    /// [`WorktreeError::Git`] if it fails.
    pub(crate) fn find(
        dir: &Path,
        caller: &[(OsString, OsString)],
    ) -> Result<Repository, WorktreeError> {
        let here = Git::new(dir, caller);
        let shown = || dir.display().to_string();
        match here.ask(&["rev-parse", "--is-bare-repository"])?.as_deref() {
            None => return Err(WorktreeError::NotARepository { dir: shown() }),
            Some("true") => return Err(WorktreeError::Bare { dir: shown() }),
            Some(_) => {}
        }
        let own = here.get("ask git for its directory", &["rev-parse", "--absolute-git-dir"])?;
        let common = ["rev-parse", "--path-format=absolute", "--git-common-dir"];
        let common = here.get("ask git for its directory", &common)?;
        let top = if own == common {
            here.get("ask git for the working directory", &["rev-parse", "--show-toplevel"])?
        } else {
            let all = condition::listed(&here)?;
            let main = all.into_iter().next().filter(|main| !main.bare);
            main.ok_or_else(|| WorktreeError::Bare { dir: shown() })?.path
        };
        let top = PathBuf::from(top.trim_end_matches('\n'));
        let git = here.at(&top);
        if git.ask(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])?.is_none() {
            return Err(WorktreeError::Unborn { dir: top.display().to_string() });
        }
        Ok(Repository { git, top })
    }

    /// Returns the repository that a checkout was made from, without checking that it still exists.
    pub(crate) fn at(top: &Path, caller: &[(OsString, OsString)]) -> Repository {
        Repository { git: Git::new(top, caller), top: top.to_owned() }
    }

    /// The path for a worktree of this name, below `dir` (relative to the repository) or, without
    /// one, below [`DIR`].
    pub(crate) fn place(&self, dir: Option<&str>, name: &str) -> PathBuf {
        let mut place = PathBuf::new();
        // Removes `..` lexically, so that a path inside the repository is recognised as such.
        for part in self.top.join(dir.unwrap_or(DIR)).join(name).components() {
            match part {
                Component::ParentDir => drop(place.pop()),
                Component::CurDir => {}
                Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                    place.push(part)
                }
            }
        }
        // The path that `getcwd` will report.
        match place.parent().and_then(|dir| fs::canonical(dir).ok()) {
            Some(dir) => dir.join(name),
            None => place,
        }
    }
}

/// Finds the checkout that contains a directory by its `.git` entry (TK-09). Does not run git, so
/// it is cheap.
pub(crate) fn checkout_of(dir: &Path) -> Option<PathBuf> {
    let dir = fs::canonical(dir).ok()?;
    dir.ancestors().find(|dir| fs::exists(&dir.join(".git"))).map(Path::to_owned)
}
