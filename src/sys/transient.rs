//! Names of entries whose changes are not reported.

use std::ffi::OsStr;

/// Returns true for short-lived entries of `sys::fs` and `sys::lock`, and for locks of other
/// programs that use the same protocol.
pub(super) fn is_transient(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    let temporary = name.starts_with(b".") && name.ends_with(b".tmp");
    let lock = name.ends_with(b".lock") || name.windows(6).any(|part| part == b".lock.");
    temporary || lock
}
