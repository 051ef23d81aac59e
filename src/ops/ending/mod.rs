//! From the request to a closed pane.

pub(crate) mod by_process;
pub(crate) mod delete;
pub(crate) mod lost_host;
pub(crate) mod lost_runs;
pub(in crate::ops) mod prune;
pub(crate) mod remove;
pub(crate) mod report;
pub(crate) mod shutdown;
pub(crate) mod stop;
pub(crate) mod stop_without_lead;
pub(crate) mod unseen;
