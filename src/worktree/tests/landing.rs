//! Landing commits on the main branch, and taking them back.

use super::*;
use model::team::worktree::{LandedWork, LandingKind};

const KINDS: [LandingKind; 3] = [LandingKind::Merge, LandingKind::Squash, LandingKind::Rebase];
const COMMITS: Condition = Condition::Merged { by: MergeEvidence::Commits };

/// A repository, a worktree with two commits, and a main branch with one that it does not have.
fn diverged() -> (Lab, Checkout) {
    let lab = Lab::new();
    let checkout = lab.made();
    lab.commit(&checkout.path, "b.txt", "b\n");
    lab.commit(&checkout.path, "c.txt", "c\n");
    lab.commit(lab.top.to_str().expect("text"), "main.txt", "m\n");
    (lab, checkout)
}

impl Lab {
    fn head_of(&self, checkout: &Checkout) -> String {
        self.git_in(Path::new(&checkout.path), &["rev-parse", "HEAD"])
    }

    fn land(
        &self,
        checkout: &Checkout,
        kind: LandingKind,
        head: &str,
    ) -> Result<LandedWork, WorktreeError> {
        let landing = Landing { head, from: &checkout.branch, kind, message: None, title: None };
        let repository = self.repository();
        let landed = repository.prepare(checkout, &landing)?;
        repository.land(&landed)?;
        Ok(landed)
    }

    /// Lands all commits of the worktree and returns it with the record of that.
    fn landed(&self, checkout: &Checkout, kind: LandingKind) -> Checkout {
        let landed = self.land(checkout, kind, &self.head_of(checkout)).expect("it lands");
        assert_eq!(self.git(&["rev-parse", "HEAD"]), landed.new);
        Checkout { landed: vec![landed], ..checkout.clone() }
    }

    fn subjects(&self) -> String {
        self.git(&["log", "--reverse", "--format=%s"]).replace('\n', "|")
    }
}

#[test]
fn each_kind_lands_all_files_and_counts_as_merged() {
    let expected = [
        (LandingKind::Merge, "first|b.txt|c.txt|main.txt|Merge branch 'demo-bob'"),
        (LandingKind::Squash, "first|main.txt|Squash 2 commits of demo-bob"),
        (LandingKind::Rebase, "first|main.txt|b.txt|c.txt"),
    ];
    for (kind, subjects) in expected {
        let (lab, checkout) = diverged();
        assert_eq!(lab.condition(&checkout), Condition::Unmerged { commits: 2 });
        let after = lab.landed(&checkout, kind);
        let mut got: Vec<&str> = Vec::new();
        let log = lab.subjects();
        got.extend(log.split('|'));
        let mut wanted: Vec<&str> = subjects.split('|').collect();
        if kind == LandingKind::Merge {
            // Commits of one second have no order.
            got.sort_unstable();
            wanted.sort_unstable();
        }
        assert_eq!(got, wanted, "{kind:?}");
        for file in ["a.txt", "b.txt", "c.txt", "main.txt"] {
            assert!(fs::exists(&lab.top.join(file)), "{kind:?} {file}");
        }
        assert_eq!(lab.git(&["status", "--porcelain"]), "", "{kind:?}");
        assert_eq!(lab.condition(&after), COMMITS, "{kind:?}");
        lab.goes(&after);
        assert_eq!(lab.git(&["branch", "--list", &checkout.branch]), "", "{kind:?}");
    }
}

/// RV-01: commits that came after the ones that were shown do not land with them.
#[test]
fn rv_01_only_the_named_commits_land() {
    for kind in KINDS {
        let (lab, checkout) = diverged();
        let shown = lab.head_of(&checkout);
        lab.commit(&checkout.path, "late.txt", "late\n");
        let landed = lab.land(&checkout, kind, &shown).expect("it lands");
        assert!(!fs::exists(&lab.top.join("late.txt")), "{kind:?}");
        let after = Checkout { landed: vec![landed], ..checkout };
        assert_eq!(lab.condition(&after), Condition::Unmerged { commits: 1 }, "{kind:?}");
        let preview = lab.repository().preview(&after).expect("a preview");
        assert_eq!((preview.commits, preview.conflicts.len()), (1, 0), "{kind:?}");
        let later = lab.landed(&after, kind);
        assert!(fs::exists(&lab.top.join("late.txt")), "{kind:?}");
        lab.goes(&later);
    }
}

