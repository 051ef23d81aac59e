//! The wall clock, deadlines on the monotonic clock, and blocking sleep.

use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Returns milliseconds since the Unix epoch. The wall clock may step; use [`Deadline`] for
/// waiting.
pub(crate) fn now_ms() -> u64 {
    // A clock before 1970 is misconfigured; 0 keeps callers simple and sorts first.
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}

/// Blocks this thread. Must not be called on a thread of an async runtime.
pub(crate) fn sleep(pause: Duration) {
    thread::sleep(pause);
}

/// A point on the monotonic clock at which a wait ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    begun: Instant,
    // Stored as a duration rather than as an end `Instant`, so that an unlimited wait
    // (`Duration::MAX`) cannot overflow.
    length: Duration,
}

impl Deadline {
    /// Creates a deadline that expires `length` from now.
    pub(crate) fn after(length: Duration) -> Deadline {
        Deadline { begun: Instant::now(), length }
    }

    /// Returns the time left; zero once expired.
    pub(crate) fn remaining(&self) -> Duration {
        self.length.saturating_sub(self.elapsed())
    }

    /// Returns true once no time is left.
    pub(crate) fn expired(&self) -> bool {
        self.remaining().is_zero()
    }

    /// Returns the duration given to [`Deadline::after`].
    pub(crate) fn length(&self) -> Duration {
        self.length
    }

    /// Returns the time since the deadline was set.
    pub(crate) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_clock_is_plausible() {
        assert!(now_ms() > 1_700_000_000_000);
    }

    #[test]
    fn zero_deadline_expires_at_once() {
        let deadline = Deadline::after(Duration::ZERO);
        assert!(deadline.expired());
        assert_eq!(deadline.remaining(), Duration::ZERO);
    }

    #[test]
    fn unlimited_deadline_does_not_overflow() {
        let deadline = Deadline::after(Duration::MAX);
        assert!(!deadline.expired());
        assert!(deadline.remaining() > Duration::from_secs(1 << 40));
    }
}
