//! A git worktree per member, through git itself: finds the repository, makes a checkout, tells how it stands, removes
//! it. Nothing is ever forced that could hold anybody's work (EN-07). Knows neither teams nor members.

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

/// Why git did not do what was asked. Its own words are kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorktreeError {
    #[error("{dir} is not in a git repository")]
    NotARepository { dir: String },
    #[error("{dir} belongs to a bare repository, which has no directory for worktrees")]
    Bare { dir: String },
    #[error("the repository {dir} has no commit yet")]
    Unborn { dir: String },
    /// Something is there that this team did not make.
    #[error("{path} is there already, and is not a worktree that this team made")]
    Taken { path: String },
    /// A branch of the member's name, and what is in it is not known to be wanted.
    #[error("there is a branch `{branch}` already")]
    BranchTaken { branch: String },
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

/// A repository with its main working directory.
#[derive(Debug, Clone)]
pub(crate) struct Repository {
    git: Git,
    top: PathBuf,
}

impl Repository {
    /// The repository that this directory is in. Of one that is a worktree itself it is the main one: a worktree inside
    /// a worktree would be removed with it.
    ///
    /// # Errors
    /// No repository, a bare one, one without a commit, no git.
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

    /// The repository that a worktree of ours was made from, whatever has become of it.
    pub(crate) fn at(top: &Path, caller: &[(OsString, OsString)]) -> Repository {
        Repository { git: Git::new(top, caller), top: top.to_owned() }
    }

    /// Where a worktree of this name lies.
    pub(crate) fn place(&self, dir: Option<&str>, name: &str) -> PathBuf {
        let mut place = PathBuf::new();
        // `..` is taken out here: what lies inside the repository must be seen to do so.
        for part in self.top.join(dir.unwrap_or(DIR)).join(name).components() {
            match part {
                Component::ParentDir => drop(place.pop()),
                Component::CurDir => {}
                Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                    place.push(part)
                }
            }
        }
        // As `getcwd` will name it.
        match place.parent().and_then(|dir| fs::canonical(dir).ok()) {
            Some(dir) => dir.join(name),
            None => place,
        }
    }
}

/// The checkout that a directory lies in, told by its `.git` (TK-09). Asks no git, so that it costs next to nothing.
pub(crate) fn checkout_of(dir: &Path) -> Option<PathBuf> {
    let dir = fs::canonical(dir).ok()?;
    dir.ancestors().find(|dir| fs::exists(&dir.join(".git"))).map(Path::to_owned)
}
