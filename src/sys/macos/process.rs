//! Processes by libproc, `sysctl` and kqueue.

use std::ffi::{CStr, OsString};
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use nix::sys::event::{EvFlags, EventFilter, FilterFlag, KEvent, Kqueue};
use nix::unistd::{Pid, getsid};

use super::super::macos_formats::{self, ProcArgs};
use super::super::stat::Stat;

/// Device number of a process without a controlling terminal.
const NO_DEVICE: u32 = u32::MAX;
/// Asks `proc_pidinfo` for zombies as well.
const WITH_ZOMBIES: u64 = 1;
/// Longest arguments and environment of a process, in bytes (`kern.argmax`).
const MOST_ARGUMENTS: usize = 1 << 20;

/// Returns the state of the process with this pid, zombies included. The start time is in
/// microseconds since the epoch.
///
/// # Errors
/// `ESRCH` if there is no such process, `EPERM` if it belongs to another user.
pub fn stat(pid: i32) -> io::Result<Stat> {
    let info: libc::proc_bsdinfo = info(pid, libc::PROC_PIDTBSDINFO, WITH_ZOMBIES)?;
    let number = |number: u32| i32::try_from(number).map_err(io::Error::other);
    Ok(Stat {
        pid,
        ppid: number(info.pbi_ppid)?,
        // 0, which is no process's session, for a zombie.
        session: getsid(Some(Pid::from_raw(pid))).map_or(0, Pid::as_raw),
        tty: if info.e_tdev == NO_DEVICE { 0 } else { info.e_tdev },
        start: info.pbi_start_tvsec * 1_000_000 + info.pbi_start_tvusec,
        ended: info.pbi_status == libc::SZOMB,
        stopped: info.pbi_status == libc::SSTOP,
    })
}

/// Returns the start time as Claude Code records it here: as `ps` prints it, in whole seconds.
pub fn start_text(start: u64) -> String {
    macos_formats::start_text(start)
}

/// Returns the start time of the process with this pid if it has this text, otherwise 0, which is
/// no process's start time.
pub(crate) fn start_of(pid: i32, text: &str) -> Option<u64> {
    let start = stat(pid).map_or(0, |stat| stat.start);
    Some(if start_text(start) == text { start } else { 0 })
}

/// Returns all processes of this user, zombies included, in no particular order. The result is not
/// a snapshot: processes start and end while it is read.
pub(crate) fn stats() -> Vec<Stat> {
    // SAFETY: a null buffer asks for the number of processes.
    let count = unsafe { libc::proc_listallpids(std::ptr::null_mut(), 0) };
    // Room for processes that start between the two calls.
    let mut pids = vec![0_i32; usize::try_from(count).unwrap_or(0) + 64];
    let bytes = libc::c_int::try_from(pids.len() * size_of::<i32>()).unwrap_or(libc::c_int::MAX);
    // SAFETY: `bytes` is the size of the buffer.
    let count = unsafe { libc::proc_listallpids(pids.as_mut_ptr().cast(), bytes) };
    pids.truncate(usize::try_from(count).unwrap_or(0));
    pids.into_iter().filter_map(|pid| stat(pid).ok()).collect()
}

/// Returns the effective user id of a process of this user.
pub fn owner(pid: i32) -> Option<u32> {
    let info: libc::proc_bsdinfo = info(pid, libc::PROC_PIDTBSDINFO, 0).ok()?;
    Some(info.pbi_uid)
}

/// Returns the command line of a process, program first. The process may have overwritten it.
pub fn argv(pid: i32) -> Option<Vec<Vec<u8>>> {
    Some(arguments(pid)?.argv)
}

/// Returns the variables (`NAME=value`) that a process was started with. Empty for programs that
/// System Integrity Protection guards.
pub fn environment(pid: i32) -> Option<Vec<Vec<u8>>> {
    Some(arguments(pid)?.environment)
}

/// Not asked on this system.
pub fn has_open(_pid: i32, _path: &Path) -> Option<bool> {
    None
}

