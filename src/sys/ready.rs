//! Waits for file descriptors with a time limit.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

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
