//! The arguments of `review`.

use clap::{Args, Subcommand};
use schemars::JsonSchema;
use serde::Deserialize;

use super::decide::{ApproveArgs, CheckWorkArgs, ConflictsArgs};
use crate::args::{self, MemberArg};
use crate::json;
use model::review::{AnswerKind, CommentId, CommentKind};

/// Review what members changed, and comment on it.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  phalanx review\n  phalanx review ada\n  \
    phalanx review comment ada \"This panics without TOKEN.\" --at src/auth.rs:42\n  phalanx review send ada\n\n\
    Without NAME it shows all work that waits for a review. A member named like a subcommand is shown by \
    `phalanx review show NAME`.",
    args_conflicts_with_subcommands = true
)]
pub(crate) struct WorkReviewArgs {
    /// Member whose work is shown, or the number of its task.
    #[arg(value_name = "NAME|TASK")]
    pub(crate) name: Option<String>,
    /// Push its commits, and open a pull request with `gh` or `glab`.
    #[arg(long, requires = "name", conflicts_with = "sync")]
    pub(crate) pr: bool,
    /// Draft the new comments of its pull request.
    #[arg(long, requires = "name")]
    pub(crate) sync: bool,
    #[command(subcommand)]
    pub(crate) verb: Option<ReviewVerb>,
}

#[derive(Debug, Subcommand, Deserialize, JsonSchema)]
#[command(defer = true)]
#[serde(tag = "action", rename_all = "snake_case")]
pub(crate) enum ReviewVerb {
    /// Show all work that waits for a review, as `phalanx review` does.
    Overview,
    /// Show the changed files of a member and the comments on them.
    Show(MemberArg),
    /// List comments: those that were sent, and your drafts.
    List {
        /// Only those on the work of this member.
        #[serde(default)]
        name: Option<String>,
    },
    Comment(CommentArgs),
    /// Remove a draft.
    Discard {
        /// Id of the comment.
        #[arg(value_name = "ID")]
        #[schemars(with = "String")]
        id: CommentId,
    },
    /// Send your drafts to the author as one message.
    #[command(
        after_help = "If the lead sends them, the task that the author has in review is sent back to it."
    )]
    Send(MemberArg),
    Answer(AnswerCommentArgs),
    /// Mark comments of yours as settled.
    Resolve {
        /// Ids of the comments.
        #[arg(value_name = "ID", required = true)]
        #[schemars(with = "Vec<String>")]
        ids: Vec<CommentId>,
    },
    /// Send a comment of yours again, with the reason why it is not settled.
    Reopen {
        /// Id of the comment.
        #[arg(value_name = "ID")]
        #[schemars(with = "String")]
        id: CommentId,
        /// The reason.
        text: String,
    },
    /// Say that you have reviewed the work, and nothing is left to change.
    #[command(after_help = "For members that review. The lead gets a message, and decides.")]
    Pass {
        /// Its author.
        name: String,
        /// For the lead.
        #[serde(default)]
        text: Option<String>,
    },
    Check(CheckWorkArgs),
    Approve(ApproveArgs),
    /// Cancel the task in review, and take the work off the list until it changes.
    #[command(
        after_help = "Files and commits stay. `phalanx worktree remove NAME` removes a worktree."
    )]
    Drop(MemberArg),
    Conflicts(ConflictsArgs),
}

/// Draft a comment on the work of a member.
#[derive(Debug, Args, Deserialize, JsonSchema)]
#[command(
    after_help = "Examples:\n  phalanx review comment ada \"Return the error.\" --at src/auth.rs:42-44\n  \
    phalanx review comment ada \"Why was this removed?\" --at src/auth.rs:88 --old --kind question\n\n\
    The author does not see a draft. `phalanx review send NAME` sends all of them."
)]
pub(crate) struct CommentArgs {
    /// Member whose work it is about.
    pub(crate) name: String,
    /// The comment.
    pub(crate) text: String,
    /// FILE, FILE:LINE or FILE:FIRST-LAST [default: the whole work].
    #[arg(long, value_name = "PLACE")]
    #[serde(default)]
    pub(crate) at: Option<String>,
    /// The line numbers are those before the change.
    #[arg(long, requires = "at")]
    #[serde(default)]
    pub(crate) old: bool,
    /// A note may be ignored [default: must].
    #[arg(long, value_parser = args::word::<CommentKind>())]
    #[serde(default, deserialize_with = "json::word")]
    #[schemars(schema_with = "json::words::<CommentKind>")]
    pub(crate) kind: Option<CommentKind>,
}

/// Answer a comment on your work.
#[derive(Debug, Args, Deserialize, JsonSchema)]
#[command(
    after_help = "Examples:\n  phalanx review answer R12 done \"returns the error of the caller\"\n  \
    phalanx review answer R13 declined \"the old name is public\""
)]
pub(crate) struct AnswerCommentArgs {
    /// Id of the comment.
    #[arg(value_name = "ID")]
    #[schemars(with = "String")]
    pub(crate) id: CommentId,
    /// Its kind.
    #[arg(value_parser = args::word::<AnswerKind>(), value_name = "ANSWER")]
    #[schemars(schema_with = "json::words::<AnswerKind>")]
    pub(crate) answer: AnswerKind,
    /// Change, reason or reply.
    #[serde(default)]
    pub(crate) text: Option<String>,
}
