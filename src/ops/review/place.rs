//! The places of comments: the lines that a reviewer names, and where they are in a later snapshot.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::changes::{Reviewed, moved};
use super::comments::list;
use crate::team::worktree::{checkout_of, repository};
use crate::{Context, OpsError};
use model::id::MemberName;
use model::review::{CommentLines, CommentPlace, LineSide, PlaceNow, PlacedComment, ReviewComment};
use store::TeamStore;
use worktree::Followed;

/// A place as a person writes it: `FILE`, `FILE:LINE` or `FILE:FIRST-LAST`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenPlace {
    pub path: String,
    /// The first and the last line.
    pub lines: Option<(u32, u32)>,
}

impl FromStr for GivenPlace {
    type Err = String;

    fn from_str(given: &str) -> Result<GivenPlace, String> {
        let whole = || GivenPlace { path: given.to_owned(), lines: None };
        let Some((path, lines)) = given.rsplit_once(':') else { return Ok(whole()) };
        let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
        let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) else {
            return Ok(whole());
        };
        if path.is_empty() || first == 0 || last < first {
            return Err(format!("{given:?} names no lines"));
        }
        Ok(GivenPlace { path: path.to_owned(), lines: Some((first, last)) })
    }
}

/// Returns a place in the work that is reviewed, with the lines as they are there.
///
/// # Errors
/// [`OpsError::Usage`] for a file or a line that does not exist on this side, and for a file that
/// the work does not change.
pub fn find(
    ctx: &Context,
    team: &TeamStore,
    reviewed: &Reviewed,
    given: &GivenPlace,
    side: LineSide,
) -> Result<CommentPlace, OpsError> {
    let checkout = checkout_of(ctx, team, &reviewed.name)?;
    let repository = repository(ctx, &checkout);
    let path = as_git_names_it(&given.path, &checkout.path);
    let old = repository.file_at(&reviewed.base, &path)?;
    let new = repository.file_at(&reviewed.snapshot, &path)?;
    let problem = match (&old, &new) {
        (Some(_), None) if side == LineSide::New => "deletes it; `--old` is for its lines",
        (None, Some(_)) if side == LineSide::Old => "adds it; its lines need no `--old`",
        (old, new) if old == new => "does not change it",
        (_, _) => "",
    };
    let content = if side == LineSide::Old { old } else { new };
    let Some(content) = content.filter(|_| problem.is_empty()) else {
        let problem = format!("{path:?}: the work of `{}` {problem}", reviewed.name);
        let hint = format!("`phalanx review {}` lists the changed files", reviewed.name);
        return Err(OpsError::usage(problem, hint));
    };
    let Some((first, last)) = given.lines else {
        return Ok(CommentPlace { path, lines: None });
    };
    let all: Vec<&[u8]> = lines_of(&content);
    let skipped = usize::try_from(first).map_or(usize::MAX, |first| first - 1);
    if usize::try_from(last).map_or(true, |last| last > all.len()) {
        let problem = format!("{path} has {} line(s), not {last}", all.len());
        return Err(OpsError::usage(problem, "name the lines that it has, or only the file"));
    }
    let length = usize::try_from(last - first).unwrap_or(0) + 1;
    let quoted = all.into_iter().skip(skipped).take(length);
    let lines = CommentLines::quoting(side, first, last, quoted);
    Ok(CommentPlace { path, lines: Some(lines) })
}

/// Returns a path without the directory of the worktree, a leading `./` and doubled slashes.
fn as_git_names_it(given: &str, worktree: &str) -> String {
    let path = Path::new(given);
    let inner = path.strip_prefix(worktree).or_else(|_| path.strip_prefix("."));
    inner.unwrap_or(path).components().collect::<PathBuf>().to_string_lossy().into_owned()
}

/// Splits a content into lines as git counts them.
fn lines_of(content: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = content.split(|byte| *byte == b'\n').collect();
    if lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    lines
}

/// Returns the comments on the work of a member that the speaker may see, with their places in the
/// snapshot.
pub fn placed(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
    snapshot: &str,
) -> Result<Vec<PlacedComment>, OpsError> {
    let comments = list(ctx, team, Some(name))?;
    // One comparison for all comments on a file of the same snapshot.
    let mut compared = BTreeMap::new();
    let mut place = |comment: &ReviewComment| {
        let Some(place) = &comment.place else { return PlaceNow::Fixed };
        let Some(lines) = place.lines.as_ref().filter(|lines| lines.side == LineSide::New) else {
            return PlaceNow::Fixed;
        };
        let (first, last) = (lines.first, lines.last);
        if comment.commit == snapshot {
            return PlaceNow::Same { first, last };
        }
        let moves = compared
            .entry((comment.commit.clone(), place.path.clone()))
            .or_insert_with(|| moved(ctx, team, name, &comment.commit, snapshot, &place.path));
        // A snapshot that git has removed tells nothing.
        match moves.as_ref().map(|moves| moves.follow(first, last)) {
            Ok(Followed::Same { first, last }) => PlaceNow::Same { first, last },
            Ok(Followed::Changed { first, last }) => PlaceNow::Changed { first, last },
            Ok(Followed::Gone) | Err(_) => PlaceNow::Gone,
        }
    };
    Ok(comments
        .into_iter()
        .map(|comment| PlacedComment { now: place(&comment), comment })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_files_and_lines() {
        let whole = |path: &str| Ok(GivenPlace { path: path.to_owned(), lines: None });
        let lines = |path: &str, first, last| {
            Ok(GivenPlace { path: path.to_owned(), lines: Some((first, last)) })
        };
        for (given, expected) in [
            ("src/a.rs", whole("src/a.rs")),
            ("a:b.txt", whole("a:b.txt")),
            ("a.rs:12", lines("a.rs", 12, 12)),
            ("a:b.txt:3-9", lines("a:b.txt", 3, 9)),
        ] {
            assert_eq!(given.parse(), expected, "{given}");
        }
        for bad in ["a:0", "a:9-3", ":7"] {
            assert!(bad.parse::<GivenPlace>().is_err(), "{bad}");
        }
    }

    #[test]
    fn rv_37_paths_of_a_worktree_are_those_of_git() {
        for given in ["a/b", "./a/b", "a//b", "a/./b", "a/b/", "/w/ann/a/b", "/w//ann/./a/b"] {
            assert_eq!(as_git_names_it(given, "/w/ann"), "a/b", "{given}");
        }
        for other in ["../a", "/w/annika/a", "a/../b"] {
            assert_eq!(as_git_names_it(other, "/w/ann"), other);
        }
    }

    #[test]
    fn lines_are_counted_as_git_counts_them() {
        assert_eq!(lines_of(b""), Vec::<&[u8]>::new());
        assert_eq!(lines_of(b"a\n\nb"), [&b"a"[..], b"", b"b"]);
        assert_eq!(lines_of(b"a\r\nb\n"), [&b"a\r"[..], b"b"]);
    }
}
