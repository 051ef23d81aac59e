//! The state of a team for the faces that show it. Read only, except that requests are filed.

pub(crate) mod attach;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod focus;
pub(crate) mod input;
pub(crate) mod logs;
pub(crate) mod popup;
pub(crate) mod ps;
pub(crate) mod report;
pub(crate) mod screen;
pub(crate) mod snapshot;
pub(crate) mod wait;
