//! Named places at which a test lets a process die as if by `kill -9`. Nothing of it is in a release.
//!
//! `PHALANX_FAILPOINT=NAME` kills at the first pass, `NAME:3` at the third. `MEMBER_FAILPOINT` is the same for a process
//! of ours that has a member's environment, into which no `PHALANX_*` of the caller's comes.

#[cfg(debug_assertions)]
mod armed {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    struct Point {
        name: String,
        left: AtomicU32,
    }

    static POINT: LazyLock<Option<Point>> = LazyLock::new(|| {
        ["PHALANX_FAILPOINT", "MEMBER_FAILPOINT"].iter().find_map(|name| parse(&std::env::var(name).ok()?))
    });

    fn parse(text: &str) -> Option<Point> {
        let (name, nth) = match text.split_once(':') {
            Some((name, nth)) => (name, nth.parse().ok()?),
            None => (text, 1),
        };
        Some(Point { name: name.to_owned(), left: AtomicU32::new(nth) })
    }

    impl Point {
        /// True at the pass that was asked for, and only then.
        fn is_due(&self, name: &str) -> bool {
            self.name == name && self.left.fetch_sub(1, Ordering::Relaxed) == 1
        }
    }

    pub(super) fn hit(name: &str) {
        if POINT.as_ref().is_some_and(|point| point.is_due(name)) {
            // Not abort: no handler and no destructor may run, as when the kernel runs out of memory.
            let _ = kill(Pid::this(), Signal::SIGKILL);
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_point_is_due_once() {
            let point = parse("a.b:2").expect("a point");
            let due: Vec<bool> =
                ["a.b", "other", "a.b", "a.b"].iter().map(|name| point.is_due(name)).collect();
            assert_eq!(due, [false, false, true, false]);
            assert!(parse("x").expect("a point").is_due("x"));
            assert!(parse("x:y").is_none());
        }
    }
}

/// Dies here if a test asked for it.
#[cfg(debug_assertions)]
pub(crate) fn hit(name: &str) {
    armed::hit(name);
}

/// Nothing: a release has no such places.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub(crate) fn hit(_name: &str) {}