/// RV-02: a member that goes on after a squash changes the same lines again without a conflict, and
/// the diff shows only what is new.
#[test]
fn rv_02_work_after_a_squash_lands_without_conflicts() {
    for kind in [LandingKind::Squash, LandingKind::Rebase] {
        let (lab, checkout) = diverged();
        let after = lab.landed(&checkout, kind);
        lab.commit(&checkout.path, "b.txt", "better\n");
        let diff = lab.changes(&after);
        assert!(diff.contains("+better") && !diff.contains("c.txt"), "{kind:?}: {diff}");
        assert_eq!(lab.condition(&after), Condition::Unmerged { commits: 1 });
        lab.landed(&after, kind);
        assert_eq!(read(lab.top.join("b.txt")).as_deref(), Some("better\n"), "{kind:?}");
    }
}

#[test]
fn taking_back_restores_the_branch_until_it_gets_other_commits() {
    for kind in KINDS {
        let (lab, checkout) = diverged();
        let before = lab.git(&["rev-parse", "HEAD"]);
        let landed = lab.landed(&checkout, kind).landed.pop().expect("landed");
        write(lab.top.join("a.txt"), "edited by a person\n");
        lab.repository().take_back(&landed).expect("taken back");
        assert_eq!(lab.git(&["rev-parse", "HEAD"]), before);
        assert!(!fs::exists(&lab.top.join("b.txt")), "{kind:?}");
        assert_eq!(read(lab.top.join("a.txt")).as_deref(), Some("edited by a person\n"));
        assert_eq!(lab.condition(&checkout), Condition::Unmerged { commits: 2 });

        let landed = lab.landed(&checkout, kind).landed.pop().expect("landed");
        lab.commit(lab.top.to_str().expect("text"), "later.txt", "later\n");
        let refused = lab.repository().take_back(&landed).expect_err("the branch has moved");
        assert!(matches!(&refused, WorktreeError::Moved { into } if into == "main"), "{refused}");
        assert!(fs::exists(&lab.top.join("b.txt")) && fs::exists(&lab.top.join("later.txt")));
    }
}

/// EN-07: a record of a landing that never came, or was undone by hand, keeps the worktree.
#[test]
fn en_07_landing_that_no_branch_has_saves_nothing() {
    for kind in KINDS {
        let (lab, checkout) = diverged();
        let (head, before) = (lab.head_of(&checkout), lab.git(&["rev-parse", "HEAD"]));
        let landing = Landing { head: &head, from: "x", kind, message: None, title: None };
        let landed = lab.repository().prepare(&checkout, &landing).expect("no conflict");
        let recorded = Checkout { landed: vec![landed.clone()], ..checkout };
        lab.stays(&recorded, &Condition::Unmerged { commits: 2 });
        lab.repository().land(&landed).expect("it lands");
        assert_eq!(lab.condition(&recorded), COMMITS);
        lab.git(&["reset", "--quiet", "--hard", &before]);
        lab.stays(&recorded, &Condition::Unmerged { commits: 2 });
        // One that was prepared before the branch got other commits is refused.
        lab.commit(lab.top.to_str().expect("text"), "later.txt", "later\n");
        let refused = lab.repository().land(&landed).expect_err("the branch has moved");
        assert!(matches!(refused, WorktreeError::Moved { .. }), "{kind:?}: {refused}");
    }
}

