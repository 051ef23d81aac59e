//! Deletes a team and reports the worktrees that stay.

use crate::team::closing::ClosingReport;
use model::text;
use ops::team::worktree::Removal;
use ops::{self, Context, Kind, OpsError, TeamStore};

/// Deletes a team, keeps its report, and prints the worktrees that stay. `end` is the reason of its
/// end, if it has not ended by itself. A team that is already gone counts as deleted.
///
/// # Errors
/// Returns an error if the team still exists and cannot be deleted.
pub(crate) fn delete_team(
    ctx: &Context,
    team: &TeamStore,
    end: Option<Kind>,
    print: impl FnMut(&str),
) -> Result<(), OpsError> {
    let report = ClosingReport::of(ctx, team, end).ok().and_then(|report| report.to_text());
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
