//! `worktree`: the git worktrees of a team's members. `spawn` creates them; they are removed with
//! the team or on request, unless work would be lost (EN-07). One that stays is reported with the
//! reason.

use std::path::Path;

use serde::Serialize;

use super::context::Context;
use super::error::OpsError;
use super::status;
use crate::model::event::{EventKind, Note};
use crate::model::id::MemberName;
use crate::model::worktree::{Checkout, Condition, Rules, WorktreeRequest};
use crate::store::TeamStore;
use crate::worktree::{RemovalOutcome, Repository};

pub(crate) use crate::worktree::Preview;

/// A member's worktree and its condition.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Standing {
    pub(crate) name: MemberName,
    pub(crate) checkout: Checkout,
    /// The condition, or the reason why git could not tell.
    pub(crate) condition: Result<Condition, String>,
}

/// The result of removing a worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Removal {
    pub(crate) name: MemberName,
    pub(crate) path: String,
    pub(crate) removed: bool,
    /// The reason why it stays.
    pub(crate) why: Option<String>,
    /// The branch of a removed worktree, if the branch stays.
    pub(crate) branch_left: Option<String>,
}

/// Returns the worktrees of the team by member, also of members that have left.
///
/// # Errors
/// Files of the team that cannot be read.
pub(crate) fn list(ctx: &Context, team: &TeamStore) -> Result<Vec<Standing>, OpsError> {
    let all = team.settings()?.map(|settings| settings.checkouts).unwrap_or_default();
    let standing = |(name, checkout): (MemberName, Checkout)| {
        let condition = repository(ctx, &checkout).condition(&checkout).map_err(|e| e.to_string());
        Standing { name, checkout, condition }
    };
    Ok(all.into_iter().map(standing).collect())
}

/// Returns the changes of a member, as git shows them.
///
/// # Errors
/// [`OpsError::NoWorktree`] for a member without one; [`OpsError::Worktree`] if git cannot compare.
pub(crate) fn diff(ctx: &Context, team: &TeamStore, name: &MemberName) -> Result<String, OpsError> {
    let checkout = of(team, name)?;
    Ok(repository(ctx, &checkout).diff(&checkout)?)
}

/// Checks whether a member's commits would merge, without merging them.
///
/// # Errors
/// [`OpsError::NoWorktree`] for a member without one; [`OpsError::Worktree`] if git cannot try.
pub(crate) fn preview(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
) -> Result<Preview, OpsError> {
    let checkout = of(team, name)?;
    Ok(repository(ctx, &checkout).preview(&checkout)?)
}

/// Removes the worktree of a member that has ended, unless work would be lost.
///
/// # Errors
/// [`OpsError::NoWorktree`] for a member without one; [`OpsError::WorktreeInUse`] while the member
/// runs; [`OpsError::Worktree`] if git fails.
pub(crate) fn remove(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
) -> Result<Removal, OpsError> {
    let checkout = of(team, name)?;
    if status::live_members(team)?.iter().any(|live| live.clashes_with(name.as_str())) {
        return Err(OpsError::WorktreeInUse { name: name.clone(), path: checkout.path });
    }
    drop_one(ctx, team, name, &checkout)
}

/// Removes all worktrees whose removal loses no work. Returns those that stay, or whose branch
/// stays. One whose condition git cannot tell stays.
pub(super) fn clear(ctx: &Context, team: &TeamStore) -> Result<Vec<Removal>, OpsError> {
    let all = team.settings()?.map(|settings| settings.checkouts).unwrap_or_default();
    let removal = |(name, checkout): (&MemberName, &Checkout)| {
        drop_one(ctx, team, name, checkout).unwrap_or_else(|e| kept(name, checkout, e.to_string()))
    };
    let removals = all.iter().map(removal);
    Ok(removals.filter(|one| !one.removed || one.branch_left.is_some()).collect())
}

fn drop_one(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
    checkout: &Checkout,
) -> Result<Removal, OpsError> {
    let removal = match repository(ctx, checkout).remove(checkout)? {
        RemovalOutcome::Kept { why } => return Ok(kept(name, checkout, why)),
        RemovalOutcome::Gone { branch_left } => {
            let (name, path) = (name.clone(), checkout.path.clone());
            Removal { name, path, removed: true, why: None, branch_left }
        }
    };
    team.change_settings(|settings| drop(settings.checkouts.remove(name)))?;
    let note =
        Note::of(EventKind::WorktreeRemoved).member(name).with("path", checkout.path.as_str());
    team.record(note)?;
    Ok(removal)
}

fn kept(name: &MemberName, checkout: &Checkout, why: String) -> Removal {
    let (name, path) = (name.clone(), checkout.path.clone());
    Removal { name, path, removed: false, why: Some(why), branch_left: None }
}

fn of(team: &TeamStore, name: &MemberName) -> Result<Checkout, OpsError> {
    let all = team.settings()?.map(|settings| settings.checkouts).unwrap_or_default();
    let found = all.iter().find(|(known, _)| known.clashes_with(name.as_str()));
    found.map(|(_, checkout)| checkout.clone()).ok_or_else(|| OpsError::NoWorktree {
        name: name.clone(),
        known: all.keys().cloned().collect(),
    })
}

fn repository(ctx: &Context, checkout: &Checkout) -> Repository {
    Repository::at(Path::new(&checkout.repository), &ctx.caller.env)
}

/// Returns the name of a member's worktree and of its branch.
pub(super) fn title(team: &TeamStore, name: &MemberName) -> String {
    format!("{}-{name}", team.name())
}

/// Returns the worktree for a member that is about to start: its earlier one, else a new one. The
/// flag is true for a new one.
///
/// # Errors
/// [`OpsError::Worktree`] if it cannot be created; nothing of it is left then.
pub(super) fn furnish(
    team: &TeamStore,
    repository: &Repository,
    (name, request): (&MemberName, &WorktreeRequest),
    rules: &Rules,
    path: &Path,
) -> Result<(Checkout, bool), OpsError> {
    let known = team.settings()?.and_then(|settings| settings.checkouts.get(name).cloned());
    if let Some(had) = known.filter(|had| path == Path::new(&had.path)) {
        let same = match request {
            WorktreeRequest::Own => true,
            WorktreeRequest::Branch(branch) => *branch == had.branch,
        };
        match repository.condition(&had)? {
            Condition::Gone | Condition::Missing => drop(repository.remove(&had)?),
            _ if same => return Ok((had, false)),
            _ => {}
        }
    }
    let made = repository.make(path, &title(team, name), request, rules)?;
    team.change_settings(|settings| drop(settings.checkouts.insert(name.clone(), made.clone())))?;
    let note = Note::of(EventKind::WorktreeMade).member(name).with("path", made.path.as_str());
    team.record(note.with("branch", made.branch.as_str()))?;
    Ok((made, true))
}

/// Removes the worktree of a member that did not start.
///
/// # Errors
/// [`OpsError::WorktreeStays`] if it has content by now, [`OpsError::Worktree`] if git fails; the
/// worktree then stays on record.
pub(super) fn abandon(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
    made: &Checkout,
) -> Result<(), OpsError> {
    match drop_one(ctx, team, name, made)?.why {
        None => Ok(()),
        Some(why) => Err(OpsError::WorktreeStays { path: made.path.clone(), why }),
    }
}
