//! What new branches start from, what new worktrees get, and what is left of those that fail.

use super::*;

fn branch(name: &str) -> WorktreeRequest {
    WorktreeRequest::Branch(name.to_owned())
}

/// Asserts that nothing is left of the worktree of `bob`.
fn nothing_is_left(lab: &Lab, reason: &str) {
    assert!(!fs::exists(&lab.top.join(".worktrees/demo-bob")), "{reason}");
    assert!(!lab.has_branch("demo-bob"), "{reason}");
    assert_eq!(lab.git(&["worktree", "list"]).lines().count(), 1, "{reason}");
    // Git may leave the empty directory.
    let entries = fs::names(&lab.top.join(".git/worktrees")).expect("readable");
    assert_eq!(entries, Vec::<String>::new(), "{reason}");
}

/// A clone of `lab` beside it, with one more commit on the branch `feat/x`.
fn other_clone(lab: &Lab, name: &str) -> PathBuf {
    let path = lab.top.parent().expect("a parent").join(name);
    lab.git(&["clone", "--quiet", ".", &path.to_string_lossy()]);
    lab.git_in(&path, &["config", "user.name", "t"]);
    lab.git_in(&path, &["config", "user.email", "t@example.org"]);
    lab.git_in(&path, &["checkout", "--quiet", "-b", "feat/x"]);
    lab.commit(&path.to_string_lossy(), "x.txt", name);
    path
}

#[test]
fn en_08_failed_hook_keeps_the_worktree_and_is_a_warning() {
    let lab = Lab::new();
    lab.hook("post-checkout", "echo 'tool is not installed' >&2; exit 1");
    let repository = lab.repository();
    let path = repository.place(None, "demo-bob");
    let planned = repository.plan(&path, "demo-bob", &WorktreeRequest::Own, None).expect("planned");
    let built = repository.build(&planned, &Rules::default()).expect("a worktree");
    let warning = built.warning.expect("a warning");
    assert!(warning.contains("hook failed: tool is not installed"), "{warning}");
    assert_eq!(lab.condition(&built.checkout), Condition::Clean);
    lab.goes(&built.checkout);
    nothing_is_left(&lab, "removed");
}

/// EN-08: whatever fails, nothing is left, and the reason is git's own line, not the last one.
#[test]
fn en_08_failed_creation_leaves_nothing_and_says_why() {
    let filter = |lab: &Lab, smudge: &str| {
        lab.git(&["config", "filter.f.required", "true"]);
        lab.git(&["config", "filter.f.clean", "cat"]);
        lab.git(&["config", "filter.f.smudge", smudge]);
        lab.commit(&lab.top.to_string_lossy(), ".gitattributes", "*.bin filter=f\n");
        lab.commit(&lab.top.to_string_lossy(), "b.bin", "b\n");
    };
    type Break = fn(&Lab, &dyn Fn(&Lab, &str));
    let cases: [(&str, Break, &str); 5] = [
        ("a filter fails", |lab, filter| filter(lab, "false"), "smudge filter f failed"),
        // Its parent is git, which is killed with the worktree locked.
        (
            "git is killed",
            |lab, filter| filter(lab, "sh -c 'kill -9 $(ps -o ppid= -p $PPID); sleep 1'"),
            "",
        ),
        (
            "a hook spoils a file and fails",
            |lab, _| lab.hook("post-checkout", "echo late >a.txt; exit 1"),
            "git gave no reason",
        ),
        (
            "a hook locks the worktree",
            |lab, _| lab.hook("post-checkout", "git worktree lock .; exit 1"),
            "git gave no reason",
        ),
        (
            "the administrative directory is a file",
            |lab, _| lab.sh("touch .git/worktrees"),
            "could not create",
        ),
    ];
    for (case, break_it, reason) in cases {
        let lab = Lab::new();
        break_it(&lab, &filter);
        let error = lab.make(&WorktreeRequest::Own).expect_err(case).to_string();
        assert!(error.contains(reason), "{case}: {error}");
        lab.sh("if test -f .git/worktrees; then rm .git/worktrees; fi");
        nothing_is_left(&lab, case);
    }
}

