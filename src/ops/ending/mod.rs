//! From the request to a closed pane.

pub mod by_process;
pub mod delete;
pub mod interrupt;
pub mod lost_host;
pub mod lost_runs;
pub mod prune;
pub mod remove;
pub mod report;
pub mod shutdown;
pub mod stop;
pub mod stop_without_lead;
