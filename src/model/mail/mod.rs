//! Messages: their wire form, who may send to whom, and typed bodies.

pub mod access;
pub mod envelope;
pub mod handoff;
pub mod protocol;
pub mod routing;
pub mod scope;
