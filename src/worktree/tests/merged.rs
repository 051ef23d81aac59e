//! Work that the main branch has in other commits: EN-12.

use super::*;
use model::team::worktree::LandingKind;

/// A worktree with two commits, of which one changes a line of a file, and a main branch with one.
fn worked() -> (Lab, Checkout) {
    let lab = Lab::new();
    let checkout = lab.made();
    lab.commit(&checkout.path, "a.txt", "one\nTWO\nthree\n");
    lab.commit(&checkout.path, "b.txt", "b\n");
    // A commit that is picked onto its own parent would be the same.
    lab.commit(lab.main(), "main.txt", "m\n");
    (lab, checkout)
}

impl Lab {
    fn main(&self) -> &str {
        self.top.to_str().expect("text")
    }

    /// Squashes what is checked out in the worktree, as a forge or a person does.
    fn squash(&self) {
        self.git(&["merge", "--quiet", "--squash", "demo-bob"]);
        self.git(&["commit", "--quiet", "-m", "squashed"]);
    }

    fn pending(&self, checkout: &Checkout) -> Option<PendingWork> {
        let repository = self.repository();
        let snapshot = repository.snapshot(checkout).expect("git answers");
        repository.pending_work(checkout, &snapshot).expect("git answers")
    }

    fn is_merged_by(&self, checkout: &Checkout, by: MergeEvidence) {
        assert_eq!(self.condition(checkout), Condition::Merged { by });
        assert_eq!(self.pending(checkout), None, "it does not wait for a review");
        let head = self.git(&["rev-parse", "demo-bob"]);
        let kind = LandingKind::Squash;
        let landing = Landing { head: &head, from: "bob", kind, message: None, title: None };
        let landed = self.repository().prepare(checkout, &landing);
        assert!(matches!(landed, Err(WorktreeError::NothingToLand { .. })), "{landed:?}");
        self.goes(checkout);
        assert!(!self.has_branch("demo-bob"));
    }
}

/// EN-12: also after the main branch has gone on.
#[test]
fn en_12_squash_by_hand_is_recognised() {
    let (lab, checkout) = worked();
    lab.squash();
    lab.commit(lab.main(), "later.txt", "later\n");
    // Only the files that were added after the merge are shown.
    write(Path::new(&checkout.path).join("c.txt"), "c\n");
    let pending = lab.pending(&checkout).expect("it has work");
    let files: Vec<&str> = pending.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!((pending.commits, files), (0, vec!["c.txt"]));
    fs::remove_file(&Path::new(&checkout.path).join("c.txt")).expect("removed");
    lab.is_merged_by(&checkout, MergeEvidence::Tree);
}

/// EN-12: the main branch has changed the same lines again.
#[test]
fn en_12_picked_commits_are_recognised_by_their_patches() {
    let (lab, checkout) = worked();
    lab.git(&["cherry-pick", "demo-bob~", "demo-bob"]);
    lab.commit(lab.main(), "a.txt", "one\n2\nthree\n");
    lab.is_merged_by(&checkout, MergeEvidence::Patches);
}

/// EN-12: what the forge says holds for the commits that it has merged, and for no later one.
#[test]
fn en_12_merged_pull_request_is_evidence_for_its_commits() {
    let (lab, checkout) = worked();
    let head = lab.git(&["rev-parse", "demo-bob"]);
    let merged = |commit: &str| Checkout { merged: Some(commit.to_owned()), ..checkout.clone() };
    lab.stays(&merged(&lab.git(&["rev-parse", "demo-bob~"])), &Condition::Unmerged { commits: 2 });
    for unknown in ["--all", "HEAD", "0123456789012345678901234567890123456789"] {
        lab.stays(&merged(unknown), &Condition::Unmerged { commits: 2 });
    }
    lab.is_merged_by(&merged(&head), MergeEvidence::PullRequest);
}

/// EN-12, EN-07: in part, reverted, empty, on no branch, or kept out by a merge driver.
#[test]
fn en_12_work_that_the_main_branch_lacks_is_not_merged() {
    let unmerged = |lab: &Lab, checkout: &Checkout| {
        lab.stays(checkout, &Condition::Unmerged { commits: 2 });
        assert!(lab.pending(checkout).is_some());
    };
    let (lab, checkout) = worked();
    lab.git(&["cherry-pick", "demo-bob"]);
    unmerged(&lab, &checkout);
    lab.commit(lab.main(), "a.txt", "one\n2\nthree\n");
    unmerged(&lab, &checkout);

    let (lab, checkout) = worked();
    lab.squash();
    lab.git(&["revert", "--no-edit", "HEAD"]);
    unmerged(&lab, &checkout);
    let (lab, checkout) = worked();
    lab.git(&["cherry-pick", "demo-bob~", "demo-bob"]);
    lab.git(&["revert", "--no-edit", "HEAD~"]);
    unmerged(&lab, &checkout);
    lab.commit(lab.main(), "a.txt", "one\n2\nthree\n");
    unmerged(&lab, &checkout);

    let lab = Lab::new();
    let checkout = lab.made();
    for change in ["one\n", "one\ntwo\nthree\n"] {
        lab.commit(&checkout.path, "a.txt", change);
    }
    unmerged(&lab, &checkout);

    // Nothing keeps a commit that is checked out without a branch.
    let (lab, checkout) = worked();
    lab.git(&["checkout", "--quiet", "--detach"]);
    lab.squash();
    lab.stays(&checkout, &Condition::Unmerged { commits: 2 });

    let (lab, checkout) = worked();
    lab.git(&["config", "merge.ours.driver", "true"]);
    write(lab.top.join(".git/info/attributes"), "a.txt merge=ours\n");
    lab.git(&["cherry-pick", "demo-bob"]);
    lab.commit(lab.main(), "a.txt", "one\n2\nthree\n");
    unmerged(&lab, &checkout);
}
