//! The `worktree` subcommands.

use clap::{Args, Subcommand};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::args::MemberArg;
use crate::fail::{Exit, VerbResult};
use crate::interrupt::with_checks;
use crate::read::is_confirmed;
use crate::setup::Setup;
use crate::team::deletion::removal_line;
use model::id::MemberName;
use model::team::worktree::{Condition, LandingKind, short_commit};
use model::text;
use ops::authority::Action;
use ops::review::landing::{self, LandRequest, LandingReport};
use ops::review::tasks::{self, OpenTask};
use ops::review::{checks, decide};
use ops::team::worktree::{Preview, Standing};
use ops::{self, Kind};
use sys::env;
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
    /// Take the work that has landed last off the branch again.
    #[command(
        after_help = "Possible until the branch gets other commits. The commits stay on the branch of the \
        member."
    )]
    Undo,
    /// Remove the worktree of a stopped member if nothing is lost.
    #[command(
        after_help = "A worktree that is locked, or has uncommitted work or commits on no other branch, \
        is kept: exit code 4."
    )]
    Remove(MemberArg),
}

/// Land a member's commits on the branch of the main working directory.
#[derive(Debug, Args, Deserialize, JsonSchema)]
#[command(
    after_help = "A conflict changes nothing, and exits with 1. `git merge`'s hooks and those for commits do \
        not run; commits are signed if `commit.gpgSign` is true. `phalanx worktree undo` takes the work back."
)]
pub(crate) struct MergeArgs {
    /// Name of the member.
    pub(crate) name: String,
    /// Only check for conflicts.
    #[arg(long)]
    #[serde(default)]
    pub(crate) dry_run: bool,
    /// Land the commits as one.
    #[arg(long, conflicts_with = "rebase")]
    #[serde(default)]
    squash: bool,
    /// Land a copy of each commit on top of the branch.
    #[arg(long)]
    #[serde(default)]
    rebase: bool,
    /// Land only the commits up to this one.
    #[arg(long, value_name = "COMMIT")]
    #[serde(default)]
    head: Option<String>,
    /// Message of the new commit.
    #[arg(long, short, value_name = "TEXT", conflicts_with = "rebase")]
    #[serde(default)]
    message: Option<String>,
    /// Leave uncommitted work.
    #[arg(long, conflicts_with = "check")]
    #[serde(default)]
    leave_uncommitted: bool,
    /// Only if the team's checks pass.
    #[arg(long, conflicts_with_all = ["head", "dry_run"])]
    #[serde(default)]
    check: bool,
    /// Complete the open task of the member. A terminal is asked otherwise.
    #[arg(long, conflicts_with = "dry_run")]
    #[serde(skip)]
    complete: bool,
}

impl MergeArgs {
    fn kind(&self) -> LandingKind {
        match (self.squash, self.rebase) {
            (true, _) => LandingKind::Squash,
            (false, true) => LandingKind::Rebase,
            (false, false) => LandingKind::Merge,
        }
    }
}

pub(crate) fn worktree(setup: &Setup, verb: &WorktreeVerb) -> VerbResult {
    match verb {
        WorktreeVerb::List => list(setup),
        WorktreeVerb::Diff(named) => diff(setup, &named.name),
        WorktreeVerb::Merge(merge) if merge.dry_run => preview(setup, &merge.name),
        WorktreeVerb::Merge(merge) => land(setup, merge),
        WorktreeVerb::Undo => undo(setup),
        WorktreeVerb::Remove(named) => remove(setup, &named.name),
    }
}

fn list(setup: &Setup) -> VerbResult {
    let all = ops::team::worktree::list(&setup.ctx, &setup.team(Action::Look)?)?;
    let documents: Vec<Value> = all.iter().map(document).collect();
    let none = "no worktrees; give a member one with `phalanx spawn NAME --worktree`";
    let table = || ui::worktree_table(all.iter().map(row), setup.out.paint);
    setup.out.print_list(&documents, none, table)
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
            "host": checkout.copy.as_ref().map(|copy| copy.host.as_str()), "condition": condition, "keeps": keeps,
            "evidence": one.condition.as_ref().ok().and_then(Condition::evidence) })
}

fn row(one: &Standing) -> WorktreeRow {
    let (condition, keeps) = standing(one);
    let path = one.checkout.path.clone();
    let evidence = one.condition.as_ref().ok().and_then(Condition::evidence);
    WorktreeRow {
        name: one.name.to_string(),
        branch: one.checkout.branch_here(),
        condition: evidence.map_or(condition.to_owned(), |by| format!("{condition} ({by})")),
        keeps,
        path: match &one.checkout.copy {
            Some(copy) => format!("{}:{path}", copy.host),
            None => path,
        },
    }
}