/// EN-08: a process that is killed leaves an unfinished worktree, in any state.
#[test]
fn en_08_unfinished_worktree_is_discarded_in_any_state() {
    let states: [(&str, &str); 6] = [
        ("nothing was made", ":"),
        ("git made it", "git worktree add -q -b demo-bob .worktrees/demo-bob"),
        (
            "git still holds it",
            "git worktree add -q -b demo-bob .worktrees/demo-bob; \
             git worktree lock --reason initializing .worktrees/demo-bob; rm .worktrees/demo-bob/a.txt",
        ),
        ("git made only its directory", "mkdir -p .worktrees/demo-bob; git branch demo-bob"),
        (
            "its removal was cut off",
            "git worktree add -q -b demo-bob .worktrees/demo-bob; rm .worktrees/demo-bob/.git",
        ),
        (
            "its setup was at work",
            "git worktree add -q -b demo-bob .worktrees/demo-bob; echo x >.worktrees/demo-bob/made",
        ),
    ];
    for (state, script) in states {
        let lab = Lab::new();
        let repository = lab.repository();
        let path = repository.place(None, "demo-bob");
        let planned =
            repository.plan(&path, "demo-bob", &WorktreeRequest::Own, None).expect("planned");
        lab.sh(script);
        assert_eq!(lab.condition(&planned), Condition::Unfinished, "{state}");
        assert_eq!(lab.remove(&planned), RemovalOutcome::Gone { branch_left: None }, "{state}");
        nothing_is_left(&lab, state);
    }
    // What somebody else put there stays, and so does a branch that has commits by now.
    let lab = Lab::new();
    let repository = lab.repository();
    let path = repository.place(None, "demo-bob");
    let planned = repository.plan(&path, "demo-bob", &WorktreeRequest::Own, None).expect("planned");
    lab.sh("mkdir -p .worktrees/demo-bob; echo x >.worktrees/demo-bob/mine");
    let error = repository.discard(&planned).expect_err("not ours");
    assert!(matches!(error, WorktreeError::Taken { .. }), "{error}");
    assert!(fs::exists(&path.join("mine")));
    rm(&path);
    // The entry of another worktree, whose disk is away.
    lab.sh("git worktree add -q -b other ../other; mv ../other ../away; mkdir .worktrees/demo-bob");
    repository.discard(&planned).expect("removed");
    lab.sh("mv ../away ../other; git -C ../other status; git worktree remove ../other");
    lab.sh(
        "git checkout -q -b demo-bob; echo y >y; git add y; git commit -qm y; git checkout -q main",
    );
    repository.discard(&planned).expect("nothing to remove");
    assert!(lab.has_branch("demo-bob"));
}

