//! Verbs that end members and teams.

pub(crate) mod by_process;
pub(crate) mod shutdown;
pub(crate) mod stop;
