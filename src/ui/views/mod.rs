//! Overviews of teams, members and events.

pub(crate) mod event_words;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod home;
pub(crate) mod life;
pub(crate) mod logs;
pub(crate) mod ps;
pub(crate) mod review;
pub(crate) mod status;
pub(crate) mod status_line;
