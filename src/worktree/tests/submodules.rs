//! Worktrees with submodules: EN-13.

use super::*;

/// A repository with a submodule `lib`, and a worktree in which it is checked out.
fn with_submodule() -> (Lab, Lab, Checkout) {
    let (lab, lib) = (Lab::new(), Lab::named("lib"));
    lab.submodule(&lab.top, &["add", lib.top.to_str().expect("text"), "lib"]);
    lab.git(&["commit", "--quiet", "-m", "lib"]);
    let checkout = lab.made();
    lab.submodule(Path::new(&checkout.path), &["update", "--init"]);
    (lab, lib, checkout)
}

impl Lab {
    fn submodule(&self, dir: &Path, args: &[&str]) {
        let allowed = ["-c", "protocol.file.allow=always", "submodule", "--quiet"];
        self.git_in(dir, &[&allowed[..], args].concat());
    }

    /// Makes the submodule's commits those of the user of this repository.
    fn commit_in_submodule(&self, checkout: &Checkout, text: &str) {
        let dir = Path::new(&checkout.path).join("lib");
        for (key, value) in [("user.name", "t"), ("user.email", "t@example.org")] {
            self.git_in(&dir, &["config", key, value]);
        }
        self.commit(dir.to_str().expect("text"), "new.txt", text);
    }

    fn stays_for_its_submodule(&self, checkout: &Checkout) {
        let condition = self.condition(checkout);
        let Condition::Submodule { repository, commits: 1 } = &condition else {
            panic!("{condition:?}")
        };
        assert!(repository.ends_with("/modules/lib"), "{repository}");
        self.stays(checkout, &condition);
    }
}

#[test]
fn en_13_clean_worktree_with_submodules_is_removed() {
    let (lab, lib, checkout) = with_submodule();
    write(Path::new(&checkout.path).join("lib/a.txt"), "changed");
    lab.stays(&checkout, &Condition::Dirty { files: 1 });
    lab.git_in(&Path::new(&checkout.path).join("lib"), &["checkout", "--quiet", "--", "."]);
    write(Path::new(&checkout.path).join("lib/new.txt"), "new");
    lab.stays(&checkout, &Condition::Dirty { files: 1 });
    fs::remove_file(&Path::new(&checkout.path).join("lib/new.txt")).expect("removed");
    // A tag that no remote branch has came from there.
    lib.git(&["checkout", "--quiet", "--detach"]);
    lib.commit(lib.top.to_str().expect("text"), "tagged.txt", "x");
    lib.git(&["tag", "v1"]);
    lab.git_in(&Path::new(&checkout.path).join("lib"), &["fetch", "--quiet", "--tags"]);
    assert_eq!(lab.condition(&checkout), Condition::Clean);
    lab.git(&["worktree", "lock", &checkout.path]);
    lab.stays(&checkout, &Condition::Locked { reason: String::new() });
    lab.git(&["worktree", "unlock", &checkout.path]);
    lab.goes(&checkout);
}

/// EN-13, EN-07: on a branch that is not checked out, stashed, in a submodule that is not checked
/// out, or merged as a pointer.
#[test]
fn en_13_commits_that_only_a_submodule_has_keep_the_worktree() {
    let (lab, _lib, checkout) = with_submodule();
    let dir = Path::new(&checkout.path).join("lib");
    lab.git_in(&dir, &["checkout", "--quiet", "-b", "mine"]);
    lab.commit_in_submodule(&checkout, "mine\n");
    lab.stays(&checkout, &Condition::Dirty { files: 1 });
    lab.git_in(&dir, &["checkout", "--quiet", "--detach", "origin/main"]);
    lab.stays_for_its_submodule(&checkout);
    lab.submodule(Path::new(&checkout.path), &["deinit", "lib"]);
    lab.stays_for_its_submodule(&checkout);
    lab.submodule(Path::new(&checkout.path), &["update", "--init"]);
    lab.git_in(&dir, &["push", "--quiet", "origin", "mine"]);
    lab.goes(&checkout);

    let (lab, _lib, checkout) = with_submodule();
    lab.commit_in_submodule(&checkout, "mine\n");
    lab.git_in(Path::new(&checkout.path), &["commit", "--quiet", "-am", "lib"]);
    lab.git(&["merge", "--quiet", "--ff-only", "demo-bob"]);
    lab.stays_for_its_submodule(&checkout);

    let (lab, _lib, checkout) = with_submodule();
    lab.commit_in_submodule(&checkout, "mine\n");
    let dir = Path::new(&checkout.path).join("lib");
    lab.git_in(&dir, &["push", "--quiet", "origin", "HEAD:refs/heads/mine"]);
    lab.git_in(&dir, &["checkout", "--quiet", "--detach", "HEAD~"]);
    write(dir.join("a.txt"), "stashed");
    lab.git_in(&dir, &["stash", "--quiet"]);
    let condition = lab.condition(&checkout);
    assert!(matches!(condition, Condition::Submodule { commits: 1.., .. }), "{condition:?}");
    lab.stays(&checkout, &condition);
}
