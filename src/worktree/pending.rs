//! The work of members that the main branch does not have.

use super::error::WorktreeError;
use super::patch::ChangedFile;
use super::repository::Repository;
use super::snapshot::WorkSnapshot;
use model::team::worktree::Checkout;
use model::time::Timestamp;

/// Work of a member that the main branch does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingWork {
    /// The commit since which the worktree has changed.
    pub base: String,
    /// Number of commits that have not landed.
    pub commits: usize,
    /// The date of the last commit.
    pub since: Timestamp,
    /// The files that differ from `base`, committed or not.
    pub files: Vec<ChangedFile>,
    /// Files that conflict with the main branch.
    pub conflicts: Vec<String>,
}

impl Repository {
    /// Returns the work that a snapshot has and the main branch does not have; `None` if there is
    /// none.
    ///
    /// # Errors
    /// As [`Repository::patch`] and [`Repository::preview`].
    pub fn pending_work(
        &self,
        checkout: &Checkout,
        snapshot: &WorkSnapshot,
    ) -> Result<Option<PendingWork>, WorktreeError> {
        let landed = self.landed_base(checkout, &snapshot.head)?;
        let commits = self.unlanded(checkout, &snapshot.head, landed)?;
        if commits == 0 && snapshot.uncommitted == 0 {
            return Ok(None);
        }
        let base = match commits {
            0 => snapshot.head.clone(),
            _ => self.review_base(checkout, &snapshot.head)?,
        };
        let files = self.changed_files(&base, &snapshot.commit)?;
        let conflicts = self.merged_tree(landed, "HEAD", &snapshot.commit)?.conflicts();
        let since = self.date_of(&snapshot.head)?;
        Ok(Some(PendingWork { base, commits, since, files, conflicts }))
    }

    /// Counts the commits of a worktree's branch that the main branch does not have.
    ///
    /// # Errors
    /// [`WorktreeError::Git`] if git fails.
    pub fn pending_commits(&self, checkout: &Checkout) -> Result<usize, WorktreeError> {
        let Some(tip) = self.tip(&checkout.branch)? else { return Ok(0) };
        self.unlanded(checkout, &tip, self.landed_base(checkout, &tip)?)
    }

    /// Returns the files with conflicts between two commits.
    ///
    /// # Errors
    /// As [`Repository::preview`].
    pub fn conflicts_between(
        &self,
        first: &str,
        second: &str,
    ) -> Result<Vec<String>, WorktreeError> {
        Ok(self.merged_tree(None, first, second)?.conflicts())
    }

    fn date_of(&self, commit: &str) -> Result<Timestamp, WorktreeError> {
        let args = ["rev-list", "--max-count=1", "--format=%ct", commit, "--"];
        let text = self.git.get("read the date of a commit", &args)?;
        let seconds = text.lines().last().and_then(|line| line.parse::<u64>().ok());
        Ok(Timestamp(seconds.unwrap_or_default().saturating_mul(1000)))
    }
}
