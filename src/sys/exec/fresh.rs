//! Resets what a new process inherits: signal dispositions, the signal mask and descriptors.

#![expect(unsafe_code, reason = "code between fork and exec, where std offers only an unsafe hook")]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::signal::SigSet;

use super::super::{native, portable};

/// Makes the process that `command` starts begin with default signal dispositions, an empty signal
/// mask and no descriptors beyond 0 to 2. `also` runs first, in the new process. It must be
/// async-signal-safe (system calls only, no allocation), because another thread may have held any
/// lock at the time of the fork.
pub(crate) fn start_fresh(
    command: &mut Command,
    mut also: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
) {
    let hook = move || {
        also()?;
        default_dispositions();
        clear_mask()?;
        close_rest_on_exec();
        Ok(())
    };
    // SAFETY: the hook only makes async-signal-safe calls and does not allocate.
    unsafe { command.pre_exec(hook) };
}

/// Returns true if this thread blocks any signal. A child would inherit the mask.
pub(super) fn blocks_signals() -> bool {
    SigSet::thread_get_mask().is_ok_and(|mask| mask.iter().next().is_some())
}

/// Makes the process that `command` starts begin with an empty signal mask.
pub(super) fn empty_signal_mask(command: &mut Command) {
    // SAFETY: pthread_sigmask is async-signal-safe, and nothing allocates.
    unsafe { command.pre_exec(clear_mask) };
}

fn clear_mask() -> io::Result<()> {
    SigSet::empty().thread_set_mask().map_err(io::Error::from)
}

fn default_dispositions() {
    for sig in 1..=native::last_signal() {
        // SAFETY: signal(2) is async-signal-safe. It fails for KILL, STOP and the two signals that
        // the C library reserves, as it should.
        unsafe { libc::signal(sig, libc::SIG_DFL) };
    }
}

/// Marks descriptors close-on-exec instead of closing them, because std reports a failed exec
/// through one of them.
fn close_rest_on_exec() {
    if portable::is_forced() || !native::close_on_exec_from(3) {
        mark_each_close_on_exec();
    }
}

fn mark_each_close_on_exec() {
    // SAFETY: both take integers only, and fcntl fails with EBADF for a number that is not a
    // descriptor.
    unsafe {
        let most = libc::sysconf(libc::_SC_OPEN_MAX).clamp(256, 65_536);
        for fd in 3..libc::c_int::try_from(most).unwrap_or(256) {
            libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC);
        }
    }
}
