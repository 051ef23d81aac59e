//! Finds the repository of a directory, and the paths of its worktrees.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use super::error::WorktreeError;
use super::git::{self, Git};
use super::list::list_worktrees;
use model::team::worktree::DIR;
use sys::clock::Deadline;
use sys::exec::CancelToken;
use sys::fs;

/// Size limit of the files by which a worktree and its entry in the repository name each other, in
/// bytes.
pub(super) const LINK: u64 = 64 * 1024;

/// A repository.
#[derive(Debug, Clone)]
pub struct Repository {
    /// Git in `top`.
    pub(super) git: Git,
    /// The main working directory, or the bare repository.
    pub(super) top: PathBuf,
    /// The directory to which the paths of worktrees are relative: `top`, or the directory that
    /// contains the bare repository.
    pub(super) root: PathBuf,
    /// The checkout of the caller: new branches start from its commit, and new worktrees take over
    /// its sparse patterns and the files that git does not track.
    pub(super) here: PathBuf,
}

impl Repository {
    /// Finds the repository that contains this directory. From inside a worktree, returns the main
    /// repository, because a worktree inside a worktree would be removed with the outer one.
    ///
    /// # Errors
    /// [`WorktreeError::NotARepository`] or [`WorktreeError::Unborn`] if the directory has no
    /// usable repository, [`WorktreeError::Exec`] if git cannot be run, [`WorktreeError::Git`] if
    /// it fails, for example because it does not trust the repository.
    pub fn find(dir: &Path, caller: &[(OsString, OsString)]) -> Result<Repository, WorktreeError> {
        let git = Git::new(dir, caller);
        let bare = git.acting().call(&["rev-parse", "--is-bare-repository"])?;
        if bare.code != Some(0) {
            let is_none = String::from_utf8_lossy(&bare.stderr).contains("not a git repository");
            return Err(match is_none {
                true => WorktreeError::NotARepository { dir: dir.display().to_string() },
                false => git::refused(&format!("use the repository of {}", dir.display()), &bare),
            });
        }
        let common = git.path("ask git for its directory", &["--git-common-dir"])?;
        let here = match bare.stdout.starts_with(b"true") {
            true => common.clone(),
            false => git.path("ask git for the working directory", &["--show-toplevel"])?,
        };
        let is_linked = git.path("ask git for its directory", &["--absolute-git-dir"])? != common;
        let main = if is_linked { list_worktrees(&git)?.into_iter().next() } else { None };
        let is_bare = main.as_ref().map_or(here == common, |main| main.bare);
        let top = main.map_or_else(|| here.clone(), |main| PathBuf::from(main.path));
        let root = if is_bare { top.parent().unwrap_or(&top).to_owned() } else { top.clone() };
        let repository = Repository { git: git.at(&top), top, root, here };
        if repository.head()?.is_none() {
            return Err(WorktreeError::Unborn { dir: repository.here.display().to_string() });
        }
        Ok(repository)
    }

    /// Returns the repository that a checkout was made from, without checking that it still exists.
    pub fn at(top: &Path, caller: &[(OsString, OsString)]) -> Repository {
        let git = Git::new(top, caller);
        Repository { git, top: top.to_owned(), root: top.to_owned(), here: top.to_owned() }
    }

    /// Returns the repository with calls of git that another thread can cancel.
    #[must_use]
    pub fn cancelled_by(&self, cancel: &CancelToken) -> Repository {
        self.with(self.git.cancelled_by(cancel))
    }

    /// Returns the repository with calls of git that end by a deadline, all together.
    #[must_use]
    pub fn until(&self, deadline: Deadline) -> Repository {
        self.with(self.git.until(deadline))
    }

    pub(super) fn with(&self, git: Git) -> Repository {
        Repository { git, ..self.clone() }
    }

    /// Returns git in a worktree, with its entry: the member can write the `.git` in its directory.
    pub(super) fn in_worktree(&self, path: &Path) -> Result<Git, WorktreeError> {
        Ok(self.by_entry(path, &self.entry_of(path)?))
    }

    /// Returns git in the worktree of an entry.
    pub(super) fn by_entry(&self, path: &Path, entry: &Path) -> Git {
        let common = entry.ancestors().nth(2).unwrap_or(entry);
        let git = self.git.at(path).with("GIT_WORK_TREE", path);
        git.with("GIT_DIR", entry).with("GIT_COMMON_DIR", common)
    }

    /// Returns the entry of a worktree in the repository, a directory.
    pub(super) fn entry_of(&self, path: &Path) -> Result<PathBuf, WorktreeError> {
        let entries = self.git.own_path("worktrees")?;
        let is_its = |entry: &PathBuf| {
            let Ok(Some(found)) = fs::read(&entry.join("gitdir"), LINK) else { return false };
            let found = String::from_utf8_lossy(&found);
            // A relative path starts in the entry.
            let found = entry.join(found.trim_end_matches('\n'));
            let is_it = |dir: &Path| dir == path || fs::canonical(dir).is_ok_and(|dir| dir == path);
            found.parent().is_some_and(is_it)
        };
        let found = fs::names(&entries)?.into_iter().map(|name| entries.join(name)).find(is_its);
        found.ok_or_else(|| WorktreeError::NoDirectory { path: path.display().to_string() })
    }

    /// Returns the commit of the main working directory.
    ///
    /// # Errors
    /// [`WorktreeError::Git`] if git fails.
    pub fn main_commit(&self) -> Result<String, WorktreeError> {
        let args = ["rev-parse", "--verify", "HEAD^{commit}"];
        Ok(self.git.get("ask for the main commit", &args)?.trim_end().to_owned())
    }

    /// Returns the branch of the main working directory, or its abbreviated commit.
    ///
    /// # Errors
    /// [`WorktreeError::Git`] if git fails.
    pub fn main_name(&self) -> Result<String, WorktreeError> {
        self.git.name_of_head("ask for the main branch")
    }

    /// Returns the commit of the caller's checkout.
    fn head(&self) -> Result<Option<String>, WorktreeError> {
        self.git.at(&self.here).ask(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])
    }

    /// Returns the commit of a branch; `None` if there is no such branch.
    pub(super) fn tip(&self, branch: &str) -> Result<Option<String>, WorktreeError> {
        let full = format!("refs/heads/{branch}");
        self.git.ask(&["rev-parse", "--verify", "--quiet", &full])
    }

    /// The path for a worktree of this name, below `dir` or, without one, below [`DIR`]. Both are
    /// relative to the main working directory, or to the directory that has the bare repository.
    pub fn place(&self, dir: Option<&str>, name: &str) -> PathBuf {
        let mut place = PathBuf::new();
        // Removes `..` lexically, so that a path inside the repository is recognised as such.
        for part in self.root.join(dir.unwrap_or(DIR)).join(name).components() {
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
