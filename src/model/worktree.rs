//! A git worktree of a member's own: what is wished for, how such are made, and what was made. Knows no git.

use serde::{Deserialize, Serialize};

/// A checkout of its own, and on which branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Wish {
    /// A new branch, named after team and member.
    Own,
    /// This branch: gone on with where it exists, else made.
    Branch(String),
}

/// How the worktrees of a team are made (`[worktree]` in the manifest).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rules {
    /// Where they lie, relative to the repository; else `.worktrees`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) dir: Option<String>,
    /// Files that git does not have and the member needs, relative to the repository.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) copy: Vec<String>,
    /// Program and arguments, run in a new worktree before its member starts. Empty: nothing is run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) setup: Vec<String>,
}

/// The directory in the repository that worktrees are made in when nothing else was said.
pub(crate) const DIR: &str = ".worktrees";

/// A worktree that phalanx made. All paths are absolute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Checkout {
    /// The repository's main working directory.
    pub(crate) repository: String,
    pub(crate) path: String,
    pub(crate) branch: String,
    /// The commit that it began with.
    pub(crate) base: String,
    /// Its branch was made for it, and goes with it.
    pub(crate) new_branch: bool,
}

/// How a worktree stands: whether it can be removed without losing anything (EN-07).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Condition {
    /// Neither commits of its own nor uncommitted work.
    Clean,
    /// All its commits are in another branch too.
    Merged,
    /// So many files are changed or new.
    Dirty { files: usize },
    /// So many commits are in no other branch.
    Unmerged { commits: usize },
    /// Somebody locked it, and said why or nothing.
    Locked { reason: String },
    /// Another worktree lies inside it.
    Nested { other: String },
    /// The directory is gone, and it has no commits of its own.
    Missing,
    /// Git does not know of a worktree there, but something is there.
    Foreign,
    /// Neither git nor the disk has it any more.
    Gone,
}

impl Condition {
    /// One word, for tables and JSON.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Condition::Clean => "clean",
            Condition::Merged => "merged",
            Condition::Dirty { .. } => "dirty",
            Condition::Unmerged { .. } => "unmerged",
            Condition::Locked { .. } => "locked",
            Condition::Nested { .. } => "nested",
            Condition::Missing => "missing",
            Condition::Foreign => "foreign",
            Condition::Gone => "gone",
        }
    }

    /// Why it must stay; none if it may go.
    pub(crate) fn keeps(&self) -> Option<String> {
        match self {
            Condition::Clean | Condition::Merged | Condition::Missing | Condition::Gone => None,
            Condition::Dirty { files } => Some(format!("uncommitted work in {files} file(s)")),
            Condition::Unmerged { commits } => {
                Some(format!("{commits} commit(s) on no other branch"))
            }
            Condition::Locked { reason } if reason.is_empty() => Some("it is locked".to_owned()),
            Condition::Locked { reason } => Some(format!("it is locked: {reason}")),
            Condition::Nested { other } => Some(format!("worktree {other} is inside it")),
            Condition::Foreign => Some("git has no worktree there".to_owned()),
        }
    }
}

/// The rule for branches, as `git check-ref-format` has it. The error ends a sentence: `` `branch` … ``.
pub(crate) fn check_branch(name: &str) -> Result<(), String> {
    let strange = |c: char| c.is_control() || c.is_whitespace() || "~^:?*[\\".contains(c);
    let bad = name.is_empty()
        || name.starts_with(['-', '/'])
        || name.ends_with(['/', '.'])
        || ["..", "//", "@{"].iter().any(|pair| name.contains(pair))
        || name.split('/').any(|part| part.starts_with('.') || part.ends_with(".lock"))
        || ["@", "HEAD"].contains(&name)
        || name.len() > 200
        || name.contains(strange);
    if bad { Err("is not a valid git branch name".to_owned()) } else { Ok(()) }
}

/// The rule for files to be copied: inside the repository, whatever it is. The error ends a sentence.
pub(crate) fn check_inside(path: &str) -> Result<(), String> {
    let plain = path
        .split('/')
        .all(|part| !part.is_empty() && part != "." && part != ".." && part != ".git");
    if plain && !path.contains(char::is_control) {
        return Ok(());
    }
    Err("must be the path of a file inside the repository, without `.` and `..`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_are_those_that_git_allows() {
        for good in ["main", "feat/x", "a-b_c.d", "öäü", "x@y", "#1", "it's", "$(x)"] {
            assert_eq!(check_branch(good), Ok(()), "{good}");
        }
        let long = "x".repeat(201);
        for bad in [
            "",
            "-f",
            "/a",
            "a/",
            "a.",
            "a..b",
            "a//b",
            "a@{1}",
            "a b",
            "a\tb",
            "a~1",
            "a^",
            "a:b",
            "a?",
            "a*",
            "a[",
            "a\\b",
            ".a",
            "a/.b",
            "a.lock",
            "a.lock/b",
            "@",
            "HEAD",
            "a\nb",
            long.as_str(),
        ] {
            assert!(check_branch(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn files_to_copy_lie_inside() {
        for good in [".env", "config/local.toml", "a b"] {
            assert_eq!(check_inside(good), Ok(()), "{good}");
        }
        for bad in
            ["", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a/", ".git/config", "a\0"]
        {
            assert!(check_inside(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn en_07_only_what_loses_nothing_may_go() {
        let may_go = [Condition::Clean, Condition::Merged, Condition::Missing, Condition::Gone];
        assert!(may_go.iter().all(|condition| condition.keeps().is_none()));
        let must_stay = [
            Condition::Dirty { files: 1 },
            Condition::Unmerged { commits: 2 },
            Condition::Locked { reason: String::new() },
            Condition::Locked { reason: "mine".to_owned() },
            Condition::Nested { other: "/x".to_owned() },
            Condition::Foreign,
        ];
        assert!(must_stay.iter().all(|condition| condition.keeps().is_some()));
    }
}
