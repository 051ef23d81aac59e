//! The `worktree` subcommands.

use clap::{Args, Subcommand};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::args::MemberArg;
use crate::fail::{Exit, VerbResult};
use crate::setup::Setup;
use crate::team::deletion::removal_line;
use model::text;
use ops::authority::Action;
use ops::team::worktree::{Preview, Standing};
use ops::{self, Kind};
use ui::{self, WorktreeRow};

#[derive(Debug, Subcommand, Deserialize, JsonSchema)]
#[command(defer = true)]
#[serde(tag = "action", rename_all = "snake_case")]
pub(crate) enum WorktreeVerb {
    /// List the worktrees and whether they can be removed without loss.
    List,
    /// Show the changes of a member, committed or not.
    Diff(MemberArg),
    Merge(MergeArgs),
    /// Remove the worktree of a stopped member if nothing is lost.
    #[command(
        after_help = "A worktree that is locked, or has uncommitted work or commits on no other branch, \
        is kept: exit code 4."
    )]
    Remove(MemberArg),
}

/// Check whether a member's commits would merge without conflicts.
#[derive(Debug, Args, Deserialize, JsonSchema)]
#[command(
    after_help = "Nothing is merged; the output names what to pass to `git merge`. Exits with 1 if there \
        would be conflicts."
)]
pub(crate) struct MergeArgs {
    /// Name of the member.
    pub(crate) name: String,
    /// Only check; required.
    #[arg(long, required = true)]
    #[serde(skip)]
    pub(crate) dry_run: bool,
}

pub(crate) fn worktree(setup: &Setup, verb: &WorktreeVerb) -> VerbResult {
    match verb {
        WorktreeVerb::List => list(setup),
        WorktreeVerb::Diff(named) => diff(setup, &named.name),
        WorktreeVerb::Merge(merge) => preview(setup, &merge.name),
        WorktreeVerb::Remove(named) => remove(setup, &named.name),
    }
}

fn list(setup: &Setup) -> VerbResult {
    let all = ops::team::worktree::list(&setup.ctx, &setup.team(Action::Look)?)?;
    if all.is_empty() && !setup.out.json {
        setup
            .out
            .print_message("no worktrees; give a member one with `phalanx spawn NAME --worktree`");
        return Ok(Exit::DONE);
    }
    let documents: Vec<Value> = all.iter().map(document).collect();
    setup.out.print(&documents, || ui::worktree_table(all.iter().map(row), setup.out.paint))?;
    Ok(Exit::DONE)
}

/// Returns the condition as one word, and the reason why the worktree must be kept.
fn standing(one: &Standing) -> (&'static str, Option<String>) {
    match &one.condition {
        Ok(condition) => (condition.word(), condition.keeps()),
        Err(problem) => ("unknown", Some(problem.clone())),
    }
}

fn document(one: &Standing) -> Value {
    let (condition, keeps) = standing(one);
    let checkout = &one.checkout;
    json!({ "name": one.name.as_str(), "path": checkout.path, "branch": checkout.branch, "base": checkout.base,
            "host": checkout.copy.as_ref().map(|copy| copy.host.as_str()), "condition": condition, "keeps": keeps })
}

fn row(one: &Standing) -> WorktreeRow {
    let (condition, keeps) = standing(one);
    let path = one.checkout.path.clone();
    WorktreeRow {
        name: one.name.to_string(),
        branch: one.checkout.branch_here(),
        condition,
        keeps,
        path: match &one.checkout.copy {
            Some(copy) => format!("{}:{path}", copy.host),
            None => path,
        },
    }
}

fn diff(setup: &Setup, name: &str) -> VerbResult {
    let (team, name) = setup.member(name, Action::Look)?;
    let diff = ops::team::worktree::diff(&setup.ctx, &team, &name)?;
    setup.out.print(&json!({ "name": name, "diff": diff }), || text::block(&diff))?;
    Ok(Exit::DONE)
}

fn preview(setup: &Setup, name: &str) -> VerbResult {
    let (team, name) = setup.member(name, Action::Look)?;
    let found = ops::team::worktree::preview(&setup.ctx, &team, &name)?;
    let Preview { from, into, commits, size, conflicts, uncommitted } = &found;
    let document = json!({ "name": name, "from": from, "into": into, "commits": commits, "size": size,
                           "conflicts": conflicts, "uncommitted": uncommitted });
    setup.out.print(&document, || preview_lines(&found))?;
    Ok(if conflicts.is_empty() { Exit::DONE } else { Exit::of(Kind::Failed) })
}

fn preview_lines(found: &Preview) -> String {
    let Preview { from, into, commits, size, conflicts, uncommitted } = found;
    let into = text::line(into);
    let size = if size.is_empty() { String::new() } else { format!(": {size}") };
    let mut lines = vec![match conflicts.len() {
        0 => format!("{commits} commit(s) would merge into {into}{size}"),
        files => format!("{commits} commit(s) would conflict with {into} in {files} file(s):"),
    }];
    lines.extend(conflicts.iter().map(|file| format!("  {}", text::line(file))));
    if *uncommitted > 0 {
        lines.push(format!("{uncommitted} file(s) are not committed and would not come along"));
    }
    if *commits > 0 {
        lines.push(format!("to merge: git merge {}", text::line(from)));
    }
    lines.join("\n")
}

fn remove(setup: &Setup, name: &str) -> VerbResult {
    let (team, name) = setup.member(name, Action::RemoveWorktree)?;
    let removal = ops::team::worktree::remove(&setup.ctx, &team, &name)?;
    setup.out.print_outcome(&removal, removal.removed, || removal_line(&removal))?;
    Ok(if removal.removed { Exit::DONE } else { Exit::of(Kind::Refused) })
}
