//! Implementations for Linux. `sys::macos` has the same functions.

#![expect(unsafe_code, reason = "system calls without a safe wrapper in our libraries")]

mod inotify;
mod input;
mod process;

use std::fs::{self, File};
use std::io;
use std::mem::size_of;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

use nix::sys::statfs::statfs;

pub(super) use inotify::{Inotify, tty_output};
pub(super) use input::input_wait;
pub(super) use process::{
    argv, become_subreaper, cwd, environment, exe, exit_notice, has_open, ignores, is_subreaper,
    owner, signal_if, start_of, start_text, stat, stats, terminal_name,
};

/// The highest signal number, real-time signals included.
pub(super) fn last_signal() -> i32 {
    libc::SIGRTMAX()
}

/// Returns the id of this boot.
pub(super) fn boot_id() -> Option<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

/// Returns the name of this process's pid namespace, as `pid:[4026531836]`.
pub(super) fn pid_namespace() -> Option<String> {
    Some(fs::read_link("/proc/self/ns/pid").ok()?.to_string_lossy().into_owned())
}

/// Returns true for a process whose pids are those of this process: not one in a container.
pub(super) fn shares_pids(pid: i32) -> bool {
    let space = |of: &str| fs::read_link(format!("/proc/{of}/ns/pid")).ok();
    space("self").is_none_or(|own| space(&pid.to_string()) == Some(own))
}

/// Returns the user id of the process that opened the other end, as the kernel recorded it then.
pub(super) fn peer_uid(stream: &UnixStream) -> io::Result<u32> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = libc::socklen_t::try_from(size_of::<libc::ucred>()).expect("a few bytes");
    // SAFETY: `peer` and `len` outlive the call, and `len` is the size of `peer`.
    let got = unsafe {
        let place = (&raw mut peer).cast();
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            place,
            &raw mut len,
        )
    };
    if got == 0 { Ok(peer.uid) } else { Err(io::Error::last_os_error()) }
}

/// Marks all descriptors from `first` on as close-on-exec, between fork and exec. Returns false if
/// the system cannot: the flag needs Linux 5.11, and some sandboxes deny the call.
pub(super) fn close_on_exec_from(first: i32) -> bool {
    // SAFETY: takes integers only.
    let marked = unsafe {
        libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC)
    };
    marked == 0
}

/// Returns true if the system does not report changes that other machines make in `dir`. A
/// directory of unknown type counts as local, since callers sweep anyway.
pub(super) fn is_remote(dir: &Path) -> bool {
    // The width of the type differs between platforms; these numbers fit into 32 bits.
    statfs(dir)
        .is_ok_and(|found| is_remote_type(u64::try_from(found.filesystem_type().0).unwrap_or(0)))
}

/// Classifies a file system by its number in `statfs(2)`.
fn is_remote_type(magic: u64) -> bool {
    const NFS: u64 = 0x6969;
    const SMB: u64 = 0x517B;
    const CIFS: u64 = 0xFF53_4D42;
    const SMB2: u64 = 0xFE53_4D42;
    const FUSE: u64 = 0x6573_5546;
    const V9FS: u64 = 0x0102_1997;
    matches!(magic & 0xFFFF_FFFF, NFS | SMB | CIFS | SMB2 | FUSE | V9FS)
}

/// Syncs all files of the file system that has this directory. Returns false if the system cannot.
pub(super) fn sync_file_system(dir: &File) -> io::Result<bool> {
    rustix::fs::syncfs(dir)?;
    Ok(true)
}

/// Returns the flocks that the system lists, each with its holder's pid and the file's inode.
pub(super) fn flocks() -> Vec<(i32, u64)> {
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    locks.lines().filter_map(flock).collect()
}

/// Parses a line like `1: FLOCK  ADVISORY  WRITE 4711 08:01:131090 0 EOF`; `None` if it is about
/// another kind of lock.
fn flock(line: &str) -> Option<(i32, u64)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, "FLOCK", _, _, pid, place, ..] = words.as_slice() else { return None };
    Some((pid.parse().ok()?, place.rsplit(':').next()?.parse().ok()?))
}

/// Returns the name of a process's program, of at most 15 bytes.
pub(super) fn program_name(pid: i32) -> Option<String> {
    Some(fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_distinguished_from_local_ones() {
        for remote in [0x6969, 0x517B, 0xFF53_4D42, 0xFE53_4D42, 0x6573_5546, 0x0102_1997] {
            assert!(is_remote_type(remote), "{remote:#x}");
        }
        // Where the type is a signed 32-bit number, that of CIFS arrives sign-extended.
        assert!(is_remote_type(0xFFFF_FFFF_FF53_4D42));
        for local in [0xEF53, 0x0102_1994, 0x5846_5342, 0x9123_683E, 0x794C_7630, 0] {
            assert!(!is_remote_type(local), "{local:#x}");
        }
        assert!(!is_remote(Path::new("/no/such/directory")));
    }
}
