//! The comments of a review: drafts of a reviewer, answers of the author, and what a reviewer has
//! seen.

use super::tasks::task_in_review;
use crate::mail::post::Post;
use crate::mail::send::can_be_told;
use crate::{Context, OpsError, now};
use model::id::{MemberName, TaskId};
use model::mail::protocol::Message;
use model::review::{
    AnswerKind, CommentAnswer, CommentId, CommentKind, CommentPlace, CommentState, PullRequest,
    ReviewComment, ReviewLook, TeamReview,
};
use model::team::event::{EventKind, Note};
use model::team::settings::Privacy;
use model::text;
use store::TeamStore;

/// Maximum length of the text of a comment and of an answer, in bytes.
pub(super) const MAX_TEXT: usize = 16 * 1024;
/// Maximum number of files that a reviewer can mark as viewed.
const MAX_VIEWED: usize = 20_000;
/// Characters of an answer that the message to the reviewer quotes.
const ANSWER: usize = 300;

/// A comment to draft.
#[derive(Debug, Clone)]
pub struct NewComment {
    /// The author of the work.
    pub member: MemberName,
    pub kind: CommentKind,
    pub place: Option<CommentPlace>,
    /// The commit since which the work is shown.
    pub base: String,
    /// The snapshot that is shown.
    pub commit: String,
    pub text: String,
}

/// Adds a draft of the speaker.
///
/// # Errors
/// [`OpsError::Usage`] for an empty or a too long text.
pub fn draft(ctx: &Context, team: &TeamStore, new: NewComment) -> Result<ReviewComment, OpsError> {
    check_text(&new.text)?;
    let task = task_in_review(team, &new.member)?.map(|task| task.id);
    let mut made = made(ctx, task, new);
    made.id = team.change_review(|review| {
        let comment = made.clone();
        Ok(review.add(|id| ReviewComment { id, ..comment }))
    })?;
    Ok(made)
}

/// Adds drafts of the speaker from the comments of a pull request, given with their ids, except
/// those that were added before. Returns the new ones.
///
/// # Errors
/// As [`draft`]; none is added then.
pub(super) fn import(
    ctx: &Context,
    team: &TeamStore,
    request: &PullRequest,
    comments: Vec<(String, NewComment)>,
) -> Result<Vec<CommentId>, OpsError> {
    let Some((_, first)) = comments.first() else { return Ok(Vec::new()) };
    let member = first.member.clone();
    let task = task_in_review(team, &member)?.map(|task| task.id);
    let mut drafts = Vec::new();
    for (remote, new) in comments {
        check_text(&new.text)?;
        drafts.push(ReviewComment { remote: Some(remote), ..made(ctx, task, new) });
    }
    Ok(team.change_review(|review| {
        let mut added = Vec::new();
        for draft in &drafts {
            let known = review.pull_requests.get_mut(&member);
            let Some(known) = known.filter(|known| known.is_same(request)) else { break };
            if known.imported.insert(draft.remote.clone().unwrap_or_default()) {
                added.push(review.add(|id| ReviewComment { id, ..draft.clone() }));
            }
        }
        Ok(added)
    })?)
}

/// Makes a draft of the speaker, which has no id yet.
fn made(ctx: &Context, task: Option<TaskId>, new: NewComment) -> ReviewComment {
    let NewComment { member, kind, place, base, commit, text } = new;
    ReviewComment {
        id: CommentId(0),
        member,
        by: ctx.speaker.clone(),
        task,
        kind,
        place,
        base,
        commit,
        text,
        remote: None,
        at: now(),
        sent: None,
        answer: None,
        resolved: None,
    }
}

/// Replaces the text of a draft.
///
/// # Errors
/// As [`draft`]; a refusal for a comment that was sent or that another reviewer made.
pub fn revise(
    ctx: &Context,
    team: &TeamStore,
    id: CommentId,
    kind: CommentKind,
    text: &str,
) -> Result<ReviewComment, OpsError> {
    check_text(text)?;
    change(team, id, |comment| {
        must_be_own_draft(ctx, comment)?;
        comment.kind = kind;
        text.clone_into(&mut comment.text);
        Ok(())
    })
}

/// Removes a draft.
///
/// # Errors
/// As [`revise`].
pub fn discard(ctx: &Context, team: &TeamStore, id: CommentId) -> Result<(), OpsError> {
    team.change_review(|review| {
        let found = find(review, id).and_then(|comment| must_be_own_draft(ctx, comment));
        if found.is_ok() {
            review.comments.retain(|comment| comment.id != id);
        }
        Ok(found)
    })?
}

