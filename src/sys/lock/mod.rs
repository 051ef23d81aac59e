//! Locks between processes: an flock gate, and the lock directory of the npm package
//! proper-lockfile 4.1.2.

mod backoff;
mod dir;
mod error;
mod gate;
mod mark;
mod observer;

use std::time::Duration;

pub use dir::{DirLock, PeerLock};
pub use error::LockError;
pub use gate::{Gate, gate_holder, holds_gate_in};
pub use observer::{Holder, LongWait, observe_waits};

/// Timeout for a lock. It exceeds twice the stale time, to outlast two holders in a row that were
/// killed and whose lock directories have no mark.
pub const LOCK_DEADLINE: Duration = Duration::from_secs(25);

#[cfg(test)]
mod tests;
