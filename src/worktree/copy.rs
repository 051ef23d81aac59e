//! A host's copy of a repository of another machine, and the worktrees that are made from it. The
//! other machine decides what may be removed, because only it knows which commits are merged.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::condition::RemovalOutcome;
use super::error::WorktreeError;
use super::exchange::{LARGEST_BUNDLE, check_id, passing_ref};
use super::list::list_worktrees;
use super::make::{BuiltWorktree, NewContent};
use super::repository::Repository;
use super::snapshot::WorkSnapshot;
use model::team::worktree::{Checkout, Condition, WorktreeOrigin, WorktreeRequest, check_inside};
use sys::fs;

/// Directory of the worktrees, relative to that of a copy.
pub const WORKTREES: &str = "../../worktrees";

/// Namespace of the commits that a copy has received.
const RECEIVED: &str = "refs/phalanx/received";

/// Number of commits that a copy names so that the sender can leave out what it has.
const TIPS: &str = "--count=50";

/// A worktree as its host sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreeState {
    /// The fact that decides its condition before its commits do.
    pub obstacle: Option<Condition>,
    /// Its directory exists.
    pub is_there: bool,
    /// The commit that is checked out.
    pub head: Option<String>,
    /// The branch that is checked out; `None` if HEAD is detached.
    pub(crate) head_branch: Option<String>,
    /// The commit of the branch that the worktree was made with.
    pub tip: Option<String>,
    /// Everything in it, also what is not committed, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<WorkSnapshot>,
}

impl WorktreeState {
    /// Returns the commits that the repository needs to know the worktree.
    pub fn commits(&self) -> Vec<String> {
        let snapshot = self.snapshot.iter().flat_map(|found| [&found.head, &found.commit]);
        let mut commits = self.own_commits();
        for commit in snapshot {
            if !commits.contains(commit) {
                commits.push(commit.clone());
            }
        }
        commits
    }

    /// Returns the commits of the member that the worktree may be the only one to have.
    pub(super) fn own_commits(&self) -> Vec<String> {
        let mut commits: Vec<String> = self.head.iter().chain(&self.tip).cloned().collect();
        commits.dedup();
        commits
    }

    /// Returns true if a new start of the member can go on in it.
    pub fn is_usable(&self) -> bool {
        let is_bad = |obstacle: &Condition| {
            matches!(obstacle, Condition::Foreign | Condition::Gone | Condition::Unfinished)
        };
        self.is_there && !self.obstacle.as_ref().is_some_and(is_bad)
    }
}

/// The settings of a host's copy of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyTraits {
    /// The hash of its objects, `sha1` or `sha256`.
    pub format: String,
    /// Name and address of the committer, for a host where none is configured.
    pub(crate) committer: Option<(String, String)>,
}

/// A copy.
pub struct HostRepository {
    pub(super) repository: Repository,
}

impl HostRepository {
    /// Returns the copy at `path`, without checking that it exists.
    pub fn at(path: &Path, env: &[(OsString, OsString)]) -> HostRepository {
        HostRepository { repository: Repository::at(path, env) }
    }

    /// Opens the copy at `path`, which is created if it does not exist.
    ///
    /// # Errors
    /// [`WorktreeError::Git`] and [`WorktreeError::File`] if it cannot be created.
    pub fn open(
        path: &Path,
        traits: &CopyTraits,
        env: &[(OsString, OsString)],
    ) -> Result<HostRepository, WorktreeError> {
        let what = "make the copy of the repository";
        fs::private_dir(path)?;
        let copy = HostRepository::at(path, env);
        let git = &copy.repository.git;
        if !fs::exists(&path.join("HEAD")) {
            let format = format!("--object-format={}", traits.format);
            // HEAD names a branch that no worktree has.
            let branch = "--initial-branch=phalanx/none";
            git.get(what, &["init", "--quiet", "--bare", "--template=", &format, branch])?;
        }
        if let Some((name, email)) = &traits.committer {
            for (key, value) in [("user.name", name), ("user.email", email)] {
                if git.ask(&["config", "--get", key])?.is_none() {
                    git.get(what, &["config", key, value])?;
                }
            }
        }
        Ok(copy)
    }

