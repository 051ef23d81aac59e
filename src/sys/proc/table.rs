//! The state of one process or of all processes.

use super::super::{env, native};

/// State of a process at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sys) struct Stat {
    pub(in crate::sys) pid: i32,
    /// Pid of the parent.
    pub(in crate::sys) ppid: i32,
    /// Session id, which is the pid of the session's leader.
    pub(in crate::sys) session: i32,
    /// Device number of the controlling terminal; 0 if there is none.
    pub(in crate::sys) tty: u32,
    /// Start time, as in [`super::Process`].
    pub(in crate::sys) start: u64,
    /// The process is a zombie or about to vanish.
    pub(in crate::sys) ended: bool,
    /// The process is stopped by a signal (`SIGSTOP`, Ctrl-Z), not by a debugger.
    pub(in crate::sys) stopped: bool,
}

/// Returns true if the process belongs to this user and was started with one of `words`
/// (`NAME=value`) in its environment. Misses a process that has overwritten its environment.
pub(super) fn has_word(pid: i32, words: &[String]) -> bool {
    native::owner(pid) == Some(env::effective_uid())
        && native::environment(pid)
            .unwrap_or_default()
            .iter()
            .any(|found| words.iter().any(|word| found == word.as_bytes()))
}
