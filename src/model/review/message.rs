//! The message with which a reviewer sends comments to the author of the work.

use super::{CommentKind, ReviewComment};
use crate::id::MemberName;
use crate::team::worktree::short_commit;
use crate::text;

/// Builds the message with all comments of a review: one place, quoted code and text for each, and
/// the command that answers them. Comments are in the order of files and lines.
pub fn review_message(member: &MemberName, comments: &[&ReviewComment]) -> String {
    let mut ordered = comments.to_vec();
    ordered.sort_by_key(|comment| place_key(comment));
    let shown = ordered.first();
    let shown = shown.map(|first| (short_commit(&first.base), short_commit(&first.commit)));
    let (base, commit) = shown.unwrap_or_default();
    let mut message = format!(
        "Review of the work of {member} (base {base}, reviewed at {commit}): {}.\n\
         Line numbers are of {commit}; find the place by the quoted code.",
        counts(&ordered)
    );
    for comment in &ordered {
        message.push_str(&format!(
            "\n\n[{}] {} · {}",
            comment.id,
            <&str>::from(comment.kind),
            comment.place_words()
        ));
        let lines = comment.place.as_ref().and_then(|place| place.lines.as_ref());
        if let Some(lines) = lines {
            for line in &lines.quote {
                message.push_str(&format!("\n    {line}"));
            }
            let all = usize::try_from(lines.last.saturating_sub(lines.first)).unwrap_or(0) + 1;
            if all > lines.quote.len() {
                message.push_str(&format!("\n    … {} more line(s)", all - lines.quote.len()));
            }
        }
        for line in text::block(&comment.text).lines() {
            message.push_str(&format!("\n  {line}"));
        }
    }
    let example = ordered.first().map(|comment| comment.id.to_string()).unwrap_or_default();
    message.push_str(&format!(
        "\n\nFor each: change it and commit, or answer. Then, once for each:\n  \
         phalanx review answer {example} done \"what you changed\"   (or: declined \"why\", reply \"...\")"
    ));
    message
}

fn place_key(comment: &ReviewComment) -> (Option<&str>, Option<u32>, u32) {
    let place = comment.place.as_ref();
    let line = place.and_then(|place| place.lines.as_ref()).map(|lines| lines.first);
    (place.map(|place| place.path.as_str()), line, comment.id.0)
}

/// Returns the number of comments of each kind: `2 must, 1 question`.
fn counts(comments: &[&ReviewComment]) -> String {
    let kinds = [CommentKind::Must, CommentKind::Question, CommentKind::Note];
    let count = |kind| (kind, comments.iter().filter(|comment| comment.kind == kind).count());
    let counted = kinds.into_iter().map(count).filter(|(_, number)| *number > 0);
    let words: Vec<String> =
        counted.map(|(kind, number)| format!("{number} {}", <&str>::from(kind))).collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::{CommentId, CommentLines, CommentPlace, LineSide};
    use super::*;
    use crate::time::Timestamp;

    fn comment(
        id: u32,
        kind: CommentKind,
        place: Option<CommentPlace>,
        text: &str,
    ) -> ReviewComment {
        let name = |name| MemberName::existing(name).expect("a name");
        ReviewComment {
            id: CommentId(id),
            member: name("ada"),
            by: MemberName::lead(),
            task: None,
            kind,
            place,
            base: "1a2b3c4d5e6f7a8b".to_owned(),
            commit: "9f8e7d6c5b4a3928".to_owned(),
            text: text.to_owned(),
            remote: None,
            at: Timestamp(1),
            sent: None,
            answer: None,
            resolved: None,
        }
    }

    fn lines(side: LineSide, first: u32, last: u32, quote: &[&[u8]]) -> Option<CommentPlace> {
        let lines = CommentLines::quoting(side, first, last, quote.iter().copied());
        Some(CommentPlace { path: "src/auth.rs".to_owned(), lines: Some(lines) })
    }

    #[test]
    fn message_has_place_code_text_and_the_command_to_answer() {
        let first = comment(
            12,
            CommentKind::Must,
            lines(LineSide::New, 42, 44, &[b"    let t = env();", b"\x1b[31mtwo"]),
            "Panics without TOKEN.\nReturn the error.",
        );
        let second =
            comment(13, CommentKind::Question, lines(LineSide::Old, 8, 8, &[b"x"]), "Why?");
        let whole = comment(14, CommentKind::Note, None, "Nice.");
        let member = MemberName::existing("ada").expect("a name");
        let expected = "\
Review of the work of ada (base 1a2b3c4d5e6f, reviewed at 9f8e7d6c5b4a): 1 must, 1 question, 1 note.
Line numbers are of 9f8e7d6c5b4a; find the place by the quoted code.

[R14] note · the whole
  Nice.

[R13] question · src/auth.rs:8 (old)
    x
  Why?

[R12] must · src/auth.rs:42-44 (new)
        let t = env();
    ␛[31mtwo
    … 1 more line(s)
  Panics without TOKEN.
  Return the error.

For each: change it and commit, or answer. Then, once for each:
  phalanx review answer R14 done \"what you changed\"   (or: declined \"why\", reply \"...\")";
        assert_eq!(review_message(&member, &[&first, &second, &whole]), expected);
    }
}
