//! One process, identified by pid and start time. Every signal to a process that is not an unreaped
//! child of this one is sent here, after both were compared.

#![expect(unsafe_code, reason = "pidfd system calls have no safe wrapper in our libraries")]

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use tokio::io::unix::AsyncFd;

use super::super::clock::{self, Deadline};
use super::super::ready;
use super::table::Stat;

/// A process, identified by its pid and start time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    /// Clock ticks between boot and the start (field 22 of /proc/PID/stat).
    pub(crate) start: u64,
}

impl Process {
    /// Returns this process.
    pub(crate) fn current() -> Process {
        let pid = Pid::this().as_raw();
        // Without /proc the start time is unknown. 0 matches no process, so every check fails.
        Process { pid, start: Stat::of(pid).map_or(0, |stat| stat.start) }
    }

    /// Returns the live process with this pid; `None` for a zombie.
    pub(crate) fn of(pid: i32) -> Option<Process> {
        let stat = Stat::of(pid).ok().filter(|stat| !stat.ended)?;
        Some(Process { pid, start: stat.start })
    }

    /// Returns a child of this process that has not been reaped, even if it is a zombie.
    pub(in crate::sys) fn of_child(pid: i32) -> Option<Process> {
        Some(Process { pid, start: Stat::of(pid).ok()?.start })
    }

    pub(super) fn is_alive(self) -> bool {
        Process::of(self.pid) == Some(self)
    }
}

/// State of a recorded process. Only [`Liveness::Dead`] permits a destructive action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Liveness {
    /// The recorded process is running.
    Alive,
    /// The process is gone or a zombie, or its pid belongs to another process.
    Dead,
    /// The system does not show whether the process exists.
    Unknown,
}

/// Returns the state of the process recorded as `(pid, start)`.
pub(crate) fn liveness(pid: i32, start: u64) -> Liveness {
    // kill(2) does not take 0 and below as process ids, so such a record identifies no process.
    if pid <= 0 {
        return Liveness::Unknown;
    }
    match Stat::of(pid) {
        Ok(stat) if stat.ended || stat.start != start => Liveness::Dead,
        Ok(_) => Liveness::Alive,
        Err(error) if is_gone(&error) => match kill(Pid::from_raw(pid), None) {
            Err(Errno::ESRCH) => Liveness::Dead,
            // The process exists but /proc hides it (hidepid, or no /proc in this container).
            Ok(()) | Err(_) => Liveness::Unknown,
        },
        Err(_) => Liveness::Unknown,
    }
}

/// Returns true if the process recorded as `(pid, start)` is stopped by a signal and does not run
/// until it gets `SIGCONT`.
pub(crate) fn is_stopped(pid: i32, start: u64) -> bool {
    Stat::of(pid).is_ok_and(|stat| stat.start == start && stat.stopped)
}

/// Stops exactly this process with `SIGSTOP`. Returns false if it has ended or permission is
/// denied.
pub(crate) fn stop(process: Process) -> bool {
    signal(process, libc::SIGSTOP)
}

/// Continues exactly this process with `SIGCONT`. Returns false if it has ended or permission is
/// denied.
pub(crate) fn resume(process: Process) -> bool {
    signal(process, libc::SIGCONT)
}

fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

/// Returns the controlling terminal of a process, as `/dev/pts/7`.
pub(crate) fn tty_of(pid: i32) -> Option<String> {
    // The kernel's encoding: major in bits 8..20, minor in bits 0..8 and 20..32.
    let number = Stat::of(pid).ok()?.tty;
    let (major, minor) = ((number >> 8) & 0xfff, (number & 0xff) | ((number >> 12) & 0xfff00));
    match (major, minor) {
        (0, 0) => None,
        (136..=143, _) => Some(format!("/dev/pts/{}", (major - 136) * 256 + minor)),
        _ => {
            let facts = fs::read_to_string(format!("/sys/dev/char/{major}:{minor}/uevent")).ok()?;
            let name = facts.lines().find_map(|line| line.strip_prefix("DEVNAME="))?;
            Some(format!("/dev/{name}"))
        }
    }
}

/// Sends `sig` to exactly this process, never to one that reuses its pid. Returns false if it has
/// ended or permission is denied.
pub(crate) fn signal(process: Process, sig: i32) -> bool {
    match open_pidfd(process.pid) {
        // The handle is opened before the check. It never refers to another process later, so the
        // check holds for the signal.
        Ok(handle) => process.is_alive() && send(&handle, sig),
        // A sandbox without pidfds: the pid could be reused between check and kill, within
        // microseconds.
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
            // SAFETY: kill takes two integers; the pid is positive, so no group is meant.
            process.pid > 0 && process.is_alive() && unsafe { libc::kill(process.pid, sig) } == 0
        }
        Err(_) => false,
    }
}

/// Returns a descriptor that becomes readable when the process ends; `None` if it has ended already
/// or the system has no pidfds.
pub(super) fn pidfd(process: Process) -> Option<OwnedFd> {
    let handle = open_pidfd(process.pid).ok()?;
    process.is_alive().then_some(handle)
}

/// Waits until the process has ended. For a live process on a system without pidfds it never
/// returns, so callers need a periodic sweep as well.
pub(crate) async fn exited(process: Process) {
    let Some(handle) = pidfd(process) else {
        if process.is_alive() {
            std::future::pending::<()>().await;
        }
        return;
    };
    // SAFETY: the descriptor is open, and the `AsyncFd` owns it for as long as it is registered.
    match unsafe { AsyncFd::register(handle) } {
        Ok(registered) => drop(registered.readable().await),
        Err(_) => std::future::pending().await,
    }
}

/// Waits up to `limit` and returns true if the process has ended. A zombie counts as ended.
pub(crate) fn wait_exit(process: Process, limit: Duration) -> bool {
    let deadline = Deadline::after(limit);
    let handle = pidfd(process);
    while process.is_alive() {
        if deadline.expired() {
            return false;
        }
        let waited =
            handle.as_ref().map(|handle| ready::readable(handle.as_fd(), deadline.remaining()));
        if !matches!(waited, Some(Ok(_))) {
            clock::sleep(deadline.remaining().min(Duration::from_millis(5)));
        }
    }
    true
}

/// Makes orphaned descendants children of this process instead of init's, so that this process has
/// to reap them. Returns false if the system does not support it.
pub(crate) fn become_subreaper() -> bool {
    nix::sys::prctl::set_child_subreaper(true).is_ok()
}

pub(super) fn is_subreaper() -> bool {
    nix::sys::prctl::get_child_subreaper().unwrap_or(false)
}

/// Opens a close-on-exec handle on the process that has this pid now.
pub(in crate::sys) fn open_pidfd(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: pidfd_open takes a pid and flags, no pointers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0).ok_or_else(io::Error::last_os_error)?;
    // SAFETY: the call has just returned this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn send(handle: &OwnedFd, sig: i32) -> bool {
    let no_info = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: the descriptor is open; a null siginfo is allowed and means "as if by kill".
    unsafe { libc::syscall(libc::SYS_pidfd_send_signal, handle.as_raw_fd(), sig, no_info, 0) == 0 }
}
