//! The pull request of a member's work, as phalanx knows it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// The program through which pull requests are opened and read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum ForgeTool {
    /// The command line of GitHub.
    Gh,
    /// The command line of GitLab.
    Glab,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum PullRequestState {
    Open,
    /// Closed without a merge.
    Closed,
    Merged,
}

/// A pull request, or a merge request of GitLab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRequest {
    pub tool: ForgeTool,
    pub number: u64,
    pub url: String,
    /// The branch at the remote that it proposes to merge.
    pub branch: String,
    /// The commit that was pushed last.
    pub head: String,
    /// The state when it was read last.
    pub state: PullRequestState,
    /// The ids of its comments that have become drafts, also of those that were discarded since.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub imported: BTreeSet<String>,
}

impl PullRequest {
    /// Returns its name in the words of its service: `PR #41` or `MR !41`.
    pub fn label(&self) -> String {
        match self.tool {
            ForgeTool::Gh => format!("PR #{}", self.number),
            ForgeTool::Glab => format!("MR !{}", self.number),
        }
    }

    /// Returns true for the same pull request, whatever is known about it.
    pub fn is_same(&self, other: &PullRequest) -> bool {
        self.url == other.url
    }

    /// Returns it for a report, without the ids of its comments.
    #[must_use]
    pub fn without_comments(&self) -> PullRequest {
        PullRequest { imported: BTreeSet::new(), ..self.clone() }
    }
}
