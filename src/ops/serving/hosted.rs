//! Worktrees on this host, for members whose repository is on the lead's machine. That machine
//! decides what is removed; this one checks that nothing has changed since.

use std::path::{Path, PathBuf};

use crate::hosts::wire::{CommitDelivery, CommitRequest, CopyReport, CopyRequest, SentBundle};
use crate::review::checks::run_in;
use crate::{Context, OpsError};
use model::id::HostName;
use model::members::environ::EnvRules;
use model::review::CheckRun;
use model::team::check::TeamCheck;
use model::team::worktree::{Checkout, RepositoryCopy, copy_name};
use sys::exec::CancelToken;
use sys::fs;
use worktree::{HostRepository, RemovalOutcome, WorktreeState};

/// Opens the copy of a repository, and makes the directory for files on their way.
pub(super) fn open_copy(ctx: &Context, asked: &CopyRequest) -> Result<CopyReport, OpsError> {
    let path = copy_path(ctx, &asked.origin, &asked.repository);
    let copy = HostRepository::open(&path, &asked.traits, &ctx.caller.env)?;
    // The path of a worktree is that of an existing directory, without symbolic links.
    fs::private_dir(&ctx.caller.cwd.join("worktrees"))?;
    fs::private_dir(&transfer_dir(ctx, &asked.token))?;
    let path = path.to_string_lossy().into_owned();
    Ok(CopyReport { path, has_commit: copy.has(&asked.commit)?, tips: copy.tips()? })
}

/// Takes a commit into the copy of a repository.
pub(super) fn receive(ctx: &Context, delivery: &CommitDelivery) -> Result<(), OpsError> {
    let path = copy_path(ctx, &delivery.origin, &delivery.repository);
    let copy = HostRepository::at(&path, &ctx.caller.env);
    Ok(copy.receive(&delivery.from, &delivery.token, &delivery.commit)?)
}

/// Returns the state of a worktree.
pub(super) fn state(ctx: &Context, checkout: &Checkout) -> Result<WorktreeState, OpsError> {
    Ok(repository(ctx, checkout)?.state(checkout)?)
}

/// Returns the state of a worktree with a snapshot of it.
pub(super) fn snapshot(ctx: &Context, checkout: &Checkout) -> Result<WorktreeState, OpsError> {
    Ok(repository(ctx, checkout)?.state_with_snapshot(checkout)?)
}

/// Runs a check in a worktree, which `cancel` ends.
pub(super) fn check(
    ctx: &Context,
    checkout: &Checkout,
    check: &TeamCheck,
    env: &EnvRules,
    cancel: &CancelToken,
) -> CheckRun {
    run_in(ctx, Path::new(&checkout.path), check, env, cancel)
}

/// Pushes commits of a worktree to a remote, or writes them to a bundle.
pub(super) fn send(ctx: &Context, asked: &CommitRequest) -> Result<Option<SentBundle>, OpsError> {
    let copy = repository(ctx, &asked.checkout)?;
    if let Some(to) = &asked.to {
        copy.push(to, &asked.token, &asked.commits)?;
        return Ok(None);
    }
    let dir = transfer_dir(ctx, &asked.token);
    fs::private_dir(&dir)?;
    let file = dir.join("bundle");
    let length = copy.bundle(&file, &asked.token, &asked.commits, &asked.known)?;
    Ok(Some(SentBundle { path: file.to_string_lossy().into_owned(), length }))
}

/// Removes a worktree that is still as `seen`.
pub(super) fn remove(
    ctx: &Context,
    checkout: &Checkout,
    seen: &WorktreeState,
    deletes_branch: bool,
) -> Result<RemovalOutcome, OpsError> {
    Ok(repository(ctx, checkout)?.remove(checkout, seen, deletes_branch)?)
}

fn repository(ctx: &Context, checkout: &Checkout) -> Result<HostRepository, OpsError> {
    let Some(RepositoryCopy { path, .. }) = &checkout.copy else {
        let problem = format!("the worktree {} is not on this host", checkout.path);
        return Err(OpsError::Failed { problem });
    };
    Ok(HostRepository::at(Path::new(path), &ctx.caller.env))
}

/// Returns the path of this host's copy of a repository.
fn copy_path(ctx: &Context, origin: &HostName, repository: &str) -> PathBuf {
    ctx.caller.cwd.join("repositories").join(copy_name(origin, repository))
}

fn transfer_dir(ctx: &Context, token: &str) -> PathBuf {
    ctx.caller.cwd.join("transfers").join(token)
}
