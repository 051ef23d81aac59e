//! One process, identified by pid and start time. Every signal to a process that is not an unreaped
//! child of this one is sent here, after both were compared.

#![expect(unsafe_code, reason = "registering a descriptor with tokio")]

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{self as signals, Signal};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::super::clock::{self, Deadline};
use super::super::{native, portable, ready};

/// Interval of looking for the end of a process on a system that gives no notice of it.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A process, identified by its pid and start time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Process {
    pub pid: i32,
    /// Start time. Linux: clock ticks since boot (field 22 of /proc/PID/stat). macOS: microseconds
    /// since the epoch.
    pub start: u64,
}

impl Process {
    /// Returns this process.
    pub fn current() -> Process {
        let pid = Pid::this().as_raw();
        // If the system hides it, the start time is unknown. 0 matches no process, so every check
        // fails.
        Process { pid, start: native::stat(pid).map_or(0, |stat| stat.start) }
    }

    /// Returns the live process with this pid; `None` for a zombie.
    pub fn of(pid: i32) -> Option<Process> {
        let stat = native::stat(pid).ok().filter(|stat| !stat.ended)?;
        Some(Process { pid, start: stat.start })
    }

    /// Returns the process that Claude Code's files identify by pid and start time. It may have
    /// ended. `None` if the text is not a start time.
    pub fn recorded(pid: i32, start: &str) -> Option<Process> {
        Some(Process { pid, start: native::start_of(pid, start)? })
    }

    /// Returns the start time as Claude Code's files have it on this system. Linux: clock ticks
    /// since boot. macOS: the output of `LC_ALL=C TZ=UTC ps -o lstart=`.
    pub fn start_text(self) -> String {
        native::start_text(self.start)
    }

    /// Returns a child of this process that has not been reaped, even if it is a zombie.
    pub(crate) fn of_child(pid: i32) -> Option<Process> {
        Some(Process { pid, start: native::stat(pid).ok()?.start })
    }

    pub(super) fn is_alive(self) -> bool {
        Process::of(self.pid) == Some(self)
    }
}

/// State of a recorded process. Only [`Liveness::Dead`] permits a destructive action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Liveness {
    /// The recorded process is running.
    Alive,
    /// The process is gone or a zombie, or its pid belongs to another process.
    Dead,
    /// The system does not show whether the process exists.
    Unknown,
}

/// Returns the state of the process recorded as `(pid, start)`.
pub fn liveness(pid: i32, start: u64) -> Liveness {
    // kill(2) does not take 0 and below as process ids, so such a record identifies no process.
    if pid <= 0 {
        return Liveness::Unknown;
    }
    match native::stat(pid) {
        Ok(stat) if stat.ended || stat.start != start => Liveness::Dead,
        Ok(_) => Liveness::Alive,
        Err(error) if is_gone(&error) => match signals::kill(Pid::from_raw(pid), None) {
            Err(Errno::ESRCH) => Liveness::Dead,
            // The process exists but the system hides it (hidepid, no /proc, another user).
            Ok(()) | Err(_) => Liveness::Unknown,
        },
        Err(_) => Liveness::Unknown,
    }
}

/// Returns true if the process recorded as `(pid, start)` is stopped by a signal and does not run
/// until it gets `SIGCONT`.
pub fn is_stopped(pid: i32, start: u64) -> bool {
    native::stat(pid).is_ok_and(|stat| stat.start == start && stat.stopped)
}

/// Stops exactly this process with `SIGSTOP`. Returns false if it has ended or permission is
/// denied.
pub fn stop(process: Process) -> bool {
    signal(process, libc::SIGSTOP)
}

/// Kills exactly this process, unless it has ended or permission is denied.
pub fn kill(process: Process) {
    signal(process, libc::SIGKILL);
}

/// Continues exactly this process with `SIGCONT`. Returns false if it has ended or permission is
/// denied.
pub fn resume(process: Process) -> bool {
    signal(process, libc::SIGCONT)
}

fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

/// Returns the controlling terminal of a process, as `/dev/pts/7`.
pub fn tty_of(pid: i32) -> Option<String> {
    native::terminal_name(native::stat(pid).ok()?.tty)
}

/// Sends `sig` to exactly this process, never to one that reuses its pid. Returns false if it has
/// ended or permission is denied.
pub fn signal(process: Process, sig: i32) -> bool {
    let by_handle = || native::signal_if(process.pid, sig, || process.is_alive());
    let sent = if portable::is_forced() { None } else { by_handle() };
    // Without handles the pid could be reused between check and kill, within microseconds. 0 and
    // below would mean a group.
    sent.unwrap_or_else(|| {
        process.pid > 0
            && process.is_alive()
            && Signal::try_from(sig)
                .is_ok_and(|sig| signals::kill(Pid::from_raw(process.pid), sig).is_ok())
    })
}

/// Returns true if the process ignores this signal; a signal that it catches does not count. Always
/// false where the system does not show it.
pub(crate) fn ignores(pid: i32, sig: i32) -> bool {
    !portable::is_forced() && native::ignores(pid, sig)
}

/// Returns a descriptor that becomes readable when the process with this pid ends; `None` if it has
/// ended already or the system gives no notice.
pub(crate) fn exit_notice(pid: i32) -> Option<OwnedFd> {
    if portable::is_forced() { None } else { native::exit_notice(pid).ok() }
}

/// As [`exit_notice`], for exactly this process.
pub(super) fn notice_of(process: Process) -> Option<OwnedFd> {
    let notice = exit_notice(process.pid)?;
    process.is_alive().then_some(notice)
}

/// Waits until the process has ended.
pub async fn exited(process: Process) {
    if let Some(notice) = notice_of(process)
        // SAFETY: the descriptor is open, and the `AsyncFd` owns it while it is registered.
        && let Ok(registered) = unsafe { AsyncFd::register_with_interest(notice, Interest::READABLE) }
        && registered.readable().await.is_ok()
    {
        return;
    }
    while process.is_alive() {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Waits up to `limit` and returns true if the process has ended. A zombie counts as ended.
pub fn wait_exit(process: Process, limit: Duration) -> bool {
    let deadline = Deadline::after(limit);
    let notice = notice_of(process);
    while process.is_alive() {
        if deadline.expired() {
            return false;
        }
        let waited =
            notice.as_ref().map(|notice| ready::readable(notice.as_fd(), deadline.remaining()));
        if !matches!(waited, Some(Ok(_))) {
            clock::sleep(deadline.remaining().min(Duration::from_millis(5)));
        }
    }
    true
}

/// Makes orphaned descendants children of this process instead of init's, so that this process has
/// to reap them. Returns false if the system does not support it.
pub fn become_subreaper() -> bool {
    !portable::is_forced() && native::become_subreaper()
}

pub(super) fn is_subreaper() -> bool {
    native::is_subreaper()
}
