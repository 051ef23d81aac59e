//! The switch for tests of what macOS does without the mechanisms of Linux.

use std::sync::LazyLock;

/// Returns true if a test run asks for the portable way instead of the system's own, by
/// `SYS_TEST_PORTABLE=1`. Release builds ignore the variable.
pub(super) fn is_forced() -> bool {
    static FORCED: LazyLock<bool> = LazyLock::new(|| {
        cfg!(debug_assertions)
            && std::env::var_os("SYS_TEST_PORTABLE").is_some_and(|set| set == "1")
    });
    *FORCED
}
