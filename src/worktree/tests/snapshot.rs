//! Snapshots of worktrees and the patches between them.

use std::thread;

use super::*;
use sys::clock;
use sys::exec::{CancelToken, ExecError};

impl Lab {
    fn snapshot(&self, checkout: &Checkout) -> WorkSnapshot {
        self.repository().snapshot(checkout).expect("git answers")
    }

    /// Returns the bytes of the index of the worktree.
    fn index_of(&self, checkout: &Checkout) -> Vec<u8> {
        let index = self.git_in(Path::new(&checkout.path), &["rev-parse", "--git-path", "index"]);
        fs::read(&Path::new(&checkout.path).join(index), 1 << 20).expect("readable").expect("it")
    }

    /// Commands in a shell, in the worktree.
    fn sh_in(&self, checkout: &Checkout, script: &str) {
        let output = self.run("sh", Path::new(&checkout.path), &["-ec", script]);
        assert_eq!(output.code, Some(0), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn snapshot_of_committed_work_is_its_head() {
    let lab = Lab::new();
    let made = lab.made();
    lab.commit(&made.path, "b.txt", "b\n");
    let head = lab.git_in(Path::new(&made.path), &["rev-parse", "HEAD"]);
    let found = lab.snapshot(&made);
    let expected = WorkSnapshot {
        head: head.clone(),
        branch: Some("demo-bob".to_owned()),
        commit: head,
        uncommitted: 0,
        nested: Vec::new(),
        unfiltered: Vec::new(),
    };
    assert_eq!(found, expected);
    // A touched file is no change, and neither is one that was changed back after it was staged.
    lab.sh_in(&made, "touch a.txt; echo x >>b.txt; git add b.txt; git show HEAD:b.txt >b.txt");
    lab.git_in(Path::new(&made.path), &["checkout", "--quiet", "--detach"]);
    assert_eq!(lab.snapshot(&made), WorkSnapshot { branch: None, ..expected });
}

#[test]
fn snapshot_has_all_work_and_leaves_the_index_unchanged() {
    let lab = Lab::new();
    let made = lab.made();
    let script = "mkdir dir; echo d >dir/d; echo m >mode; echo r >gone; echo .ignored >.gitignore; \
        git add .; git commit -qm more; \
        echo staged >staged; git add staged; echo later >>staged; \
        echo intent >intent; git add -N intent; echo three >>a.txt; chmod +x mode; rm gone; \
        rm -r dir; ln -s nowhere dir; echo x >.ignored; \
        mkdir sub; echo n >sub/new; echo q >'od\"d [*] n\u{e4}me'; echo t >-dash; echo g >':(glob)*'; \
        git init -q nested; cd nested; git -c user.name=t -c user.email=t@x commit -q --allow-empty -m n; \
        cd ..; git init -q sub/unborn; echo i >sub/unborn/inner";
    lab.sh_in(&made, script);
    let there = Path::new(&made.path);
    let status = || lab.git_in(there, &["status", "--porcelain", "--untracked-files=all"]);
    let (index, before, refs) = (lab.index_of(&made), status(), lab.git(&["for-each-ref"]));
    let found = lab.snapshot(&made);
    let again = lab.snapshot(&made);
    assert_eq!(found, again, "the same content is the same commit");
    assert_eq!(found.nested, ["nested", "sub/unborn"]);
    assert_eq!(lab.git(&["rev-parse", &format!("{}^", found.commit)]), found.head);
    let files = lab.git(&[
        "-c",
        "core.quotePath=false",
        "ls-tree",
        "-r",
        "--name-only",
        "-z",
        &found.commit,
    ]);
    let files: Vec<&str> = files.trim_end_matches('\0').split('\0').collect();
    let expected = [
        "-dash",
        ".gitignore",
        ":(glob)*",
        "a.txt",
        "dir",
        "intent",
        "mode",
        "od\"d [*] näme",
        "staged",
        "sub/new",
    ];
    assert_eq!(files, expected);
    let show = |file: &str| lab.git(&["show", &format!("{}:{file}", found.commit)]);
    assert_eq!((show("staged").as_str(), show("dir").as_str()), ("staged\nlater", "nowhere"));
    let modes = lab.git(&["ls-tree", &found.commit, "mode", "dir"]);
    assert!(modes.contains("100755 blob") && modes.contains("120000 blob"), "{modes}");
    // dir/d, dir, gone, mode, a.txt, staged, intent, sub/new and the three with special names.
    assert_eq!(found.uncommitted, 11);
    assert!(lab.index_of(&made) == index, "the index is byte for byte as it was");
    assert_eq!(status(), before);
    assert_eq!(lab.git(&["for-each-ref"]), refs, "no branch names it");
    let left = fs::names(&lab.top.join(".git")).expect("names");
    assert!(!left.iter().any(|name| name.contains("phalanx")), "{left:?}");
    assert!(matches!(lab.condition(&made), Condition::Dirty { .. }));
    lab.sh_in(&made, "echo more >>staged");
    assert_ne!(lab.snapshot(&made).commit, found.commit);
}

#[test]
fn snapshot_has_the_files_of_a_merge_in_progress() {
    let lab = Lab::new();
    let made = lab.made();
    lab.commit(&made.path, "a.txt", "theirs\n");
    lab.commit(&lab.top.to_string_lossy(), "a.txt", "ours\n");
    lab.sh_in(&made, "git merge main && exit 1 || true");
    let index = lab.index_of(&made);
    assert!(lab.changes(&made).contains("+=======\n"));
    assert!(lab.index_of(&made) == index);
}

/// A file that was written in the same moment as the index is read although its times are known.
#[test]
fn change_of_the_same_size_and_time_as_the_index_is_found() {
    let lab = Lab::new();
    let made = lab.made();
    lab.git(&["config", "core.trustctime", "false"]);
    lab.git(&["config", "core.checkStat", "minimal"]);
    let script = "t=2001-01-01; echo one >a.txt; touch -d $t a.txt; git commit -qam one; \
        echo two >a.txt; touch -d $t a.txt \"$(git rev-parse --git-path index)\"";
    lab.sh_in(&made, script);
    let file = format!("{}:a.txt", lab.snapshot(&made).commit);
    assert_eq!(lab.git(&["show", &file]), "two");
}

#[test]
fn filter_that_cannot_run_leaves_its_files_as_they_are() {
    let commands = [
        [("clean", "no-such-lfs clean -- %f"), ("process", "no-such-lfs filter-process")]
            .as_slice(),
        &[("clean", "no-such-lfs clean -- %f")],
        &[("process", "no-such-lfs filter-process")],
    ];
    for commands in commands {
        let lab = Lab::new();
        write(lab.top.join(".gitattributes"), "*.big filter=lfs\n*.up filter=up\n");
        write(lab.top.join("a.big"), "pointer\n");
        lab.git(&["add", "."]);
        lab.git(&["commit", "--quiet", "-m", "attributes"]);
        let made = lab.made();
        mkdir(lab.dir.path().join("home"));
        let own = |key: &str, value: &str| lab.git(&["config", "--global", key, value]);
        for (key, command) in commands {
            own(&format!("filter.lfs.{key}"), command);
        }
        own("filter.lfs.required", "true");
        own("filter.up.clean", "tr a-z A-Z");
        own("filter.up.required", "true");
        lab.sh_in(&made, "echo changed >a.big; echo added >b.big; echo kept >c.up; echo x >>a.txt");
        let index = lab.index_of(&made);
        let found = lab.snapshot(&made);
        assert_eq!((found.uncommitted, found.unfiltered.as_slice()), (4, &["lfs".to_owned()][..]));
        let patch = lab.changes(&made);
        for line in ["+changed", "-pointer", "+added", "+KEPT", "+x"] {
            assert!(patch.contains(line), "{line} {patch}");
        }
        assert!(lab.index_of(&made) == index);
    }
}

#[test]
fn failing_filter_that_git_does_not_name_is_an_error() {
    let lab = Lab::new();
    let made = lab.made();
    lab.sh_in(&made, "echo x >>a.txt; printf broken >\"$(git rev-parse --git-path index)\"");
    let error = lab.repository().snapshot(&made).expect_err("no index").to_string();
    assert!(error.contains("index"), "{error}");
}

/// RV-04: what a configuration says changes neither the diff nor the index of the member.
#[test]
fn rv_04_configuration_changes_no_patch_and_runs_no_program() {
    let lab = Lab::new();
    write(lab.top.join(".git/info/attributes"), "* diff=x\n");
    lab.commit(&lab.top.to_string_lossy(), "old.txt", &"line\n\n".repeat(30));
    let made = lab.made();
    let script = "git mv old.txt n\u{e4}w.txt; sed -i '5s/.*/changed/;9s/.*/changed/' n\u{e4}w.txt; \
        echo three >>a.txt; echo new >z.txt; echo new >b.c";
    lab.sh_in(&made, script);
    let patch = lab.changes(&made);
    let (whole, index) = (lab.snapshot(&made), lab.index_of(&made));
    assert!(patch.contains("rename to \"n\\303\\244w.txt\"\n"), "{patch}");
    let ran = lab.dir.path().join("ran");
    let run = lab.dir.path().join("run");
    write(&run, &format!("#!/bin/sh\necho \"$0\" >>'{}'\nexit 1\n", ran.display()));
    let run = run.to_string_lossy().into_owned();
    let hooks = lab.dir.path().join("hooks");
    mkdir(&hooks);
    let hooks = hooks.to_string_lossy().into_owned();
    lab.sh(&format!("chmod +x '{run}'; cp '{run}' '{hooks}/post-index-change'"));
    for setting in [
        "diff.noprefix=true",
        "diff.mnemonicPrefix=true",
        "diff.orderFile=/no/such/file",
        "diff.algorithm=patience",
        "diff.suppressBlankEmpty=true",
        "diff.context=9",
        "diff.interHunkContext=30",
        "diff.renames=false",
        "diff.renameLimit=1",
        "diff.ignoreSubmodules=all",
        "diff.relative=true",
        "diff.submodule=log",
        "diff.indentHeuristic=false",
        "diff.srcPrefix=x/",
        "color.ui=always",
        "color.diff=always",
        "core.quotePath=false",
        "core.safecrlf=true",
        "core.abbrev=4",
        "core.splitIndex=true",
        "commit.gpgsign=true",
        "i18n.commitEncoding=ISO-8859-1",
        "status.showUntrackedFiles=no",
        "status.renames=copies",
        "status.relativePaths=false",
    ] {
        let (key, value) = setting.split_once('=').expect("a setting");
        lab.git(&["config", key, value]);
    }
    lab.git(&["config", "core.hooksPath", &hooks]);
    for key in
        ["core.fsmonitor", "gpg.program", "diff.external", "diff.x.textconv", "diff.x.command"]
    {
        lab.sh(&format!("cp '{run}' '{run}-{key}'"));
        lab.git(&["config", key, &format!("{run}-{key}")]);
    }
    lab.sh(&format!("rm -f '{}'", ran.display()));
    assert_eq!(lab.snapshot(&made), whole);
    assert_eq!(lab.changes(&made), patch);
    assert_eq!(read(&ran), None, "no program ran");
    assert!(lab.index_of(&made) == index);
}

#[test]
fn worktree_that_is_gone_has_no_snapshot() {
    let lab = Lab::new();
    let made = lab.made();
    write(lab.top.join("main.txt"), "of another checkout");
    lab.git(&["worktree", "remove", &made.path]);
    let refused = |lab: &Lab| lab.repository().snapshot(&made).expect_err("it is gone");
    assert!(matches!(refused(&lab), WorktreeError::NoDirectory { .. }));
    mkdir(&made.path);
    assert!(matches!(refused(&lab), WorktreeError::NoDirectory { .. }));
    rm(&made.path);
    let made = lab.make(&WorktreeRequest::Branch("demo-bob".to_owned())).expect("a worktree");
    lab.git_in(Path::new(&made.path), &["checkout", "--quiet", "--orphan", "fresh"]);
    assert!(matches!(refused(&lab), WorktreeError::Unborn { .. }));
}

#[test]
fn patch_has_the_form_that_was_asked_for() {
    let lab = Lab::new();
    let from = lab.git(&["rev-parse", "HEAD"]);
    lab.commit(&lab.top.to_string_lossy(), "a.txt", "one\n  two\nthree\n");
    lab.commit(&lab.top.to_string_lossy(), "bytes", "\u{7f}\n");
    lab.sh("printf 'latin \\344\\n' >bytes; git mv a.txt b.txt; git commit -qam moved");
    let to = lab.git(&["rev-parse", "HEAD"]);
    let repository = lab.repository();
    let patch = |options: &PatchOptions| repository.patch(&from, &to, options).expect("a patch");
    let plain = patch(&PatchOptions::default());
    let has = |patch: &[u8], part: &[u8]| patch.windows(part.len()).any(|window| window == part);
    assert!(has(&plain, b"+latin \xe4\n") && has(&plain, b"-two\n"));
    let ignoring = PatchOptions { ignores_whitespace: true, ..PatchOptions::default() };
    assert!(!has(&patch(&ignoring), b"-two\n"));
    let listed = patch(&PatchOptions { lists_files: true, ..PatchOptions::default() });
    assert!(has(
        &listed,
        b" 2 files changed, 2 insertions(+), 1 deletion(-)\n\ndiff --git a/a.txt"
    ));
    let files = repository.changed_files(&from, &to).expect("git answers");
    let change = |path: &str, old: Option<&str>, added, removed| ChangedFile {
        path: path.to_owned(),
        old_path: old.map(str::to_owned),
        added,
        removed,
    };
    assert_eq!(files, [change("b.txt", Some("a.txt"), 1, 1), change("bytes", None, 1, 0)]);
    for bad in ["HEAD", "--output=x", &from[..12], ""] {
        assert!(repository.patch(bad, &to, &PatchOptions::default()).is_err(), "{bad}");
    }
}

#[test]
fn patch_beyond_the_limit_is_an_error() {
    let lab = Lab::new();
    let from = lab.git(&["rev-parse", "HEAD"]);
    lab.sh("yes 0123456789abcdef0123456789abcdef | head -c 68000000 >big; git add big; git commit -qm big");
    let to = lab.git(&["rev-parse", "HEAD"]);
    let error =
        lab.repository().patch(&from, &to, &PatchOptions::default()).expect_err("too large");
    assert!(matches!(error, WorktreeError::TooManyChanges { mib: 64, .. }), "{error}");
}

#[test]
fn large_patch_is_cancelled_by_another_thread() {
    let lab = Lab::new();
    // Git compares lines in another order for seconds, and writes 15 MB.
    let lines = |step: u64| -> String {
        let line = |n: u64| format!("{:035}\n", n * step % 200_003);
        (1..200_003).map(line).collect()
    };
    lab.commit(&lab.top.to_string_lossy(), "big", &lines(7_919));
    let from = lab.git(&["rev-parse", "HEAD"]);
    lab.commit(&lab.top.to_string_lossy(), "big", &lines(104_729));
    let to = lab.git(&["rev-parse", "HEAD"]);
    let cancel = CancelToken::default();
    let repository = lab.repository().cancelled_by(&cancel);
    let (from_there, to_there) = (from.clone(), to.clone());
    let running =
        thread::spawn(move || repository.patch(&from_there, &to_there, &PatchOptions::default()));
    clock::sleep(Duration::from_millis(200));
    cancel.cancel();
    let error = running.join().expect("no panic").expect_err("it was cancelled");
    assert!(matches!(error, WorktreeError::Exec(ExecError::Cancelled { .. })), "{error}");
    let made = lab.made();
    write(Path::new(&made.path).join("new.txt"), "x");
    let error = lab.repository().cancelled_by(&cancel).snapshot(&made).expect_err("cancelled");
    assert!(matches!(error, WorktreeError::Exec(ExecError::Cancelled { .. })), "{error}");
    let whole = lab.repository().patch(&from, &to, &PatchOptions::default()).expect("a patch");
    assert!(whole.len() > 13_000_000, "{}", whole.len());
}
