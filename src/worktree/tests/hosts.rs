//! Copies of a repository on hosts, their worktrees, and the commits that come back from them.

use super::*;
use model::id::HostName;
use model::team::worktree::{RepositoryCopy, WorktreeOrigin};

/// A repository, and a host with a copy of it in another directory.
struct Pair {
    lab: Lab,
    host: HostName,
    copy: HostRepository,
    path: PathBuf,
}

impl Pair {
    fn new() -> Pair {
        let lab = Lab::new();
        let base = lab.top.parent().expect("a parent").join("host");
        let path = base.join("repositories/repo.git");
        mkdir(base.join("worktrees"));
        let traits = lab.repository().traits().expect("git answers");
        let copy = HostRepository::open(&path, &traits, &lab.env()).expect("a copy");
        Pair { lab, host: HostName::new("h1").expect("a name"), copy, path }
    }

    /// Brings a commit to the host in a bundle.
    fn deliver(&self, token: &str, commit: &str) -> usize {
        let tips = self.copy.tips().expect("git answers");
        let bundle = self.lab.repository().bundle(token, commit, &tips).expect("a bundle");
        let file = self.path.with_extension(token);
        fs::write_atomic(&file, &bundle).expect("a file");
        self.copy.receive(&file.to_string_lossy(), token, commit).expect("received");
        bundle.len()
    }

    fn origin(&self, start: &str) -> WorktreeOrigin {
        WorktreeOrigin {
            host: HostName::new("desk").expect("a name"),
            repository: self.lab.top.to_string_lossy().into_owned(),
            copy: self.path.to_string_lossy().into_owned(),
            start: start.to_owned(),
            from: None,
            files: Vec::new(),
            staged: None,
        }
    }

    fn make(&self, request: &WorktreeRequest, start: &str) -> Result<Checkout, WorktreeError> {
        let place = Repository::at(&self.path, &self.lab.env()).place(Some(WORKTREES), "demo-bob");
        let origin = self.origin(start);
        let planned = self.copy.plan(&place, "demo-bob", request, &origin)?;
        let made = self.copy.build(&planned, &origin, &[])?.checkout;
        let copy = RepositoryCopy { host: self.host.clone(), path: origin.copy };
        Ok(Checkout { copy: Some(copy), ..made })
    }

    /// Returns a worktree on the host from the lead's HEAD.
    fn made(&self) -> Checkout {
        let start =
            self.lab.repository().start_for(&self.host, "demo-bob", &WorktreeRequest::Own, None);
        let (start, _) = start.expect("a commit");
        self.deliver("first", &start);
        self.make(&WorktreeRequest::Own, &start).expect("a worktree")
    }

    /// Fetches the commits of a worktree in a bundle. Returns its state and its name in git.
    fn fetch(
        &self,
        token: &str,
        checkout: &Checkout,
    ) -> Result<(WorktreeState, String), WorktreeError> {
        let state = self.copy.state(checkout)?;
        self.take(token, checkout, &state).map(|from| (state, from))
    }

    /// Fetches the commits of a state of a worktree in a bundle. Returns its name in git.
    fn take(
        &self,
        token: &str,
        checkout: &Checkout,
        state: &WorktreeState,
    ) -> Result<String, WorktreeError> {
        let repository = self.lab.repository();
        let missing = repository.missing(&state.commits())?;
        if !missing.is_empty() {
            let known = repository.shared_with(checkout)?;
            let file = self.path.with_extension(token);
            self.copy.bundle(&file, token, &missing, &known)?;
            let bytes = fs::read(&file, 1 << 30)?.expect("a bundle");
            repository.take_bundle(&bytes, token, &missing, &known)?;
        }
        repository.track(&self.host, checkout, state)
    }

    fn condition(&self, token: &str, checkout: &Checkout) -> Condition {
        let (state, _) = self.fetch(token, checkout).expect("git answers");
        self.lab.repository().condition_of(checkout, &state).expect("git answers")
    }
}

