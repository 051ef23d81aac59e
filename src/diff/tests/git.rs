//! Patches that git itself printed.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use sys::{env, exec};
use tempfile::TempDir;

use crate::{ChangeKind, FilePatch, LineKind, Patch};

/// The options with which patches are printed for [`Patch::parse`].
const OPTIONS: [&str; 12] = [
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--default-prefix",
    "-U3",
    "--inter-hunk-context=0",
    "-M",
    "--find-copies-harder",
    "--submodule=short",
    "--full-index",
    "-O/dev/null",
    "--patch",
];

/// A repository with one commit, isolated from the git configuration of the user and the system.
struct Lab {
    dir: TempDir,
    repo: PathBuf,
}

impl Lab {
    /// Runs the script in a new repository and commits all files.
    fn new(script: &str) -> Lab {
        let dir = tempfile::tempdir().expect("a directory");
        let repo = dir.path().join("repo");
        let lab = Lab { dir, repo };
        sys::fs::private_dir(&lab.repo).expect("a directory");
        lab.sh(
            "git init --quiet -b main; git config user.name t; git config user.email t@example.org",
        );
        lab.sh(&format!("{script}\ngit add --all\ngit commit --quiet --allow-empty -m first"));
        lab
    }

    fn run(&self, program: &str, args: &[&str]) -> Vec<u8> {
        let home = self.dir.path().join("home");
        let env: Vec<(OsString, OsString)> = vec![
            ("PATH".into(), env::var("PATH").expect("PATH")),
            ("HOME".into(), home.into()),
            ("GIT_CONFIG_NOSYSTEM".into(), "1".into()),
        ];
        let command = exec::ExecCommand {
            program: program.into(),
            args: args.iter().map(Into::into).collect(),
            env: Some(env),
            cwd: Some(self.repo.clone()),
            stdin: Vec::new(),
        };
        let output = exec::run(&command, Duration::from_secs(60)).expect("it runs");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.code, Some(0), "{args:?}: {stderr}");
        output.stdout
    }

    fn sh(&self, script: &str) {
        self.run("sh", &["-ec", script]);
    }

    /// Returns the patch from the last commit to the working tree, new files included.
    fn patch(&self, options: &[&str]) -> Patch {
        self.run("git", &["add", "--intent-to-add", "."]);
        let args: Vec<&str> = [&["diff"], &OPTIONS[..], options, &["HEAD", "--"]]
            .into_iter()
            .flatten()
            .copied()
            .collect();
        let printed = self.run("git", &args);
        let parsed = Patch::parse(&printed);
        parsed.unwrap_or_else(|error| panic!("{error}\n{}", String::from_utf8_lossy(&printed)))
    }
}

fn file<'p>(patch: &'p Patch, path: &[u8]) -> &'p FilePatch {
    patch.files.iter().find(|file| file.path() == path).expect("the file is in the patch")
}

