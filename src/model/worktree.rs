//! Git worktrees of members: the requested branch, the team's settings, and the worktrees created.

use serde::{Deserialize, Serialize};

/// The branch requested for a member's worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum WorktreeRequest {
    /// A new branch named after the team and the member.
    Own,
    /// This branch, created if it does not exist.
    Branch(String),
}

/// Settings for the worktrees of a team (`[worktree]` in the manifest).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rules {
    /// Parent directory, relative to the repository; `None` means [`DIR`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) dir: Option<String>,
    /// Untracked files to copy into a new worktree, relative to the repository.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) copy: Vec<String>,
    /// Program and arguments to run in a new worktree before its member starts; nothing if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) setup: Vec<String>,
}

/// Default parent directory of worktrees, relative to the repository.
pub(crate) const DIR: &str = ".worktrees";

/// A worktree that phalanx created. All paths are absolute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Checkout {
    /// The repository's main working directory.
    pub(crate) repository: String,
    pub(crate) path: String,
    pub(crate) branch: String,
    /// Commit that the worktree started from.
    pub(crate) base: String,
    /// The branch was created for the worktree and is deleted with it.
    pub(crate) new_branch: bool,
}

/// Condition of a worktree, which decides whether it can be removed without losing work (EN-07).
#[derive(Debug, Clone, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub(crate) enum Condition {
    /// No commits beyond `base` and no uncommitted changes.
    Clean,
    /// All its commits are on another branch as well.
    Merged,
    /// Some files are changed or untracked.
    Dirty { files: usize },
    /// Some commits are on no other branch.
    Unmerged { commits: usize },
    /// The worktree is locked; `reason` may be empty.
    Locked { reason: String },
    /// Another worktree lies inside this one.
    Nested { other: String },
    /// The directory is missing, and the branch has no commits of its own.
    Missing,
    /// Something exists at the path, but git knows no worktree there.
    Foreign,
    /// Neither git nor the file system has it.
    Gone,
}

impl Condition {
    pub(crate) fn word(&self) -> &'static str {
        self.into()
    }

    /// Returns why the worktree must be kept; `None` if it can be removed.
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

/// Checks a branch name: at most 200 bytes, and valid by the rules of `git check-ref-format`.
///
/// # Errors
/// Fails if the name is invalid. The message is a predicate that follows the name of the key.
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

/// Checks the path of a file to copy: it must be inside the repository and outside of `.git`.
///
/// # Errors
/// Fails if the path is absolute, has an empty, `.`, `..` or `.git` component, or contains a
/// control character. The message is a predicate that follows the name of the key.
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
    fn branch_names_follow_git_rules() {
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
    fn files_to_copy_must_be_inside_the_repository() {
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
    fn en_07_only_worktrees_without_unsaved_work_can_be_removed() {
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
