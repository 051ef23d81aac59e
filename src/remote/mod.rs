//! Connections to other hosts through the user's own OpenSSH client. Keys, configuration, jump
//! hosts and known hosts are ssh's business; phalanx never prompts.

mod child;
mod connection;
mod error;
mod executable;
mod facts;
mod quote;
mod script;

pub(crate) use child::HostChild;
pub(crate) use connection::{HostConnection, fits_socket, timed};
pub(crate) use error::HostError;
pub(crate) use executable::Executable;
pub(crate) use facts::{ClockOffset, HostFacts, clock_offset, facts};
