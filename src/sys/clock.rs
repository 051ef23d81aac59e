//! The wall clock, deadlines on the monotonic clock, and blocking sleep.

use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use jiff::tz::TimeZone;

/// The common clock of several machines minus the clock of this one, in milliseconds.
static OFFSET_MS: AtomicI64 = AtomicI64::new(0);

/// Sets the difference of the common clock to the clock of this machine, for this process.
pub fn set_offset_ms(offset_ms: i64) {
    OFFSET_MS.store(offset_ms, Ordering::Relaxed);
}

/// Returns the difference that was set; 0 in a process that works on this machine alone.
pub fn offset_ms() -> i64 {
    OFFSET_MS.load(Ordering::Relaxed)
}

/// Returns milliseconds since the Unix epoch, by the clock that all machines of a team share. The
/// wall clock may step; use [`Deadline`] for waiting.
pub fn now_ms() -> u64 {
    machine_ms().saturating_add_signed(offset_ms())
}

/// As [`now_ms`], by the clock of this machine, which also stamps its files.
pub fn machine_ms() -> u64 {
    system_ms().saturating_add_signed(test_offset_ms())
}

/// Returns what a test adds to the clock of this machine (`TEST_CLOCK_MS`). The name is one that
/// the programs of members inherit.
#[cfg(debug_assertions)]
fn test_offset_ms() -> i64 {
    static OFFSET: std::sync::LazyLock<i64> = std::sync::LazyLock::new(|| {
        std::env::var("TEST_CLOCK_MS").ok().and_then(|ms| ms.parse().ok()).unwrap_or(0)
    });
    *OFFSET
}

#[cfg(not(debug_assertions))]
fn test_offset_ms() -> i64 {
    0
}

fn system_ms() -> u64 {
    // A clock before 1970 is misconfigured; 0 keeps callers simple and sorts first.
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the time zone of this process: `TZ`, else that of the system, else UTC.
pub fn local_zone() -> TimeZone {
    TimeZone::system()
}

/// Blocks this thread. Must not be called on a thread of an async runtime.
pub fn sleep(pause: Duration) {
    thread::sleep(pause);
}

/// A point on the monotonic clock at which a wait ends.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    begun: Instant,
    // Stored as a duration rather than as an end `Instant`, so that an unlimited wait
    // (`Duration::MAX`) cannot overflow.
    length: Duration,
}

impl Deadline {
    /// Creates a deadline that expires `length` from now.
    pub fn after(length: Duration) -> Deadline {
        Deadline { begun: Instant::now(), length }
    }

    /// Returns the time left; zero once expired.
    pub fn remaining(&self) -> Duration {
        self.length.saturating_sub(self.elapsed())
    }

    /// Returns true once no time is left.
    pub fn expired(&self) -> bool {
        self.remaining().is_zero()
    }

    /// Returns the point at which it expires; `None` if that is out of range.
    pub fn instant(&self) -> Option<Instant> {
        self.begun.checked_add(self.length)
    }

    /// Returns the duration given to [`Deadline::after`].
    pub fn length(&self) -> Duration {
        self.length
    }

    /// Returns the time since the deadline was set.
    pub fn elapsed(&self) -> Duration {
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
