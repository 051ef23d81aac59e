//! The error of worktree operations.

use crate::sys::exec::ExecError;
use crate::sys::fs::FsError;

/// A failed worktree operation, with git's own message where git refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorktreeError {
    #[error("{dir} is not in a git repository")]
    NotARepository { dir: String },
    #[error("{dir} belongs to a bare repository, which has no directory for worktrees")]
    Bare { dir: String },
    #[error("the repository {dir} has no commit yet")]
    Unborn { dir: String },
    /// The path exists, and this team did not create it.
    #[error("{path} is there already, and is not a worktree that this team made")]
    Taken { path: String },
    /// The member's branch exists, and its commits may be unrelated to this team.
    #[error("there is a branch `{branch}` already")]
    BranchTaken { branch: String },
    /// Git failed; `message` is its own.
    #[error("cannot {what}: {message}")]
    Git { what: String, message: String },
    #[error("`{file}` cannot be copied into the worktree: {problem}")]
    Copy { file: String, problem: String },
    #[error("the worktree's setup command failed: {problem}")]
    Setup { problem: String },
    #[error(transparent)]
    Exec(#[from] ExecError),
    #[error(transparent)]
    File(#[from] FsError),
}
