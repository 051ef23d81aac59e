//! Effects of keys, which the driver carries out, and the news that it sends back.

use std::sync::Arc;

use diff::CodeBlob;

use super::data::{ChangesRequest, OpenedWork, WorkList};
use model::code::CodeTokens;
use model::id::{MemberName, TaskId};
use model::review::{CommentId, CommentKind, CommentPlace, PlacedComment};
use model::team::worktree::LandingKind;

/// A request to the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReviewEffect {
    Quit,
    Suspend,
    /// Draw every cell again.
    Redraw,
    /// Read the works of the team again.
    ReadList,
    /// Read the changes of a member, instead of those that are being read.
    Open(ChangesRequest),
    /// Stop to read changes.
    Cancel,
    ReadComments {
        member: MemberName,
        snapshot: String,
    },
    /// Find the conflicts of the work of the member with the branch.
    ReadConflicts {
        number: u64,
        member: MemberName,
    },
    /// Make the message with all drafts on the work of the member.
    ReadMessage {
        number: u64,
        member: MemberName,
    },
    /// Find the words of contents in the work of a member. Only successes are news.
    ReadCode {
        member: MemberName,
        code: Vec<CodeBlob>,
    },
    Perform(ReviewAction),
}

/// A change that the reviewer makes. It has its object, so that it does not depend on what is
/// selected when it is carried out. Commits are those that were on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReviewAction {
    Draft {
        member: MemberName,
        kind: CommentKind,
        /// `None` for the work as a whole.
        place: Option<CommentPlace>,
        base: String,
        commit: String,
        text: String,
    },
    Revise {
        member: MemberName,
        id: CommentId,
        kind: CommentKind,
        text: String,
    },
    Discard {
        member: MemberName,
        id: CommentId,
    },
    Resolve {
        member: MemberName,
        id: CommentId,
    },
    Reopen {
        member: MemberName,
        id: CommentId,
        text: String,
    },
    /// Send all drafts as one message, which was shown. A driver refuses it if the message would be
    /// another one by now.
    Send {
        member: MemberName,
        commit: String,
        message: String,
    },
    /// Approve the task, and land the commits in the form that is given.
    Approve {
        member: MemberName,
        task: TaskId,
        commit: String,
        landing: Option<LandingKind>,
    },
    /// Cancel the task in review, and take the work off the list.
    Drop {
        member: MemberName,
        commit: String,
    },
    /// Run the checks of the team. This can take long.
    Check {
        member: MemberName,
        commit: String,
    },
    /// Give the author a task to resolve the conflicts of its work.
    GiveConflicts {
        member: MemberName,
        commit: String,
    },
    Land {
        member: MemberName,
        head: String,
        kind: LandingKind,
        /// The task that is completed with it.
        completes: Option<TaskId>,
    },
    /// Take the work that has landed last off the branch, if that is still at `main`.
    Undo {
        into: String,
        main: String,
    },
    NoteLook {
        member: MemberName,
        commit: String,
    },
    MarkViewed {
        member: MemberName,
        path: String,
        blob: String,
        viewed: bool,
    },
}

impl ReviewAction {
    /// Returns the member whose work it concerns.
    pub fn member(&self) -> Option<&MemberName> {
        match self {
            ReviewAction::Draft { member, .. }
            | ReviewAction::Revise { member, .. }
            | ReviewAction::Discard { member, .. }
            | ReviewAction::Resolve { member, .. }
            | ReviewAction::Reopen { member, .. }
            | ReviewAction::Send { member, .. }
            | ReviewAction::Approve { member, .. }
            | ReviewAction::Drop { member, .. }
            | ReviewAction::Check { member, .. }
            | ReviewAction::GiveConflicts { member, .. }
            | ReviewAction::Land { member, .. }
            | ReviewAction::NoteLook { member, .. }
            | ReviewAction::MarkViewed { member, .. } => Some(member),
            ReviewAction::Undo { .. } => None,
        }
    }

    /// Returns true for a record that is kept without a message.
    pub(super) fn is_silent(&self) -> bool {
        matches!(self, ReviewAction::NoteLook { .. } | ReviewAction::MarkViewed { .. })
    }
}

/// A result that has arrived. Problems are texts for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReviewNews {
    List(Result<WorkList, String>),
    Opened {
        number: u64,
        work: Result<Box<OpenedWork>, String>,
    },
    Comments {
        member: MemberName,
        snapshot: String,
        comments: Result<Vec<PlacedComment>, String>,
    },
    Message {
        number: u64,
        text: Result<String, String>,
    },
    /// The conflicts as a text.
    Conflicts {
        number: u64,
        text: Result<String, String>,
    },
    Code {
        code: CodeBlob,
        tokens: Arc<CodeTokens>,
    },
    /// The result of an action in words.
    Done {
        action: ReviewAction,
        words: Result<String, String>,
    },
}