#[test]
fn en_09_branch_that_only_a_remote_has_is_taken_from_there() {
    let lab = Lab::new();
    let origin = other_clone(&lab, "origin");
    lab.git(&["remote", "add", "origin", &origin.to_string_lossy()]);
    lab.git(&["fetch", "--quiet", "origin"]);
    let made = lab.make(&branch("feat/x")).expect("a worktree");
    let tip = lab.git_in(&origin, &["rev-parse", "feat/x"]);
    assert_eq!((&made.base, made.from.as_deref()), (&tip, Some("origin/feat/x")));
    let there = Path::new(&made.path);
    assert_eq!(read(there.join("x.txt")).as_deref(), Some("origin"));
    assert_eq!(lab.git_in(there, &["rev-parse", "--abbrev-ref", "@{upstream}"]), "origin/feat/x");
    assert_eq!(lab.condition(&made), Condition::Clean);
    lab.goes(&made);
    assert!(!lab.has_branch("feat/x"));
    // A second remote makes it ambiguous, until git's own setting decides.
    let fork = other_clone(&lab, "fork");
    lab.git(&["remote", "add", "fork", &fork.to_string_lossy()]);
    lab.git(&["fetch", "--quiet", "fork"]);
    let error = lab.make(&branch("feat/x")).expect_err("ambiguous");
    assert!(
        matches!(&error, WorktreeError::Ambiguous { found, .. } if found.len() == 2),
        "{error}"
    );
    let rules = Rules { base: Some("fork/feat/x".to_owned()), ..Rules::default() };
    let named = make(&lab.repository(), &branch("feat/x"), &rules).expect("a worktree");
    assert_eq!(read(Path::new(&named.path).join("x.txt")).as_deref(), Some("fork"));
    lab.goes(&named);
    lab.git(&["config", "checkout.defaultRemote", "origin"]);
    let made = lab.make(&branch("feat/x")).expect("a worktree");
    assert_eq!(made.from.as_deref(), Some("origin/feat/x"));
    lab.goes(&made);
    // A branch of the member's own name is not looked for elsewhere.
    lab.git_in(&origin, &["branch", "demo-bob"]);
    lab.git(&["fetch", "--quiet", "origin"]);
    assert_eq!(lab.made().from.as_deref(), Some("main"));
}

/// EN-09: git prefers a tag to a branch of its short name.
#[test]
fn en_09_tag_with_the_name_of_a_branch_is_not_the_start() {
    let lab = Lab::new();
    let origin = other_clone(&lab, "origin");
    lab.git(&["remote", "add", "origin", &origin.to_string_lossy()]);
    lab.git(&["fetch", "--quiet", "origin"]);
    lab.git(&["tag", "main"]);
    lab.git(&["tag", "origin/feat/x"]);
    lab.commit(&lab.top.to_string_lossy(), "b.txt", "b");
    let made = lab.made();
    assert_eq!(
        (made.base.clone(), made.from.as_deref()),
        (lab.git(&["rev-parse", "HEAD"]), Some("heads/main"))
    );
    lab.goes(&made);
    let made = lab.make(&branch("feat/x")).expect("a worktree");
    assert_eq!(made.base, lab.git_in(&origin, &["rev-parse", "feat/x"]));
    let upstream = ["rev-parse", "--symbolic-full-name", "@{upstream}"];
    assert_eq!(lab.git_in(Path::new(&made.path), &upstream), "refs/remotes/origin/feat/x");
    lab.goes(&made);
}

