//! The state of a process, as every system shows it.

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
