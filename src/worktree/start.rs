//! The commit that a new branch starts from.

use super::error::WorktreeError;
use super::preview::name_of_head;
use super::repository::Repository;
use model::team::worktree::WorktreeRequest;

/// The start of a new branch.
pub(super) struct BranchStart {
    pub(super) commit: String,
    /// Its name for people: a branch, a tag or an abbreviated commit.
    pub(super) name: String,
}

impl Repository {
    /// Returns the start of a new branch: `base`; else, for a branch that the caller named, the
    /// branch of the only remote that has one of this name; else what is checked out in the caller's
    /// checkout.
    ///
    /// # Errors
    /// [`WorktreeError::NoBase`] if git does not know `base`, [`WorktreeError::Ambiguous`] if
    /// several remotes have the branch.
    pub(super) fn start(
        &self,
        request: &WorktreeRequest,
        base: Option<&str>,
    ) -> Result<BranchStart, WorktreeError> {
        let there = self.git.at(&self.here);
        let commit = |revision: &str| {
            let revision = format!("{revision}^{{commit}}");
            there.ask(&["rev-parse", "--verify", "--quiet", "--end-of-options", &revision])
        };
        let name = match (base, request) {
            (Some(base), _) => base.to_owned(),
            (None, WorktreeRequest::Branch(branch)) => match self.branch_of_remote(branch)? {
                Some(found) => found,
                None => name_of_head(&there, "ask for the commit to start from")?,
            },
            (None, WorktreeRequest::Own) => {
                name_of_head(&there, "ask for the commit to start from")?
            }
        };
        let found = commit(&name)?;
        let commit = found.ok_or_else(|| WorktreeError::NoBase { base: name.clone() })?;
        Ok(BranchStart { commit, name })
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
        let name = format!("refs/remotes/{remote}/{branch}");
        Ok(self.git.ask(&["rev-parse", "--verify", "--quiet", &name])?.is_some())
    }

    /// Returns whether a new branch is to track `name`, because it is the branch of this name of a
    /// remote.
    pub(super) fn is_tracked(&self, branch: &str, name: &str) -> Result<bool, WorktreeError> {
        let remote = name.strip_suffix(branch).and_then(|remote| remote.strip_suffix('/'));
        remote.map_or(Ok(false), |remote| self.is_branch_of(remote, branch))
    }
}
