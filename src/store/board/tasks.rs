//! The task board, under the locks that Claude Code takes. Lock order: the task list first, then
//! one task at a time; never two tasks at once.

mod batch;
mod edit;
mod files;
mod import;
mod index;
mod log;
mod rules;
mod shared;
#[cfg(test)]
mod tests;
mod work;

pub use edit::{TargetStatus, TaskChanged, TaskChanges, TaskOwner};
pub use import::{TaskImport, TaskRevision};
pub use rules::TaskStep;
pub(crate) use shared::row;
pub use work::{ClaimKind, NewTask, ReleasedTasks};
