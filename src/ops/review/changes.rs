//! The changes of one member, committed or not, between commits that do not change while they are
//! read.

use crate::hosts::away::AwayWorktree;
use crate::team::worktree::locate;
use crate::{Context, OpsError};
use serde::Serialize;

use model::id::MemberName;
use model::team::worktree::{Checkout, short_commit};
use store::TeamStore;
use sys::exec::CancelToken;
use worktree::{Repository, WorkSnapshot};

pub use worktree::{Followed, LineMoves, PatchOptions};

/// The work of a member as a reviewer sees it: the changes from `base` to `snapshot`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reviewed {
    pub name: MemberName,
    /// The name of the member's commits in the repository: a branch or an abbreviated commit.
    pub from: String,
    /// The branch of the main working directory, or its abbreviated commit.
    pub into: String,
    /// The commit since which the worktree has changed.
    pub base: String,
    /// The commit that is checked out.
    pub head: String,
    /// The commit that has all files as they are; `head` if everything is committed.
    pub snapshot: String,
    /// Number of files that are not committed.
    pub uncommitted: usize,
    /// Repositories inside the worktree, which the snapshot leaves out.
    pub nested: Vec<String>,
    /// Clean filters of git that could not run. Their files are shown as they are on disk.
    pub unfiltered: Vec<String>,
}

/// Takes a snapshot of a member's worktree. `cancel` stops git on this machine.
///
/// # Errors
/// [`OpsError::NoWorktree`] for a member without one; [`OpsError::RepositoryElsewhere`] if its
/// repository is not here; [`OpsError::Worktree`] if git fails or is cancelled; failures of its
/// host.
pub fn reviewed(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
    cancel: &CancelToken,
) -> Result<Reviewed, OpsError> {
    let (repository, checkout) = locate(ctx, team, name)?;
    let repository = repository.cancelled_by(cancel);
    let (snapshot, from) = snapshot_of(ctx, team, &repository, &checkout)?;
    let base = repository.review_base(&checkout, &snapshot.head)?;
    let into = repository.main_name()?;
    let WorkSnapshot { head, branch: _, commit, uncommitted, nested, unfiltered } = snapshot;
    let (name, snapshot) = (name.clone(), commit);
    Ok(Reviewed { name, from, into, base, head, snapshot, uncommitted, nested, unfiltered })
}

/// Returns a snapshot of a worktree, and the name of its commits in the repository.
pub(super) fn snapshot_of(
    ctx: &Context,
    team: &TeamStore,
    repository: &Repository,
    checkout: &Checkout,
) -> Result<(WorkSnapshot, String), OpsError> {
    if let Some(copy) = &checkout.copy {
        return AwayWorktree::reach(ctx, team, checkout, copy)?.snapshot();
    }
    let snapshot = repository.snapshot(checkout)?;
    let from = snapshot.branch.clone().unwrap_or_else(|| short_commit(&snapshot.head));
    Ok((snapshot, from))
}

/// Returns the changes between two commits of a member's repository, as the bytes of a patch.
///
/// # Errors
/// As [`reviewed`].
pub fn patch(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
    from: &str,
    to: &str,
    options: &PatchOptions,
    cancel: &CancelToken,
) -> Result<Vec<u8>, OpsError> {
    let (repository, _) = locate(ctx, team, name)?;
    Ok(repository.cancelled_by(cancel).patch(from, to, options)?)
}

/// Returns a content of a patch by its id, if it has at most `largest` bytes. `cancel` stops git.
///
/// # Errors
/// As [`reviewed`].
pub fn content(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
    blob: &str,
    largest: usize,
    cancel: &CancelToken,
) -> Result<Vec<u8>, OpsError> {
    let (repository, _) = locate(ctx, team, name)?;
    Ok(repository.cancelled_by(cancel).blob(blob, largest)?)
}

/// Finds the places of the lines of a file in a later commit.
///
/// # Errors
/// As [`reviewed`].
pub fn moved(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
    from: &str,
    to: &str,
    path: &str,
) -> Result<LineMoves, OpsError> {
    Ok(locate(ctx, team, name)?.0.line_moves(from, to, path)?)
}

/// Returns all changes of a member as text: a list of the files, then the patch.
///
/// # Errors
/// As [`reviewed`].
pub fn diff(ctx: &Context, team: &TeamStore, name: &MemberName) -> Result<String, OpsError> {
    let cancel = CancelToken::default();
    let found = reviewed(ctx, team, name, &cancel)?;
    let options = PatchOptions { lists_files: true, ..PatchOptions::default() };
    let bytes = patch(ctx, team, name, &found.base, &found.snapshot, &options, &cancel)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
