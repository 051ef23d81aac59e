//! Messages into and out of mailboxes.

pub(crate) mod handoff;
pub(crate) mod inbox;
pub(in crate::ops) mod post;
pub(in crate::ops) mod routing;
pub(crate) mod send;
