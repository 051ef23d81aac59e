//! The state of a team for the faces that show it. Read only, except that requests are filed.

pub mod answer;
pub mod attach;
pub mod events;
pub mod explain;
pub mod focus;
pub mod input;
pub mod logs;
pub mod overview;
pub mod popup;
pub mod ps;
pub mod report;
pub mod screen;
pub mod snapshot;
pub mod wait;
