//! What a new process inherits, and how to make it inherit nothing: signals, descriptors. Refuses to know what it
//! will run.

#![expect(unsafe_code, reason = "code between fork and exec, where std offers only an unsafe hook")]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::signal::SigSet;

/// Gives the process that `command` starts default signal dispositions, an empty signal mask and no descriptor
/// beyond 0..2. `also` runs right before, in the new process: it must be async-signal-safe (system calls only, no
/// allocation), for other threads of ours may have held any lock at the moment of the fork.
pub(in crate::sys) fn start_fresh(
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

/// True when this thread blocks any signal, which a child would inherit.
pub(super) fn blocks_signals() -> bool {
    SigSet::thread_get_mask().is_ok_and(|mask| mask.iter().next().is_some())
}

/// Lets the process that `command` starts receive all signals.
pub(super) fn empty_signal_mask(command: &mut Command) {
    // SAFETY: pthread_sigmask is async-signal-safe, and nothing allocates.
    unsafe { command.pre_exec(clear_mask) };
}

fn clear_mask() -> io::Result<()> {
    SigSet::empty().thread_set_mask().map_err(io::Error::from)
}

fn default_dispositions() {
    for sig in 1..=libc::SIGRTMAX() {
        // SAFETY: signal(2) is async-signal-safe; for KILL, STOP and libc's own two it fails, which is right.
        unsafe { libc::signal(sig, libc::SIG_DFL) };
    }
}

/// Marks descriptors close-on-exec instead of closing them: std reports a failed exec through one of them.
fn close_rest_on_exec() {
    // SAFETY: takes integers only.
    let marked = unsafe {
        libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC)
    };
    if marked != 0 {
        // Kernels before 5.11, some sandboxes.
        mark_each_close_on_exec();
    }
}

fn mark_each_close_on_exec() {
    // SAFETY: sysconf and fcntl on any number are harmless; what is no descriptor gives EBADF.
    unsafe {
        let most = libc::sysconf(libc::_SC_OPEN_MAX).clamp(256, 65_536);
        for fd in 3..libc::c_int::try_from(most).unwrap_or(256) {
            libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC);
        }
    }
}
