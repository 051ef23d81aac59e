//! Members on other hosts. A server of phalanx on each of these hosts carries out what must be done
//! there, as one of its own processes would; what is known about the members is in the shared store.

pub(in crate::ops) mod away;
pub(in crate::ops) mod backend;
pub(in crate::ops) mod client;
mod hosted;
mod link;
mod origins;
mod serve;
pub(in crate::ops) mod starts;
pub(in crate::ops) mod wire;

pub(in crate::ops) use client::read_log;
pub(crate) use client::{HostAnswer, ask_hosts, dead_runs};
pub(crate) use link::{interactive, reach_store};
pub(crate) use serve::serve;
#[cfg(feature = "testing")]
pub(crate) use wire::parse_line;
