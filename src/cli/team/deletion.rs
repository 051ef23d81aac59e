//! Deletes a team and reports the worktrees that stay.

use crate::team::closing::ClosingReport;
use model::text;
use ops::team::worktree::Removal;
use ops::{self, Context, OpsError, TeamStore};

/// Option of `inbox` for the mailbox that is kept.
pub(crate) const ENDED: &str = " --ended";

/// Deletes a team, keeps its report, and prints the worktrees that stay. A team that is already
/// gone counts as deleted.
///
/// # Errors
/// Returns an error if the team still exists and cannot be deleted.
pub(crate) fn delete_team(
    ctx: &Context,
    team: &TeamStore,
    print: impl FnMut(&str),
) -> Result<(), OpsError> {
    delete_reported(ctx, team, ClosingReport::now(ctx, team, ENDED).ok(), print)
}

/// Like [`delete_team`], for a team whose report was made.
pub(crate) fn delete_reported(
    ctx: &Context,
    team: &TeamStore,
    report: Option<ClosingReport>,
    print: impl FnMut(&str),
) -> Result<(), OpsError> {
    let report = report.and_then(|report| serde_json::to_string(&report).ok());
    match ops::ending::delete::delete(ctx, team, report.as_deref()) {
        Err(e) if team.exists() => Err(e),
        Ok(kept) => {
            report_kept_worktrees(&kept, print);
            Ok(())
        }
        Err(_) => Ok(()),
    }
}

/// Prints one line for each worktree that stays or whose branch stays.
pub(crate) fn report_kept_worktrees(kept: &[Removal], mut print: impl FnMut(&str)) {
    kept.iter().for_each(|one| print(&removal_line(one)));
}

/// Formats the result of removing a worktree.
pub(crate) fn removal_line(one: &Removal) -> String {
    let path = match &one.host {
        Some(host) => format!("{host}:{}", text::line(&one.path)),
        None => text::line(&one.path),
    };
    match (&one.why, &one.branch_left) {
        (Some(why), _) => format!("worktree {path} of `{}` stays: {}", one.name, text::line(why)),
        (None, Some(branch)) => {
            format!("worktree {path} is removed; its branch {} stays", text::line(branch))
        }
        (None, None) => format!("worktree {path} is removed"),
    }
}