#[test]
fn en_07_commits_of_a_host_come_back_and_are_merged_before_removal() {
    let pair = Pair::new();
    let made = pair.made();
    assert!(made.path.ends_with("/host/worktrees/demo-bob"), "{}", made.path);
    assert_eq!(pair.condition("t0", &made), Condition::Clean);
    pair.lab.commit(&made.path, "b.txt", "b");
    assert_eq!(pair.condition("t1", &made), Condition::Unmerged { commits: 1 });
    pair.lab.commit(&made.path, "a.txt", "one\nTWO\nthree\n");
    write(Path::new(&made.path).join("c.txt"), "c");
    assert_eq!(pair.condition("t2", &made), Condition::Dirty { files: 1 });
    rm_file(&made, "c.txt");
    let (state, from) = pair.fetch("t3", &made).expect("git answers");
    assert_eq!(from, "h1/demo-bob");
    let repository = pair.lab.repository();
    let preview = repository.preview_of(&made, &state, from.clone()).expect("git answers");
    assert_eq!((preview.commits, preview.conflicts.len()), (2, 0));
    let head = state.head.clone().expect("a commit");
    let base = repository.review_base(&made, &head).expect("git answers");
    let patch = repository.patch(&base, &head, &PatchOptions::default()).expect("a patch");
    assert!(String::from_utf8_lossy(&patch).contains("+TWO"));
    pair.lab.git(&["merge", "--quiet", "--no-edit", &from]);
    let merged = Condition::Merged { by: MergeEvidence::Commits };
    assert_eq!(pair.condition("t4", &made), merged);
    let removed = pair.copy.remove(&made, &state, true).expect("git answers");
    assert_eq!(removed, RemovalOutcome::Gone { branch_left: None });
    assert!(!fs::exists(Path::new(&made.path)));
    assert_eq!(pair.lab.git_in(&pair.path, &["branch", "--list"]), "");
    let left = pair.lab.git(&["for-each-ref", "refs/phalanx"]);
    assert_eq!(left, "", "no ref of a transfer is left");
    let git_dir = fs::names(&pair.lab.top.join(".git")).expect("names");
    assert!(!git_dir.iter().any(|name| name.starts_with("phalanx-")), "{git_dir:?}");
}

#[test]
fn snapshot_of_a_host_comes_along_and_is_no_commit_of_the_member() {
    let pair = Pair::new();
    let made = pair.made();
    let repository = pair.lab.repository();
    let state = pair.copy.state_with_snapshot(&made).expect("git answers");
    assert_eq!(state.commits(), [made.base.as_str()], "nothing is uncommitted");
    pair.lab.commit(&made.path, "b.txt", "b\n");
    write(Path::new(&made.path).join("c.txt"), "c\n");
    assert_eq!(pair.copy.state(&made).expect("git answers").snapshot, None, "it was not asked for");
    let state = pair.copy.state_with_snapshot(&made).expect("git answers");
    let snapshot = state.snapshot.clone().expect("a snapshot");
    assert_eq!(snapshot.uncommitted, 1);
    assert!(state.commits().contains(&snapshot.commit));
    assert_eq!(pair.take("t1", &made, &state).expect("git answers"), "h1/demo-bob");
    let base = repository.review_base(&made, &snapshot.head).expect("git answers");
    let patch = repository.patch(&base, &snapshot.commit, &PatchOptions::default());
    let patch = String::from_utf8(patch.expect("a patch")).expect("text");
    assert!(patch.contains("+b\n") && patch.contains("+c\n"), "{patch}");
    assert_eq!(repository.merged(&made, &state).expect("git answers"), Err(1));
    let named = pair.lab.git(&["for-each-ref", "--contains", &snapshot.commit]);
    assert_eq!(named, "", "no branch names it");
    // The next one of the same commit is sent without what came before.
    write(Path::new(&made.path).join("c.txt"), "c2\n");
    let state = pair.copy.state_with_snapshot(&made).expect("git answers");
    pair.take("t2", &made, &state).expect("git answers");
    let hostile = WorkSnapshot { head: "--output=x".to_owned(), ..snapshot };
    let hostile = WorktreeState { snapshot: Some(hostile), ..state };
    assert!(pair.take("t3", &made, &hostile).is_err(), "an option is no commit");
    rm(&made.path);
    let gone = pair.copy.state_with_snapshot(&made).expect("git answers");
    assert_eq!(gone.snapshot, None);
}

