//! Tasks, their files and the graph of what waits for what.

pub(crate) mod graph;
pub(crate) mod search;
pub(crate) mod task_files;
pub(crate) mod tasks;
pub(crate) mod workspace;
pub(crate) mod worktrees;
