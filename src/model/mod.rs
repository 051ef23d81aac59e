//! The nouns of the domain, pure: no files, no clock, no processes, no terminals.

pub(crate) mod manifest;
pub(crate) mod mode;
pub(crate) mod protocol;
