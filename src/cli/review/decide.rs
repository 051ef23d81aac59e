//! The subcommands of `review` with which a lead decides about work: `check`, `approve`, `drop` and
//! `conflicts`.

use std::slice;

use clap::Args;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::author::author;
use crate::board::worktree::landing_lines;
use crate::fail::{Exit, VerbResult};
use crate::interrupt::with_checks;
use crate::setup::Setup;
use model::team::worktree::LandingKind;
use ops::Kind;
use ops::authority::{self, Action};
use ops::review::decide::{self, Approval};
use ops::review::{checks, conflicts};

/// Run the checks of the team in the worktree of a member.
#[derive(Debug, Args, Deserialize, JsonSchema)]
#[command(
    after_help = "Exits with 1 if a check fails. Checks are those of `[[check]]` in the manifest, or of \
    `phalanx team set check.test.run '[\"make\", \"test\"]'`. They run the code of the member, outside its sandbox."
)]
pub(crate) struct CheckWorkArgs {
    /// Member whose work is checked.
    pub(crate) name: String,
    /// Only these checks.
    #[arg(value_name = "CHECK")]
    #[serde(default)]
    pub(crate) checks: Vec<String>,
}

/// Approve the task that a member has in review, and land its commits if asked.
#[derive(Debug, Args, Deserialize, JsonSchema)]
#[command(
    after_help = "Examples:\n  phalanx review approve ada\n  phalanx review approve ada --squash --check\n\n\
    With a conflict, or a check that fails, nothing is approved. To land work without a task: `phalanx worktree \
    merge NAME`."
)]
pub(crate) struct ApproveArgs {
    /// Member whose work is approved.
    pub(crate) name: String,
    /// Also merge the commits.
    #[arg(long, conflicts_with_all = ["squash", "rebase"])]
    #[serde(default)]
    pub(crate) merge: bool,
    /// Also land the commits as one.
    #[arg(long, conflicts_with = "rebase")]
    #[serde(default)]
    pub(crate) squash: bool,
    /// Also land a copy of each commit.
    #[arg(long)]
    #[serde(default)]
    pub(crate) rebase: bool,
    /// Only if the checks of the team pass.
    #[arg(long)]
    #[serde(default)]
    pub(crate) check: bool,
    /// Only if the work is still at this commit.
    #[arg(long, value_name = "COMMIT")]
    #[serde(default)]
    pub(crate) head: Option<String>,
    /// Leave uncommitted work.
    #[arg(long)]
    #[serde(default)]
    pub(crate) leave_uncommitted: bool,
}

/// Show where the commits of a member conflict with the main branch.
#[derive(Debug, Args, Deserialize, JsonSchema)]
pub(crate) struct ConflictsArgs {
    /// Member whose commits are tried.
    pub(crate) name: String,
    /// Give the member a task to resolve them.
    #[arg(long)]
    #[serde(default)]
    pub(crate) task: bool,
}

impl ApproveArgs {
    fn landing(&self) -> Option<LandingKind> {
        let kinds = [
            (self.merge, LandingKind::Merge),
            (self.squash, LandingKind::Squash),
            (self.rebase, LandingKind::Rebase),
        ];
        kinds.into_iter().find(|(is_asked, _)| *is_asked).map(|(_, kind)| kind)
    }
}

pub(super) fn check(setup: &Setup, args: &CheckWorkArgs) -> VerbResult {
    let (team, name) = author(setup, &args.name, Action::LandWork)?;
    let (ctx, only) = (setup.ctx.clone(), args.checks.clone());
    let done = with_checks(move |cancel| checks::run(&ctx, &team, &name, &only, cancel))?;
    setup.out.print_outcome(&done, done.has_passed(), || ui::checked_work(&done))?;
    Ok(if done.has_passed() { Exit::DONE } else { Exit::of(Kind::Failed) })
}

pub(super) fn approve(setup: &Setup, args: &ApproveArgs) -> VerbResult {
    let (team, name) = author(setup, &args.name, Action::DecideTask)?;
    let approval = Approval {
        commit: args.head.clone(),
        landing: args.landing(),
        leaves_uncommitted: args.leave_uncommitted,
        checks: args.check,
    };
    if approval.landing.is_some() || approval.checks {
        authority::enter(&setup.ctx, &team, Action::LandWork, slice::from_ref(&name))?;
    }
    let ctx = setup.ctx.clone();
    let report = with_checks(move |cancel| decide::approve(&ctx, &team, &name, &approval, cancel))?;
    setup.out.print(&report, || {
        let mut lines = vec![format!("task #{} of {} is completed", report.task, report.name)];
        lines.extend(report.complaints.iter().cloned());
        lines.extend(report.landed.as_ref().map(landing_lines));
        lines.join("\n")
    })
}

pub(super) fn drop_work(setup: &Setup, given: &str) -> VerbResult {
    let (team, name) = author(setup, given, Action::DecideTask)?;
    let report = decide::drop_work(&setup.ctx, &team, &name, None)?;
    setup.out.print(&report, || ui::dropped_work(&report))
}

pub(super) fn conflicts(setup: &Setup, args: &ConflictsArgs) -> VerbResult {
    if args.task {
        let (team, name) = author(setup, &args.name, Action::Task)?;
        let task = conflicts::give_task(&setup.ctx, &team, &name)?;
        let document = json!({ "name": name, "task": task.id, "subject": task.subject });
        setup
            .out
            .confirm(&document, || format!("{name} has task #{}: {}", task.id, task.subject))?;
        return Ok(Exit::DONE);
    }
    let (team, name) = author(setup, &args.name, Action::Look)?;
    let found = conflicts::find(&setup.ctx, &team, &name)?;
    setup.out.print(&found, || {
        let mut words = ui::work_conflicts(&found);
        if !found.files.is_empty() {
            words.push_str(&format!(
                "\n\nto let {name} resolve them: phalanx review conflicts {name} --task"
            ));
        }
        words
    })
}
