//! Contains panics of code that processes hostile input.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work` and returns `None` if it panics. A panic hook should print nothing then, see
/// [`is_contained`]. After a panic, values that `work` was changing are in an unknown state.
pub fn contain<T>(work: impl FnOnce() -> T) -> Option<T> {
    let before = CONTAINED.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    CONTAINED.set(before);
    done.ok()
}

/// Returns true while this thread is inside of [`contain`].
pub fn is_contained() -> bool {
    CONTAINED.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_is_contained_and_visible_to_the_hook() {
        assert_eq!(contain(|| 7), Some(7));
        assert!(!is_contained());
        let inside = contain(|| (is_contained(), contain(|| ()), is_contained()));
        assert_eq!(inside, Some((true, Some(()), true)));
        assert_eq!(contain(|| -> u8 { std::panic::resume_unwind(Box::new("bad")) }), None);
        assert!(!is_contained());
    }
}
