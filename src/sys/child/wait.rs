//! The end of one child, for a process that has others or threads beside it and so cannot be its launcher. Refuses to
//! touch any other child.

#![expect(unsafe_code, reason = "waitpid with statuses that nix cannot express")]

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use nix::errno::Errno;

use super::super::proc::Process;
use super::Exit;

/// Waits until `child` (ours, not waited for yet) has ended, and takes its status: from then on its pid may be
/// another's.
pub(crate) fn wait(child: Process) -> Exit {
    let mut status = 0;
    loop {
        // SAFETY: status is a valid place for the result.
        let got = unsafe { libc::waitpid(child.pid, &raw mut status, 0) };
        match Errno::result(got) {
            Ok(_) => {
                let status = ExitStatus::from_raw(status);
                return Exit { code: status.code(), signal: status.signal() };
            }
            Err(Errno::EINTR) => (),
            // Another thread has taken it.
            Err(_) => return Exit { code: None, signal: None },
        }
    }
}