#[test]
fn en_07_worktree_on_a_host_that_changed_meanwhile_is_kept() {
    let pair = Pair::new();
    let made = pair.made();
    let seen = pair.copy.state(&made).expect("git answers");
    pair.lab.commit(&made.path, "b.txt", "b");
    let outcome = pair.copy.remove(&made, &seen, true).expect("git answers");
    assert!(matches!(outcome, RemovalOutcome::Kept { .. }), "{outcome:?}");
    let unused = pair.copy.remove_unused(&made).expect("git answers");
    assert!(matches!(unused, RemovalOutcome::Kept { .. }), "{unused:?}");
    let now = pair.copy.state(&made).expect("git answers");
    write(Path::new(&made.path).join("c.txt"), "c");
    let outcome = pair.copy.remove(&made, &now, true).expect("git answers");
    assert!(matches!(outcome, RemovalOutcome::Kept { .. }), "{outcome:?}");
    assert!(fs::exists(&Path::new(&made.path).join("b.txt")));
}

#[test]
fn en_07_commits_on_other_branches_and_detached_heads_of_a_host_count() {
    let pair = Pair::new();
    let made = pair.made();
    let there = Path::new(&made.path);
    pair.lab.git_in(there, &["checkout", "--quiet", "-b", "elsewhere"]);
    pair.lab.commit(&made.path, "b.txt", "b");
    let (_, from) = pair.fetch("t1", &made).expect("git answers");
    assert_eq!(from, "h1/elsewhere");
    assert_eq!(pair.condition("t2", &made), Condition::Unmerged { commits: 1 });
    pair.lab.git_in(there, &["checkout", "--quiet", "--detach"]);
    pair.lab.commit(&made.path, "c.txt", "c");
    let (state, from) = pair.fetch("t3", &made).expect("git answers");
    assert!(state.head.expect("a commit").starts_with(&from), "{from}");
    assert_eq!(pair.condition("t4", &made), Condition::Unmerged { commits: 2 });
}

#[test]
fn later_bundles_leave_out_what_the_host_has() {
    let pair = Pair::new();
    let words = (0..40_000u32).map(|n| format!("{:x}", n.wrapping_mul(2_654_435_761)));
    let noise: String = words.collect();
    pair.lab.commit(&pair.lab.top.to_string_lossy(), "big.txt", &noise);
    let first = pair.deliver("one", &pair.lab.git(&["rev-parse", "HEAD"]));
    pair.lab.commit(&pair.lab.top.to_string_lossy(), "a.txt", "changed\n");
    let head = pair.lab.git(&["rev-parse", "HEAD"]);
    assert!(!pair.copy.has(&head).expect("git answers"));
    let second = pair.deliver("two", &head);
    assert!(pair.copy.has(&head).expect("git answers"));
    assert!(second < 2000 && first > 50_000, "{first} {second}");
}

