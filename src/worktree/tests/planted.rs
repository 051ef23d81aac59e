//! Commands that a member plants for git, which run when git itself looks at the worktree.

use super::*;
use sys::clock::Deadline;
use sys::exec::ExecError;

/// A command that a member plants.
struct Plant {
    name: &'static str,
    /// The script that plants it, in the worktree. `$RUN` is the program that is to run, `$TOP` the
    /// main working directory.
    script: &'static str,
    /// The script with which plain git runs it, in the worktree.
    control: &'static str,
}

/// Replaces the `.git` of the worktree by a repository in it.
const OWN_REPOSITORY: &str = "rm .git; git init -q --separate-git-dir .fake .; \
    git config user.name t; git config user.email t@x; git add a.txt; git commit -qm fake; ";

/// Makes a repository in the worktree, and an entry for it as for a submodule.
const NESTED: &str = "git init -q sub; cd sub; git config user.name t; git config user.email t@x; \
    echo s >s; git add s; git commit -qm s; cd ..; git add sub; git commit -qm sub; ";

const fn plant(name: &'static str, script: &'static str, control: &'static str) -> Plant {
    Plant { name, script, control }
}

/// Plants in a repository of the member's own, to which `.git` leads.
const IN_OWN_REPOSITORY: [Plant; 12] = [
    plant("fsmonitor", "git config core.fsmonitor \"$RUN\"", "git status"),
    plant(
        "clean filter",
        "echo '* filter=x' >.gitattributes; git config filter.x.clean \"$RUN\"",
        "git add --all",
    ),
    plant(
        "smudge filter",
        "echo '* filter=x' >.gitattributes; git config filter.x.smudge \"$RUN\"",
        "rm a.txt; git checkout a.txt",
    ),
    plant(
        "process filter",
        "echo '* filter=x' >.gitattributes; git config filter.x.process \"$RUN\"",
        "git add --all",
    ),
    plant(
        "textconv",
        "echo '* diff=x' >.gitattributes; git config diff.x.textconv \"$RUN\"",
        "git diff",
    ),
    plant("external diff", "git config diff.external \"$RUN\"", "git diff"),
    plant(
        "hook",
        "mkdir -p .fake/hooks; cp \"$RUN\" .fake/hooks/post-index-change",
        "git add --all",
    ),
    plant(
        "credential helper",
        "git config credential.helper \"!$RUN\"",
        "echo url=https://example.org | GIT_TERMINAL_PROMPT=0 git credential fill",
    ),
    plant(
        "gpg program",
        "git config gpg.program \"$RUN\"; git config log.showSignature true; \
         git config commit.gpgsign true",
        "git commit -qam x",
    ),
    plant(
        "included file",
        "git config include.path ../planted; git config -f planted core.fsmonitor \"$RUN\"",
        "git status",
    ),
    plant(
        "alternates",
        "mkdir -p .fake/objects/info; echo \"$TOP/.git/objects\" >.fake/objects/info/alternates; \
         git config core.alternateRefsCommand \"$RUN\"",
        "git fetch -q \"$TOP\" main",
    ),
    plant(
        "symbolic link",
        "rm .git; ln -s .fake .git; git config core.fsmonitor \"$RUN\"",
        "git status",
    ),
];

/// Plants in a repository inside the worktree.
const IN_NESTED: [Plant; 2] = [
    plant("fsmonitor of a gitlink", "git -C sub config core.fsmonitor \"$RUN\"", "git status"),
    plant(
        "filter of a submodule",
        "printf '[submodule \"sub\"]\\n\\tpath = sub\\n\\turl = ./sub\\n' >.gitmodules; \
         echo '* filter=x' >sub/.gitattributes; git -C sub config filter.x.clean \"$RUN\"; \
         echo x >sub/s",
        "git status",
    ),
];

