//! Tasks and their owners, the workspace, imports and exports.

pub mod owners;
pub mod task;
pub mod task_export;
pub mod task_import;
pub mod task_search;
pub mod workspace;
