//! Members on other hosts. A server of phalanx on each of these hosts carries out what must be done
//! there, as one of its own processes would; what is known about the members is in the shared store.

pub(super) mod away;
pub(super) mod backend;
pub(super) mod client;
mod hosted;
mod link;
mod origins;
mod serve;
pub(super) mod starts;
pub(super) mod wire;

pub(super) use client::read_log;
pub(crate) use client::{HostAnswer, ask_hosts, dead_runs};
pub(crate) use link::{interactive, reach_store};
pub(crate) use serve::serve;
#[cfg(feature = "testing")]
pub(crate) use wire::parse_line;
