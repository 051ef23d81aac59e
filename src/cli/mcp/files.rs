//! Tools for files: the workspace, worktrees, reviews, and handoffs with a checked form.

use serde_json::Value;

use super::arguments::ToolArguments;
use super::call::{PrintedOutput, Reply, ToolCall};
use crate::board::workspace::{self as files, WorkspaceVerb};
use crate::board::worktree::{self as worktrees, WorktreeVerb};
use crate::fail::Failure;
use crate::mail::handoff::{self as handoffs, HandoffVerb};
use crate::review::{self as reviews, ReviewVerb};

pub(super) fn workspace(call: &ToolCall, given: ToolArguments) -> Result<Reply, Failure> {
    let verb: WorkspaceVerb = given.variant()?;
    Ok(call.run(|setup| files::workspace(setup, &verb))?.into_reply())
}

pub(super) fn worktree(call: &ToolCall, given: ToolArguments) -> Result<Reply, Failure> {
    let verb: WorktreeVerb = given.variant()?;
    Ok(reply(call.run(|setup| worktrees::worktree(setup, &verb))?, "worktrees"))
}

pub(super) fn review(call: &ToolCall, given: ToolArguments) -> Result<Reply, Failure> {
    let list = if given.action() == "resolve" { "resolved" } else { "comments" };
    let verb: ReviewVerb = given.variant()?;
    Ok(reply(call.run(|setup| reviews::perform(setup, &verb))?, list))
}

pub(super) fn handoff(call: &ToolCall, given: ToolArguments) -> Result<Reply, Failure> {
    let list = if given.action() == "types" { "types" } else { "handoffs" };
    let verb: HandoffVerb = given.variant()?;
    Ok(reply(call.run(|setup| handoffs::handoff(setup, verb))?, list))
}

/// Returns a list as the field `list`, and any other document as it is.
fn reply(printed: PrintedOutput, list: &str) -> Reply {
    match printed.document {
        Value::Array(_) => printed.into_list(list),
        _ => printed.into_reply(),
    }
}
