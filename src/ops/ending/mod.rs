//! From the request to a closed pane.

pub(crate) mod by_process;
pub(crate) mod delete;
pub(crate) mod force;
pub(in crate::ops) mod forget;
pub(crate) mod lost_host;
pub(crate) mod lost_runs;
pub(crate) mod retire;
pub(crate) mod shutdown;
pub(crate) mod terminate;
pub(crate) mod unseen;
pub(crate) mod verify;
