//! The command line of the worktree verbs.

use clap::{Args, Subcommand};

use super::args::Named;
use crate::model::worktree::{Wish, check_branch};

/// What can be done with members' worktrees.
#[derive(Debug, Subcommand)]
pub(super) enum WorktreeVerb {
    /// List the worktrees, and what could be removed without losing anything.
    List,
    /// Show what a member has changed, committed or not.
    Diff(Named),
    Merge(Merge),
    /// Remove the worktree of a member that has ended, if nothing is lost with it.
    #[command(
        after_help = "It stays, with exit code 4, if it has uncommitted work, commits that no other branch has, \
        or is locked."
    )]
    Remove(Named),
}

/// Tell whether a member's commits would merge, and what would conflict.
#[derive(Debug, Args)]
#[command(
    after_help = "Nothing is merged: that is git's, `git merge BRANCH`. Exits with 1 if there would be conflicts."
)]
pub(super) struct Merge {
    /// The member's name.
    pub(super) name: String,
    /// Only try.
    #[arg(long, required = true)]
    pub(super) dry_run: bool,
}

/// A branch; nothing is one of its own.
pub(super) fn wish(given: &str) -> Result<Wish, String> {
    match given {
        "" => Ok(Wish::Own),
        branch => check_branch(branch).map(|()| Wish::Branch(branch.to_owned())),
    }
}
