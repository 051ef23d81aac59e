//! The state of a process, as the systems show it.

/// State of a process at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) pid: i32,
    /// Pid of the parent.
    pub(super) ppid: i32,
    /// Session id, which is the pid of the session's leader.
    pub(super) session: i32,
    /// Device number of the controlling terminal; 0 if there is none.
    pub(super) tty: u32,
    /// Start time, as in [`super::proc::Process`].
    pub(super) start: u64,
    /// The process is a zombie or about to vanish.
    pub(super) ended: bool,
    /// The process is stopped by a signal (`SIGSTOP`, Ctrl-Z), not by a debugger.
    pub(super) stopped: bool,
}

/// The way in which a process waits, most telling first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux shows waits"))]
pub(super) enum Wait {
    /// In a read of its terminal.
    Read,
    /// For one of several descriptors.
    Event,
    /// In a system call that this process may not see.
    Hidden,
}

/// A wait of a process, for its input if it has a terminal's foreground.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InputWait {
    pub(super) pid: i32,
    /// Number of waits of its thread so far.
    pub(super) turns: u64,
    pub(super) wait: Wait,
}