/// RV-03: what cannot land changes nothing: no commit, no file, no index.
#[test]
fn rv_03_refused_landing_changes_nothing() {
    for kind in KINDS {
        let (lab, checkout) = diverged();
        lab.commit(&checkout.path, "a.txt", "theirs\n");
        lab.commit(lab.top.to_str().expect("text"), "a.txt", "ours\n");
        let before = lab.git(&["rev-parse", "HEAD"]);
        let refused = lab.land(&checkout, kind, &lab.head_of(&checkout)).expect_err("a conflict");
        let WorktreeError::Conflicts { into, files } = &refused else { panic!("{refused}") };
        assert_eq!((into.as_str(), files.as_slice()), ("main", ["a.txt".to_owned()].as_slice()));
        assert_eq!(
            (lab.git(&["rev-parse", "HEAD"]), lab.git(&["status", "--porcelain"])),
            (before, String::new())
        );
    }
    // A changed file of the checkout is in the way, and an untracked one.
    for (file, kind) in [("b.txt", LandingKind::Squash), ("a.txt", LandingKind::Rebase)] {
        let (lab, checkout) = diverged();
        lab.commit(&checkout.path, "a.txt", "theirs\n");
        write(lab.top.join(file), "of a person\n");
        let before = lab.git(&["rev-parse", "HEAD"]);
        let refused = lab.land(&checkout, kind, &lab.head_of(&checkout)).expect_err("in the way");
        assert!(matches!(refused, WorktreeError::Git { .. }), "{refused}");
        assert_eq!(read(lab.top.join(file)).as_deref(), Some("of a person\n"));
        assert_eq!(lab.git(&["rev-parse", "HEAD"]), before);
    }
    // Nothing is there to land.
    let lab = Lab::new();
    let checkout = lab.made();
    for kind in KINDS {
        let refused = lab.land(&checkout, kind, &checkout.base).expect_err("nothing");
        assert!(matches!(refused, WorktreeError::NothingToLand { .. }), "{refused}");
    }
}

#[test]
fn rebase_keeps_authors_and_messages_and_refuses_merges() {
    let (lab, checkout) = diverged();
    let there = Path::new(&checkout.path);
    write(there.join("d.txt"), "d\n");
    lab.git_in(there, &["add", "--all"]);
    let author = "Zoë <zoe@example.org>";
    let commit = [
        "commit",
        "--quiet",
        "--author",
        author,
        "--date",
        "1700000000 +0100",
        "-m",
        "d\n\nWhy: ünïcode",
    ];
    lab.git_in(there, &commit);
    lab.landed(&checkout, LandingKind::Rebase);
    let shown = lab.git(&["show", "--no-patch", "--format=%an <%ae> %ad %B", "--date=raw", "HEAD"]);
    assert_eq!(shown, "Zoë <zoe@example.org> 1700000000 +0100 d\n\nWhy: ünïcode");

    let (lab, checkout) = diverged();
    let there = Path::new(&checkout.path);
    lab.git_in(there, &["merge", "--quiet", "--no-edit", "main"]);
    let refused = lab.land(&checkout, LandingKind::Rebase, &lab.head_of(&checkout));
    let refused = refused.expect_err("a merge").to_string();
    assert!(refused.contains("there is a merge among them"), "{refused}");
    lab.landed(&checkout, LandingKind::Squash);
}

