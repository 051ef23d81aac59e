//! Comments on the work of members, and what each reviewer has looked at.

mod check;
mod message;
mod pull_request;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::id::{MemberName, TaskId};
use crate::text;
use crate::time::Timestamp;

pub use check::{CheckEnd, CheckRun};
pub use message::review_message;
pub use pull_request::{ForgeTool, PullRequest, PullRequestState};

/// Maximum number of comments of a team. Resolved ones are dropped first.
pub const MAX_COMMENTS: usize = 2_000;
/// Maximum number of lines that a comment quotes.
pub const MAX_QUOTED: usize = 30;
/// Maximum length of a quoted line, in characters.
const MAX_QUOTED_LINE: usize = 300;

/// The reviews of a team.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamReview {
    pub format: u32,
    /// The number of the last comment that was ever made.
    #[serde(default)]
    pub last: u32,
    /// Oldest first.
    #[serde(default)]
    pub comments: Vec<ReviewComment>,
    /// By reviewer, then by the member whose work it is.
    #[serde(default)]
    pub looks: BTreeMap<MemberName, BTreeMap<MemberName, ReviewLook>>,
    /// By the member whose work was checked, then by the name of the check.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub checks: BTreeMap<MemberName, BTreeMap<String, CheckRun>>,
    /// By the member whose work was passed, the last one of each reviewer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub passes: BTreeMap<MemberName, Vec<ReviewPass>>,
    /// Work that was dropped, by member: the snapshot that does not wait for a review.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dropped: BTreeMap<MemberName, String>,
    /// The last pull request of each member's work.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pull_requests: BTreeMap<MemberName, PullRequest>,
}

/// The id of a comment, `R12`. It is unique in its team.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct CommentId(pub u32);

impl From<CommentId> for String {
    fn from(id: CommentId) -> String {
        id.to_string()
    }
}

impl TryFrom<String> for CommentId {
    type Error = String;

    fn try_from(given: String) -> Result<CommentId, String> {
        given.parse()
    }
}

impl fmt::Display for CommentId {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "R{}", self.0)
    }
}

impl FromStr for CommentId {
    type Err = String;

    fn from_str(given: &str) -> Result<CommentId, String> {
        let digits = given.strip_prefix(['R', 'r']).unwrap_or(given);
        let number = digits.parse().ok().filter(|_| digits.bytes().all(|c| c.is_ascii_digit()));
        number
            .map(CommentId)
            .ok_or_else(|| format!("{given:?} is not the id of a comment, such as R12"))
    }
}

/// The weight of a comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum CommentKind {
    /// The author has to change something.
    #[default]
    Must,
    /// The author has to explain something.
    Question,
    /// The author may ignore it.
    Note,
}

/// A part of the work, as it was shown to the reviewer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommentPlace {
    /// The path in the repository; bytes that are not UTF-8 are replaced.
    pub path: String,
    /// `None` for the whole file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<CommentLines>,
}

/// Lines of a file on one side of the change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommentLines {
    pub side: LineSide,
    pub first: u32,
    pub last: u32,
    /// Their text, as far as it is kept.
    pub quote: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[derive(strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum LineSide {
    /// Before the change.
    Old,
    /// After the change.
    New,
}

/// A comment of a reviewer on the work of a member.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewComment {
    pub id: CommentId,
    /// The author of the work.
    pub member: MemberName,
    /// The reviewer.
    pub by: MemberName,
    /// The task that the author had in review.
    pub task: Option<TaskId>,
    pub kind: CommentKind,
    /// `None` for the work as a whole.
    pub place: Option<CommentPlace>,
    /// The commit since which the work was shown.
    pub base: String,
    /// The snapshot that was shown.
    pub commit: String,
    pub text: String,
    /// The id of the comment of a pull request that it was made from.
    pub remote: Option<String>,
    pub at: Timestamp,
    /// `None` for a draft.
    pub sent: Option<Timestamp>,
    pub answer: Option<CommentAnswer>,
    /// Set by the reviewer only.
    pub resolved: Option<Timestamp>,
}

/// The author's answer to a comment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommentAnswer {
    pub kind: AnswerKind,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    pub at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum AnswerKind {
    /// The work was changed.
    Done,
    /// The work stays as it is, for the reason given.
    Declined,
    /// An answer to a question.
    Reply,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum CommentState {
    /// Only its reviewer sees it.
    Draft,
    Sent,
    Answered,
    Resolved,
}

/// The work of a member as a reviewer saw it last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewLook {
    /// The snapshot that was shown.
    pub commit: String,
    pub at: Timestamp,
    /// The files that the reviewer marked as viewed, with the ids of their contents: a mark counts
    /// until the content changes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub viewed: BTreeMap<String, String>,
}

/// A reviewer's word that work can land.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewPass {
    /// The reviewer.
    pub by: MemberName,
    /// The snapshot that was reviewed.
    pub commit: String,
    pub at: Timestamp,
    /// The reviewer's summary.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}

/// A comment, and where its lines are in the snapshot that is shown now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlacedComment {
    #[serde(flatten)]
    pub comment: ReviewComment,
    pub now: PlaceNow,
}

