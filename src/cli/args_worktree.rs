//! The command line of the `worktree` subcommands.

use clap::{Args, Subcommand};

use super::args::Named;
use crate::model::worktree::{WorktreeRequest, check_branch};

#[derive(Debug, Subcommand)]
pub(super) enum WorktreeVerb {
    /// List the worktrees and whether they can be removed without loss.
    List,
    /// Show the changes of a member, committed or not.
    Diff(Named),
    Merge(Merge),
    /// Remove the worktree of a stopped member if nothing is lost.
    #[command(
        after_help = "A worktree that is locked, or has uncommitted work or commits on no other branch, \
        is kept: exit code 4."
    )]
    Remove(Named),
}

/// Check whether a member's commits would merge without conflicts.
#[derive(Debug, Args)]
#[command(
    after_help = "Nothing is merged; to merge, run `git merge BRANCH`. Exits with 1 if there would be conflicts."
)]
pub(super) struct Merge {
    /// Name of the member.
    pub(super) name: String,
    /// Only check; required.
    #[arg(long, required = true)]
    pub(super) dry_run: bool,
}

/// Parses a branch; an empty value means a new branch.
pub(super) fn wish(given: &str) -> Result<WorktreeRequest, String> {
    match given {
        "" => Ok(WorktreeRequest::Own),
        branch => check_branch(branch).map(|()| WorktreeRequest::Branch(branch.to_owned())),
    }
}