/// A branch without other commits is moved to the commits themselves, also in a bare repository.
#[test]
fn merge_fast_forwards_where_it_can() {
    let lab = Lab::new();
    let checkout = lab.made();
    lab.commit(&checkout.path, "b.txt", "b\n");
    let head = lab.head_of(&checkout);
    assert_eq!(lab.landed(&checkout, LandingKind::Merge).landed.pop().expect("landed").new, head);

    let lab = Lab::new();
    let bare = lab.dir.path().join("bare.git");
    lab.git(&["clone", "--quiet", "--bare", ".", bare.to_str().expect("text")]);
    for (key, value) in [("user.name", "t"), ("user.email", "t@example.org")] {
        lab.git_in(&bare, &["config", key, value]);
    }
    let repository = Repository::find(&bare, &lab.env()).expect("a repository");
    let checkout = make(&repository, &WorktreeRequest::Own, &Rules::default()).expect("a worktree");
    lab.commit(&checkout.path, "b.txt", "b\n");
    let head = lab.head_of(&checkout);
    let landing = Landing {
        head: &head,
        from: "x",
        kind: LandingKind::Squash,
        message: Some("one"),
        title: None,
    };
    let landed = repository.prepare(&checkout, &landing).expect("no conflict");
    repository.land(&landed).expect("it lands");
    assert_eq!(
        lab.git_in(&bare, &["log", "-1", "--format=%H %s", "main"]),
        format!("{} one", landed.new)
    );
    repository.take_back(&landed).expect("taken back");
    assert_eq!(lab.git_in(&bare, &["rev-parse", "main"]), landed.old);
}

#[test]
fn squash_of_several_commits_is_named_after_the_work() {
    let lab = Lab::new();
    let checkout = lab.made();
    let message = |title| {
        let head = lab.head_of(&checkout);
        let landing =
            Landing { head: &head, from: "bob", kind: LandingKind::Squash, message: None, title };
        let landed = lab.repository().prepare(&checkout, &landing).expect("no conflict");
        lab.git(&["log", "-1", "--format=%B", &landed.new])
    };
    lab.commit(&checkout.path, "b.txt", "b\n");
    let subject = message(Some("Count"));
    lab.commit(&checkout.path, "c.txt", "c\n");
    assert_ne!(subject.trim(), "Count", "a single commit keeps its message");
    assert!(message(Some("Count\u{1b}[2J")).starts_with("Count"));
    assert!(!message(Some("Count\u{1b}[2J")).contains('\u{1b}'));
    assert!(message(None).starts_with("Squash 2 commits of bob\n\n* "), "{}", message(None));
}

/// commit-tree ignores the setting, so that a signed history would get unsigned commits.
#[test]
fn commits_are_signed_where_git_signs() {
    let (lab, checkout) = diverged();
    lab.sh("ssh-keygen -q -t ed25519 -N '' -f ../key");
    let key = lab.dir.path().join("key.pub");
    lab.git(&["config", "gpg.format", "ssh"]);
    lab.git(&["config", "user.signingkey", key.to_str().expect("text")]);
    lab.git(&["config", "commit.gpgsign", "true"]);
    for kind in KINDS {
        let landed = lab.landed(&checkout, kind).landed.pop().expect("landed");
        assert!(
            lab.git(&["cat-file", "commit", "HEAD"]).contains("BEGIN SSH SIGNATURE"),
            "{kind:?}"
        );
        lab.repository().take_back(&landed).expect("taken back");
    }
    lab.git(&["config", "user.signingkey", "/nowhere"]);
    let before = lab.git(&["rev-parse", "HEAD"]);
    lab.land(&checkout, LandingKind::Squash, &lab.head_of(&checkout)).expect_err("no key");
    assert_eq!(lab.git(&["rev-parse", "HEAD"]), before);
}

/// RV-05: a commit of the person has moved the branch after git has written the files of a landing.
#[test]
fn rv_05_files_of_a_landing_that_came_too_late_go_and_the_persons_stay() {
    for later in [None, Some("of the person, later\n")] {
        let (lab, checkout) = diverged();
        let (repository, head) = (lab.repository(), lab.head_of(&checkout));
        let kind = LandingKind::Squash;
        let landing =
            Landing { head: &head, from: &checkout.branch, kind, message: None, title: None };
        let landed = repository.prepare(&checkout, &landing).expect("prepared");
        // The person's commit was made beside the index, as it is while git writes it.
        write(lab.top.join("a.txt"), "of the person\n");
        lab.git(&["commit", "--quiet", "-a", "-m", "mine"]);
        let mine = lab.git(&["rev-parse", "HEAD"]);
        lab.git(&["reset", "--quiet", "--hard", &landed.new]);
        lab.git(&["update-ref", "HEAD", &mine]);
        write(lab.top.join("a.txt"), later.unwrap_or("of the person\n"));
        repository.follow_branch("land the commits", &landed.old, &landed.new).expect("followed");
        let left = later.map_or("", |_| "M a.txt");
        assert_eq!(lab.git(&["status", "--porcelain"]).trim(), left);
        assert_eq!(lab.git(&["diff", "--cached", "--name-only"]), "");
        assert!(!fs::exists(&lab.top.join("b.txt")));
        lab.git(&["checkout", "--quiet", "--", "a.txt"]);
        let again = lab.land(&checkout, kind, &head).expect("it lands on the person's commit");
        assert_eq!(lab.git(&["rev-parse", "HEAD"]), again.new);
        assert_eq!(read(lab.top.join("a.txt")).as_deref(), Some("of the person\n"));
    }
}

