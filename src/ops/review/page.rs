//! The work of a member in one document, and the member that a task is about.

use serde::Serialize;

use super::changes::{Reviewed, reviewed};
use super::checks::{self, WorkCheck};
use super::place::placed;
use super::tasks::{TaskInReview, task_in_review};
use crate::board::task;
use crate::team::worktree::{checkout_of, repository};
use crate::{Context, OpsError};
use model::board::task_ref::TaskRef;
use model::id::MemberName;
use model::review::{PlacedComment, PullRequest};
use store::TeamStore;
use sys::exec::CancelToken;
use worktree::ChangedFile;

/// The work of a member that is to be reviewed, and the comments on it.
#[derive(Debug, Clone, Serialize)]
pub struct ReviewPage {
    #[serde(flatten)]
    pub reviewed: Reviewed,
    /// The task that waits for the review.
    pub task: Option<TaskInReview>,
    /// The checks of the team, with their results on this work.
    pub checks: Vec<WorkCheck>,
    /// The reviewers that find nothing left to change in the work as it is.
    pub passed_by: Vec<MemberName>,
    /// The pull request of the work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<PullRequest>,
    /// The changed files.
    pub files: Vec<ChangedFile>,
    pub comments: Vec<PlacedComment>,
}

/// Collects what there is to review of a member.
///
/// # Errors
/// As [`reviewed`]; files of the team that cannot be read.
pub fn show(ctx: &Context, team: &TeamStore, name: &MemberName) -> Result<ReviewPage, OpsError> {
    let reviewed = reviewed(ctx, team, name, &CancelToken::default())?;
    let comments = placed(ctx, team, name, &reviewed.snapshot)?;
    let task = task_in_review(team, name)?;
    let repository = repository(ctx, &checkout_of(ctx, team, name)?);
    let files = repository.changed_files(&reviewed.base, &reviewed.snapshot)?;
    let mut review = team.review()?;
    let checks = checks::results(team, &review, &reviewed)?;
    let passed_by = review.passed_by(name, &reviewed.snapshot);
    let known = review.pull_requests.remove(name);
    let pull_request = known.map(|known| known.without_comments());
    Ok(ReviewPage { reviewed, task, checks, passed_by, pull_request, files, comments })
}

/// Returns the owner of a task, whose work is reviewed.
///
/// # Errors
/// [`OpsError::Store`] for a task that does not exist; a refusal for one without an owner.
pub fn author_of(team: &TeamStore, named: &TaskRef) -> Result<MemberName, OpsError> {
    let task = task::get(team, task::find(team, named)?)?;
    task.owner_member().ok_or_else(|| {
        OpsError::refused(
            format!("task #{} has no owner", task.id),
            "name a member: `phalanx review NAME`",
        )
    })
}
