//! Tasks, the workspace, imports and exports.

pub(crate) mod task;
pub(crate) mod task_export;
pub(crate) mod task_import;
pub(crate) mod task_search;
pub(crate) mod workspace;
