//! Worktrees that other programs move, rename, prune or want, and the locks that keep them from it.

use super::*;

fn follow(lab: &Lab, checkout: &Checkout) -> Checkout {
    lab.repository().follow(checkout).expect("git answers")
}

/// Moves the worktrees away, prunes their entries, and moves them back.
fn prune(lab: &Lab) {
    lab.sh("mv .worktrees ../away; git worktree prune --expire now; mv ../away .worktrees");
}

/// EN-14: wherever git has moved a worktree, and whatever its branch is called now.
#[test]
fn en_14_moved_worktree_and_renamed_branch_are_followed() {
    let lab = Lab::new();
    let made = lab.made();
    assert_eq!(follow(&lab, &made), made);
    let moved = lab.top.parent().expect("a parent").join("moved");
    let path = moved.to_string_lossy().into_owned();
    lab.git(&["worktree", "move", &made.path, &path]);
    let now = Checkout { path, ..made.clone() };
    assert_eq!(follow(&lab, &made), now);
    lab.git_in(&moved, &["branch", "-m", "topic"]);
    lab.git_in(&moved, &["branch", "-m", "feat/x"]);
    let now = Checkout { branch: "feat/x".to_owned(), ..now };
    assert_eq!(follow(&lab, &made), now, "both at once");
    lab.git_in(&moved, &["checkout", "--quiet", "-b", "another"]);
    assert_eq!(follow(&lab, &now), now, "another branch is not the same one renamed");
    lab.git_in(&moved, &["branch", "-D", "feat/x"]);
    assert_eq!(follow(&lab, &now), now, "nor is it once the branch is gone");
    lab.goes(&now);
}

/// EN-14: the main working directory never becomes the worktree of a member.
#[test]
fn en_14_branch_in_the_main_directory_is_not_followed() {
    let lab = Lab::new();
    let made = lab.made();
    lab.git(&["worktree", "remove", &made.path]);
    lab.git(&["checkout", "--quiet", "demo-bob"]);
    assert_eq!(follow(&lab, &made), made);
    lab.git(&["branch", "-m", "topic"]);
    assert_eq!(follow(&lab, &made), made);
}

/// EN-14: `git worktree repair` alone does not help after `git worktree prune`.
#[test]
fn en_14_pruned_worktree_is_registered_again() {
    let lab = Lab::new();
    let made = lab.made();
    lab.commit(&made.path, "b.txt", "b");
    write(Path::new(&made.path).join("draft.txt"), "x");
    prune(&lab);
    assert_eq!(lab.condition(&made), Condition::Foreign);
    assert_eq!(follow(&lab, &made), made);
    lab.stays(&made, &Condition::Dirty { files: 1 });
    let there = Path::new(&made.path);
    assert_eq!(lab.git_in(there, &["log", "-1", "--format=%s"]), "b.txt");
    assert_eq!(lab.git_in(there, &["branch", "--show-current"]), "demo-bob");
    // The branch is in use elsewhere, or gone: the directory is left as it is.
    prune(&lab);
    lab.git(&["checkout", "--quiet", "demo-bob"]);
    assert_eq!(follow(&lab, &made), made);
    lab.git(&["checkout", "--quiet", "main"]);
    lab.git(&["branch", "-D", "demo-bob"]);
    assert_eq!(follow(&lab, &made), made);
    assert_eq!(lab.condition(&made), Condition::Foreign);
    assert_eq!(read(there.join("draft.txt")).as_deref(), Some("x"));
    assert!(!fs::exists(&lab.top.join(".git/worktrees")));
}

/// EN-14: other programs neither prune nor move the worktree of a member that runs, and no error
/// advises its removal.
#[test]
fn en_14_worktree_in_use_is_locked_and_its_user_named() {
    let lab = Lab::new();
    let (made, repository) = (lab.made(), lab.repository());
    let user = "`bob` of team `demo` works in it";
    repository.lock(&made, user).expect("locked");
    repository.lock(&made, "`eve` of team `demo` works in it").expect("locked already");
    prune(&lab);
    assert_eq!(lab.condition(&made), Condition::Clean, "its callers know that bob runs");
    let moved = lab.run("git", &lab.top, &["worktree", "move", &made.path, "../moved"]);
    assert!(String::from_utf8_lossy(&moved.stderr).contains(user), "{moved:?}");
    let other = lab.top.join(".worktrees/other");
    for (path, request) in [
        (Path::new(&made.path), WorktreeRequest::Own),
        (&other, WorktreeRequest::Branch("demo-bob".to_owned())),
    ] {
        let error = repository.plan(path, "demo-bob", &request, None).expect_err("in use");
        assert!(matches!(&error, WorktreeError::InUse { user: of, .. } if of == user), "{error}");
    }
    repository.unlock(&made).expect("unlocked");
    let error = repository.plan(Path::new(&made.path), "demo-bob", &WorktreeRequest::Own, None);
    assert!(matches!(error, Err(WorktreeError::Taken { .. })), "{error:?}");
    lab.git(&["worktree", "lock", "--reason", "mine", &made.path]);
    repository.lock(&made, user).expect("locked already");
    repository.unlock(&made).expect("not ours");
    lab.stays(&made, &Condition::Locked { reason: "mine".to_owned() });
    lab.git(&["worktree", "unlock", &made.path]);
    // A lock that a killed member left does not keep its worktree.
    repository.lock(&made, user).expect("locked");
    lab.goes(&made);
}