#[test]
fn patch_of_git_has_all_kinds_of_changes() {
    let lab = Lab::new(
        "seq 1 60 > lines; seq 100 140 > moved; seq 200 240 > copied; echo x > run; echo y > gone
         printf 'a\\000b' > bin; echo t > link; printf 'a\\r\\nb\\r\\n' > crlf; printf 'no end' > tail
         printf '%s\\n' '-- a/x' '++ b/x' > tricky; echo 1 > 'with space'",
    );
    lab.sh("sed -i -e 5d -e 's/^30$/thirty/' -e '58a more' lines; git mv moved 'new place'
         echo 1 >> copied; cp copied twin; git add twin; chmod +x run; rm gone
         printf 'a\\000c' > bin; rm link; ln -s run link; printf 'a\\nb\\r\\n' > crlf
         printf 'no end\\nmore' > tail; echo z > tricky; : > empty; echo 2 > 'with space'
         printf '\\344\\n' > latin; printf x > \"$(printf 'n\\303\\244m\\te \"q\"')\"");

    let patch = lab.patch(&[]);

    let lines = file(&patch, b"lines");
    assert_eq!((lines.added, lines.removed, lines.hunks.len()), (2, 2, 3));
    let ids = [&lines.old_blob, &lines.new_blob].map(|id| id.as_ref().map(String::len));
    assert_eq!(ids, [Some(40); 2]);
    let moved = file(&patch, b"new place");
    assert_eq!((moved.change, moved.similarity), (ChangeKind::Renamed, Some(100)));
    assert_eq!(moved.old.as_deref(), Some(b"moved".as_slice()));
    assert_eq!(file(&patch, b"twin").change, ChangeKind::Copied);
    assert_eq!(file(&patch, b"run").mode_change(), Some((0o100_644, 0o100_755)));
    assert_eq!(file(&patch, b"gone").change, ChangeKind::Deleted);
    assert!(file(&patch, b"bin").is_binary);
    assert_eq!(file(&patch, b"empty").change, ChangeKind::Added);
    // The changed type of a file is a deletion and an addition.
    let links = patch.files.iter().filter(|file| file.path() == b"link");
    assert_eq!(
        links.map(|file| file.change).collect::<Vec<_>>(),
        [ChangeKind::Deleted, ChangeKind::Added]
    );
    assert_eq!(file(&patch, b"crlf").hunks[0].lines[0].text, b"a\r");
    let tail = &file(&patch, b"tail").hunks[0].lines;
    assert_eq!(tail.iter().map(|line| line.has_newline).collect::<Vec<_>>(), [false, true, false]);
    let tricky = &file(&patch, b"tricky").hunks[0].lines;
    assert_eq!(tricky[0].text, b"-- a/x");
    assert_eq!(file(&patch, b"latin").hunks[0].lines[0].text, b"\xe4");
    assert_eq!(file(&patch, "näm\te \"q\"".as_bytes()).added, 1);
    assert_eq!(file(&patch, b"with space").removed, 1);
}

#[test]
fn hostile_configuration_of_git_keeps_the_form() {
    let lab = Lab::new("printf 'one\\n\\ntwo\\n' > a; printf 'x\\n' > 'n\u{e4}me'");
    lab.sh("git config diff.noprefix true; git config diff.mnemonicPrefix true
         git config color.ui always; git config diff.suppressBlankEmpty true
         git config diff.context 0; git config core.quotePath false
         git config diff.external false; git config diff.orderFile /missing
         printf 'one\\n\\n2\\n' > a; printf 'y\\n' > 'n\u{e4}me'");

    let patch = lab.patch(&[]);

    let kinds: Vec<_> = file(&patch, b"a").hunks[0].lines.iter().map(|line| line.kind).collect();
    let context = LineKind::Context;
    assert_eq!(kinds, [context, context, LineKind::Removed, LineKind::Added]);
    assert_eq!(file(&patch, "näme".as_bytes()).added, 1);
}

#[test]
fn submodules_and_conflicts_are_parsed() {
    let lab = Lab::new(
        "git init --quiet sub; git -C sub -c user.name=t -c user.email=t@e.org \\
           commit --quiet --allow-empty -m one; echo base > torn",
    );
    lab.sh("git -C sub -c user.name=t -c user.email=t@e.org commit --quiet --allow-empty -m two
         git checkout --quiet -b other; echo theirs > torn; git commit --quiet -m theirs torn
         git checkout --quiet main; echo ours > torn; git commit --quiet -m ours torn
         git merge other > log 2>&1 || true; rm log");

    // `add` would resolve the conflict.
    let args: Vec<&str> = [&["diff"], &OPTIONS[..], &["HEAD", "--"]].concat();
    let printed = lab.run("git", &args);
    let patch = Patch::parse(&printed).expect("a valid patch");

    let sub = file(&patch, b"sub");
    assert!(sub.is_submodule());
    assert_eq!((sub.added, sub.removed), (1, 1));
    assert!(sub.hunks[0].lines[0].text.starts_with(b"Subproject commit "));
    // The working tree has the conflict markers; the index has no content.
    assert_eq!(file(&patch, b"torn").added, 4);
    let args: Vec<&str> = [&["diff", "--cached"], &OPTIONS[..], &["HEAD", "--"]].concat();
    let staged = Patch::parse(&lab.run("git", &args)).expect("a valid patch");
    assert_eq!(file(&staged, b"torn").change, ChangeKind::Unmerged);
}