/// Plants in the directory that all worktrees of the repository share.
const SHARED: [Plant; 9] = [
    plant("shared fsmonitor", "git config core.fsmonitor \"$RUN\"", "git status"),
    plant(
        "fsmonitor of the worktree",
        "git config extensions.worktreeConfig true; \
         git config --worktree core.fsmonitor \"$RUN\"",
        "git status",
    ),
    plant(
        "filter by .gitattributes",
        "echo '* filter=x' >.gitattributes; git config filter.x.clean \"$RUN\"; \
         git config filter.x.required true",
        "git add --all",
    ),
    plant(
        "filter by info/attributes",
        "mkdir -p \"$TOP/.git/info\"; echo '* filter=x' >\"$TOP/.git/info/attributes\"; \
         git config filter.x.process \"$RUN\"",
        "git add --all",
    ),
    plant(
        "filter whose name has an equals sign",
        "echo '* filter=a=b' >.gitattributes; git config filter.a=b.clean \"$RUN\"",
        "git add --all",
    ),
    plant(
        "shared hook",
        "mkdir -p \"$TOP/.git/hooks\"; cp \"$RUN\" \"$TOP/.git/hooks/post-index-change\"",
        "git add --all",
    ),
    plant(
        "shared textconv and external diff",
        "echo '* diff=x' >.gitattributes; git config diff.x.textconv \"$RUN\"; \
         git config diff.x.command \"$RUN\"; git config diff.external \"$RUN\"",
        "git diff",
    ),
    plant(
        "merge driver",
        "mkdir -p \"$TOP/.git/info\"; echo '* merge=x' >\"$TOP/.git/info/attributes\"; \
         git config merge.x.driver \"$RUN\"",
        "git merge-tree --write-tree main demo-bob",
    ),
    plant(
        "commondir",
        "cp -R \"$TOP/.git\" \"$TOP/../evil\"; \
         git config -f \"$TOP/../evil/config\" core.fsmonitor \"$RUN\"; \
         echo \"$TOP/../evil\" >\"$TOP/.git/worktrees/demo-bob/commondir\"",
        "git status",
    ),
];

impl Lab {
    /// Runs a script in the worktree with `$RUN` and `$TOP`. Returns false if it fails.
    fn scripted(&self, checkout: &Checkout, script: &str) -> bool {
        let (run, top) = (self.dir.path().join("run"), self.top.display());
        let script = format!("RUN='{}'; TOP='{top}'; {script}", run.display());
        self.run("sh", Path::new(&checkout.path), &["-ec", &script]).code == Some(0)
    }

    /// Writes the program that is planted, and returns the file that it makes when it runs.
    fn planted_program(&self) -> PathBuf {
        let (run, ran) = (self.dir.path().join("run"), self.dir.path().join("ran"));
        write(&run, &format!("#!/bin/sh\necho \"$0 $*\" >>'{}'\ncat\n", ran.display()));
        self.sh(&format!("chmod +x '{}'", run.display()));
        ran
    }

    /// Sets a filter in the configuration of the person.
    fn own_filter(&self, key: &str, command: &str) {
        mkdir(self.dir.path().join("home"));
        self.git(&["config", "--global", &format!("filter.own.{key}"), command]);
    }
}

/// Calls each function that reads the work of a member. Those of the worktree itself must answer;
/// others can have nothing to say about it.
fn read_all(lab: &Lab, made: &Checkout, name: &str) {
    let repository = lab.repository();
    let condition = repository.condition(made).expect(name);
    assert!(matches!(condition, Condition::Dirty { .. }), "{name}: {condition:?}");
    let found = repository.snapshot(made).expect(name);
    assert!(found.uncommitted > 0, "{name}");
    let base = repository.review_base(made, &found.head).expect(name);
    let options = PatchOptions { lists_files: true, ..PatchOptions::default() };
    let patch = repository.patch(&base, &found.commit, &options).expect(name);
    assert!(String::from_utf8_lossy(&patch).contains("+changed"), "{name}");
    repository.changed_files(&base, &found.commit).expect(name);
    repository.preview(made).expect(name);
    repository.pending_work(made, &found).expect(name).expect("uncommitted files");
    repository.pending_commits(made).expect(name);
    repository.conflicted_files(made, &found.commit, "demo-bob").expect(name);
    repository.conflicts_between("HEAD", &found.commit).expect(name);
    repository.subjects(&made.base, &found.commit).expect(name);
    repository.file_at(&found.commit, "a.txt").expect(name);
    repository.part_of(&found.head, &found.head).expect(name);
    repository.main_name().expect(name);
    repository.main_commit().expect(name);
    HostRepository::at(&lab.top, &lab.env()).state_with_snapshot(made).expect(name);
    let _ = changed_paths(Path::new(&made.path), &lab.env());
    let _ = Repository::find(Path::new(&made.path), &lab.env());
    assert!(matches!(repository.remove(made), Ok(RemovalOutcome::Kept { .. })), "{name}");
}

