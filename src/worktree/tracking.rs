//! The commits of worktrees on other hosts, in the repository that they were made from: as
//! remote-tracking branches `HOST/BRANCH`.

use std::path::Path;

use super::condition::condition_of;
use super::copy::{CopyTraits, WorktreeState};
use super::error::WorktreeError;
use super::exchange::{LARGEST_BUNDLE, check_id, passing_ref};
use super::preview::Preview;
use super::repository::Repository;
use model::id::HostName;
use model::team::worktree::{
    Checkout, Condition, MergeEvidence, WorktreeRequest, check_branch, short_commit,
};
use sys::fs;

/// A git remote through which commits go to a host and back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitRemote {
    pub fetch: String,
    pub push: String,
}

impl Repository {
    /// Returns the main working directory, or the bare repository.
    pub fn top(&self) -> &Path {
        &self.top
    }

    /// Returns the commit that a worktree on a host starts from, that of the requested branch or as
    /// [`Repository::plan`] chooses it, and its name if a new branch starts there. `name` is the
    /// name of the new branch for [`WorktreeRequest::Own`].
    ///
    /// # Errors
    /// As [`Repository::plan`]; [`WorktreeError::RemoteName`] if the repository has a remote named
    /// as the host.
    pub fn start_for(
        &self,
        host: &HostName,
        name: &str,
        request: &WorktreeRequest,
        base: Option<&str>,
    ) -> Result<(String, Option<String>), WorktreeError> {
        if self.git.ask(&["remote", "get-url", host.as_str()])?.is_some() {
            return Err(WorktreeError::RemoteName { host: host.clone() });
        }
        let start = self.start(name, request, base)?;
        Ok((start.commit, start.from))
    }

    /// Returns the settings for a host's copy.
    ///
    /// # Errors
    /// [`WorktreeError::Git`] if git fails.
    pub fn traits(&self) -> Result<CopyTraits, WorktreeError> {
        let format = ["rev-parse", "--show-object-format"];
        let format = self.git.get("ask for the kind of its objects", &format)?;
        let name = self.git.ask(&["config", "--get", "user.name"])?;
        let email = self.git.ask(&["config", "--get", "user.email"])?;
        Ok(CopyTraits { format: format.trim_end().to_owned(), committer: name.zip(email) })
    }

    /// Returns a bundle with a commit, without what a host has by `known`.
    ///
    /// # Errors
    /// [`WorktreeError::Shallow`] for a repository without its history;
    /// [`WorktreeError::TooLarge`]; [`WorktreeError::Git`] if git fails.
    pub fn bundle(
        &self,
        token: &str,
        commit: &str,
        known: &[String],
    ) -> Result<Vec<u8>, WorktreeError> {
        let is_shallow = self.git.ask(&["rev-parse", "--is-shallow-repository"])?;
        if is_shallow.as_deref() == Some("true") {
            return Err(WorktreeError::Shallow { dir: self.top.display().to_string() });
        }
        let file = self.git.own_path(&format!("phalanx-{token}.bundle"))?;
        let written = self.git.write_bundle(&file, token, &[commit.to_owned()], known);
        let bytes = written.and_then(|()| match fs::len(&file)? {
            Some(LARGEST_BUNDLE..) => Err(WorktreeError::TooLarge),
            _ => Ok(fs::read(&file, LARGEST_BUNDLE)?.unwrap_or_default()),
        });
        // A file that is left has a name that is never used again.
        let _ = fs::remove_file(&file);
        bytes
    }

    /// Returns the addresses of a remote, given by its name or as an address.
    ///
    /// # Errors
    /// [`WorktreeError::NoRemote`] for a name that the repository does not have.
    pub fn remote(&self, given: &str) -> Result<GitRemote, WorktreeError> {
        let address = |more: &[&str]| self.git.ask(&[&["remote", "get-url"], more].concat());
        if let (Some(fetch), Some(push)) =
            (address(&["--", given])?, address(&["--push", "--", given])?)
        {
            return Ok(GitRemote { fetch: self.absolute(fetch), push: self.absolute(push) });
        }
        if given.starts_with('-') || !given.contains([':', '/']) {
            let dir = self.top.display().to_string();
            return Err(WorktreeError::NoRemote { remote: given.to_owned(), dir });
        }
        let url = self.absolute(given.to_owned());
        Ok(GitRemote { fetch: url.clone(), push: url })
    }

    /// Returns a relative path as an absolute one, for hosts.
    fn absolute(&self, url: String) -> String {
        if url.starts_with("./") || url.starts_with("../") {
            return self.top.join(url).to_string_lossy().into_owned();
        }
        url
    }

    /// Pushes a commit to a remote, for a host to fetch.
    ///
    /// # Errors
    /// [`WorktreeError::Git`] if git fails.
    pub fn push_to(
        &self,
        remote: &GitRemote,
        token: &str,
        commit: &str,
    ) -> Result<(), WorktreeError> {
        self.git.push(&remote.push, token, &[commit.to_owned()])
    }

    /// Removes what was pushed for the operation `token`. A ref that cannot be removed only keeps
    /// its commit.
    pub fn withdraw(&self, remote: &GitRemote, token: &str, commits: &[String]) {
        let spec = |commit: &String| format!(":{}", passing_ref(token, commit));
        let _ = self.git.push_specs(&remote.push, &commits.iter().map(spec).collect::<Vec<_>>());
    }

