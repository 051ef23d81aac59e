//! Verbs that only show what is going on.

pub(crate) mod attach;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod focus;
pub(crate) mod home;
pub(crate) mod logs;
pub(crate) mod popup;
pub(crate) mod ps;
pub(crate) mod relay;
pub(crate) mod status;
pub(crate) mod wait;
