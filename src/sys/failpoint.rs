//! Named points at which a test makes the process die as if by `kill -9`, stop, or panic. Compiled
//! only with debug assertions.
//!
//! `PHALANX_FAILPOINT=NAME` kills at the first pass, `NAME:3` at the third. `MEMBER_FAILPOINT` does
//! the same in a phalanx process that runs with a member's environment, which receives no
//! `PHALANX_*` variable of the caller. `PHALANX_STOPPOINT` stops the process until it gets
//! `SIGCONT`, as `MEMBER_STOPPOINT` does. `PHALANX_PANICPOINT` makes the thread panic.

#[cfg(debug_assertions)]
mod armed {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    use nix::sys::signal::{Signal, raise};

    struct Point {
        name: String,
        /// Passes left; the last one takes effect.
        left: AtomicU32,
        /// The signal to raise; `None` panics.
        signal: Option<Signal>,
    }

    /// Variables and the signals that they raise. SIGKILL rather than abort: no handler and no
    /// destructor may run, as when the kernel kills a process that ran out of memory.
    const VARIABLES: [(&str, Option<Signal>); 5] = [
        ("PHALANX_FAILPOINT", Some(Signal::SIGKILL)),
        ("MEMBER_FAILPOINT", Some(Signal::SIGKILL)),
        ("PHALANX_STOPPOINT", Some(Signal::SIGSTOP)),
        ("MEMBER_STOPPOINT", Some(Signal::SIGSTOP)),
        ("PHALANX_PANICPOINT", None),
    ];

    static POINT: LazyLock<Option<Point>> = LazyLock::new(|| {
        VARIABLES.into_iter().find_map(|(name, signal)| parse(&std::env::var(name).ok()?, signal))
    });

    fn parse(text: &str, signal: Option<Signal>) -> Option<Point> {
        let (name, nth) = match text.split_once(':') {
            Some((name, nth)) => (name, nth.parse().ok()?),
            None => (text, 1),
        };
        Some(Point { name: name.to_owned(), left: AtomicU32::new(nth), signal })
    }

    impl Point {
        /// Returns true only at the requested pass.
        fn is_due(&self, name: &str) -> bool {
            self.name == name && self.left.fetch_sub(1, Ordering::Relaxed) == 1
        }
    }

    pub(super) fn hit(name: &str) {
        if let Some(point) = POINT.as_ref().filter(|point| point.is_due(name)) {
            // raise(3) signals this thread. A signal to the process would arrive a little later,
            // after this thread has run on.
            match point.signal {
                Some(signal) => drop(raise(signal)),
                None => panic!("a test has requested a panic at {name}"),
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_point_is_due_once() {
            let point = parse("a.b:2", Some(Signal::SIGKILL)).expect("a point");
            let due: Vec<bool> =
                ["a.b", "other", "a.b", "a.b"].iter().map(|name| point.is_due(name)).collect();
            assert_eq!(due, [false, false, true, false]);
            assert!(parse("x", None).expect("a point").is_due("x"));
            assert!(parse("x:y", None).is_none());
        }
    }
}

/// Kills or stops this process, or panics, if a test requested that for the point `name`.
#[cfg(debug_assertions)]
pub fn hit(name: &str) {
    armed::hit(name);
}

/// Does nothing: a release has no fail points.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn hit(_name: &str) {}
