//! Requests of members, and requests to shut down.

pub(crate) mod questions;
pub(crate) mod requests;
