//! Lists the worktrees of a repository.

use super::error::WorktreeError;
use super::git::Git;
use model::text;

/// The beginning of the reason of each lock of phalanx. Such a lock does not keep a worktree: the
/// callers know whether its member runs.
pub(super) const LOCK: &str = "phalanx: ";

/// One worktree, as `git worktree list --porcelain` reports it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct WorktreeEntry {
    pub(super) path: String,
    pub(super) head: Option<String>,
    /// The branch without `refs/heads/`; `None` if HEAD is detached.
    pub(super) branch: Option<String>,
    /// The reason of the lock, which may be empty. A lock of phalanx is in `user`.
    pub(super) locked: Option<String>,
    /// The member that works in it, in words.
    pub(super) user: Option<String>,
    pub(super) bare: bool,
}

/// Lists all worktrees of a repository, the main one first.
pub(super) fn list_worktrees(git: &Git) -> Result<Vec<WorktreeEntry>, WorktreeError> {
    let text = git.get("list the worktrees", &["worktree", "list", "--porcelain", "-z"])?;
    Ok(parse(&text))
}

/// Parses `key value` fields that end with NUL; an empty field ends a worktree.
fn parse(text: &str) -> Vec<WorktreeEntry> {
    let mut all: Vec<WorktreeEntry> = Vec::new();
    for field in text.split('\0') {
        let (key, value) = field.split_once(' ').unwrap_or((field, ""));
        if key == "worktree" {
            all.push(WorktreeEntry { path: value.to_owned(), ..WorktreeEntry::default() });
            continue;
        }
        let Some(last) = all.last_mut() else { continue };
        match key {
            "HEAD" => last.head = Some(value.to_owned()),
            "branch" => {
                last.branch = Some(value.strip_prefix("refs/heads/").unwrap_or(value).to_owned())
            }
            "locked" => match value.strip_prefix(LOCK) {
                Some(user) => last.user = Some(text::line(user)),
                None => last.locked = Some(value.to_owned()),
            },
            "bare" => last.bare = true,
            _ => {}
        }
    }
    all
}