#[test]
fn en_09_new_branch_starts_where_the_caller_stands() {
    let lab = Lab::new();
    lab.sh("mkdir -p s/in s/out; touch s/in/1 s/out/2; git add s; git commit -qm s");
    let dev = lab.top.parent().expect("a parent").join("dev");
    lab.git(&["worktree", "add", "--quiet", "-b", "dev", &dev.to_string_lossy()]);
    lab.commit(&dev.to_string_lossy(), "n.txt", "n");
    lab.git_in(&dev, &["sparse-checkout", "set", "s/in"]);
    write(dev.join(".env"), "of dev");
    write(lab.top.join(".env"), "of main");
    write(lab.top.join(".key"), "of main");
    let tip = lab.git_in(&dev, &["rev-parse", "HEAD"]);
    let standing = |dir: &Path| Repository::find(dir, &lab.env()).expect("a repository");
    let rules = Rules { copy: vec![".env".to_owned(), ".key".to_owned()], ..Rules::default() };
    let made = make(&standing(&dev.join("s")), &WorktreeRequest::Own, &rules).expect("a worktree");
    let there = Path::new(&made.path);
    assert_eq!(there, lab.top.join(".worktrees/demo-bob"), "beside the others");
    assert_eq!((&made.base, made.from.as_deref()), (&tip, Some("dev")));
    assert!(fs::exists(&there.join("s/in/1")) && !fs::exists(&there.join("s/out/2")), "sparse");
    let text = |file: &str| read(there.join(file));
    assert_eq!(
        (text(".env").as_deref(), text(".key").as_deref()),
        (Some("of dev"), Some("of main"))
    );
    rm(&made.path);
    lab.goes(&made);
    // A revision that is named comes first, and a detached HEAD has the name of its commit.
    for (base, from) in [("main", "main"), ("dev~1", "dev~1"), ("HEAD", "HEAD")] {
        let rules = Rules { base: Some(base.to_owned()), ..Rules::default() };
        let made = make(&standing(&dev), &WorktreeRequest::Own, &rules).expect("a worktree");
        let expected = lab.git_in(&dev, &["rev-parse", base]);
        assert_eq!((&made.base, made.from.as_deref()), (&expected, Some(from)));
        lab.goes(&made);
    }
    lab.git_in(&dev, &["checkout", "--quiet", "--detach"]);
    let made = make(&standing(&dev), &WorktreeRequest::Own, &Rules::default()).expect("a worktree");
    assert!(tip.starts_with(made.from.as_deref().expect("a name")), "{made:?}");
    lab.goes(&made);
    for base in ["no-such", "--help", "HEAD:a.txt"] {
        let rules = Rules { base: Some(base.to_owned()), ..Rules::default() };
        let error = make(&standing(&dev), &WorktreeRequest::Own, &rules).expect_err(base);
        assert!(matches!(error, WorktreeError::NoBase { .. }), "{base}: {error}");
    }
}

#[test]
fn en_09_worktrees_of_a_bare_repository_are_made_beside_it() {
    let lab = Lab::new();
    let project = lab.top.parent().expect("a parent").join("project");
    mkdir(&project);
    let bare = project.join(".bare");
    lab.git(&["clone", "--quiet", "--bare", ".", &bare.to_string_lossy()]);
    write(project.join(".git"), "gitdir: ./.bare\n");
    lab.git_in(&project, &["worktree", "add", "--quiet", "main", "main"]);
    write(project.join("main/.env"), "e");
    for dir in [project.clone(), project.join("main"), bare.clone()] {
        let repository = Repository::find(&dir, &lab.env()).expect("a repository");
        let copy = if dir.ends_with("main") { vec![".env".to_owned()] } else { Vec::new() };
        let rules = Rules { copy, ..Rules::default() };
        let made = make(&repository, &WorktreeRequest::Own, &rules).expect("a worktree");
        assert_eq!(Path::new(&made.path), project.join(".worktrees/demo-bob"));
        assert_eq!(
            (made.repository.as_str(), made.from.as_deref()),
            (&*bare.to_string_lossy(), Some("main"))
        );
        let recorded = Repository::at(Path::new(&made.repository), &lab.env());
        let condition = recorded.condition(&made).expect("git answers");
        assert_eq!(
            condition.keeps().is_some(),
            dir.ends_with("main"),
            "the copied file is not ignored"
        );
        write(Path::new(&made.path).join("a.txt"), "changed\n");
        assert!(changes(&recorded, &made).contains("+changed"));
        assert_eq!(recorded.preview(&made).expect("git answers").into, "main");
        recorded.discard(&made).expect("removed");
    }
}

#[test]
fn en_09_ignored_files_of_worktreeinclude_are_copied() {
    let lab = Lab::new();
    lab.sh("printf '.env*\\nlocal/\\nbig/\\n' >.gitignore; \
            printf '# needed\\n.env*\\n!.env.old\\nlocal/\\nnotes.txt\\n' >.worktreeinclude; \
            git add .; git commit -qm ignore; \
            mkdir -p local/a big; touch .env .env.test .env.old local/a/x big/file notes.txt; \
            git init -q local/repo");
    let made = lab.made();
    let has = |file: &str| fs::exists(&Path::new(&made.path).join(file));
    for file in [".env", ".env.test", "local/a/x"] {
        assert!(has(file), "{file}");
    }
    for file in [".env.old", "big/file", "notes.txt", "local/repo"] {
        assert!(!has(file), "{file}");
    }
    assert_eq!(lab.condition(&made), Condition::Clean);
    let files = lab.repository().files_to_copy(&Rules::default()).expect("files");
    assert_eq!(files.len(), 3, "{files:?}");
}

