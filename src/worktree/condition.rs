//! How a worktree stands, and its removal when nothing would be lost. Git is asked each time; nothing is remembered.

use std::path::Path;

use super::git::{self, Git};
use super::{Repository, WorktreeError};
use crate::model::worktree::{Checkout, Condition};
use crate::sys::fs;

/// What became of a worktree that was to be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Removed {
    /// It is gone. With the branch that it has left behind, where that is not gone too.
    Gone { branch_left: Option<String> },
    /// It stays as it is, and why.
    Kept { why: String },
}

/// One worktree as git lists it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) path: String,
    head: Option<String>,
    /// None when HEAD is detached.
    branch: Option<String>,
    locked: Option<String>,
    pub(super) bare: bool,
}

/// All worktrees of a repository, the main one first.
pub(super) fn listed(git: &Git) -> Result<Vec<Listed>, WorktreeError> {
    let text = git.get("list the worktrees", &["worktree", "list", "--porcelain", "-z"])?;
    Ok(parse(&text))
}

/// `key value` NUL …, an empty record ends a worktree.
fn parse(text: &str) -> Vec<Listed> {
    let mut all: Vec<Listed> = Vec::new();
    for field in text.split('\0') {
        let (key, value) = field.split_once(' ').unwrap_or((field, ""));
        if key == "worktree" {
            all.push(Listed { path: value.to_owned(), ..Listed::default() });
            continue;
        }
        let Some(last) = all.last_mut() else { continue };
        match key {
            "HEAD" => last.head = Some(value.to_owned()),
            "branch" => {
                last.branch = Some(value.strip_prefix("refs/heads/").unwrap_or(value).to_owned())
            }
            "locked" => last.locked = Some(value.to_owned()),
            "bare" => last.bare = true,
            _ => {}
        }
    }
    all
}

impl Repository {
    /// How a worktree stands.
    ///
    /// # Errors
    /// Git does not answer: nothing is known then, and nothing may be removed.
    pub(crate) fn condition(&self, checkout: &Checkout) -> Result<Condition, WorktreeError> {
        let path = Path::new(&checkout.path);
        let all = listed(&self.git)?;
        let Some(one) = all.iter().find(|one| one.path == checkout.path) else {
            return Ok(if fs::exists(path) { Condition::Foreign } else { Condition::Gone });
        };
        if let Some(reason) = &one.locked {
            return Ok(Condition::Locked { reason: reason.clone() });
        }
        let inside =
            |other: &&Listed| other.path != one.path && Path::new(&other.path).starts_with(path);
        if let Some(other) = all.iter().find(inside) {
            return Ok(Condition::Nested { other: other.path.clone() });
        }
        let there = fs::is_dir(path);
        if there {
            let files = self.uncommitted(path)?;
            if files > 0 {
                return Ok(Condition::Dirty { files });
            }
        }
        let commits = self.own_commits(checkout, one)?;
        if commits > 0 {
            return Ok(Condition::Unmerged { commits });
        }
        Ok(match (there, one.head.as_ref() == Some(&checkout.base)) {
            (false, _) => Condition::Missing,
            (true, true) => Condition::Clean,
            (true, false) => Condition::Merged,
        })
    }

    /// How many files are changed, staged or new; in submodules too.
    pub(super) fn uncommitted(&self, path: &Path) -> Result<usize, WorktreeError> {
        let args =
            ["status", "--porcelain", "-z", "--untracked-files=all", "--ignore-submodules=none"];
        let text = self.git.at(path).get("ask how a worktree stands", &args)?;
        Ok(text.split('\0').filter(|entry| !entry.is_empty()).count())
    }

    /// How many commits no other branch has: those of its HEAD, which may be detached, and those of its branch.
    fn own_commits(&self, checkout: &Checkout, one: &Listed) -> Result<usize, WorktreeError> {
        let own = format!("refs/heads/{}", checkout.branch);
        let has_branch = self.git.ask(&["rev-parse", "--verify", "--quiet", &own])?.is_some();
        // A member may have gone on under a branch of its own making.
        let exclude = [Some(&checkout.branch), one.branch.as_ref()].into_iter().flatten();
        let exclude: Vec<String> = exclude.map(|branch| format!("--exclude={branch}")).collect();
        let mut args = vec!["rev-list", "--count"];
        args.extend(one.head.as_deref());
        args.extend(has_branch.then_some(own.as_str()));
        args.push("--not");
        args.extend(exclude.iter().map(String::as_str));
        args.extend(["--branches", "--"]);
        let count = self.git.get("count the commits of a worktree", &args)?;
        count.trim().parse().map_err(|_| WorktreeError::Git {
            what: "count the commits of a worktree".to_owned(),
            said: format!("it said {count:?}"),
        })
    }

    /// Removes a worktree if nothing is lost with it, and the branch that was made for it. Git has the last word: it
    /// is never told to force anything.
    ///
    /// # Errors
    /// Git does not answer; then nothing was removed.
    pub(crate) fn remove(&self, checkout: &Checkout) -> Result<Removed, WorktreeError> {
        let condition = self.condition(checkout)?;
        if let Some(why) = condition.keeps() {
            return Ok(Removed::Kept { why });
        }
        if condition != Condition::Gone {
            let output = self.git.call(&["worktree", "remove", &checkout.path])?;
            if output.code != Some(0) {
                return Ok(Removed::Kept { why: git::refused("remove it", &output).to_string() });
            }
        }
        let own = format!("refs/heads/{}", checkout.branch);
        if !checkout.new_branch
            || self.git.ask(&["rev-parse", "--verify", "--quiet", &own])?.is_none()
        {
            return Ok(Removed::Gone { branch_left: None });
        }
        // Without force: git refuses where the branch is not merged into what it compares with.
        let gone = self.git.call(&["branch", "--quiet", "-d", &checkout.branch])?.code == Some(0);
        Ok(Removed::Gone { branch_left: (!gone).then(|| checkout.branch.clone()) })
    }
}
