//! Connections to other hosts through the user's own OpenSSH client. Keys, configuration, jump
//! hosts and known hosts are ssh's business; phalanx never prompts.

mod child;
mod connection;
mod error;
mod executable;
mod facts;
mod quote;
mod script;

pub use child::HostChild;
pub use connection::{HostConnection, fits_socket, timed};
pub use error::HostError;
pub use executable::Executable;
pub use facts::{ClockOffset, HostFacts, clock_offset, facts};
