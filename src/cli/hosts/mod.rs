//! Verbs for other hosts and the shared store.

pub(crate) mod host;
pub(crate) mod store;
