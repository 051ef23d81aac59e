//! The data on display: the works of a team, and the changes of one member.

use std::collections::BTreeMap;

use diff::Patch;
use model::id::MemberName;
use model::review::PlacedComment;
use ops::review::checks::WorkCheck;
use ops::review::overview::{CommentCounts, Overlap, WaitingWork};
use ops::review::tasks::OpenTask;

/// The works of a team that can be reviewed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorkList {
    /// The branch into which works land.
    pub into: String,
    /// The commit of that branch.
    pub main: String,
    pub works: Vec<ListedWork>,
    pub overlaps: Vec<Overlap>,
}

impl WorkList {
    /// Returns all overlaps and conflicts as a text.
    pub(super) fn overlap_text(&self) -> String {
        let mut lines = Vec::new();
        for work in &self.works {
            let conflicts = work.changes.as_ref().map(|changes| changes.conflicts.as_slice());
            for file in conflicts.unwrap_or_default() {
                lines.push(format!("{} conflicts with {}: {file}", work.member, self.into));
            }
        }
        for overlap in &self.overlaps {
            lines.push(format!("{} and {} change the same files:", overlap.first, overlap.second));
            for file in &overlap.files {
                let conflict = if overlap.conflicts.contains(file) { " (conflict)" } else { "" };
                lines.push(format!("  {file}{conflict}"));
            }
        }
        if lines.is_empty() {
            lines.push("no two works change the same files, and none conflicts".to_owned());
        }
        lines.join("\n")
    }
}

/// The work of one member in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedWork {
    pub member: MemberName,
    /// The branch, or the commit, of the member.
    pub from: String,
    /// The machine that has the worktree, if it is another one.
    pub host: Option<String>,
    pub task: Option<OpenTask>,
    /// The changes, or why they cannot be read.
    pub changes: Result<WaitingWork, String>,
    pub seen: SeenWork,
    pub comments: CommentCounts,
    /// The checks of the team, with their results on this work.
    pub checks: Vec<WorkCheck>,
    /// The reviewers that find nothing left to change in the work as it is.
    pub passed_by: Vec<MemberName>,
}

/// Relation of a work to what the reviewer has seen of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SeenWork {
    #[default]
    Never,
    /// It has changed since.
    Earlier,
    /// It is the same.
    All,
}

/// The part of a work that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DiffRange {
    /// Since the merge base.
    #[default]
    All,
    /// Since the reviewer has looked last.
    SinceLook,
    /// Since the last commit.
    Uncommitted,
}

impl DiffRange {
    pub(super) fn words(self) -> &'static str {
        match self {
            DiffRange::All => "all changes",
            DiffRange::SinceLook => "since you looked",
            DiffRange::Uncommitted => "not committed",
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            DiffRange::All => "all",
            DiffRange::SinceLook => "since look",
            DiffRange::Uncommitted => "uncommitted",
        }
    }
}

/// A request to read the changes of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangesRequest {
    /// Number of the request. The changes that were read for another one are dropped.
    pub number: u64,
    pub member: MemberName,
    pub range: DiffRange,
    /// The snapshot that counts as seen last; `None` for the one on record.
    pub look: Option<String>,
    pub ignores_whitespace: bool,
}

/// The work of a member at its commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkObject {
    pub member: MemberName,
    pub from: String,
    pub into: String,
    pub base: String,
    pub head: String,
    pub snapshot: String,
    /// Files that are not committed.
    pub uncommitted: usize,
    pub task: Option<OpenTask>,
}

/// The changes of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedWork {
    pub object: WorkObject,
    /// Repositories in the worktree, which the changes do not contain.
    pub nested: Vec<String>,
    /// The commit since which `patch` has the changes.
    pub since: String,
    pub patch: Patch,
    pub comments: Vec<PlacedComment>,
    /// The snapshot that the reviewer has seen last.
    pub look: Option<String>,
    /// Files that were marked as viewed, with the ids of their contents.
    pub viewed: BTreeMap<String, String>,
}
