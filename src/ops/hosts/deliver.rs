//! Brings a commit of a repository here to a host's copy of it, in a bundle or through a git remote.

use super::link::{GIT, HostLink};
use super::wire::{CommitDelivery, CopyReport, CopyRequest, HostRequest};
use crate::OpsError;
use model::id::HostName;
use store::TeamStore;
use worktree::Repository;

/// Returns the name of this machine in a team.
///
/// # Errors
/// [`OpsError::Failed`] for a team of files, which has no hosts.
pub(crate) fn this_machine(team: &TeamStore) -> Result<HostName, OpsError> {
    let problem = || OpsError::Failed { problem: "this machine has no name".to_owned() };
    team.host().cloned().ok_or_else(problem)
}

/// Sends a commit to the host, unless its copy has it, and returns the path of the copy. `here` is
/// this machine. The files of the operation `token` stay on the host, also on failure.
///
/// # Errors
/// [`OpsError::Worktree`] if the repository cannot be read; failures of the host.
pub(crate) fn send_commit(
    link: &HostLink,
    here: &HostName,
    repository: &Repository,
    commit: &str,
    token: &str,
) -> Result<String, OpsError> {
    let top = repository.top().to_string_lossy().into_owned();
    let asked = CopyRequest {
        origin: here.clone(),
        repository: top.clone(),
        traits: repository.traits()?,
        commit: commit.to_owned(),
        token: token.to_owned(),
    };
    let copy: CopyReport = link.call(HostRequest::OpenCopy(asked), GIT)?;
    if copy.has_commit {
        return Ok(copy.path);
    }
    let receive = |from: String| {
        let delivery = CommitDelivery {
            origin: here.clone(),
            repository: top.clone(),
            commit: commit.to_owned(),
            token: token.to_owned(),
            from,
        };
        link.call::<()>(HostRequest::Receive(delivery), GIT)
    };
    match link.config().remote.as_deref() {
        None => {
            let bundle = repository.bundle(token, commit, &copy.tips)?;
            receive(link.upload(&bundle, token, "bundle")?)?;
        }
        Some(remote) => {
            let remote = repository.remote(remote)?;
            repository.push_to(&remote, token, commit)?;
            let received = receive(remote.fetch.clone());
            repository.withdraw(&remote, token, &[commit.to_owned()]);
            received?;
        }
    }
    Ok(copy.path)
}
