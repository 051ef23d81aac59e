//! The pauses between two attempts to acquire a lock.

use std::time::Duration;

use super::super::clock::{self, Deadline};
use super::super::rand;

/// Back-off that doubles from `shortest` to `longest`. A random half of each pause keeps waiters
/// from retrying in step.
pub(super) struct Backoff {
    next: Duration,
    longest: Duration,
}

impl Backoff {
    pub(super) fn new(shortest: Duration, longest: Duration) -> Backoff {
        Backoff { next: shortest, longest }
    }

    /// Sleeps for one pause, but not past the deadline.
    pub(super) fn pause(&mut self, deadline: &Deadline) {
        let half = self.next / 2;
        let jitter =
            Duration::from_nanos(rand::below(u64::try_from(half.as_nanos()).unwrap_or(u64::MAX)));
        clock::sleep((half + jitter).min(deadline.remaining()));
        self.next = (self.next * 2).min(self.longest);
    }
}