/// The place of a comment in a later snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "lines")]
pub enum PlaceNow {
    /// The lines are the same, here.
    Same { first: u32, last: u32 },
    /// The lines have changed; those here replace them.
    Changed { first: u32, last: u32 },
    /// The lines or the file no longer exist, or nothing tells where they are.
    Gone,
    /// The comment is on no lines, or on lines before the change.
    Fixed,
}

impl ReviewComment {
    pub fn state(&self) -> CommentState {
        match (self.sent, self.resolved, &self.answer) {
            (None, ..) => CommentState::Draft,
            (Some(_), Some(_), _) => CommentState::Resolved,
            (Some(_), None, Some(_)) => CommentState::Answered,
            (Some(_), None, None) => CommentState::Sent,
        }
    }

    /// Returns its place in a line: `src/auth.rs:42-44 (new)`, or `the whole`.
    pub fn place_words(&self) -> String {
        let Some(place) = &self.place else { return "the whole".to_owned() };
        let path = text::line(&place.path);
        match &place.lines {
            None => path,
            Some(CommentLines { side, first, last, .. }) => {
                let side: &str = side.into();
                if first == last {
                    format!("{path}:{first} ({side})")
                } else {
                    format!("{path}:{first}-{last} ({side})")
                }
            }
        }
    }
}

impl CommentLines {
    /// Lines with their bytes, as far as these are kept: the first [`MAX_QUOTED`] lines.
    pub fn quoting<'l>(
        side: LineSide,
        first: u32,
        last: u32,
        lines: impl IntoIterator<Item = &'l [u8]>,
    ) -> CommentLines {
        let shown = |line: &[u8]| {
            text::line(&String::from_utf8_lossy(line)).chars().take(MAX_QUOTED_LINE).collect()
        };
        let quote = lines.into_iter().take(MAX_QUOTED).map(shown).collect();
        CommentLines { side, first, last, quote }
    }
}

impl TeamReview {
    pub fn comment(&self, id: CommentId) -> Option<&ReviewComment> {
        self.comments.iter().find(|comment| comment.id == id)
    }

    /// Returns the comments that `who` may see: all that were sent, and its own drafts.
    pub fn visible_to<'r>(
        &'r self,
        who: &'r MemberName,
    ) -> impl Iterator<Item = &'r ReviewComment> {
        self.comments.iter().filter(move |comment| comment.sent.is_some() || comment.by == *who)
    }

    /// Returns the reviewers that have passed the work of a member at this snapshot.
    pub fn passed_by(&self, member: &MemberName, snapshot: &str) -> Vec<MemberName> {
        let passes = self.passes.get(member).into_iter().flatten();
        passes.filter(|pass| pass.commit == snapshot).map(|pass| pass.by.clone()).collect()
    }

    /// Gives all that a member has, as an author and as a reviewer, to its new name.
    pub fn rename(&mut self, from: &MemberName, to: &MemberName) {
        let change = |name: &mut MemberName| {
            if name == from {
                name.clone_from(to);
            }
        };
        for comment in &mut self.comments {
            change(&mut comment.member);
            change(&mut comment.by);
        }
        rekey(&mut self.looks, from, to);
        self.looks.values_mut().for_each(|looks| rekey(looks, from, to));
        rekey(&mut self.checks, from, to);
        rekey(&mut self.passes, from, to);
        self.passes.values_mut().flatten().for_each(|pass| change(&mut pass.by));
        rekey(&mut self.dropped, from, to);
        rekey(&mut self.pull_requests, from, to);
    }

    /// Adds a comment and returns its id. Drops the oldest resolved ones if there are too many.
    pub fn add(&mut self, comment: impl FnOnce(CommentId) -> ReviewComment) -> CommentId {
        self.last += 1;
        let id = CommentId(self.last);
        self.comments.push(comment(id));
        while self.comments.len() > MAX_COMMENTS {
            let is_over = |comment: &ReviewComment| comment.state() == CommentState::Resolved;
            let Some(at) = self.comments.iter().position(is_over) else { break };
            self.comments.remove(at);
        }
        id
    }
}

