//! The error of worktree operations.

use model::id::HostName;
use sys::exec::ExecError;
use sys::fs::FsError;

/// A failed worktree operation, with git's own message where git refused.
#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    #[error("{dir} is not in a git repository")]
    NotARepository { dir: String },
    #[error("the repository {dir} has no commit yet")]
    Unborn { dir: String },
    /// The path exists, and this team did not create it.
    #[error("{path} is there already, and is not a worktree that this team made")]
    Taken { path: String },
    /// Another member works in the worktree that has the path or the branch.
    #[error("the worktree {path} is in use: {user}")]
    InUse { path: String, user: String },
    /// A commit may have brought the link, and the worktrees would be outside of the repository.
    #[error("{path}, the directory for worktrees, is a symbolic link to {target}")]
    LinkedDir { path: String, target: String },
    /// The directory exists, and git has lost its entry.
    #[error("git has no worktree at {path}")]
    NotAWorktree { path: String },
    /// The member's branch exists, and its commits may be unrelated to this team.
    #[error("there is a branch `{branch}` already")]
    BranchTaken { branch: String },
    /// Git failed; `message` and `hint` are its own.
    #[error("cannot {what}: {message}")]
    Git { what: String, message: String, hint: Option<String> },
    #[error("git knows no commit `{base}`")]
    NoBase { base: String },
    /// Several remotes have a branch that the repository does not have.
    #[error("there are several branches `{branch}`: {}", found.join(", "))]
    Ambiguous { branch: String, found: Vec<String> },
    #[error("`{file}` cannot be copied into the worktree: {problem}")]
    Copy { file: String, problem: String },
    #[error("the worktree's setup command failed: {problem}")]
    Setup { problem: String },
    /// The branch of a host has commits that the commit to start from does not have, or is used.
    #[error("the branch `{branch}` is in use on the host, or has other commits there")]
    Diverged { branch: String },
    /// A bundle of a repository without its history cannot be unpacked.
    #[error("{dir} is a shallow clone, whose commits cannot be sent to a host")]
    Shallow { dir: String },
    #[error("the commits have more than 1 GiB")]
    TooLarge,
    #[error("the changes from {from} to {to} have more than {mib} MiB")]
    TooManyChanges { mib: usize, from: String, to: String },
    /// The branches of a host would be mixed with those of the remote.
    #[error("the repository has a git remote that is named as the host, `{host}`")]
    RemoteName { host: HostName },
    #[error("the repository {dir} has no git remote `{remote}`")]
    NoRemote { remote: String, dir: String },
    /// A push that is not forced would lose nothing, and this one would.
    #[error("the branch `{branch}` of {remote} has commits that are not among these")]
    PushRejected { remote: String, branch: String },
    #[error("the worktree {path} is gone")]
    NoDirectory { path: String },
    #[error("`{commit}` is none of its commits")]
    NotAPart { commit: String },
    #[error("{into} has all its commits")]
    NothingToLand { into: String },
    #[error("its commits conflict with {into} in {}", files.join(", "))]
    Conflicts { into: String, files: Vec<String> },
    /// Commits after those that have landed would be lost.
    #[error("{into} has got other commits since")]
    Moved { into: String },
    /// The commits belong to a branch that is not checked out.
    #[error("{dir} has {now} checked out, and the commits are for {branch}")]
    OtherBranch { dir: String, branch: String, now: String },
    #[error(transparent)]
    Exec(#[from] ExecError),
    #[error(transparent)]
    File(#[from] FsError),
}

impl WorktreeError {
    /// A failure of git. `what` completes the sentence "cannot …".
    pub(crate) fn git(what: &str, message: impl Into<String>, hint: Option<&str>) -> WorktreeError {
        let (message, hint) = (message.into(), hint.map(str::to_owned));
        WorktreeError::Git { what: what.to_owned(), message, hint }
    }
}