impl Lab {
    /// Everything that a person sees of the main checkout.
    fn seen(&self) -> [String; 4] {
        let status = ["status", "--porcelain=v2", "--branch", "--ignored", "--untracked-files=all"];
        let files = "for f in *.*; do echo \"== $f\"; cat \"$f\"; done";
        let files = self.run("sh", &self.top, &["-c", files]).stdout;
        let staged = self.git(&["diff", "--cached"]);
        let head = self.git(&["symbolic-ref", "HEAD"]);
        [self.git(&status), staged, head, String::from_utf8_lossy(&files).into_owned()]
    }

    fn prepared(&self, checkout: &Checkout) -> Result<LandedWork, WorktreeError> {
        let (head, kind) = (self.head_of(checkout), LandingKind::Squash);
        let landing = Landing { head: &head, from: "x", kind, message: Some("one"), title: None };
        self.repository().prepare(checkout, &landing)
    }
}

/// RV-35: changes of the person in the way are found before anything is recorded.
#[test]
fn rv_35_landing_is_refused_before_it_begins_if_a_file_is_in_the_way() {
    for script in [
        "echo mine >b.txt",
        "echo b >b.txt; git add b.txt",
        "echo '*.txt' >>.git/info/exclude; echo mine >b.txt",
        "echo mine >a.txt",
        "echo theirs >a.txt; git add a.txt",
    ] {
        let (lab, checkout) = diverged();
        lab.commit(&checkout.path, "a.txt", "theirs\n");
        lab.sh(script);
        let before = lab.seen();
        let refused = lab.prepared(&checkout).expect_err(script);
        assert!(matches!(refused, WorktreeError::Git { .. }), "{script}: {refused}");
        assert_eq!(lab.seen(), before, "{script}");
    }
    // A file that was only touched is not changed.
    let (lab, checkout) = diverged();
    lab.commit(&checkout.path, "a.txt", "theirs\n");
    lab.sh(
        "touch -d yesterday a.txt; echo mine >>main.txt; echo other >other.txt; git add other.txt",
    );
    lab.repository().land(&lab.prepared(&checkout).expect("prepared")).expect("it lands");
    assert_eq!(lab.git(&["status", "--porcelain"]), " M main.txt\nA  other.txt");
}