#[test]
fn branch_of_a_copy_is_continued_or_advanced_but_never_reset() {
    let pair = Pair::new();
    let made = pair.made();
    let first = made.base.clone();
    let request = WorktreeRequest::Branch("demo-bob".to_owned());
    let again = pair.make(&WorktreeRequest::Own, &first);
    assert!(matches!(again, Err(WorktreeError::Taken { .. })), "{again:?}");
    pair.lab.git_in(&pair.path, &["worktree", "remove", &made.path]);
    let again = pair.make(&WorktreeRequest::Own, &first);
    assert!(matches!(again, Err(WorktreeError::BranchTaken { .. })), "{again:?}");
    pair.lab.commit(&pair.lab.top.to_string_lossy(), "b.txt", "b");
    let head = pair.lab.git(&["rev-parse", "HEAD"]);
    pair.deliver("two", &head);
    let advanced = pair.make(&request, &head).expect("a worktree");
    assert_eq!((advanced.base.as_str(), advanced.new_branch), (head.as_str(), false));
    pair.lab.commit(&advanced.path, "c.txt", "c");
    pair.lab.git_in(&pair.path, &["worktree", "remove", &made.path]);
    let continued = pair.make(&request, &head).expect("a worktree");
    assert_ne!(continued.base, head, "the commit of the host is still there");
    pair.lab.git_in(&pair.path, &["worktree", "remove", &made.path]);
    pair.lab.commit(&pair.lab.top.to_string_lossy(), "d.txt", "d");
    let other = pair.lab.git(&["rev-parse", "HEAD"]);
    pair.deliver("three", &other);
    let diverged = pair.make(&request, &other);
    assert!(matches!(diverged, Err(WorktreeError::Diverged { .. })), "{diverged:?}");
}

/// A commit of a host whose `.gitmodules` would run a program in an old git.
#[test]
fn hostile_objects_of_a_host_are_refused() {
    let pair = Pair::new();
    let made = pair.made();
    let text = "[submodule \"x\"]\n\tpath = x\n\turl = --upload-pack=touch\n";
    pair.lab.commit(&made.path, ".gitmodules", text);
    let head = pair.lab.git_in(Path::new(&made.path), &["rev-parse", "HEAD"]);
    let refused = pair.fetch("t1", &made).expect_err("refused").to_string();
    assert!(refused.contains("cannot take the commits"), "{refused}");
    let repository = pair.lab.repository();
    assert_eq!(repository.missing(std::slice::from_ref(&head)).expect("git answers"), [head]);
    assert_eq!(pair.lab.git(&["for-each-ref", "refs/remotes", "refs/phalanx"]), "");
    assert!(repository.missing(&["--output=x".to_owned()]).is_err(), "an option is no commit");
}

#[test]
fn address_that_runs_a_command_is_refused() {
    let lab = Lab::new();
    let marker = lab.dir.path().join("marker");
    let mut env = lab.env();
    env.push(("GIT_ALLOW_PROTOCOL".into(), "ext:file".into()));
    let repository = Repository::find(&lab.top, &env).expect("a repository");
    let remote = repository.remote(&format!("ext::touch {}", marker.display())).expect("address");
    let head = lab.git(&["rev-parse", "HEAD"]);
    assert!(repository.push_to(&remote, "t", &head).is_err());
    assert!(repository.take_from(&remote, "t", &[head]).is_err());
    assert!(!fs::exists(&marker));
}

#[test]
fn commits_go_through_a_remote_and_leave_no_ref_there() {
    let pair = Pair::new();
    let bare = pair.lab.top.parent().expect("a parent").join("shared.git");
    pair.lab.git(&["init", "--quiet", "--bare", &bare.to_string_lossy()]);
    pair.lab.git(&["remote", "add", "shared", "../shared.git"]);
    let repository = pair.lab.repository();
    let remote = repository.remote("shared").expect("a remote");
    assert!(Path::new(&remote.fetch).is_absolute(), "a host has another working directory");
    let head = pair.lab.git(&["rev-parse", "HEAD"]);
    repository.push_to(&remote, "one", &head).expect("pushed");
    pair.copy.receive(&remote.fetch, "one", &head).expect("received");
    let made = pair.make(&WorktreeRequest::Own, &head).expect("a worktree");
    pair.lab.commit(&made.path, "b.txt", "b");
    let commits = pair.copy.state(&made).expect("git answers").commits();
    pair.copy.push(&remote.push, "two", &commits).expect("pushed");
    repository.take_from(&remote, "two", &commits).expect("fetched");
    assert_eq!(repository.missing(&commits).expect("git answers"), [""; 0]);
    repository.withdraw(&remote, "one", &[head]);
    repository.withdraw(&remote, "two", &commits);
    assert_eq!(pair.lab.git_in(&bare, &["for-each-ref"]), "");
    assert!(matches!(repository.remote("nowhere"), Err(WorktreeError::NoRemote { .. })));
    assert!(matches!(repository.remote("--all"), Err(WorktreeError::NoRemote { .. })));
}

