//! Decisions about the work of a member that may have several steps: approve and land, or drop.

use serde::Serialize;

use super::changes::{Reviewed, reviewed};
use super::checks;
use super::landing::{self, LandRequest, LandingReport};
use super::tasks::{OpenTask, TaskInReview, task_in_review};
use crate::board::task;
use crate::team::hooks;
use crate::{Context, OpsError};
use model::board::task::TaskAction;
use model::id::{MemberName, TaskId};
use model::team::event::{EventKind, Note};
use model::team::worktree::{LandingKind, short_commit};
use store::{TaskStep, TeamStore};
use sys::exec::CancelToken;

/// Shortest abbreviation of a commit that names one.
const ABBREVIATION: usize = 7;

/// An approval of the task that a member has in review.
#[derive(Debug, Clone, Default)]
pub struct Approval {
    /// The snapshot that was reviewed, which may be abbreviated. The work must not have changed
    /// since.
    pub commit: Option<String>,
    /// Also land the commits, in this form.
    pub landing: Option<LandingKind>,
    /// Land the commits although the member has uncommitted work.
    pub leaves_uncommitted: bool,
    /// All checks of the team must pass.
    pub checks: bool,
}

/// A task that was approved, and the work that has landed with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ApprovalReport {
    pub name: MemberName,
    pub task: TaskId,
    pub landed: Option<LandingReport>,
    /// Problems with hooks.
    pub complaints: Vec<String>,
}

/// Approves the task that a member has in review, and lands its commits if asked. Nothing is
/// approved if the commits cannot land, or a check fails. `cancel` ends the checks.
///
/// # Errors
/// A refusal without a task in review, and for work that has changed; as [`checks::require`],
/// [`task::act`] and [`landing::land`]. Nothing is approved then.
pub fn approve(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
    approval: &Approval,
    cancel: &CancelToken,
) -> Result<ApprovalReport, OpsError> {
    let Some(TaskInReview { id, subject, .. }) = task_in_review(team, name)? else {
        return Err(OpsError::refused(
            format!("`{name}` has no task in review"),
            format!("to land its commits: `phalanx worktree merge {name}`"),
        ));
    };
    let found = match (&approval.commit, approval.landing) {
        (None, None) => None,
        (shown, _) => Some(found_at(ctx, team, name, shown.as_deref())?),
    };
    if approval.checks {
        let checked = checks::require(ctx, team, name, cancel)?;
        if let Some(found) = found.as_ref().filter(|found| found.snapshot != checked) {
            return Err(changed(&found.name, &checked));
        }
    }
    let Some((kind, found)) = approval.landing.zip(found) else {
        let (hooks, step) = (hooks::load_hooks(ctx, team), TaskStep::of(TaskAction::Approve));
        let complaints = task::act(ctx, team, &hooks, id, &ctx.speaker, &step)?.complaints;
        return Ok(ApprovalReport { name: name.clone(), task: id, landed: None, complaints });
    };
    let request = LandRequest {
        kind,
        head: Some(found.head),
        message: None,
        title: Some(subject),
        leaves_uncommitted: approval.leaves_uncommitted,
        task: Some((id, TaskAction::Approve)),
    };
    let mut landed = landing::land(ctx, team, name, &request)?;
    let complaints = std::mem::take(&mut landed.complaints);
    Ok(ApprovalReport { name: name.clone(), task: id, landed: Some(landed), complaints })
}

/// Completes a task whose work has landed; approves one in review. Returns the problems with hooks.
///
/// # Errors
/// As [`task::act`].
pub fn complete(ctx: &Context, team: &TeamStore, task: &OpenTask) -> Result<Vec<String>, OpsError> {
    let (hooks, step) = (hooks::load_hooks(ctx, team), TaskStep::of(task.ending()));
    Ok(task::act(ctx, team, &hooks, task.id, &ctx.speaker, &step)?.complaints)
}

/// Work that was dropped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DropReport {
    pub name: MemberName,
    /// The snapshot that does not wait for a review.
    pub commit: String,
    /// The name of the commits, which stay.
    pub from: String,
    /// The task that was cancelled.
    pub task: Option<TaskId>,
}

/// Drops the work of a member as it is: cancels its task in review, and takes the work off the
/// list until it changes. No commit and no file is removed.
///
/// # Errors
/// As [`reviewed`] and [`task::act`]; a refusal for work that has changed since `shown`.
pub fn drop_work(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
    shown: Option<&str>,
) -> Result<DropReport, OpsError> {
    let found = found_at(ctx, team, name, shown)?;
    let task = task_in_review(team, name)?.map(|task| task.id);
    if let Some(id) = task {
        let hooks = hooks::load_hooks(ctx, team);
        let reason = Some("the work was dropped".to_owned());
        let step = TaskStep { reason, ..TaskStep::of(TaskAction::Cancel) };
        task::act(ctx, team, &hooks, id, &ctx.speaker, &step)?;
    }
    team.change_review(|review| {
        review.dropped.insert(name.clone(), found.snapshot.clone());
        Ok(())
    })?;
    let note = Note::of(EventKind::WorkDropped).member(name).with("head", found.snapshot.as_str());
    team.record(note.with("by", ctx.speaker.as_str()))?;
    Ok(DropReport { name: name.clone(), commit: found.snapshot, from: found.from, task })
}

/// Returns the work of a member; a refusal if it has changed since it was shown.
fn found_at(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
    shown: Option<&str>,
) -> Result<Reviewed, OpsError> {
    let found = reviewed(ctx, team, name, &CancelToken::default())?;
    let is_it = |shown: &str| shown.len() >= ABBREVIATION && found.snapshot.starts_with(shown);
    if shown.is_none_or(is_it) {
        return Ok(found);
    }
    Err(changed(name, &found.snapshot))
}

fn changed(name: &MemberName, now: &str) -> OpsError {
    OpsError::refused(
        format!("the work of `{name}` has changed: it is at {}", short_commit(now)),
        format!("look at it again: `phalanx review {name}`"),
    )
}