/// RV-35: git fails after it has written index or files, at a lock of the branch, or as it does on
/// a full disk: at a file that cannot be written.
#[test]
fn rv_35_landing_that_fails_halfway_restores_index_and_files() {
    for fails in ["touch .git/refs/heads/main.lock", "touch .git/fail"] {
        let (lab, checkout) = diverged();
        lab.sh("git config filter.f.smudge 'sh -c \"cat; ! test -e $PWD/.git/fail\"'");
        lab.sh("git config filter.f.clean cat; git config filter.f.required true");
        lab.sh("echo 'z.f filter=f' >.git/info/attributes");
        lab.sh("echo z >z.f; git add z.f; git commit -qm z");
        lab.git_in(Path::new(&checkout.path), &["merge", "--quiet", "--no-edit", "main"]);
        lab.commit(&checkout.path, "a.txt", "theirs\n");
        lab.commit(&checkout.path, "z.f", "zz\n");
        lab.sh("echo mine >>main.txt; echo staged >s.txt; git add s.txt; echo more >>s.txt");
        let (repository, before) = (lab.repository(), lab.seen());
        let landed = lab.prepared(&checkout).expect("prepared");
        lab.sh(fails);
        repository.land(&landed).expect_err(fails);
        lab.sh("rm -f .git/fail .git/refs/heads/main.lock; git checkout -q z.f");
        assert_eq!(lab.seen(), before, "{fails}");
        repository.land(&landed).expect("it lands");

        let before = lab.seen();
        lab.sh(fails);
        repository.take_back(&landed).expect_err(fails);
        lab.sh("rm -f .git/fail .git/refs/heads/main.lock; git checkout -q z.f");
        assert_eq!(lab.seen(), before, "{fails}");
        repository.take_back(&landed).expect("taken back");
        assert_eq!(lab.git(&["status", "--porcelain"]), " M main.txt\nAM s.txt", "{fails}");
    }
}

/// RV-35: a process was killed after index and files were written, before the branch has moved.
#[test]
fn rv_35_landing_and_undo_continue_what_a_killed_process_has_begun() {
    let (lab, checkout) = diverged();
    let (repository, landed) = (lab.repository(), lab.prepared(&checkout).expect("prepared"));
    assert!(!repository.has_landed(&landed).expect("git answers"));
    lab.git(&["read-tree", "-m", "-u", &landed.old, &landed.new]);
    repository.land(&landed).expect("it lands");
    assert!(repository.has_landed(&landed).expect("git answers"));
    assert_eq!(lab.git(&["status", "--porcelain"]), "");
    lab.git(&["read-tree", "-m", "-u", &landed.new, &landed.old]);
    repository.take_back(&landed).expect("taken back");
    assert_eq!(lab.git(&["status", "--porcelain"]), "");
    assert_eq!(lab.git(&["rev-parse", "HEAD"]), landed.old);
}

/// RV-36: each landing is taken back from its own branch, and what is staged stays.
#[test]
fn rv_36_landings_are_taken_back_one_by_one_from_their_branch() {
    let (lab, mut checkout) = diverged();
    for (n, kind) in KINDS.into_iter().enumerate() {
        lab.commit(&checkout.path, &format!("{n}.txt"), "x\n");
        let landed = lab.land(&checkout, kind, &lab.head_of(&checkout)).expect("it lands");
        checkout.end_landing(&landed, true);
    }
    let repository = lab.repository();
    lab.git(&["switch", "--quiet", "--create", "hotfix"]);
    let before = lab.seen();
    let last = checkout.landed.last().expect("landed").clone();
    let refused = repository.may_take_back(&last).expect_err("another branch");
    let WorktreeError::OtherBranch { branch, now, .. } = &refused else { panic!("{refused}") };
    assert_eq!((branch.as_str(), now.as_str()), ("main", "hotfix"));
    assert!(repository.take_back(&last).is_err() && lab.seen() == before);
    lab.git(&["switch", "--quiet", "main"]);
    lab.git(&["branch", "--quiet", "-D", "hotfix"]);
    lab.sh("echo mine >>a.txt; git add a.txt; echo more >>main.txt");
    for landed in checkout.landed.clone().iter().rev() {
        repository.may_take_back(landed).expect("it is the last one");
        repository.take_back(landed).expect("taken back");
        assert_eq!(lab.git(&["rev-parse", "HEAD"]), landed.old);
        assert_eq!(lab.git(&["status", "--porcelain"]), "M  a.txt\n M main.txt");
        checkout.end_landing(landed, false);
        let refused = repository.take_back(landed).expect_err("it is gone");
        assert!(matches!(refused, WorktreeError::Moved { .. }), "{refused}");
    }
    assert_eq!(lab.condition(&checkout), Condition::Unmerged { commits: 5 });
}
