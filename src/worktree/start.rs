//! The commit that a worktree starts from.

use super::error::WorktreeError;
use super::repository::Repository;
use model::team::worktree::WorktreeRequest;

/// The commit that a worktree starts from.
pub(super) struct WorktreeStart {
    pub(super) commit: String,
    /// The name of the commit for people, if a new branch starts there: a branch, a tag or an
    /// abbreviated commit.
    pub(super) from: Option<String>,
}

impl Repository {
    /// Returns the start of a worktree. That is an existing branch, if the caller named it. A new
    /// branch starts from `base`; else, if the caller named it, from the branch of the only remote
    /// that has one of this name; else from the commit of the caller's checkout. `name` is the name
    /// of the new branch for [`WorktreeRequest::Own`].
    ///
    /// # Errors
    /// [`WorktreeError::BranchTaken`] if the branch `name` exists, [`WorktreeError::NoBase`] if git
    /// does not know `base`, [`WorktreeError::Ambiguous`] if several remotes have the branch.
    pub(super) fn start(
        &self,
        name: &str,
        request: &WorktreeRequest,
        base: Option<&str>,
    ) -> Result<WorktreeStart, WorktreeError> {
        let remote = match (self.tip(request.branch(name))?, request, base) {
            (Some(_), WorktreeRequest::Own, _) => {
                return Err(WorktreeError::BranchTaken { branch: name.to_owned() });
            }
            (Some(commit), WorktreeRequest::Branch(_), _) => {
                return Ok(WorktreeStart { commit, from: None });
            }
            (None, WorktreeRequest::Branch(branch), None) => self.branch_of_remote(branch)?,
            (None, _, _) => None,
        };
        let there = self.git.at(&self.here);
        // A branch and a tag may have the same short name.
        let (revision, from) = match (base, remote) {
            (Some(base), _) => (base.to_owned(), base.to_owned()),
            (None, Some(remote)) => (remote_ref(&remote), remote),
            (None, None) => {
                let from = there.name_of_head("ask for the commit to start from")?;
                ("HEAD".to_owned(), from)
            }
        };
        let commit = format!("{revision}^{{commit}}");
        let commit =
            there.ask(&["rev-parse", "--verify", "--quiet", "--end-of-options", &commit])?;
        let commit = commit.ok_or_else(|| WorktreeError::NoBase { base: from.clone() })?;
        Ok(WorktreeStart { commit, from: Some(from) })
    }

    /// Returns the name of a branch of a remote, `REMOTE/BRANCH`. As git does, it prefers the remote
    /// in `checkout.defaultRemote`.
    fn branch_of_remote(&self, branch: &str) -> Result<Option<String>, WorktreeError> {
        let mut found = Vec::new();
        for remote in self.git.get("list the remotes", &["remote"])?.lines() {
            if self.is_branch_of(remote, branch)? {
                found.push(remote.to_owned());
            }
        }
        let default = || self.git.ask(&["config", "--get", "checkout.defaultRemote"]);
        if found.len() > 1
            && let Some(default) = default()?.filter(|default| found.contains(default))
        {
            found = vec![default];
        }
        let mut found: Vec<String> =
            found.into_iter().map(|remote| format!("{remote}/{branch}")).collect();
        match found.len() {
            0 | 1 => Ok(found.pop()),
            _ => Err(WorktreeError::Ambiguous { branch: branch.to_owned(), found }),
        }
    }

    fn is_branch_of(&self, remote: &str, branch: &str) -> Result<bool, WorktreeError> {
        let name = remote_ref(&format!("{remote}/{branch}"));
        Ok(self.git.ask(&["rev-parse", "--verify", "--quiet", &name])?.is_some())
    }

    /// Returns whether a new branch is to track `name`, because it is the branch of this name of a
    /// remote.
    pub(super) fn is_tracked(&self, branch: &str, name: &str) -> Result<bool, WorktreeError> {
        let remote = name.strip_suffix(branch).and_then(|remote| remote.strip_suffix('/'));
        remote.map_or(Ok(false), |remote| self.is_branch_of(remote, branch))
    }
}

/// Returns the full name of a branch of a remote, `REMOTE/BRANCH`.
pub(super) fn remote_ref(name: &str) -> String {
    format!("refs/remotes/{name}")
}
