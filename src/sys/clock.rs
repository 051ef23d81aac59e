//! Time: the wall clock, deadlines, and the one sleep. Refuses to know what is being waited for.

use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Milliseconds since the Unix epoch, by the wall clock (it may step; use [`Deadline`] for waiting).
pub(crate) fn now_ms() -> u64 {
    // A clock before 1970 is a broken machine; 0 keeps callers simple and sorts first.
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}

/// Blocks this thread. Never call it on an async runtime's thread.
pub(crate) fn sleep(pause: Duration) {
    thread::sleep(pause);
}

/// A point on the monotonic clock until which a wait may last.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    begun: Instant,
    // Kept as a length, not as an `Instant`, so that "for ever" (`Duration::MAX`) cannot overflow.
    length: Duration,
}

impl Deadline {
    /// The deadline that expires `length` from now.
    pub(crate) fn after(length: Duration) -> Deadline {
        Deadline { begun: Instant::now(), length }
    }

    /// What is left; zero once expired.
    pub(crate) fn remaining(&self) -> Duration {
        self.length.saturating_sub(self.elapsed())
    }

    /// True from the moment on when nothing remains.
    pub(crate) fn expired(&self) -> bool {
        self.remaining().is_zero()
    }

    /// The whole time that the deadline gives.
    pub(crate) fn length(&self) -> Duration {
        self.length
    }

    /// Time since the deadline was set.
    pub(crate) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_clock_is_in_this_era() {
        assert!(now_ms() > 1_700_000_000_000);
    }

    #[test]
    fn zero_deadline_is_expired_at_once() {
        let deadline = Deadline::after(Duration::ZERO);
        assert!(deadline.expired());
        assert_eq!(deadline.remaining(), Duration::ZERO);
    }

    #[test]
    fn endless_deadline_does_not_overflow() {
        let deadline = Deadline::after(Duration::MAX);
        assert!(!deadline.expired());
        assert!(deadline.remaining() > Duration::from_secs(1 << 40));
    }
}
