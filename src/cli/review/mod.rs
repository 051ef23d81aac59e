//! `review` and its subcommands.

mod args;
mod author;
mod colors;
#[cfg(test)]
mod colors_tests;
mod decide;
mod jobs;
#[cfg(test)]
mod jobs_tests;
mod pull_request;
mod screen;
mod source;
mod team_source;

use std::sync::Arc;

use serde_json::json;

use crate::fail::{Exit, Failure, VerbResult};
use crate::setup::Setup;
use crate::terminal::theme::can_draw;
use model::review::{CommentId, LineSide};
use ops::authority::Action;
use ops::review::comments::{self, NewComment};
use ops::review::place::{self, GivenPlace};
use ops::review::{changes, overview, page, pass, send};
use sys::env;
use sys::exec::CancelToken;

pub(crate) use colors::highlight;

use args::{AnswerCommentArgs, CommentArgs};
pub(crate) use args::{ReviewVerb, WorkReviewArgs};
use author::{author, shown_author};
use team_source::TeamSource;

pub(crate) fn review(setup: &Setup, args: &WorkReviewArgs) -> VerbResult {
    match (&args.verb, &args.name) {
        (Some(verb), _) => perform(setup, verb),
        (None, Some(name)) if args.pr || args.sync => {
            let (team, name) = author(setup, name, Action::LandWork)?;
            let perform = if args.pr { pull_request::open } else { pull_request::sync };
            perform(setup, &team, &name)
        }
        (None, given) if has_screen(setup) => open(setup, given.as_deref()),
        (None, Some(name)) => show(setup, name),
        (None, None) => show_overview(setup),
    }
}

pub(crate) fn perform(setup: &Setup, verb: &ReviewVerb) -> VerbResult {
    match verb {
        ReviewVerb::Overview => show_overview(setup),
        ReviewVerb::Show(named) => show(setup, &named.name),
        ReviewVerb::List { name } => list(setup, name.as_deref()),
        ReviewVerb::Comment(args) => comment(setup, args),
        ReviewVerb::Discard { id } => discard(setup, *id),
        ReviewVerb::Send(named) => send(setup, &named.name),
        ReviewVerb::Answer(args) => answer(setup, args),
        ReviewVerb::Resolve { ids } => resolve(setup, ids),
        ReviewVerb::Pass { name, text } => pass(setup, name, text.as_deref()),
        ReviewVerb::Check(args) => decide::check(setup, args),
        ReviewVerb::Approve(args) => decide::approve(setup, args),
        ReviewVerb::Drop(named) => decide::drop_work(setup, &named.name),
        ReviewVerb::Conflicts(args) => decide::conflicts(setup, args),
        ReviewVerb::Reopen { id, text } => reopen(setup, *id, text),
    }
}

fn show_overview(setup: &Setup) -> VerbResult {
    let team = setup.team(Action::Look)?;
    let found = overview::overview(&setup.ctx, &team)?;
    if found.work.is_empty() && found.tasks.is_empty() && !setup.out.json {
        setup.out.print_message("nothing waits for a review");
        return Ok(Exit::DONE);
    }
    setup.out.print(&found, || ui::review_overview(&found, ops::now(), setup.out.paint))
}

/// Returns true for a person at a terminal that can show the screen.
fn has_screen(setup: &Setup) -> bool {
    let is_person = env::stdin_is_tty() && env::stdout_is_tty() && !setup.out.json;
    is_person && can_draw(setup)
}

/// Opens the screen with the work of all members, or of one.
fn open(setup: &Setup, given: Option<&str>) -> VerbResult {
    let (team, start) = shown_author(setup, given)?;
    let source = TeamSource { ctx: setup.ctx.clone(), team: team.clone() };
    screen::run(setup, &team, Arc::new(source), start)
}

/// Shows the work of a member as text: what there is to review, and the comments on it.
fn show(setup: &Setup, given: &str) -> VerbResult {
    let (team, name) = author(setup, given, Action::Look)?;
    let shown = page::show(&setup.ctx, &team, &name)?;
    setup.out.print(&shown, || ui::review_page(&shown, setup.out.paint))
}

fn list(setup: &Setup, given: Option<&str>) -> VerbResult {
    let (team, name) = shown_author(setup, given)?;
    let found = comments::list(&setup.ctx, &team, name.as_ref())?;
    setup.out.print_list(&found, "no comments", || ui::review_comments(&found, setup.out.paint))
}

fn comment(setup: &Setup, args: &CommentArgs) -> VerbResult {
    let (team, member) = author(setup, &args.name, Action::Talk)?;
    let reviewed = changes::reviewed(&setup.ctx, &team, &member, &CancelToken::default())?;
    let side = if args.old { LineSide::Old } else { LineSide::New };
    let place = match &args.at {
        Some(at) => {
            let given: GivenPlace = at.parse().map_err(|problem: String| {
                Failure::usage(problem, "write it as FILE, FILE:LINE or FILE:FIRST-LAST")
            })?;
            Some(place::find(&setup.ctx, &team, &reviewed, &given, side)?)
        }
        None => None,
    };
    let new = NewComment {
        member,
        kind: args.kind.unwrap_or_default(),
        place,
        base: reviewed.base,
        commit: reviewed.snapshot,
        text: args.text.clone(),
    };
    let made = comments::draft(&setup.ctx, &team, new)?;
    setup.out.print(&made, || {
        format!("{} is a draft; send all drafts with: phalanx review send {}", made.id, made.member)
    })
}

fn discard(setup: &Setup, id: CommentId) -> VerbResult {
    let team = setup.team(Action::Talk)?;
    comments::discard(&setup.ctx, &team, id)?;
    setup.out.confirm(&json!({ "discarded": id }), || format!("{id} is discarded"))
}

fn send(setup: &Setup, given: &str) -> VerbResult {
    let (team, name) = author(setup, given, Action::Talk)?;
    let report = send::send(&setup.ctx, &team, &name)?;
    setup.out.print(&report, || ui::sent_review(&report))
}

fn answer(setup: &Setup, args: &AnswerCommentArgs) -> VerbResult {
    let team = setup.team(Action::Talk)?;
    let text = args.text.as_deref().unwrap_or_default();
    let comment = comments::answer(&setup.ctx, &team, args.id, args.answer, text)?;
    let kind: &str = args.answer.into();
    setup.out.confirm(&comment, || format!("{} is answered: {kind}", comment.id))
}

fn resolve(setup: &Setup, ids: &[CommentId]) -> VerbResult {
    let team = setup.team(Action::Talk)?;
    let resolved = ids.iter().map(|id| comments::resolve(&setup.ctx, &team, *id));
    let resolved = resolved.collect::<Result<Vec<_>, _>>()?;
    setup.out.confirm(&resolved, || {
        let lines = resolved.iter().map(|comment| format!("{} is resolved", comment.id));
        lines.collect::<Vec<_>>().join("\n")
    })
}

fn pass(setup: &Setup, given: &str, text: Option<&str>) -> VerbResult {
    let (team, name) = author(setup, given, Action::Talk)?;
    let passed = pass::pass(&setup.ctx, &team, &name, text)?;
    setup.out.confirm(&passed, || format!("the lead knows that the work of {name} can land"))
}

fn reopen(setup: &Setup, id: CommentId, text: &str) -> VerbResult {
    let team = setup.team(Action::Talk)?;
    let report = send::reopen(&setup.ctx, &team, id, text)?;
    setup.out.print(&report, || ui::sent_review(&report))
}
