//! Implementations for macOS of the functions of `sys::linux`. Compiled and linked, but never run
//! by the tests of this project: `docs/macos.md` lists each function with the check that a Mac
//! owner runs.

#![expect(unsafe_code, reason = "system calls without a safe wrapper in our libraries")]

mod process;
mod watch;

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use nix::mount::MntFlags;
use nix::sys::statfs::statfs;

use super::stat::InputWait;

pub(super) use process::{
    argv, become_subreaper, cwd, environment, exe, exit_notice, has_open, ignores, is_subreaper,
    owner, program_name, signal_if, start_of, start_text, stat, stats, terminal_name,
};

pub(super) use watch::DirWatcher;

/// The highest signal number.
pub(super) fn last_signal() -> i32 {
    libc::SIGUSR2
}

/// Returns the id of this boot (`kern.bootsessionuuid`).
pub(super) fn boot_id() -> Option<String> {
    let mut id = [0_u8; 64];
    let mut len = id.len();
    // SAFETY: the name ends with a NUL, and `len` is the size of `id`.
    let got = unsafe {
        libc::sysctlbyname(
            c"kern.bootsessionuuid".as_ptr(),
            id.as_mut_ptr().cast(),
            &raw mut len,
            std::ptr::null_mut(),
            0,
        )
    };
    let id = std::str::from_utf8(id.get(..len)?).ok()?.trim_end_matches('\0');
    (got == 0 && !id.is_empty()).then(|| id.to_owned())
}

/// Returns `None`: macOS has one space of pids.
pub(super) fn pid_namespace() -> Option<String> {
    None
}

/// Returns true: the system has one set of pids.
pub(super) fn shares_pids(_: i32) -> bool {
    true
}

/// Returns the effective user id of the process that opened the other end.
pub(super) fn peer_uid(stream: &UnixStream) -> io::Result<u32> {
    let (mut uid, mut gid) = (0, 0);
    // SAFETY: the descriptor is open, and both places outlive the call.
    let got = unsafe { libc::getpeereid(stream.as_raw_fd(), &raw mut uid, &raw mut gid) };
    if got == 0 { Ok(uid) } else { Err(io::Error::last_os_error()) }
}

/// Returns false: there is no such call, so the caller marks each descriptor.
pub(super) fn close_on_exec_from(_first: i32) -> bool {
    false
}

/// Returns true if the directory is on a file system that other machines may change. A directory of
/// unknown type counts as local, since callers sweep anyway.
pub(super) fn is_remote(dir: &Path) -> bool {
    statfs(dir).is_ok_and(|found| !found.flags().contains(MntFlags::MNT_LOCAL))
}

/// Fails: macOS does not report the output on a terminal.
pub(super) fn tty_output(_tty: &Path) -> io::Result<OwnedFd> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns false: the system has no call for one file system.
pub(super) fn sync_file_system(_: &File) -> io::Result<bool> {
    Ok(false)
}

/// Returns nothing: the system does not list flocks.
pub(super) fn flocks() -> Vec<(i32, u64)> {
    Vec::new()
}

/// Returns `None`: macOS does not show the system call that a process waits in.
pub(super) fn input_wait(_pid: i32) -> Option<InputWait> {
    None
}
