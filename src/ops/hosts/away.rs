//! A worktree on another host, seen from the machine that has its repository. Its commits are
//! fetched first, because only that machine knows which of them are merged.

use std::sync::Arc;

use super::deliver::{send_commit, this_machine};
use super::link::{GIT, HostLink};
use super::wire::{CommitRequest, HostRequest, SentBundle};
use crate::{Context, OpsError};
use model::members::environ::EnvRules;
use model::review::CheckRun;
use model::team::check::TeamCheck;
use model::team::worktree::{Checkout, Condition, RepositoryCopy};
use store::TeamStore;
use sys::exec::CancelToken;
use sys::rand;
use worktree::{Preview, RemovalOutcome, Repository, WorkSnapshot, WorktreeError, WorktreeState};

/// A worktree on a host that can be reached.
pub(crate) struct AwayWorktree<'a> {
    repository: Repository,
    checkout: &'a Checkout,
    copy: &'a RepositoryCopy,
    link: Arc<HostLink>,
}

impl<'a> AwayWorktree<'a> {
    /// Connects to the worktree's host.
    ///
    /// # Errors
    /// [`OpsError::NoSuchHost`] for a host that is not configured here; [`OpsError::Host`] if it
    /// cannot be reached.
    pub(crate) fn reach(
        ctx: &Context,
        team: &TeamStore,
        checkout: &'a Checkout,
        copy: &'a RepositoryCopy,
    ) -> Result<AwayWorktree<'a>, OpsError> {
        let link = HostLink::to(ctx, team, &copy.host)?;
        let repository = Repository::at(checkout.repository.as_ref(), &ctx.caller.env);
        Ok(AwayWorktree { repository, checkout, copy, link })
    }

    /// Determines the condition of the worktree.
    ///
    /// # Errors
    /// Failures of the host, of the connection and of git: the condition is unknown then.
    pub(crate) fn condition(&self) -> Result<Condition, OpsError> {
        let (state, _) = self.fetch(HostRequest::Worktree)?;
        Ok(self.repository.condition_of(self.checkout, &state)?)
    }

    /// Takes a snapshot of the worktree, whose commits are in the repository then. Returns it and
    /// the name by which git merges what is checked out there.
    ///
    /// # Errors
    /// As [`AwayWorktree::condition`]; [`WorktreeError::NoDirectory`] for a worktree that is gone.
    pub(crate) fn snapshot(&self) -> Result<(WorkSnapshot, String), OpsError> {
        let (state, from) = self.fetch(HostRequest::Snapshot)?;
        match state.snapshot {
            Some(snapshot) => Ok((snapshot, from)),
            None => Err(WorktreeError::NoDirectory { path: self.checkout.path.clone() }.into()),
        }
    }

    /// Runs a check in the worktree, which `cancel` ends.
    ///
    /// # Errors
    /// Failures of the host and of the connection.
    pub(crate) fn check(
        &self,
        check: &TeamCheck,
        env: &EnvRules,
        cancel: &CancelToken,
    ) -> Result<CheckRun, OpsError> {
        let (checkout, limit) = (self.checkout.clone(), check.limit() + GIT);
        let request = HostRequest::Check { checkout, check: check.clone(), env: env.clone() };
        self.link.call_until(request, limit, cancel)
    }

    /// Gives the worktree the newest commit of the main branch, and returns its id.
    ///
    /// # Errors
    /// As [`this_machine`] and [`send_commit`].
    pub(crate) fn give_main(&self, team: &TeamStore) -> Result<String, OpsError> {
        let (here, commit) = (this_machine(team)?, self.repository.main_commit()?);
        let token = rand::token();
        let sent = send_commit(&self.link, &here, &self.repository, &commit, &token);
        self.link.discard(&token);
        sent.map(|_| commit)
    }

    /// Tries to merge the member's commits.
    ///
    /// # Errors
    /// As [`AwayWorktree::condition`].
    pub(crate) fn preview(&self) -> Result<Preview, OpsError> {
        let (state, from) = self.fetch(HostRequest::Worktree)?;
        Ok(self.repository.preview_of(self.checkout, &state, from)?)
    }

    /// Removes the worktree if no work would be lost, and its branch on the host.
    ///
    /// # Errors
    /// As [`AwayWorktree::condition`]; after a lost connection it may have been removed.
    pub(crate) fn remove(&self) -> Result<RemovalOutcome, OpsError> {
        let (state, _) = self.fetch(HostRequest::Worktree)?;
        if let Some(why) = self.repository.condition_of(self.checkout, &state)?.keeps() {
            return Ok(RemovalOutcome::Kept { why });
        }
        let deletes_branch = self.repository.merged(self.checkout, &state)?.is_ok();
        let tip = state.tip.clone();
        let checkout = self.checkout.clone();
        let request = HostRequest::RemoveWorktree { checkout, seen: state, deletes_branch };
        let outcome: RemovalOutcome = self.link.call(request, GIT)?;
        if let (RemovalOutcome::Gone { branch_left: None }, Some(tip)) = (&outcome, tip) {
            self.repository.untrack(self.checkout, &tip);
        }
        Ok(outcome)
    }

    /// Asks for the state of the worktree, and fetches its commits. Returns the state, and the name
    /// by which git merges what is checked out there.
    fn fetch(
        &self,
        request: fn(Checkout) -> HostRequest,
    ) -> Result<(WorktreeState, String), OpsError> {
        let state: WorktreeState = self.link.call(request(self.checkout.clone()), GIT)?;
        let missing = self.repository.missing(&state.commits())?;
        if !missing.is_empty() {
            self.transfer(missing)?;
        }
        let from = self.repository.track(&self.copy.host, self.checkout, &state)?;
        Ok((state, from))
    }

    fn transfer(&self, commits: Vec<String>) -> Result<(), OpsError> {
        let remote = self.link.config().remote.as_deref();
        let remote = remote.map(|remote| self.repository.remote(remote)).transpose()?;
        let known = self.repository.shared_with(self.checkout)?;
        let request = CommitRequest {
            checkout: self.checkout.clone(),
            commits,
            known,
            token: rand::token(),
            to: remote.as_ref().map(|remote| remote.push.clone()),
        };
        let CommitRequest { commits, known, token, .. } = request.clone();
        let sent: Option<SentBundle> = self.link.call(HostRequest::Send(request), GIT)?;
        match (remote, sent) {
            (Some(remote), _) => {
                let taken = self.repository.take_from(&remote, &token, &commits);
                self.repository.withdraw(&remote, &token, &commits);
                Ok(taken?)
            }
            (None, Some(bundle)) => {
                let bytes = self.link.download(&bundle.path, bundle.length);
                self.link.discard(&token);
                Ok(self.repository.take_bundle(&bytes?, &token, &commits, &known)?)
            }
            (None, None) => Err(OpsError::Failed {
                problem: format!("host `{}` sent no commits", self.copy.host),
            }),
        }
    }
}