fn diff(setup: &Setup, name: &str) -> VerbResult {
    let (team, name) = setup.member(name, Action::Look)?;
    let diff = ops::review::changes::diff(&setup.ctx, &team, &name)?;
    setup.out.print(&json!({ "name": name, "diff": diff }), || text::block(&diff))
}

fn preview(setup: &Setup, name: &str) -> VerbResult {
    let (team, name) = setup.member(name, Action::Look)?;
    let found = ops::team::worktree::preview(&setup.ctx, &team, &name)?;
    let Preview { from, into, head, commits, size, conflicts, uncommitted } = &found;
    let document = json!({ "name": name, "from": from, "into": into, "head": head, "commits": commits, "size": size,
                           "conflicts": conflicts, "uncommitted": uncommitted });
    setup.out.print(&document, || preview_lines(&name, &found))?;
    Ok(if conflicts.is_empty() { Exit::DONE } else { Exit::of(Kind::Failed) })
}

fn preview_lines(name: &MemberName, found: &Preview) -> String {
    let Preview { from: _, into, head, commits, size, conflicts, uncommitted } = found;
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
        let head = short_commit(head);
        lines.push(format!("to merge: phalanx worktree merge {name} --head {head}"));
    }
    lines.join("\n")
}

fn land(setup: &Setup, merge: &MergeArgs) -> VerbResult {
    let (team, name) = setup.member(&merge.name, Action::LandWork)?;
    let checked = match merge.check {
        true => {
            let (ctx, team, name) = (setup.ctx.clone(), team.clone(), name.clone());
            Some(with_checks(move |cancel| checks::require(&ctx, &team, &name, cancel))?)
        }
        false => None,
    };
    let task = tasks::open_task(&team.board()?, &name);
    let request = LandRequest {
        kind: merge.kind(),
        head: merge.head.clone().or(checked),
        message: merge.message.clone(),
        title: None,
        leaves_uncommitted: merge.leave_uncommitted,
        task: task.as_ref().filter(|_| merge.complete).map(|task| (task.id, task.ending())),
    };
    let report = landing::land(&setup.ctx, &team, &name, &request)?;
    setup.out.print(&report, || landing_lines(&report))?;
    let Some(task) = task else { return Ok(Exit::DONE) };
    let OpenTask { id, subject, .. } = &task;
    let asks = !setup.out.json && !setup.out.quiet && env::stdin_is_tty() && env::stdout_is_tty();
    let complaints = if merge.complete {
        report.complaints
    } else if asks && is_confirmed(&format!("#{id} {subject} is open: is it completed?"))? {
        decide::complete(&setup.ctx, &team, &task)?
    } else {
        let words = format!("#{id} of {name} is open; `phalanx task complete {id}` ends it");
        setup.out.print_message(&words);
        return Ok(Exit::DONE);
    };
    complaints.iter().for_each(|words| setup.out.print_message(words));
    setup.out.print_message(&format!("task #{id} of {name} is completed"));
    Ok(Exit::DONE)
}

pub(crate) fn landing_lines(report: &LandingReport) -> String {
    let LandingReport { name, from, into, landed, uncommitted, later, .. } = report;
    let (from, into) = (text::line(from), text::line(into));
    let commit = short_commit(&landed.new);
    let how = match landed.kind {
        LandingKind::Merge => "merged into",
        LandingKind::Squash => "squashed into one commit on",
        LandingKind::Rebase => "rebased onto",
    };
    let mut lines = vec![format!("{from} {how} {into}: {commit}")];
    if *later > 0 {
        lines.push(format!("{later} later commit(s) of {name} stay"));
    }
    if *uncommitted > 0 {
        lines.push(format!("{uncommitted} uncommitted file(s) of {name} stay"));
    }
    lines.push("to take it back: phalanx worktree undo".to_owned());
    lines.join("\n")
}

fn undo(setup: &Setup) -> VerbResult {
    let team = setup.team(Action::LandWork)?;
    let report = landing::take_back(&setup.ctx, &team)?;
    let words = || {
        let commit = short_commit(&report.landed.old);
        format!(
            "{} is at {commit} again, without the work of {}",
            text::line(&report.into),
            report.name
        )
    };
    setup.out.print(&report, words)
}

fn remove(setup: &Setup, name: &str) -> VerbResult {
    let (team, name) = setup.member(name, Action::RemoveWorktree)?;
    let removal = ops::team::worktree::remove(&setup.ctx, &team, &name)?;
    setup.out.print_outcome(&removal, removal.removed, || removal_line(&removal))?;
    Ok(if removal.removed { Exit::DONE } else { Exit::of(Kind::Refused) })
}
