//! Messages into and out of mailboxes.

pub mod handoff;
pub mod inbox;
pub mod post;
pub mod routing;
pub mod send;