/// Moves the value of a name in a map to another name.
pub fn rekey<K: Ord + Clone, V>(map: &mut BTreeMap<K, V>, from: &K, to: &K) {
    if let Some(value) = map.remove(from) {
        map.insert(to.clone(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(id: CommentId, is_resolved: bool) -> ReviewComment {
        ReviewComment {
            id,
            member: MemberName::existing("ada").expect("a name"),
            by: MemberName::lead(),
            task: None,
            kind: CommentKind::Must,
            place: None,
            base: String::new(),
            commit: String::new(),
            text: "x".to_owned(),
            remote: None,
            at: Timestamp(1),
            sent: is_resolved.then_some(Timestamp(2)),
            answer: None,
            resolved: is_resolved.then_some(Timestamp(3)),
        }
    }

    #[test]
    fn ids_of_comments_are_read_as_they_are_shown() {
        for good in ["R12", "r12", "12"] {
            assert_eq!(good.parse(), Ok(CommentId(12)), "{good}");
        }
        for bad in ["", "R", "R-1", "R+1", "R1x", "RR1", "R99999999999"] {
            assert!(bad.parse::<CommentId>().is_err(), "{bad}");
        }
        let stored = serde_json::to_string(&CommentId(3)).expect("JSON");
        assert_eq!(stored, "\"R3\"");
        assert_eq!(serde_json::from_str::<CommentId>(&stored).expect("an id"), CommentId(3));
    }

    #[test]
    fn only_resolved_comments_make_room_and_no_id_is_given_twice() {
        let mut review = TeamReview::default();
        for at in 0..MAX_COMMENTS {
            review.add(|id| made(id, at == 7));
        }
        let id = review.add(|id| made(id, false));
        assert_eq!(review.comments.len(), MAX_COMMENTS);
        assert!(review.comment(CommentId(8)).is_none() && review.comment(CommentId(1)).is_some());
        assert_eq!(review.add(|id| made(id, false)).0, id.0 + 1);
        assert_eq!(review.comments.len(), MAX_COMMENTS + 1);
    }

    #[test]
    fn draft_is_visible_to_its_reviewer_only() {
        let mut review = TeamReview::default();
        review.add(|id| made(id, false));
        review.add(|id| made(id, true));
        let ada = MemberName::existing("ada").expect("a name");
        let ids = |who: &MemberName| review.visible_to(who).map(|c| c.id.0).collect::<Vec<_>>();
        assert_eq!((ids(&MemberName::lead()), ids(&ada)), (vec![1, 2], vec![2]));
    }
    /// RV-29: nothing of the old name is left, wherever it stands.
    #[test]
    fn rv_29_renamed_member_keeps_its_reviews() {
        let [ada, ida] = ["ada", "ida"].map(|name| MemberName::existing(name).expect("a name"));
        let mut review = TeamReview::default();
        review.add(|id| made(id, false));
        review.add(|id| ReviewComment { by: ada.clone(), ..made(id, true) });
        let look = ReviewLook { commit: "c".into(), at: Timestamp(1), viewed: BTreeMap::new() };
        review.looks.insert(ada.clone(), [(ada.clone(), look)].into());
        review.checks.insert(ada.clone(), BTreeMap::new());
        let pass =
            ReviewPass { by: ada.clone(), commit: "c".into(), at: Timestamp(1), text: "".into() };
        review.passes.insert(ada.clone(), vec![pass]);
        review.dropped.insert(ada.clone(), "c".into());
        review.rename(&ada, &ida);
        let stored = serde_json::to_string(&review).expect("JSON");
        assert!(!stored.contains("\"ada\""), "{stored}");
        assert_eq!(stored.matches("\"ida\"").count(), 9, "{stored}");
    }
}
