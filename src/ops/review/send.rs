//! Sends the comments of a reviewer to the author of the work, as one message.

use serde::Serialize;

use super::comments::{change, check_text, must_be_its_reviewer};
use super::tasks::{TaskInReview, task_in_review};
use crate::authority::{self, Action};
use crate::board::task;
use crate::mail::post::Post;
use crate::mail::send::can_be_told;
use crate::{Context, OpsError, now};
use model::board::task::TaskAction;
use model::digest;
use model::id::{MemberName, TaskId};
use model::mail::protocol::Message;
use model::review::{CommentId, CommentState, ReviewComment, review_message};
use model::team::event::{EventKind, Note};
use store::{StoreError, TaskStep, TeamStore};
use sys::failpoint;

/// A review that was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReviewReport {
    pub member: MemberName,
    pub comments: Vec<CommentId>,
    /// The task that was returned to the author.
    pub returned: Option<TaskId>,
    /// The text of the message.
    pub message: String,
}

/// Returns the message that [`send`] would send.
///
/// # Errors
/// A refusal if the speaker has no drafts on the work of this member.
pub fn message(ctx: &Context, team: &TeamStore, member: &MemberName) -> Result<String, OpsError> {
    Ok(review_message(member, &drafts(ctx, team, member)?.iter().collect::<Vec<_>>()))
}

/// Sends all drafts of the speaker on the work of a member as one message. A lead also returns the
/// task that the member has in review.
///
/// # Errors
/// As [`message`]; a refusal if the member reads no messages; failures to send.
pub fn send(
    ctx: &Context,
    team: &TeamStore,
    member: &MemberName,
) -> Result<ReviewReport, OpsError> {
    let drafts = drafts(ctx, team, member)?;
    must_read_messages(team, member)?;
    let comments: Vec<CommentId> = drafts.iter().map(|comment| comment.id).collect();
    let message = review_message(member, &drafts.iter().collect::<Vec<_>>());
    let note = Note::of(EventKind::ReviewSent).member(member).with("by", ctx.speaker.as_str());
    deliver(ctx, team, member, &message, note.with("comments", ids(&comments)))?;
    failpoint::hit("review.said");
    team.change_review(|review| {
        let sent = review.comments.iter_mut().filter(|comment| comments.contains(&comment.id));
        sent.for_each(|comment| comment.sent = comment.sent.or(Some(now())));
        Ok(())
    })?;
    let returned = return_task(ctx, team, member, &comments)?;
    Ok(ReviewReport { member: member.clone(), comments, returned, message })
}

/// Opens a comment again that was answered or resolved, and sends it to the author with the reason.
///
/// # Errors
/// [`OpsError::Usage`] for a comment that does not exist or an empty reason; a refusal for a draft,
/// and for a member that is not its reviewer.
pub fn reopen(
    ctx: &Context,
    team: &TeamStore,
    id: CommentId,
    why: &str,
) -> Result<ReviewReport, OpsError> {
    check_text(why)?;
    let found = team.review()?.comment(id).cloned();
    if let Some(comment) = &found {
        must_read_messages(team, &comment.member)?;
    }
    let comment = change(team, id, |comment| {
        must_be_its_reviewer(ctx, comment)?;
        (comment.answer, comment.resolved) = (None, None);
        comment.text.push_str(&format!("\n\nReopened: {why}"));
        Ok(())
    })?;
    let member = comment.member.clone();
    let message = review_message(&member, &[&comment]);
    let note = Note::of(EventKind::ReviewSent).member(&member).with("by", ctx.speaker.as_str());
    deliver(ctx, team, &member, &message, note.with("comments", id.to_string()))?;
    let returned = return_task(ctx, team, &member, &[id])?;
    Ok(ReviewReport { member, comments: vec![id], returned, message })
}

/// Sends the message once, also if a process was killed after it and the drafts are sent again.
fn deliver(
    ctx: &Context,
    team: &TeamStore,
    member: &MemberName,
    message: &str,
    note: Note,
) -> Result<(), OpsError> {
    let id = digest::hash(&[b"review", ctx.speaker.as_str().as_bytes(), message.as_bytes()]);
    let post = Post::new(&ctx.speaker, member, Message::Text(message.to_owned()));
    post.with_id(id).send_once(team)?;
    team.record(note)?;
    Ok(())
}

/// Returns the member's task in review to it, if the speaker may. The review is the message.
fn return_task(
    ctx: &Context,
    team: &TeamStore,
    member: &MemberName,
    comments: &[CommentId],
) -> Result<Option<TaskId>, OpsError> {
    if !authority::permits(ctx, Action::DecideTask) {
        return Ok(None);
    }
    let Some(TaskInReview { id, .. }) = task_in_review(team, member)? else { return Ok(None) };
    let reason = Some(format!("comments {}", ids(comments)));
    let step = TaskStep { reason, ..TaskStep::of(TaskAction::Reject) };
    match task::end_without_notice(team, id, &ctx.speaker, &step) {
        Ok(()) => Ok(Some(id)),
        // Another process has decided meanwhile.
        Err(OpsError::Store(StoreError::Transition { .. })) => Ok(None),
        Err(e) => Err(e),
    }
}

fn must_read_messages(team: &TeamStore, member: &MemberName) -> Result<(), OpsError> {
    if can_be_told(team, member)? {
        return Ok(());
    }
    Err(OpsError::refused(
        format!("`{member}` is not on the team or reads no messages"),
        format!("start it again: `phalanx resume {member}`; the drafts are kept"),
    ))
}

fn ids(comments: &[CommentId]) -> String {
    comments.iter().map(CommentId::to_string).collect::<Vec<_>>().join(", ")
}

/// Returns the drafts of the speaker on the work of a member.
fn drafts(
    ctx: &Context,
    team: &TeamStore,
    member: &MemberName,
) -> Result<Vec<ReviewComment>, OpsError> {
    let review = team.review()?;
    let is_draft = |comment: &&ReviewComment| {
        comment.state() == CommentState::Draft
            && comment.by == ctx.speaker
            && comment.member == *member
    };
    let drafts: Vec<ReviewComment> = review.comments.iter().filter(is_draft).cloned().collect();
    if drafts.is_empty() {
        return Err(OpsError::refused(
            format!("there are no drafts on the work of `{member}`"),
            format!("write one: `phalanx review comment {member} \"text\" --at FILE:LINE`"),
        ));
    }
    Ok(drafts)
}
