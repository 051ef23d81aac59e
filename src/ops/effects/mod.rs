//! Operations that only the loops carry out, as effects of their decisions. No command calls them.

pub(crate) mod announce;
pub(crate) mod budget;
pub(crate) mod health;
pub(crate) mod idle_check;
pub(crate) mod limit;
pub(crate) mod notify;
pub(crate) mod offer;
pub(crate) mod remind;
pub(crate) mod restart;
pub(crate) mod results;
pub(crate) mod task_reminder;
