//! Tests with real git repositories in temporary directories.

mod follow;
mod hosts;
mod landing;
mod line_moves;
mod merged;
mod planted;
mod snapshot;
mod starts;
mod submodules;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use super::*;
use model::team::worktree::{Checkout, Condition, MergeEvidence, Rules, WorktreeRequest};
use sys::{env, exec, fs};

fn write(path: impl AsRef<Path>, text: &str) {
    fs::write_atomic(path.as_ref(), text.as_bytes()).expect("a file");
}

/// Reads a file; `None` if it does not exist.
fn read(path: impl AsRef<Path>) -> Option<String> {
    let bytes = fs::read(path.as_ref(), 1 << 20).expect("readable")?;
    Some(String::from_utf8(bytes).expect("text"))
}

fn mkdir(path: impl AsRef<Path>) {
    fs::private_dir(path.as_ref()).expect("a directory");
}

fn rm(path: impl AsRef<Path>) {
    assert!(fs::remove_dir_all(path.as_ref()).expect("removed"));
}

/// A repository with one commit, isolated from the git configuration of the user and the system.
struct Lab {
    dir: TempDir,
    top: PathBuf,
}

impl Lab {
    /// Creates the repository in a directory of this name.
    fn named(name: &str) -> Lab {
        let dir = tempfile::tempdir().expect("a directory");
        let top = fs::canonical(dir.path()).expect("it is there").join(name);
        mkdir(&top);
        let lab = Lab { dir, top };
        lab.git(&["init", "--quiet", "-b", "main"]);
        lab.git(&["config", "user.name", "t"]);
        lab.git(&["config", "user.email", "t@example.org"]);
        write(lab.top.join("a.txt"), "one\ntwo\nthree\n");
        lab.git(&["add", "a.txt"]);
        lab.git(&["commit", "--quiet", "-m", "first"]);
        lab
    }

    fn new() -> Lab {
        Lab::named("repo")
    }

    fn env(&self) -> Vec<(OsString, OsString)> {
        let path = env::var("PATH").expect("PATH");
        let home = self.dir.path().join("home");
        vec![
            ("PATH".into(), path),
            ("HOME".into(), home.into()),
            ("GIT_CONFIG_NOSYSTEM".into(), "1".into()),
        ]
    }

    fn run(&self, program: &str, dir: &Path, args: &[&str]) -> exec::ExecOutput {
        let command = exec::ExecCommand {
            program: program.into(),
            args: args.iter().map(Into::into).collect(),
            env: Some(self.env()),
            cwd: Some(dir.to_owned()),
            stdin: Vec::new(),
        };
        exec::run(&command, Duration::from_secs(60)).expect("it runs")
    }

