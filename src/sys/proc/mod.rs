//! Processes by pid *and* start time, so that a reused pid is never taken for the one we knew. Refuses to know what
//! they run. Linux only: everything that touches /proc or a pidfd is in this folder.

#![expect(unsafe_code, reason = "pidfd system calls have no safe wrapper in our libraries")]

mod running;
mod table;
mod tree;

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use tokio::io::unix::AsyncFd;

use super::clock::{self, Deadline};
use super::ready;
pub(crate) use running::{Running, of_this_user};
use table::Stat;

pub(super) use table::ignores;
#[cfg(test)]
pub(crate) use tree::descendants;
pub(crate) use tree::{end_marked, end_tree};

/// One process for certain: `start` is its start time in clock ticks since boot (field 22 of /proc/PID/stat).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) start: u64,
}

impl Process {
    /// This process.
    pub(crate) fn current() -> Process {
        let pid = Pid::this().as_raw();
        // Without /proc there is no start time; 0 then matches nothing, which every check here takes for "not it".
        Process { pid, start: Stat::of(pid).map_or(0, |stat| stat.start) }
    }

    /// The live process of this pid; `None` for a zombie, which only waits for its parent.
    pub(crate) fn of(pid: i32) -> Option<Process> {
        let stat = Stat::of(pid).ok().filter(|stat| !stat.ended)?;
        Some(Process { pid, start: stat.start })
    }

    /// Our own child that has not been waited for, be it a zombie already.
    pub(super) fn of_child(pid: i32) -> Option<Process> {
        Some(Process { pid, start: Stat::of(pid).ok()?.start })
    }

    fn is_alive(self) -> bool {
        Process::of(self.pid) == Some(self)
    }
}

/// Three states, since only [`Liveness::Dead`] permits to destroy something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Liveness {
    /// The very process that was recorded.
    Alive,
    /// Gone, a zombie, or its pid now belongs to another.
    Dead,
    /// The system does not tell.
    Unknown,
}

/// Whether the process recorded as `(pid, start)` is still there.
pub(crate) fn liveness(pid: i32, start: u64) -> Liveness {
    // 0 and below name process groups, never a process; such a record says nothing.
    if pid <= 0 {
        return Liveness::Unknown;
    }
    match Stat::of(pid) {
        Ok(stat) if stat.ended || stat.start != start => Liveness::Dead,
        Ok(_) => Liveness::Alive,
        Err(error) if is_gone(&error) => match kill(Pid::from_raw(pid), None) {
            Err(Errno::ESRCH) => Liveness::Dead,
            // It exists but /proc hides it (hidepid, or no /proc in this container).
            Ok(()) | Err(_) => Liveness::Unknown,
        },
        Err(_) => Liveness::Unknown,
    }
}

/// Returns true if the process recorded as `(pid, start)` is stopped by a signal, and runs nothing
/// until it gets `SIGCONT`.
pub(crate) fn is_stopped(pid: i32, start: u64) -> bool {
    Stat::of(pid).is_ok_and(|stat| stat.start == start && stat.stopped)
}

/// Stops exactly this process, as Ctrl-Z does; false when it has ended or we may not.
pub(crate) fn stop(process: Process) -> bool {
    signal(process, libc::SIGSTOP)
}

/// Continues exactly this process; false when it has ended or we may not.
pub(crate) fn resume(process: Process) -> bool {
    signal(process, libc::SIGCONT)
}

fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

/// The controlling terminal of a process, as `/dev/pts/7`.
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

/// Sends `sig` to exactly this process; false when it has ended or we may not. A reused pid is never hit.
pub(crate) fn signal(process: Process, sig: i32) -> bool {
    match open_pidfd(process.pid) {
        // First the handle, then the check: what the handle refers to cannot change any more.
        Ok(handle) => process.is_alive() && send(&handle, sig),
        // A sandbox without pidfds: the gap between check and kill is microseconds.
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
            // SAFETY: kill takes two integers; the pid is positive, so no group is meant.
            process.pid > 0 && process.is_alive() && unsafe { libc::kill(process.pid, sig) } == 0
        }
        Err(_) => false,
    }
}

/// A descriptor that becomes readable when the process ends; `None` when it already has (or the system has none).
pub(crate) fn pidfd(process: Process) -> Option<OwnedFd> {
    let handle = open_pidfd(process.pid).ok()?;
    process.is_alive().then_some(handle)
}

/// Waits until the process has ended; at once if it has already. Never, where the system cannot tell: then only a
/// sweep finds out.
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

/// True when the process has ended within `limit`. A zombie has ended.
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

/// From now on orphans among our descendants become our children instead of init's; false where there is no such
/// thing. They then have to be reaped.
pub(crate) fn become_subreaper() -> bool {
    nix::sys::prctl::set_child_subreaper(true).is_ok()
}

fn is_subreaper() -> bool {
    nix::sys::prctl::get_child_subreaper().unwrap_or(false)
}

/// A close-on-exec handle on whatever process has this pid now.
pub(super) fn open_pidfd(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: pidfd_open takes a pid and flags, no pointers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0).ok_or_else(io::Error::last_os_error)?;
    // SAFETY: the call has just given us this descriptor and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn send(handle: &OwnedFd, sig: i32) -> bool {
    let no_info = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: the descriptor is open; a null siginfo is allowed and means "as if by kill".
    unsafe { libc::syscall(libc::SYS_pidfd_send_signal, handle.as_raw_fd(), sig, no_info, 0) == 0 }
}

#[cfg(test)]
mod tests;
