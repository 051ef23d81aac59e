//! How this process takes memory from the system. Refuses to know what it is for.

#![cfg_attr(all(target_os = "linux", target_env = "gnu"), expect(unsafe_code, reason = "mallopt is a C function"))]

/// All threads share what is free: what one has given back another takes, where glibc otherwise keeps a stock for each,
/// as large as its largest moment. Before there is a second thread. Where the system has no such setting, nothing.
pub(crate) fn share_free() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: takes two numbers and touches nothing of ours; called while there is one thread.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}
