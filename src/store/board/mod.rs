//! Tasks and the files that members produce.

pub(crate) mod tasks;
pub(crate) mod workspace;