/// Returns the comments that the speaker may see, oldest first; only those on the work of `member`
/// if one is given.
pub fn list(
    ctx: &Context,
    team: &TeamStore,
    member: Option<&MemberName>,
) -> Result<Vec<ReviewComment>, OpsError> {
    visible(ctx, team, &team.review()?, member)
}

/// Returns those comments of a review that [`list`] returns.
pub(super) fn visible(
    ctx: &Context,
    team: &TeamStore,
    review: &TeamReview,
    member: Option<&MemberName>,
) -> Result<Vec<ReviewComment>, OpsError> {
    let sees_all = ctx.speaker.is_lead()
        || team.settings()?.is_none_or(|settings| settings.privacy == Privacy::Open);
    let is_wanted = |comment: &&ReviewComment| {
        let concerns = [&comment.by, &comment.member].contains(&&ctx.speaker);
        (sees_all || concerns) && member.is_none_or(|name| comment.member == *name)
    };
    Ok(review.visible_to(&ctx.speaker).filter(is_wanted).cloned().collect())
}

/// Answers a comment as the author of the work. When nothing of the review is open any longer, its
/// reviewer gets a message.
///
/// # Errors
/// [`OpsError::Usage`] for a comment that does not exist, and for an answer without the text that
/// it needs; a refusal for a member that is not the author.
pub fn answer(
    ctx: &Context,
    team: &TeamStore,
    id: CommentId,
    kind: AnswerKind,
    words: &str,
) -> Result<ReviewComment, OpsError> {
    if kind != AnswerKind::Done || !words.is_empty() {
        check_text(words)?;
    }
    let given = CommentAnswer { kind, text: words.to_owned(), at: now() };
    let comment = change(team, id, |comment| {
        if comment.sent.is_none() {
            return Err(no_such_comment(id));
        }
        if comment.member != ctx.speaker && !ctx.speaker.is_lead() {
            return Err(OpsError::refused(
                format!("{id} is a comment on the work of `{}`", comment.member),
                "only the author of the work answers it",
            ));
        }
        if comment.resolved.is_some() {
            return Err(OpsError::refused(
                format!("{id} is resolved"),
                "its reviewer can reopen it: `phalanx review reopen`",
            ));
        }
        comment.answer = Some(given.clone());
        Ok(())
    })?;
    let note = Note::of(EventKind::CommentAnswered).member(&comment.member);
    let note = note.with("comment", id.to_string()).with("answer", <&str>::from(kind));
    team.record(note.with("text", words))?;
    tell_reviewer(ctx, team, &comment)?;
    Ok(comment)
}

/// Marks a comment as settled.
///
/// # Errors
/// [`OpsError::Usage`] for a comment that does not exist; a refusal for a draft, and for a member
/// that is not its reviewer.
pub fn resolve(ctx: &Context, team: &TeamStore, id: CommentId) -> Result<ReviewComment, OpsError> {
    let comment = change(team, id, |comment| {
        must_be_its_reviewer(ctx, comment)?;
        comment.resolved = comment.resolved.or(Some(now()));
        Ok(())
    })?;
    let note = Note::of(EventKind::CommentResolved).member(&comment.member);
    let note = note.with("comment", id.to_string()).with("by", ctx.speaker.as_str());
    team.record(note)?;
    Ok(comment)
}

/// Returns what the speaker saw last of the work of a member.
pub fn look(
    ctx: &Context,
    team: &TeamStore,
    member: &MemberName,
) -> Result<Option<ReviewLook>, OpsError> {
    let mut review = team.review()?;
    let looks = review.looks.remove(&ctx.speaker);
    Ok(looks.and_then(|mut looks| looks.remove(member)))
}

/// Records that the speaker has seen a snapshot of the work of a member.
pub fn note_look(
    ctx: &Context,
    team: &TeamStore,
    member: &MemberName,
    snapshot: &str,
) -> Result<(), OpsError> {
    change_look(ctx, team, member, |look| {
        snapshot.clone_into(&mut look.commit);
        look.at = now();
    })
}

/// Records whether the speaker has viewed the content `blob` of a file.
pub fn mark_viewed(
    ctx: &Context,
    team: &TeamStore,
    member: &MemberName,
    path: &str,
    blob: &str,
    viewed: bool,
) -> Result<(), OpsError> {
    change_look(ctx, team, member, |look| {
        if !viewed {
            look.viewed.remove(path);
        } else if look.viewed.len() < MAX_VIEWED {
            look.viewed.insert(path.to_owned(), blob.to_owned());
        }
    })
}