/// SEC-14: no function that reads work runs what a member has planted, and plain git does.
#[test]
fn sec_14_reading_work_runs_nothing_that_a_member_planted() {
    let places: [(&str, &[Plant]); 3] =
        [(OWN_REPOSITORY, &IN_OWN_REPOSITORY), (NESTED, &IN_NESTED), ("", &SHARED)];
    for (place, plants) in places {
        for Plant { name, script, control } in plants {
            let lab = Lab::new();
            let ran = lab.planted_program();
            let made = lab.made();
            lab.commit(&made.path, "a.txt", "one\ntwo\ntheirs\n");
            lab.commit(&lab.top.to_string_lossy(), "a.txt", "ours\ntwo\nthree\n");
            assert!(lab.scripted(&made, &format!("{place}{script}")), "{name} is planted");
            assert!(lab.scripted(&made, "echo changed >>a.txt; echo new >b.txt"), "{name}");
            let _ = fs::remove_file(&ran);
            read_all(&lab, &made, name);
            assert_eq!(read(&ran), None, "{name} does not run");
            // Many commands fail because the planted program does not do what git expects.
            let _ = lab.scripted(&made, control);
            assert!(read(&ran).is_some(), "{name} runs under plain git");
        }
    }
}

/// SEC-14: a worktree that is removed with its branch runs no hook and no filter of the repository.
#[test]
fn sec_14_removal_runs_nothing_that_a_member_planted() {
    let lab = Lab::new();
    let ran = lab.planted_program();
    let made = lab.made();
    let script = "mkdir -p \"$TOP/.git/hooks\"; cp \"$RUN\" \"$TOP/.git/hooks/reference-transaction\"; \
        git config core.fsmonitor \"$RUN\"; git config filter.x.clean \"$RUN\"; \
        echo '* filter=x' >\"$TOP/.git/info/attributes\"; touch a.txt";
    assert!(lab.scripted(&made, &format!("mkdir -p \"$TOP/.git/info\"; {script}")));
    let _ = fs::remove_file(&ran);
    assert_eq!(lab.remove(&made), RemovalOutcome::Gone { branch_left: None });
    assert!(!lab.has_branch("demo-bob"));
    assert_eq!(read(&ran), None, "nothing has run");
    lab.git(&["branch", "other"]);
    assert!(read(&ran).is_some(), "the hook runs under plain git");
}

/// SEC-14: a filter that the person has configured for all repositories goes on working, also where
/// the repository defines another command for it.
#[test]
fn sec_14_filter_of_the_person_runs() {
    let lab = Lab::new();
    let ran = lab.planted_program();
    lab.own_filter("clean", "tr a-z A-Z");
    lab.own_filter("required", "true");
    let made = lab.made();
    assert!(lab.scripted(&made, "git config filter.own.clean \"$RUN\""));
    let script = "printf '*.up filter=own\\n*.off filter=x\\n' >.gitattributes; echo kept >c.up; \
        git config filter.x.clean \"$RUN\"; echo kept >d.off";
    assert!(lab.scripted(&made, script));
    let found = lab.repository().snapshot(&made).expect("git answers");
    assert_eq!(lab.git(&["show", &format!("{}:c.up", found.commit)]), "KEPT");
    assert_eq!(lab.git(&["show", &format!("{}:d.off", found.commit)]), "kept");
    assert_eq!(found.unfiltered, ["x"], "only the repository defines it");
    assert_eq!(read(&ran), None, "the command of the repository does not run");
}

/// SEC-14: a filter of the person that does not end is waited for until the deadline of all calls.
#[test]
fn sec_14_filter_that_does_not_end_is_killed_at_the_deadline() {
    let lab = Lab::new();
    let made = lab.made();
    lab.own_filter("clean", "exec sleep 1000");
    assert!(lab.scripted(&made, "echo '* filter=own' >.gitattributes; echo changed >>a.txt"));
    let repository = lab.repository().until(Deadline::after(Duration::from_secs(2)));
    let error = repository.snapshot(&made).expect_err("the filter does not end");
    assert!(matches!(error, WorktreeError::Exec(ExecError::Deadline { .. })), "{error}");
    let error = repository.condition(&made).expect_err("no time is left");
    assert!(matches!(error, WorktreeError::Exec(ExecError::Deadline { .. })), "{error}");
}
