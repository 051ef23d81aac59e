//! Operations that only the loops carry out, as effects of their decisions. No command calls them.

pub mod announce;
pub mod budget;
pub mod health;
pub mod idle_check;
pub mod limit;
pub mod notify;
pub mod offer;
pub mod readiness;
pub mod remind;
pub mod restart;
pub mod results;
mod start_dialog;
pub mod task_reminder;
pub mod time_limit;
