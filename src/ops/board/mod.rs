//! Tasks and their owners, the workspace, imports and exports.

pub(in crate::ops) mod owners;
pub(crate) mod task;
pub(crate) mod task_export;
pub(crate) mod task_import;
pub(crate) mod task_search;
pub(crate) mod workspace;
