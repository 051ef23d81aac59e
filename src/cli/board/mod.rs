//! Verbs of the task board, and of the files that tasks make.

pub(crate) mod task;
pub(crate) mod task_import;
pub(crate) mod workspace;
pub(crate) mod worktree;
