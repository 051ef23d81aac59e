//! Finds the repository of a directory, and the paths of its worktrees.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use super::error::WorktreeError;
use super::git::Git;
use super::list::list_worktrees;
use model::team::worktree::DIR;
use sys::fs;

/// A repository, with its main working directory.
#[derive(Debug, Clone)]
pub struct Repository {
    pub(super) git: Git,
    pub(super) top: PathBuf,
}

impl Repository {
    /// Finds the repository that contains this directory. From inside a worktree, returns the main
    /// repository, because a worktree inside a worktree would be removed with the outer one.
    ///
    /// # Errors
    /// [`WorktreeError::NotARepository`], [`WorktreeError::Bare`] or [`WorktreeError::Unborn`] if
    /// the directory has no usable repository, [`WorktreeError::Exec`] if git cannot be run,
    /// [`WorktreeError::Git`] if it fails.
    pub fn find(dir: &Path, caller: &[(OsString, OsString)]) -> Result<Repository, WorktreeError> {
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
            let all = list_worktrees(&here)?;
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
    pub fn at(top: &Path, caller: &[(OsString, OsString)]) -> Repository {
        Repository { git: Git::new(top, caller), top: top.to_owned() }
    }

    /// Returns the commit of a branch; `None` if there is no such branch.
    pub(super) fn tip(&self, branch: &str) -> Result<Option<String>, WorktreeError> {
        let full = format!("refs/heads/{branch}");
        self.git.ask(&["rev-parse", "--verify", "--quiet", &full])
    }

    /// The path for a worktree of this name, below `dir` (relative to the repository) or, without
    /// one, below [`DIR`].
    pub fn place(&self, dir: Option<&str>, name: &str) -> PathBuf {
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
