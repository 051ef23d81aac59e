//! The conflicts of a member's work with the main branch, and the task to resolve them.

use serde::Serialize;

use super::changes::{Reviewed, reviewed};
use crate::board::task;
use crate::hosts::away::AwayWorktree;
use crate::team::worktree::{checkout_of, repository};
use crate::{Context, OpsError};
use model::board::task::Task;
use model::id::MemberName;
use model::team::worktree::short_commit;
use model::text;
use store::{NewTask, TeamStore};
use sys::exec::CancelToken;
use worktree::ConflictedFile;

/// The files in which the work of a member conflicts with the main branch, committed or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorkConflicts {
    pub name: MemberName,
    /// The name of the member's commits.
    pub from: String,
    /// The snapshot that was tried.
    pub commit: String,
    /// The branch of the main working directory.
    pub into: String,
    pub files: Vec<ConflictedFile>,
}

/// Tries to merge the work of a member, and returns the conflicts; changes nothing.
///
/// # Errors
/// As [`reviewed`].
pub fn find(ctx: &Context, team: &TeamStore, name: &MemberName) -> Result<WorkConflicts, OpsError> {
    let checkout = checkout_of(ctx, team, name)?;
    let cancel = CancelToken::default();
    let Reviewed { from, into, snapshot, .. } = reviewed(ctx, team, name, &cancel)?;
    let files = repository(ctx, &checkout).conflicted_files(&checkout, &snapshot, &from)?;
    Ok(WorkConflicts { name: name.clone(), from, commit: snapshot, into, files })
}

/// Gives the member a task to resolve the conflicts of its work. A worktree on another host gets the
/// newest commit of the main branch first.
///
/// # Errors
/// As [`find`]; a refusal if there are none; failures of the member's host; as [`task::create`].
pub fn give_task(ctx: &Context, team: &TeamStore, name: &MemberName) -> Result<Task, OpsError> {
    let found = find(ctx, team, name)?;
    if found.files.is_empty() {
        return Err(OpsError::refused(
            format!("the work of `{name}` has no conflicts with {}", text::line(&found.into)),
            format!("land it: `phalanx worktree merge {name}`"),
        ));
    }
    let checkout = checkout_of(ctx, team, name)?;
    let given = match &checkout.copy {
        Some(copy) => Some(AwayWorktree::reach(ctx, team, &checkout, copy)?.give_main(team)?),
        None => None,
    };
    let (into, from) = (text::line(&found.into), text::line(&found.from));
    let new = NewTask {
        subject: format!("Merge {into} into {from} and resolve the conflicts"),
        description: description(&found, given.as_deref().map(short_commit).as_deref()),
        owner: Some(name.clone()),
        ..NewTask::default()
    };
    let mut made = task::create(ctx, team, &[new])?;
    made.pop().ok_or_else(|| OpsError::Failed { problem: "no task was made".to_owned() })
}

/// `given` is the commit to merge in a worktree that does not have the main branch.
fn description(found: &WorkConflicts, given: Option<&str>) -> String {
    let WorkConflicts { from, into, files, .. } = found;
    let files: Vec<String> =
        files.iter().map(|file| format!("- {}", text::line(&file.path))).collect();
    let (from, into) = (text::line(from), text::line(into));
    let merged = given.unwrap_or(&into);
    format!(
        "{from} cannot land on {into}, because both have changed the same lines of:\n{}\n\n\
         In your worktree, on {from}:\n1. Commit your own work.\n2. git merge {merged}\n\
         3. Resolve each conflict so that both changes keep their purpose.\n\
         4. Run the tests.\n5. git commit\n\nDo not rewrite commits, and do not merge into {into} yourself.",
        files.join("\n")
    )
}
