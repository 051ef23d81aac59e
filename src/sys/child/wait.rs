//! Waits for one child without reaping others, for a process that has other children or threads and
//! therefore cannot run the launcher's loop.

#![expect(unsafe_code, reason = "waitpid with statuses that nix cannot express")]

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use nix::errno::Errno;

use super::super::proc::Process;
use super::supervise::ChildExit;

/// Waits until `child`, an unreaped child of this process, has ended, and reaps it. Its pid may be
/// reused from then on.
pub fn wait(child: Process) -> ChildExit {
    let mut status = 0;
    loop {
        // SAFETY: status is a valid place for the result.
        let got = unsafe { libc::waitpid(child.pid, &raw mut status, 0) };
        match Errno::result(got) {
            Ok(_) => {
                let status = ExitStatus::from_raw(status);
                return ChildExit { code: status.code(), signal: status.signal() };
            }
            Err(Errno::EINTR) => (),
            // Another thread has reaped it.
            Err(_) => return ChildExit { code: None, signal: None },
        }
    }
}