fn arguments(pid: i32) -> Option<ProcArgs> {
    let mut name = [libc::CTL_KERN, libc::KERN_PROCARGS2, pid];
    let mut buffer = vec![0_u8; MOST_ARGUMENTS];
    let mut len = buffer.len();
    // SAFETY: `name` has three elements, and `len` is the size of `buffer`.
    let got = unsafe {
        libc::sysctl(
            name.as_mut_ptr(),
            3,
            buffer.as_mut_ptr().cast(),
            &raw mut len,
            std::ptr::null_mut(),
            0,
        )
    };
    if got == 0 { macos_formats::parse_arguments(buffer.get(..len)?) } else { None }
}

/// Returns the executable of a process.
pub fn exe(pid: i32) -> Option<PathBuf> {
    let mut path = vec![0_u8; usize::try_from(libc::PROC_PIDPATHINFO_MAXSIZE).ok()?];
    let size = u32::try_from(path.len()).ok()?;
    // SAFETY: `size` is the size of the buffer.
    let len = unsafe { libc::proc_pidpath(pid, path.as_mut_ptr().cast(), size) };
    path.truncate(usize::try_from(len).ok().filter(|len| *len > 0)?);
    Some(PathBuf::from(OsString::from_vec(path)))
}

/// Returns the working directory of a process.
pub fn cwd(pid: i32) -> Option<PathBuf> {
    let info: libc::proc_vnodepathinfo = info(pid, libc::PROC_PIDVNODEPATHINFO, 0).ok()?;
    let path = info.pvi_cdir.vip_path.as_flattened();
    let bytes: Vec<u8> =
        path.iter().map(|byte| byte.cast_unsigned()).take_while(|byte| *byte != 0).collect();
    (!bytes.is_empty()).then(|| PathBuf::from(OsString::from_vec(bytes)))
}

/// Returns the name of the terminal with this device number, as `/dev/ttys003`.
pub(crate) fn terminal_name(device: u32) -> Option<String> {
    if device == 0 {
        return None;
    }
    // SAFETY: takes integers only. The returned text lies in a buffer of the C library that another
    // thread's call may overwrite, which can only garble the name.
    let name = unsafe { libc::devname(device.cast_signed(), libc::S_IFCHR) };
    if name.is_null() {
        return None;
    }
    // SAFETY: a text of devname ends with a NUL.
    let name = unsafe { CStr::from_ptr(name) }.to_str().ok()?;
    (name != "??").then(|| format!("/dev/{name}"))
}

/// Returns the name of a process's program, of at most 32 bytes.
pub(crate) fn program_name(pid: i32) -> Option<String> {
    Some(exe(pid)?.file_name()?.to_string_lossy().into_owned())
}

/// Returns false: the system shows no dispositions, so such a process gets the next signal later.
pub(crate) fn ignores(_pid: i32, _sig: i32) -> bool {
    false
}

/// Returns a close-on-exec descriptor that becomes readable when the process with this pid ends.
///
/// # Errors
/// `ESRCH` if there is no such process or it is a zombie.
pub(crate) fn exit_notice(pid: i32) -> io::Result<OwnedFd> {
    let ident = usize::try_from(pid).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
    let exit =
        KEvent::new(ident, EventFilter::EVFILT_PROC, EvFlags::EV_ADD, FilterFlag::NOTE_EXIT, 0, 0);
    let queue = Kqueue::new()?;
    let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    queue.kevent(&[exit], &mut [], Some(at_once))?;
    Ok(queue.into())
}

/// Returns `None`: the system has no handles of processes, so the pid could be reused between a
/// check and the signal.
pub(crate) fn signal_if(_pid: i32, _sig: i32, _check: impl FnOnce() -> bool) -> Option<bool> {
    None
}

/// Returns false: orphans become children of launchd.
pub fn become_subreaper() -> bool {
    false
}

/// Returns false, as [`become_subreaper`].
pub(crate) fn is_subreaper() -> bool {
    false
}

/// Asks `proc_pidinfo` for a structure, which must be plain numbers and arrays of them.
fn info<T>(pid: i32, flavor: libc::c_int, arg: u64) -> io::Result<T> {
    // SAFETY: all-zero is a valid value of the C structures that this is called for.
    let mut info: T = unsafe { zeroed() };
    let size = libc::c_int::try_from(size_of::<T>()).expect("some kilobytes");
    // SAFETY: `size` is the size of `info`, which outlives the call.
    let got = unsafe { libc::proc_pidinfo(pid, flavor, arg, (&raw mut info).cast(), size) };
    if got == size { Ok(info) } else { Err(io::Error::last_os_error()) }
}