    /// Returns those of `commits` that the repository does not have.
    ///
    /// # Errors
    /// [`WorktreeError::Git`] for text that is not an id.
    pub fn missing(&self, commits: &[String]) -> Result<Vec<String>, WorktreeError> {
        let mut missing = Vec::new();
        for commit in commits {
            if !self.git.has_commit(commit)? {
                missing.push(commit.clone());
            }
        }
        Ok(missing)
    }

    /// Returns commits of the repository that the worktree's host is likely to have.
    ///
    /// # Errors
    /// [`WorktreeError::Git`] if git fails.
    pub fn shared_with(&self, checkout: &Checkout) -> Result<Vec<String>, WorktreeError> {
        let tracking = format!("refs/remotes/{}", checkout.branch_here());
        let last = self.git.ask(&["rev-parse", "--verify", "--quiet", &tracking])?;
        let all = last.into_iter().chain([checkout.base.clone()]);
        let missing = self.missing(std::slice::from_ref(&checkout.base))?;
        Ok(all.filter(|commit| !missing.contains(commit)).collect())
    }

    /// Takes commits from a remote, to which a host has pushed them. Each object is checked.
    ///
    /// # Errors
    /// [`WorktreeError::Git`] if git refuses an object, or a commit is not there.
    pub fn take_from(
        &self,
        remote: &GitRemote,
        token: &str,
        commits: &[String],
    ) -> Result<(), WorktreeError> {
        let refs: Vec<String> = commits.iter().map(|commit| passing_ref(token, commit)).collect();
        self.git.fetch(&remote.fetch, &refs)
    }

    /// Points the tracking branches of a worktree to its commits, and returns the name by which git
    /// merges what is checked out there.
    ///
    /// # Errors
    /// [`WorktreeError::Git`] if git fails.
    pub fn track(
        &self,
        host: &HostName,
        checkout: &Checkout,
        state: &WorktreeState,
    ) -> Result<String, WorktreeError> {
        let set = |branch: &str, commit: &str| {
            check_id(commit)?;
            let name = format!("refs/remotes/{host}/{branch}");
            self.git.get("note the commits of the host", &["update-ref", &name, commit])
        };
        if let Some(tip) = &state.tip {
            set(&checkout.branch, tip)?;
        }
        match (&state.head, &state.head_branch) {
            // Another machine chose this name.
            (Some(head), Some(branch)) if check_branch(branch).is_ok() => {
                if *branch != checkout.branch {
                    set(branch, head)?;
                }
                Ok(format!("{host}/{branch}"))
            }
            (Some(head), _) => Ok(short_commit(head)),
            (None, _) => Ok(checkout.branch_here()),
        }
    }

    /// Removes the tracking branch of a worktree that is removed, if it still has this commit.
    pub fn untrack(&self, checkout: &Checkout, tip: &str) {
        let name = format!("refs/remotes/{}", checkout.branch_here());
        // It holds no commit that no other branch has.
        let _ = self.git.call(&["update-ref", "-d", &name, tip]);
    }

    /// Determines the condition of a worktree on a host, whose commits the repository has.
    ///
    /// # Errors
    /// As [`Repository::condition`].
    pub fn condition_of(
        &self,
        checkout: &Checkout,
        state: &WorktreeState,
    ) -> Result<Condition, WorktreeError> {
        if let Some(obstacle) = &state.obstacle {
            return Ok(obstacle.clone());
        }
        let merged = self.merged(checkout, state)?;
        Ok(condition_of(merged, state.is_there, state.head.clone(), checkout))
    }

    /// Returns the evidence that the commits of a worktree on a host are merged, or the number of
    /// those that no branch of the repository contains.
    ///
    /// # Errors
    /// As [`Repository::condition`].
    pub fn merged(
        &self,
        checkout: &Checkout,
        state: &WorktreeState,
    ) -> Result<Result<MergeEvidence, usize>, WorktreeError> {
        let commits = state.own_commits();
        let commits: Vec<&str> = commits.iter().map(String::as_str).collect();
        if commits.is_empty() {
            return Ok(Ok(MergeEvidence::Commits));
        }
        let mut args = vec!["rev-list", "--count"];
        args.extend(&commits);
        args.extend(["--not", "--branches"]);
        args.extend(self.kept_landing(checkout, &[])?);
        args.push("--");
        Ok(self.evidence(checkout, self.count(&args)?, &commits))
    }

    /// Tries to merge the commits of a worktree on a host, as [`Repository::preview`] does. `from`
    /// is their name here.
    ///
    /// # Errors
    /// As [`Repository::preview`]; [`WorktreeError::NoDirectory`] for a worktree that is gone.
    pub fn preview_of(
        &self,
        checkout: &Checkout,
        state: &WorktreeState,
        from: String,
    ) -> Result<Preview, WorktreeError> {
        let head = state.head.as_deref().filter(|_| state.is_there);
        let gone = || WorktreeError::NoDirectory { path: checkout.path.clone() };
        let uncommitted = match &state.obstacle {
            Some(Condition::Dirty { files }) => *files,
            _ => 0,
        };
        self.try_merge(checkout, head.ok_or_else(gone)?, from, uncommitted)
    }
}
