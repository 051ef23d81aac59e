//! Waits for file descriptors with a time limit.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::select::{FdSet, select};
use nix::sys::time::{TimeVal, TimeValLike};

/// Polls once, for at most `limit` rounded up to a millisecond. Returns false if nothing is ready
/// or a signal interrupted the wait; callers loop until their own deadline.
pub(super) fn any(fds: &mut [PollFd], limit: Duration) -> io::Result<bool> {
    match poll(fds, timeout(limit)) {
        Ok(count) => Ok(count > 0),
        Err(Errno::EINTR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// Polls one descriptor for reading.
pub(super) fn readable(fd: BorrowedFd, limit: Duration) -> io::Result<bool> {
    any(&mut [PollFd::new(fd, PollFlags::POLLIN)], limit)
}

/// Waits until any of the descriptors is readable, and returns which are; terminals among them may
/// be those for which `poll` fails on macOS. For processes with few descriptors: `select` takes
/// numbers below 1024 only.
pub(super) fn readable_terminal<const N: usize>(
    fds: [BorrowedFd<'_>; N],
    limit: Duration,
) -> io::Result<[bool; N]> {
    let mut set = FdSet::new();
    fds.iter().for_each(|fd| set.insert(*fd));
    match select(None, Some(&mut set), None, None, &mut time_value(limit)) {
        Ok(_) => Ok(fds.map(|fd| set.contains(fd))),
        Err(Errno::EINTR) => Ok([false; N]),
        Err(errno) => Err(errno.into()),
    }
}

/// Like [`readable_terminal`], for one terminal that is to be written to.
pub(super) fn writable_terminal(fd: BorrowedFd<'_>, limit: Duration) -> io::Result<bool> {
    let mut set = FdSet::new();
    set.insert(fd);
    match select(None, None, Some(&mut set), None, &mut time_value(limit)) {
        Ok(count) => Ok(count > 0),
        Err(Errno::EINTR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

fn time_value(limit: Duration) -> TimeVal {
    TimeVal::microseconds(i64::try_from(limit.as_micros()).unwrap_or(i64::MAX))
}

fn timeout(limit: Duration) -> PollTimeout {
    // Rounded up: a remainder of 0.4 ms must not become a busy loop of zero timeouts.
    let ms = limit.as_micros().div_ceil(1000);
    i32::try_from(ms).ok().and_then(|ms| PollTimeout::try_from(ms).ok()).unwrap_or(PollTimeout::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_round_up_and_saturate() {
        assert_eq!(timeout(Duration::ZERO), PollTimeout::ZERO);
        assert_eq!(timeout(Duration::from_micros(1)), PollTimeout::from(1u8));
        assert_eq!(timeout(Duration::MAX), PollTimeout::MAX);
    }
}
