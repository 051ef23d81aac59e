//! Evidence that the main branch has the work of a worktree in other commits, as after a squash
//! merge. There is none for work that it has only in part, or has reverted.

use super::error::WorktreeError;
use super::exchange::check_id;
use super::landing::MergedTree;
use super::repository::Repository;
use model::team::worktree::{Checkout, MergeEvidence};

impl Repository {
    /// Counts the commits of `head` that the main branch has neither as they are nor, up to `base`
    /// or by other evidence, in others.
    pub(super) fn unlanded(
        &self,
        checkout: &Checkout,
        head: &str,
        base: Option<&str>,
    ) -> Result<usize, WorktreeError> {
        let mut args = vec!["rev-list", "--count", head, "--not", "HEAD"];
        args.extend(base);
        args.push("--");
        let alone = self.count(&args)?;
        Ok(self.evidence(checkout, alone, &[head]).err().unwrap_or_default())
    }

    /// Returns the evidence for the first of the `commits` of a worktree, if all are merged.
    /// Otherwise returns `alone`, the number of those that no other branch has. Git that fails, for
    /// example because it is too old to try a merge, gives no evidence.
    pub(super) fn evidence(
        &self,
        checkout: &Checkout,
        alone: usize,
        commits: &[&str],
    ) -> Result<MergeEvidence, usize> {
        let mut evidence = MergeEvidence::Commits;
        for commit in commits.iter().rev().filter(|_| alone > 0) {
            evidence = self.evidence_of(checkout, commit).ok_or(alone)?;
        }
        Ok(evidence)
    }

    /// Returns the evidence that `head` and the commits before it are merged.
    fn evidence_of(&self, checkout: &Checkout, head: &str) -> Option<MergeEvidence> {
        let merged = checkout.merged.as_ref().filter(|merged| check_id(merged).is_ok());
        if merged.is_some_and(|merged| self.is_ancestor(head, merged).unwrap_or_default()) {
            return Some(MergeEvidence::PullRequest);
        }
        // A commit that is checked out without a branch keeps nothing.
        self.main_branch().ok()??;
        if self.is_ancestor(head, "HEAD").ok()? {
            return Some(MergeEvidence::Commits);
        }
        let base = self.review_base(checkout, head).ok()?;
        if self.tree_of(&base).ok()? == self.tree_of(head).ok()? {
            return None;
        }
        // A driver that is configured for a file could drop its changes.
        let drivers = ["config", "-z", "--name-only", "--get-regexp", r"^merge\..*\.driver$"];
        let drivers = self.git.ask(&drivers).ok()?.unwrap_or_default();
        let drivers = drivers.split_terminator('\0').map(|key| format!("{key}=false"));
        let plain = self.with(self.git.configured(&drivers.collect::<Vec<_>>()));
        match plain.merged_tree(self.landed_base(checkout, head).ok()?, "HEAD", head).ok()? {
            // One that changes the main branch has something that is missing or was reverted there.
            MergedTree::Clean(tree) => {
                (tree == self.tree_of("HEAD").ok()?).then_some(MergeEvidence::Tree)
            }
            // The main branch may have changed the same lines again, also after a revert.
            MergedTree::Conflicts(_) => {
                let (both, since) = (format!("HEAD...{head}"), format!("{base}..HEAD"));
                let apart = ["rev-list", "--count", "--cherry-pick", "--right-only", &both, "--"];
                let reverts = ["rev-list", "--count", "--grep=^This reverts commit ", &since, "--"];
                let has_all = self.count(&apart).ok()? == 0 && self.count(&reverts).ok()? == 0;
                has_all.then_some(MergeEvidence::Patches)
            }
        }
    }
}