/// EN-15: `node_modules/.bin` has only links.
#[test]
fn en_15_included_links_are_copied_unless_they_lead_out() {
    let lab = Lab::new();
    lab.sh("echo node_modules/ >.gitignore; cp .gitignore .worktreeinclude; git add .; \
            git commit -qm ignore; mkdir -p node_modules/.bin node_modules/pkg ../outside; \
            echo x >node_modules/pkg/x.js; cd node_modules; ln -s ../pkg/x.js .bin/x; \
            ln -s pkg alias; ln -s missing dangling; ln -s /etc/passwd absolute; \
            ln -s ../../outside up; ln -s pkg/../../../outside around");
    let made = lab.made();
    let modules = Path::new(&made.path).join("node_modules");
    for (link, target) in [(".bin/x", "../pkg/x.js"), ("alias", "pkg"), ("dangling", "missing")] {
        let found = fs::link_target(&modules.join(link)).expect("readable");
        assert_eq!(found.as_deref(), Some(Path::new(target)), "{link}");
    }
    assert_eq!(
        read(fs::canonical(&modules.join(".bin/x")).expect("there")).as_deref(),
        Some("x\n")
    );
    for link in ["absolute", "up", "around"] {
        assert!(!fs::exists(&modules.join(link)), "{link}");
    }
    let files = lab.repository().files_to_copy(&Rules::default()).expect("files");
    assert_eq!(files, [("node_modules/pkg/x.js".to_owned(), b"x\n".to_vec())]);
    let rules = Rules { copy: vec!["node_modules/absolute".to_owned()], ..Rules::default() };
    lab.goes(&made);
    let error = make(&lab.repository(), &WorktreeRequest::Own, &rules).expect_err("it leads out");
    assert!(error.to_string().contains("symbolic link"), "{error}");
}

/// EN-15: a commit may bring the link, and worktrees would be made wherever it leads.
#[test]
fn en_15_linked_directory_for_worktrees_is_refused() {
    let lab = Lab::new();
    lab.sh("mkdir ../outside sub; ln -s ../outside .worktrees; ln -s ../../outside sub/link; \
            ln -s outside ../link");
    let repository = lab.repository();
    for dir in [None, Some(".worktrees/deep"), Some("sub/link")] {
        let error = repository.must_not_be_linked(dir).expect_err("a link");
        let target = lab.top.join("../outside");
        assert!(
            matches!(&error, WorktreeError::LinkedDir { target: to, .. }
                if fs::canonical(Path::new(to)).ok() == fs::canonical(&target).ok()),
            "{dir:?}: {error}"
        );
    }
    // People may name any directory, and any link outside of the repository.
    for dir in ["trees", "sub", "../link", "../outside"] {
        repository.must_not_be_linked(Some(dir)).expect(dir);
    }
}

#[test]
fn en_08_repository_of_another_owner_is_refused_in_the_words_of_git() {
    let lab = Lab::new();
    let mut env = lab.env();
    env.push(("GIT_TEST_ASSUME_DIFFERENT_OWNER".into(), "1".into()));
    let error = Repository::find(&lab.top, &env).expect_err("not trusted");
    let WorktreeError::Git { message, hint, .. } = &error else { panic!("{error}") };
    assert!(message.contains("dubious ownership"), "{message}");
    let hint = hint.as_deref().unwrap_or_default();
    assert!(hint.starts_with("git config --global --add safe.directory"), "{hint}");
}