fn change_look(
    ctx: &Context,
    team: &TeamStore,
    member: &MemberName,
    edit: impl Fn(&mut ReviewLook),
) -> Result<(), OpsError> {
    let new = || ReviewLook { commit: String::new(), at: now(), viewed: Default::default() };
    Ok(team.change_review(|review| {
        let looks = review.looks.entry(ctx.speaker.clone()).or_default();
        edit(looks.entry(member.clone()).or_insert_with(new));
        Ok(())
    })?)
}

/// Changes one comment under the lock of the review, and returns it.
pub(super) fn change(
    team: &TeamStore,
    id: CommentId,
    edit: impl Fn(&mut ReviewComment) -> Result<(), OpsError>,
) -> Result<ReviewComment, OpsError> {
    team.change_review(|review| {
        Ok(find(review, id).and_then(|comment| {
            edit(comment)?;
            Ok(comment.clone())
        }))
    })?
}

fn find(review: &mut TeamReview, id: CommentId) -> Result<&mut ReviewComment, OpsError> {
    let found = review.comments.iter_mut().find(|comment| comment.id == id);
    found.ok_or_else(|| no_such_comment(id))
}

fn no_such_comment(id: CommentId) -> OpsError {
    let hint = "`phalanx review list` shows all comments";
    OpsError::usage(format!("there is no comment {id}"), hint)
}

fn must_be_own_draft(ctx: &Context, comment: &ReviewComment) -> Result<(), OpsError> {
    if comment.sent.is_some() {
        let hint = format!("settle it: `phalanx review resolve {}`", comment.id);
        return Err(OpsError::refused(format!("{} was sent already", comment.id), hint));
    }
    // A draft of another reviewer is not visible.
    if comment.by == ctx.speaker { Ok(()) } else { Err(no_such_comment(comment.id)) }
}

/// Rejects a draft, and a speaker that is neither its reviewer nor the lead.
pub(super) fn must_be_its_reviewer(ctx: &Context, comment: &ReviewComment) -> Result<(), OpsError> {
    if comment.sent.is_none() {
        must_be_own_draft(ctx, comment)?;
        let hint = format!(
            "send it: `phalanx review send {}`, or `phalanx review discard {}`",
            comment.member, comment.id
        );
        return Err(OpsError::refused(format!("{} is a draft", comment.id), hint));
    }
    if comment.by == ctx.speaker || ctx.speaker.is_lead() {
        return Ok(());
    }
    Err(OpsError::refused(
        format!("{} is a comment of `{}`", comment.id, comment.by),
        format!("answer it: `phalanx review answer {}`", comment.id),
    ))
}

pub(super) fn check_text(words: &str) -> Result<(), OpsError> {
    if words.trim().is_empty() || words.len() > MAX_TEXT {
        let problem =
            format!("a comment or an answer has 1 to {MAX_TEXT} bytes, not {}", words.len());
        return Err(OpsError::Usage { problem, hint: None });
    }
    Ok(())
}

/// Sends the answers of a review to its reviewer, when all of its comments are answered.
fn tell_reviewer(ctx: &Context, team: &TeamStore, last: &ReviewComment) -> Result<(), OpsError> {
    if last.by == ctx.speaker || !can_be_told(team, &last.by)? {
        return Ok(());
    }
    let review = team.review()?;
    let of_review = |comment: &&ReviewComment| {
        comment.by == last.by
            && comment.member == last.member
            && matches!(comment.state(), CommentState::Sent | CommentState::Answered)
    };
    let all: Vec<&ReviewComment> = review.comments.iter().filter(of_review).collect();
    if all.iter().any(|comment| comment.answer.is_none()) {
        return Ok(());
    }
    let mut words = format!("{} has answered your review:", last.member);
    for comment in all {
        let Some(answer) = &comment.answer else { continue };
        words.push_str(&format!("\n[{}] {}", comment.id, <&str>::from(answer.kind)));
        if !answer.text.is_empty() {
            words.push_str(&format!(": {}", text::short(&answer.text, ANSWER)));
        }
    }
    words.push_str(&format!(
        "\nSee it with `phalanx review {}`; settle each with `phalanx review resolve ID`, or \
         `phalanx review reopen ID \"why\"`.",
        last.member
    ));
    Post::new(&ctx.speaker, &last.by, Message::Text(words)).send(team).map(drop)
}