    fn git_in(&self, dir: &Path, args: &[&str]) -> String {
        let output = self.run("git", dir, args);
        assert_eq!(output.code, Some(0), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    fn git(&self, args: &[&str]) -> String {
        self.git_in(&self.top, args)
    }

    fn repository(&self) -> Repository {
        Repository::find(&self.top, &self.env()).expect("a repository")
    }

    fn make(&self, request: &WorktreeRequest) -> Result<Checkout, WorktreeError> {
        make(&self.repository(), request, &Rules::default())
    }

    /// Commands in a shell, in the main working directory.
    fn sh(&self, script: &str) {
        let output = self.run("sh", &self.top, &["-ec", script]);
        assert_eq!(output.code, Some(0), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Writes a git hook.
    fn hook(&self, name: &str, script: &str) {
        write(self.top.join(".git/hooks").join(name), &format!("#!/bin/sh\n{script}\n"));
        self.sh(&format!("chmod +x .git/hooks/{name}"));
    }

    fn made(&self) -> Checkout {
        self.make(&WorktreeRequest::Own).expect("a worktree")
    }

    /// Writes a file in the checkout `dir` and commits it.
    fn commit(&self, dir: &str, file: &str, text: &str) {
        let dir = Path::new(dir);
        write(dir.join(file), text);
        self.git_in(dir, &["add", "--all"]);
        self.git_in(dir, &["commit", "--quiet", "-m", file]);
    }

    fn condition(&self, checkout: &Checkout) -> Condition {
        self.repository().condition(checkout).expect("git answers")
    }

    fn remove(&self, checkout: &Checkout) -> RemovalOutcome {
        self.repository().remove(checkout).expect("git answers")
    }

    /// Asserts the condition of the worktree, and that `remove` leaves it alone.
    fn stays(&self, checkout: &Checkout, condition: &Condition) {
        assert_eq!(self.condition(checkout), *condition);
        assert!(matches!(self.remove(checkout), RemovalOutcome::Kept { .. }), "{condition:?}");
        assert!(fs::is_dir(Path::new(&checkout.path)));
        assert!(self.git(&["worktree", "list"]).contains(&checkout.path));
    }

    fn goes(&self, checkout: &Checkout) {
        assert_eq!(self.remove(checkout), RemovalOutcome::Gone { branch_left: None });
        assert!(!fs::exists(Path::new(&checkout.path)));
        assert!(!self.git(&["worktree", "list"]).contains(&checkout.path));
    }

    fn changes(&self, checkout: &Checkout) -> String {
        changes(&self.repository(), checkout)
    }

    fn has_branch(&self, branch: &str) -> bool {
        let full = format!("refs/heads/{branch}");
        self.run("git", &self.top, &["rev-parse", "--verify", "--quiet", &full]).code == Some(0)
    }
}

/// Returns all changes of a worktree, committed or not.
fn changes(repository: &Repository, checkout: &Checkout) -> String {
    let found = repository.snapshot(checkout).expect("git answers");
    let base = repository.review_base(checkout, &found.head).expect("git answers");
    let patch = repository.patch(&base, &found.commit, &PatchOptions::default());
    String::from_utf8(patch.expect("git answers")).expect("text")
}

/// Makes the worktree of a member `bob`.
fn make(
    repository: &Repository,
    request: &WorktreeRequest,
    rules: &Rules,
) -> Result<Checkout, WorktreeError> {
    let path = repository.place(rules.dir.as_deref(), "demo-bob");
    let planned = repository.plan(&path, "demo-bob", request, rules.base.as_deref())?;
    let built = repository.build(&planned, rules);
    let built = built.inspect_err(|_| repository.discard(&planned).expect("discarded"));
    Ok(built?.checkout)
}

#[test]
fn worktree_has_its_own_branch_and_is_hidden_from_git_status() {
    let lab = Lab::new();
    let made = lab.made();
    assert_eq!(Path::new(&made.path), lab.top.join(".worktrees/demo-bob"));
    assert_eq!(lab.git_in(Path::new(&made.path), &["branch", "--show-current"]), "demo-bob");
    assert_eq!(made.base, lab.git(&["rev-parse", "HEAD"]));
    assert_eq!(lab.git(&["status", "--porcelain"]), "", "the main checkout sees nothing of it");
    assert!(!fs::exists(&lab.top.join(".gitignore")));
    let exclude = || read(lab.top.join(".git/info/exclude")).expect("a text");
    lab.goes(&made);
    let again = lab.made();
    assert_eq!(exclude().matches("/.worktrees/\n").count(), 1, "the line is there once");
    lab.goes(&again);
}

#[test]
fn en_07_clean_worktree_is_removed_with_its_branch() {
    let lab = Lab::new();
    let made = lab.made();
    assert_eq!(lab.condition(&made), Condition::Clean);
    lab.goes(&made);
    assert!(!lab.has_branch("demo-bob"));
    assert_eq!(lab.condition(&made), Condition::Gone);
    assert_eq!(
        lab.remove(&made),
        RemovalOutcome::Gone { branch_left: None },
        "done twice it finds nothing to do"
    );
}

#[test]
fn en_07_worktree_with_uncommitted_files_is_kept() {
    let lab = Lab::new();
    let made = lab.made();
    let file = |name: &str| Path::new(&made.path).join(name);
    write(file("new.txt"), "x");
    lab.stays(&made, &Condition::Dirty { files: 1 });
    lab.git_in(Path::new(&made.path), &["add", "new.txt"]);
    write(file("a.txt"), "changed\n");
    lab.stays(&made, &Condition::Dirty { files: 2 });
    // Untracked files count even if the user's configuration hides them from `git status`.
    lab.git(&["config", "status.showUntrackedFiles", "no"]);
    lab.git_in(Path::new(&made.path), &["reset", "--quiet", "--hard"]);
    write(file("new.txt"), "x");
    lab.stays(&made, &Condition::Dirty { files: 1 });
    assert_eq!(read(file("new.txt")).expect("a text"), "x");
}

#[test]
fn en_07_unmerged_worktree_is_kept_and_merged_one_removed() {
    let lab = Lab::new();
    let made = lab.made();
    lab.commit(&made.path, "b.txt", "b");
    lab.commit(&made.path, "c.txt", "c");
    lab.stays(&made, &Condition::Unmerged { commits: 2 });
    lab.git(&["merge", "--quiet", "--no-ff", "--no-edit", "demo-bob"]);
    assert_eq!(lab.condition(&made), Condition::Merged { by: MergeEvidence::Commits });
    lab.goes(&made);
    assert!(!lab.has_branch("demo-bob"));
}

/// EN-07: commits on a detached HEAD or on another branch than the worktree's own count as well.
#[test]
fn en_07_commits_outside_the_own_branch_keep_the_worktree() {
    let lab = Lab::new();
    let made = lab.made();
    lab.git_in(Path::new(&made.path), &["checkout", "--quiet", "--detach"]);
    assert_eq!(lab.condition(&made), Condition::Clean);
    lab.commit(&made.path, "b.txt", "b");
    lab.stays(&made, &Condition::Unmerged { commits: 1 });
    lab.git_in(Path::new(&made.path), &["checkout", "--quiet", "-b", "elsewhere"]);
    lab.stays(&made, &Condition::Unmerged { commits: 1 });
    lab.git_in(Path::new(&made.path), &["branch", "-D", "demo-bob"]);
    lab.stays(&made, &Condition::Unmerged { commits: 1 });
}

#[test]
fn en_07_locked_worktree_is_kept() {
    let lab = Lab::new();
    let made = lab.made();
    lab.git(&["worktree", "lock", "--reason", "on a stick", &made.path]);
    lab.stays(&made, &Condition::Locked { reason: "on a stick".to_owned() });
    lab.git(&["worktree", "unlock", &made.path]);
    lab.goes(&made);
}

/// EN-07: the entry of a deleted directory is removed, unless commits exist only there.
#[test]
fn en_07_missing_worktree_is_removed_unless_it_had_commits() {
    let lab = Lab::new();
    let made = lab.made();
    rm(&made.path);
    assert_eq!(lab.condition(&made), Condition::Missing);
    lab.goes(&made);
    let made = lab.made();
    lab.git_in(Path::new(&made.path), &["checkout", "--quiet", "--detach"]);
    lab.commit(&made.path, "b.txt", "b");
    rm(&made.path);
    assert_eq!(lab.condition(&made), Condition::Unmerged { commits: 1 });
    assert!(matches!(lab.remove(&made), RemovalOutcome::Kept { .. }));
}

#[test]
fn en_07_directory_unknown_to_git_is_kept() {
    let lab = Lab::new();
    let made = lab.made();
    lab.git(&["worktree", "remove", &made.path]);
    mkdir(&made.path);
    write(Path::new(&made.path).join("x"), "x");
    assert_eq!(lab.condition(&made), Condition::Foreign);
    assert!(matches!(lab.remove(&made), RemovalOutcome::Kept { .. }));
    assert!(fs::exists(&Path::new(&made.path).join("x")));
    assert!(matches!(lab.make(&WorktreeRequest::Own), Err(WorktreeError::Taken { .. })));
}

/// EN-07: removing a worktree would remove one inside it. A worktree created from inside another is
/// placed beside it.
#[test]
fn en_07_worktree_with_a_nested_one_is_kept() {
    let lab = Lab::new();
    let made = lab.made();
    let from_inside = Repository::find(Path::new(&made.path), &lab.env()).expect("a repository");
    assert_eq!(from_inside.place(None, "demo-ann"), lab.top.join(".worktrees/demo-ann"));
    let inner = format!("{}/.worktrees/inner", made.path);
    lab.git(&["worktree", "add", "--quiet", "-b", "inner", &inner]);
    write(Path::new(&inner).join("work"), "x");
    lab.stays(&made, &Condition::Nested { other: inner });
}

#[test]
fn unusable_repositories_are_refused_with_a_reason() {
    let lab = Lab::new();
    let outside = lab.dir.path().join("plain");
    mkdir(&outside);
    let find = |dir: &Path| Repository::find(dir, &lab.env()).map(drop);
    assert!(matches!(find(&outside), Err(WorktreeError::NotARepository { .. })));
    assert!(find(&lab.dir.path().join("missing")).is_err());
    let unborn = lab.dir.path().join("unborn");
    lab.git(&["init", "--quiet", &unborn.to_string_lossy()]);
    assert!(matches!(find(&unborn), Err(WorktreeError::Unborn { .. })));
}

#[test]
fn existing_branch_is_reused_only_when_named() {
    let lab = Lab::new();
    lab.git(&["branch", "demo-bob"]);
    assert!(matches!(lab.make(&WorktreeRequest::Own), Err(WorktreeError::BranchTaken { .. })));
    let named = lab.make(&WorktreeRequest::Branch("demo-bob".to_owned())).expect("a worktree");
    assert!(!named.new_branch);
    lab.goes(&named);
    assert!(lab.has_branch("demo-bob"), "what was there before stays");
    let fresh =
        lab.make(&WorktreeRequest::Branch("feat/ö x'y".replace(' ', "-"))).expect("a worktree");
    assert!(fresh.new_branch);
    lab.goes(&fresh);
    let checked_out = lab.make(&WorktreeRequest::Branch("main".to_owned()));
    assert!(matches!(checked_out, Err(WorktreeError::Git { .. })), "{checked_out:?}");
    assert!(!fs::exists(&lab.top.join(".worktrees/demo-bob")));
}

/// SEC-02, SEC-11: no character in a path is interpreted by a shell, by git's patterns or as an
/// option of git.
#[test]
fn en_06_paths_with_special_characters_work() {
    for name in [
        "with space",
        "#(touch x)",
        "quote'\"s",
        "ünï",
        "-dash",
        "glob[a]*",
        "dollar$HOME",
        "!bang",
    ] {
        let lab = Lab::named(name);
        let repository = lab.repository();
        let rules = Rules { dir: Some(format!("{name} trees")), ..Rules::default() };
        let made = make(&repository, &WorktreeRequest::Own, &rules).expect(name);
        assert_eq!(Path::new(&made.path), lab.top.join(format!("{name} trees/demo-bob")), "{name}");
        assert_eq!(lab.git(&["status", "--porcelain"]), "", "{name} is hidden from git");
        lab.goes(&made);
    }
}

#[test]
fn worktree_outside_the_repository_is_not_added_to_exclude() {
    let lab = Lab::new();
    let repository = lab.repository();
    let rules = Rules { dir: Some("../trees".to_owned()), ..Rules::default() };
    let made = make(&repository, &WorktreeRequest::Own, &rules).expect("a worktree");
    assert_eq!(Path::new(&made.path), lab.top.parent().expect("a parent").join("trees/demo-bob"));
    let exclude = read(lab.top.join(".git/info/exclude")).unwrap_or_default();
    assert!(!exclude.contains("trees"), "{exclude}");
    lab.goes(&made);
}

#[test]
fn files_are_copied_and_setup_runs_in_the_worktree() {
    let lab = Lab::new();
    write(lab.top.join(".git/info/exclude"), ".env\nconf/\nmade\n");
    write(lab.top.join(".env"), "KEY=1");
    mkdir(lab.top.join("conf"));
    write(lab.top.join("conf/local"), "l");
    let repository = lab.repository();
    let path = repository.place(None, "demo-bob");
    let rules = |copy: &[&str], setup: &[&str]| Rules {
        copy: copy.iter().map(|file| (*file).to_owned()).collect(),
        setup: setup.iter().map(|word| (*word).to_owned()).collect(),
        ..Rules::default()
    };
    let make = |rules: &Rules| make(&repository, &WorktreeRequest::Own, rules);
    let made = make(&rules(&[".env", "conf/local"], &["touch", "made"])).expect("a worktree");
    let text = |file: &str| read(Path::new(&made.path).join(file));
    assert_eq!(
        (text(".env").as_deref(), text("conf/local").as_deref(), text("made").as_deref()),
        (Some("KEY=1"), Some("l"), Some(""))
    );
    lab.goes(&made);
    let failing: [(&Rules, &str); 3] = [
        (&rules(&["no-such"], &[]), "no such file"),
        (&rules(&[], &["ls", "/no/such/dir"]), "/no/such/dir"),
        (&rules(&[], &["no-such-program"]), "no-such-program"),
    ];
    for (rules, problem) in failing {
        let error = make(rules).expect_err("it fails").to_string();
        assert!(error.contains(problem), "{error}");
        assert!(!fs::exists(&path) && !lab.has_branch("demo-bob"), "nothing is left: {error}");
    }
}

#[test]
fn copy_through_a_symlink_out_of_the_worktree_is_refused() {
    let lab = Lab::new();
    let outside = lab.dir.path().join("outside");
    mkdir(&outside);
    lab.run("ln", &lab.top, &["-s", &outside.to_string_lossy(), "link"]);
    lab.git(&["add", "link"]);
    lab.git(&["commit", "--quiet", "-m", "link"]);
    lab.run("rm", &lab.top, &["link"]);
    mkdir(lab.top.join("link"));
    write(lab.top.join("link/f"), "x");
    let repository = lab.repository();
    let rules = Rules { copy: vec!["link/f".to_owned()], ..Rules::default() };
    let made = make(&repository, &WorktreeRequest::Own, &rules);
    assert!(made.expect_err("refused").to_string().contains("leads out of it"));
    assert!(!fs::exists(&outside.join("f")));
}

/// EN-07: a git hook runs with these variables, which would redirect git to the hook's own index.
#[test]
fn en_07_misleading_git_variables_are_removed() {
    let (lab, other) = (Lab::new(), Lab::named("other"));
    let mut env = lab.env();
    for name in MISLEADING {
        env.push((name.into(), other.top.join(".git").into()));
    }
    let found = Repository::find(&lab.top, &env).expect("the repository of the directory");
    assert_eq!(found.place(None, "x"), lab.top.join(".worktrees/x"));
}

#[test]
fn preview_leaves_the_repository_unchanged() {
    let lab = Lab::new();
    let made = lab.made();
    lab.commit(&made.path, "a.txt", "one\nTWO\nthree\n");
    let repository = lab.repository();
    let before = lab.git(&["rev-parse", "HEAD"]);
    let preview = repository.preview(&made).expect("git answers");
    let expected = Preview {
        from: "demo-bob".to_owned(),
        into: "main".to_owned(),
        head: lab.git_in(Path::new(&made.path), &["rev-parse", "HEAD"]),
        commits: 1,
        size: "1 file changed, 1 insertion(+), 1 deletion(-)".to_owned(),
        conflicts: vec![],
        uncommitted: 0,
    };
    assert_eq!(preview, expected);
    lab.commit(&lab.top.to_string_lossy(), "a.txt", "one\n2\nthree\n");
    write(Path::new(&made.path).join("a.txt"), "one\nTWO\nthree\nfour\n");
    let preview = repository.preview(&made).expect("git answers");
    assert_eq!((preview.conflicts, preview.uncommitted), (vec!["a.txt".to_owned()], 1));
    assert_eq!(lab.git(&["rev-parse", "HEAD~1"]), before);
    assert_eq!(lab.git(&["status", "--porcelain"]), "");
}

#[test]
fn tk_09_checkout_is_found_from_any_subdirectory() {
    let lab = Lab::new();
    let made = lab.made();
    let sub = lab.top.join("sub");
    mkdir(&sub);
    assert_eq!(checkout_of(&sub).as_deref(), Some(lab.top.as_path()));
    assert_eq!(checkout_of(Path::new(&made.path)).as_deref(), Some(Path::new(&made.path)));
    assert_eq!(checkout_of(&lab.dir.path().join("nowhere")), None);
}
