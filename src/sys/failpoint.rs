//! Named places at which a test lets a process die as if by `kill -9`, or stop. Nothing of it is in a release.
//!
//! `PHALANX_FAILPOINT=NAME` kills at the first pass, `NAME:3` at the third. `MEMBER_FAILPOINT` is the same for a process
//! of ours that has a member's environment, into which no `PHALANX_*` of the caller's comes. `PHALANX_STOPPOINT` stops
//! the process there until it is told to go on.

#[cfg(debug_assertions)]
mod armed {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    use nix::sys::signal::{Signal, raise};

    struct Point {
        name: String,
        left: AtomicU32,
        signal: Signal,
    }

    /// Not by abort: no handler and no destructor may run, as when the kernel runs out of memory.
    const WAYS: [(&str, Signal); 3] = [
        ("PHALANX_FAILPOINT", Signal::SIGKILL),
        ("MEMBER_FAILPOINT", Signal::SIGKILL),
        ("PHALANX_STOPPOINT", Signal::SIGSTOP),
    ];

    static POINT: LazyLock<Option<Point>> = LazyLock::new(|| {
        WAYS.into_iter().find_map(|(name, signal)| parse(&std::env::var(name).ok()?, signal))
    });

    fn parse(text: &str, signal: Signal) -> Option<Point> {
        let (name, nth) = match text.split_once(':') {
            Some((name, nth)) => (name, nth.parse().ok()?),
            None => (text, 1),
        };
        Some(Point { name: name.to_owned(), left: AtomicU32::new(nth), signal })
    }

    impl Point {
        /// True at the pass that was asked for, and only then.
        fn is_due(&self, name: &str) -> bool {
            self.name == name && self.left.fetch_sub(1, Ordering::Relaxed) == 1
        }
    }

    pub(super) fn hit(name: &str) {
        if let Some(point) = POINT.as_ref().filter(|point| point.is_due(name)) {
            // To this thread: sent to the process, it would find this one a little further on.
            let _ = raise(point.signal);
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_point_is_due_once() {
            let point = parse("a.b:2", Signal::SIGKILL).expect("a point");
            let due: Vec<bool> =
                ["a.b", "other", "a.b", "a.b"].iter().map(|name| point.is_due(name)).collect();
            assert_eq!(due, [false, false, true, false]);
            assert!(parse("x", Signal::SIGKILL).expect("a point").is_due("x"));
            assert!(parse("x:y", Signal::SIGKILL).is_none());
        }
    }
}

/// Dies or stops here if a test asked for it.
#[cfg(debug_assertions)]
pub(crate) fn hit(name: &str) {
    armed::hit(name);
}

/// Nothing: a release has no such places.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub(crate) fn hit(_name: &str) {}
