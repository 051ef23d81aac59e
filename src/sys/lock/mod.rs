//! Locks between processes: an flock gate, and the lock directory of the npm package
//! proper-lockfile 4.1.2.

mod dir;
mod gate;
mod observer;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;

use super::clock::{self, Deadline};
use super::rand;

pub(crate) use dir::{DirLock, PeerLock};
pub(crate) use gate::{Gate, holds_gate_in};
pub(crate) use observer::{Holder, LongWait, observe_waits};

/// Timeout for a lock. It exceeds twice the stale time, to outlast a dead holder and a second
/// process that died while it waited for that lock to become stale.
pub(crate) const LOCK_DEADLINE: Duration = Duration::from_secs(25);

/// Failure to acquire a lock.
#[derive(Debug, Error)]
pub(crate) enum LockError {
    /// The lock was held up to the deadline. `holder` describes the holder, as far as it is known.
    #[error("gave up waiting for {} after {waited_ms} ms{}", resource.display(), held_by(holder.as_deref()))]
    Timeout { resource: PathBuf, waited_ms: u64, holder: Option<String> },
    /// The lock cannot be used: its directory is missing, permission is denied, or another kind of
    /// file is in its place.
    #[error("cannot lock with {}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl LockError {
    fn io(path: &Path, source: io::Error) -> LockError {
        LockError::Io { path: path.to_owned(), source }
    }

    fn timeout(resource: &Path, deadline: &Deadline, holder: Option<String>) -> LockError {
        let waited_ms = u64::try_from(deadline.elapsed().as_millis()).unwrap_or(u64::MAX);
        LockError::Timeout { resource: resource.to_owned(), waited_ms, holder }
    }
}

fn held_by(holder: Option<&str>) -> String {
    holder.map(|holder| format!(", held by {holder}")).unwrap_or_default()
}

/// Back-off that doubles from `shortest` to `longest`. A random half of each pause keeps waiters
/// from retrying in step.
struct Backoff {
    next: Duration,
    longest: Duration,
}

impl Backoff {
    fn new(shortest: Duration, longest: Duration) -> Backoff {
        Backoff { next: shortest, longest }
    }

    /// Sleeps for one pause, but not past the deadline.
    fn pause(&mut self, deadline: &Deadline) {
        let half = self.next / 2;
        let jitter =
            Duration::from_nanos(rand::below(u64::try_from(half.as_nanos()).unwrap_or(u64::MAX)));
        clock::sleep((half + jitter).min(deadline.remaining()));
        self.next = (self.next * 2).min(self.longest);
    }
}

#[cfg(test)]
mod tests;