#[test]
fn unusable_repositories_are_refused_before_anything_is_sent() {
    let lab = Lab::new();
    let host = HostName::new("h1").expect("a name");
    let start =
        |request: &WorktreeRequest| lab.repository().start_for(&host, "demo-bob", request, None);
    let head = lab.git(&["rev-parse", "HEAD"]);
    assert_eq!(
        start(&WorktreeRequest::Own).expect("a commit"),
        (head.clone(), Some("main".to_owned()))
    );
    lab.git(&["branch", "demo-bob"]);
    lab.commit(&lab.top.to_string_lossy(), "b.txt", "b");
    assert!(matches!(start(&WorktreeRequest::Own), Err(WorktreeError::BranchTaken { .. })));
    let named = start(&WorktreeRequest::Branch("demo-bob".to_owned()));
    assert_eq!(named.expect("a commit"), (head, None), "an existing branch is the start");
    lab.git(&["remote", "add", "h1", "https://example.org/x"]);
    let named = start(&WorktreeRequest::Branch("new".to_owned()));
    assert!(matches!(named, Err(WorktreeError::RemoteName { .. })));
    let shallow = lab.dir.path().join("shallow");
    let url = format!("file://{}", lab.top.display());
    lab.git(&["clone", "--quiet", "--depth=1", &url, &shallow.to_string_lossy()]);
    let shallow = Repository::find(&shallow, &lab.env()).expect("a repository");
    let head = lab.git(&["rev-parse", "HEAD"]);
    assert!(matches!(shallow.bundle("t", &head, &[]), Err(WorktreeError::Shallow { .. })));
}

#[test]
fn files_of_another_machine_are_copied_only_inside_the_worktree() {
    let pair = Pair::new();
    let head = pair.lab.git(&["rev-parse", "HEAD"]);
    pair.deliver("first", &head);
    let staged = pair.path.with_extension("staged");
    mkdir(&staged);
    write(staged.join("0"), "KEY=1");
    let place = Repository::at(&pair.path, &pair.lab.env()).place(Some(WORKTREES), "demo-bob");
    let make = |file: &str| {
        let origin = WorktreeOrigin {
            files: vec![file.to_owned()],
            staged: Some(staged.to_string_lossy().into_owned()),
            ..pair.origin(&head)
        };
        let planned = pair.copy.plan(&place, "demo-bob", &WorktreeRequest::Own, &origin)?;
        pair.copy.build(&planned, &origin, &[]).map(|built| built.checkout)
    };
    for hostile in ["../out", "/etc/x", ".git/hooks/post-commit"] {
        let refused = make(hostile).expect_err("refused");
        assert!(matches!(refused, WorktreeError::Copy { .. }), "{refused}");
        assert!(!fs::exists(&place));
    }
    let made = make("conf/.env").expect("a worktree");
    assert_eq!(read(Path::new(&made.path).join("conf/.env")).as_deref(), Some("KEY=1"));
    let rules = Rules { copy: vec!["no-such".to_owned()], ..Rules::default() };
    assert!(matches!(pair.lab.repository().files_to_copy(&rules), Err(WorktreeError::Copy { .. })));
}

fn rm_file(checkout: &Checkout, name: &str) {
    assert!(fs::remove_file(&Path::new(&checkout.path).join(name)).expect("removed"));
}