    /// Returns true if the copy has a commit with its history.
    pub fn has(&self, commit: &str) -> Result<bool, WorktreeError> {
        if !self.repository.git.has_commit(commit)? {
            return Ok(false);
        }
        // Git checks the history of a commit before it sets a ref.
        let args = ["for-each-ref", "--count=1", "--contains", commit];
        Ok(!self.repository.git.get("look for a commit", &args)?.is_empty())
    }

    /// Returns commits that the copy has, the latest first.
    pub fn tips(&self) -> Result<Vec<String>, WorktreeError> {
        let args = ["for-each-ref", TIPS, "--sort=-committerdate", "--format=%(objectname)"];
        let text = self.repository.git.get("list the commits", &args)?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// Takes a commit from a bundle or an address, in which it is on its way as `token`.
    ///
    /// # Errors
    /// [`WorktreeError::Git`] if the copy does not have the commit afterwards.
    pub fn receive(&self, from: &str, token: &str, commit: &str) -> Result<(), WorktreeError> {
        check_id(commit)?;
        let passing = passing_ref(token, commit);
        self.repository.git.fetch(from, &[format!("+{passing}:{RECEIVED}/{commit}")])
    }

    /// Returns the worktree that [`HostRepository::build`] can make at `path`, as
    /// [`Repository::plan`] does. A branch of the copy that is behind the start is moved there.
    ///
    /// # Errors
    /// As [`Repository::plan`]; [`WorktreeError::Diverged`] for a branch of the copy that has other
    /// commits than the start.
    pub fn plan(
        &self,
        path: &Path,
        name: &str,
        request: &WorktreeRequest,
        origin: &WorktreeOrigin,
    ) -> Result<Checkout, WorktreeError> {
        if let WorktreeRequest::Branch(branch) = request {
            self.advance(branch, &origin.start)?;
        }
        let planned = self.repository.plan(path, name, request, Some(&origin.start))?;
        Ok(Checkout { from: origin.from.clone(), ..planned })
    }

    /// Makes a planned worktree, as [`Repository::build`] does, with the files that were sent.
    ///
    /// # Errors
    /// As [`Repository::build`].
    pub fn build(
        &self,
        planned: &Checkout,
        origin: &WorktreeOrigin,
        setup: &[String],
    ) -> Result<BuiltWorktree, WorktreeError> {
        let mut files = Vec::new();
        for (nth, file) in origin.files.iter().enumerate() {
            let refused = |problem| WorktreeError::Copy { file: file.clone(), problem };
            check_inside(file).map_err(refused)?;
            let staged = origin.staged.as_deref().unwrap_or_default();
            files.push((file.clone(), PathBuf::from(format!("{staged}/{nth}"))));
        }
        self.repository.build_with(planned, &NewContent { files, setup })
    }

    fn advance(&self, branch: &str, start: &str) -> Result<(), WorktreeError> {
        let git = &self.repository.git;
        let Some(tip) = self.repository.tip(branch)?.filter(|tip| tip != start) else {
            return Ok(());
        };
        if self.repository.is_ancestor(start, &tip)? {
            return Ok(());
        }
        let is_used = list_worktrees(git)?.iter().any(|one| one.branch.as_deref() == Some(branch));
        if is_used || !self.repository.is_ancestor(&tip, start)? {
            return Err(WorktreeError::Diverged { branch: branch.to_owned() });
        }
        let name = format!("refs/heads/{branch}");
        git.get("move the branch", &["update-ref", &name, start, &tip]).map(drop)
    }

    /// Returns the state of a worktree.
    ///
    /// # Errors
    /// As [`Repository::condition`].
    pub fn state(&self, checkout: &Checkout) -> Result<WorktreeState, WorktreeError> {
        let found = self.repository.find_worktree(checkout)?;
        let entry = found.entry.unwrap_or_default();
        Ok(WorktreeState {
            obstacle: found.obstacle,
            is_there: fs::is_dir(Path::new(&checkout.path)),
            head: entry.head,
            head_branch: entry.branch,
            tip: self.repository.tip(&checkout.branch)?,
            snapshot: None,
        })
    }

    /// Returns the state of a worktree with a snapshot of it; without one if it is gone.
    ///
    /// # Errors
    /// As [`HostRepository::state`] and [`Repository::snapshot`].
    pub fn state_with_snapshot(&self, checkout: &Checkout) -> Result<WorktreeState, WorktreeError> {
        let state = self.state(checkout)?;
        let snapshot = state.is_usable().then(|| self.repository.snapshot(checkout)).transpose()?;
        Ok(WorktreeState { snapshot, ..state })
    }

    /// Writes a bundle with `commits` to `file`, and returns its length in bytes.
    ///
    /// # Errors
    /// [`WorktreeError::Git`] if git fails; [`WorktreeError::TooLarge`].
    pub fn bundle(
        &self,
        file: &Path,
        token: &str,
        commits: &[String],
        known: &[String],
    ) -> Result<u64, WorktreeError> {
        self.repository.git.write_bundle(file, token, commits, known)?;
        let length = fs::len(file)?.unwrap_or_default();
        if length > LARGEST_BUNDLE { Err(WorktreeError::TooLarge) } else { Ok(length) }
    }

    /// Pushes `commits` to an address.
    ///
    /// # Errors
    /// [`WorktreeError::Git`] if git fails.
    pub fn push(&self, to: &str, token: &str, commits: &[String]) -> Result<(), WorktreeError> {
        self.repository.git.push(to, token, commits)
    }

    /// Removes a worktree in which nothing is uncommitted and whose commits are still those of
    /// `seen`, and with `deletes_branch` its branch. The caller knows that those commits are kept
    /// elsewhere.
    ///
    /// # Errors
    /// As [`Repository::remove`].
    pub fn remove(
        &self,
        checkout: &Checkout,
        seen: &WorktreeState,
        deletes_branch: bool,
    ) -> Result<RemovalOutcome, WorktreeError> {
        let git = &self.repository.git;
        let state = self.state(checkout)?;
        if state.head != seen.head || state.tip != seen.tip {
            let why = "it has got other commits in this moment".to_owned();
            return Ok(RemovalOutcome::Kept { why });
        }
        if let Some(why) = state.obstacle.as_ref().and_then(Condition::keeps) {
            return Ok(RemovalOutcome::Kept { why });
        }
        if checkout.is_unfinished {
            self.repository.discard(checkout)?;
            return Ok(RemovalOutcome::Gone { branch_left: None });
        }
        if state.obstacle != Some(Condition::Gone)
            && let Some(why) = self.repository.with(git.patient()).remove_directory(checkout)?
        {
            return Ok(RemovalOutcome::Kept { why });
        }
        let Some(tip) = state.tip else { return Ok(RemovalOutcome::Gone { branch_left: None }) };
        let name = format!("refs/heads/{}", checkout.branch);
        let is_deleted =
            deletes_branch && git.call(&["update-ref", "-d", &name, &tip])?.code == Some(0);
        Ok(RemovalOutcome::Gone { branch_left: (!is_deleted).then(|| checkout.branch.clone()) })
    }

    /// Removes a worktree that has no commit beyond the one that it was made from.
    ///
    /// # Errors
    /// As [`Repository::remove`].
    pub fn remove_unused(&self, checkout: &Checkout) -> Result<RemovalOutcome, WorktreeError> {
        let state = self.state(checkout)?;
        if state.own_commits().iter().any(|commit| *commit != checkout.base) {
            return Ok(RemovalOutcome::Kept { why: "it has commits".to_owned() });
        }
        self.remove(checkout, &state, checkout.new_branch)
    }
}
