//! Verbs about members and the programs that they run.

pub(crate) mod agent_lead;
pub(crate) mod input;
pub(crate) mod learn;
pub(crate) mod profile;
pub(crate) mod recordings;
pub(crate) mod rename;
pub(crate) mod resume;
pub(crate) mod spawn;
pub(crate) mod start;
pub(crate) mod worker;
