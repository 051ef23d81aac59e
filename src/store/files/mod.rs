//! Files that other programs change too: paths, safe changes, repairs and watching.

pub(crate) mod dirs;
pub(crate) mod document;
pub(crate) mod documents;
pub(crate) mod format;
pub(crate) mod layout;
pub(crate) mod repair_surrogates;
pub(crate) mod reread;
pub(crate) mod watch;
