//! A reviewer's word that work can land. It goes to the lead, who decides.

use super::changes::reviewed;
use super::comments::check_text;
use super::tasks::task_in_review;
use crate::mail::post::Post;
use crate::{Context, OpsError, now};
use model::digest;
use model::id::MemberName;
use model::mail::protocol::Message;
use model::review::{CommentKind, CommentState, ReviewComment, ReviewPass};
use model::team::event::{EventKind, Note};
use model::team::worktree::short_commit;
use model::text;
use store::TeamStore;
use sys::exec::CancelToken;

/// Records that the speaker has reviewed the work of a member as it is, and finds nothing left to
/// change. The lead gets a message.
///
/// # Errors
/// A refusal for the speaker's own work, for a lead, who decides itself, and while comments of the
/// speaker demand a change; as [`reviewed`]; [`OpsError::Usage`] for too long a text.
pub fn pass(
    ctx: &Context,
    team: &TeamStore,
    member: &MemberName,
    words: Option<&str>,
) -> Result<ReviewPass, OpsError> {
    if ctx.speaker.is_lead() {
        return Err(OpsError::refused(
            "a lead decides itself",
            format!("approve the work: `phalanx review approve {member}`"),
        ));
    }
    if ctx.speaker == *member {
        return Err(OpsError::refused(
            format!("`{member}` cannot pass its own work"),
            "hand it in: `phalanx task review ID`",
        ));
    }
    words.map_or(Ok(()), check_text)?;
    let found = reviewed(ctx, team, member, &CancelToken::default())?;
    let review = team.review()?;
    let is_open = |comment: &&ReviewComment| {
        let is_own = comment.by == ctx.speaker && comment.member == *member;
        let is_settled = comment.state() == CommentState::Resolved;
        is_own && !is_settled && comment.kind != CommentKind::Note
    };
    if let Some(open) = review.comments.iter().find(is_open) {
        let hint = match open.state() {
            CommentState::Draft => {
                format!("`phalanx review send {member}`, or `phalanx review discard {}`", open.id)
            }
            CommentState::Sent | CommentState::Answered | CommentState::Resolved => {
                format!("settle it: `phalanx review resolve {}`", open.id)
            }
        };
        return Err(OpsError::refused(format!("your comment {} is not resolved", open.id), hint));
    }
    let pass = ReviewPass {
        by: ctx.speaker.clone(),
        commit: found.snapshot,
        at: now(),
        text: words.unwrap_or_default().to_owned(),
    };
    team.change_review(|review| {
        let passes = review.passes.entry(member.clone()).or_default();
        passes.retain(|other| other.by != pass.by);
        passes.push(pass.clone());
        Ok(())
    })?;
    tell_lead(ctx, team, member, &pass)?;
    let note = Note::of(EventKind::ReviewPassed).member(member).with("by", pass.by.as_str());
    team.record(note.with("head", pass.commit.as_str()))?;
    Ok(pass)
}

fn tell_lead(
    ctx: &Context,
    team: &TeamStore,
    member: &MemberName,
    pass: &ReviewPass,
) -> Result<(), OpsError> {
    let commit = short_commit(&pass.commit);
    let mut said =
        format!("The work of {member} at {commit} is reviewed: nothing is left to change.");
    if !pass.text.is_empty() {
        said.push_str(&format!("\n\n{}\n", text::block(&pass.text)));
    }
    let next = match task_in_review(team, member)? {
        Some(task) => format!(
            "\n`phalanx review {member}` shows it; `phalanx review approve {member} --merge` approves \
             task #{} and lands the commits.",
            task.id
        ),
        None => format!(
            "\n`phalanx review {member}` shows it; `phalanx worktree merge {member}` lands it."
        ),
    };
    said.push_str(&next);
    let id = digest::hash(&[
        b"review-pass",
        pass.by.as_str().as_bytes(),
        member.as_str().as_bytes(),
        pass.commit.as_bytes(),
    ]);
    let post = Post::new(&ctx.speaker, &MemberName::lead(), Message::Text(said));
    post.with_id(id).send_once(team)
}
