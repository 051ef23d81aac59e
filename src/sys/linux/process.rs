//! Processes by /proc and pidfds.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::super::stat::Stat;
use super::super::whole::read_whole;

/// Bytes of the first read: more than the status of a process, and most environments, need.
const PROC_FILE: usize = 4096;

/// Returns the state of the process with this pid, zombies included.
pub(crate) fn stat(pid: i32) -> io::Result<Stat> {
    let line = read_proc(&format!("/proc/{pid}/stat"))?;
    parse(pid, &line).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
}

/// Returns a file of /proc about a process. The kernel writes it anew for each reader, and fills the
/// buffer as far as it has something.
pub(super) fn read_proc(path: &str) -> io::Result<Vec<u8>> {
    read_whole(&mut File::open(path)?, PROC_FILE, 0, usize::MAX)
}

/// Parses a line such as `4711 (any ) name) S 1 4711 4711 34816 …`. The name may contain spaces and
/// parentheses, so it ends at the last `)`.
fn parse(pid: i32, line: &[u8]) -> Option<Stat> {
    let fields = fields(line)?;
    Some(Stat {
        pid,
        ended: matches!(*fields.first()?, "Z" | "X" | "x"),
        stopped: *fields.first()? == "T",
        ppid: fields.get(1)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        // The kernel prints the number as signed, so a large one is negative.
        tty: fields.get(4)?.parse::<i32>().ok()?.cast_unsigned(),
        start: fields.get(19)?.parse().ok()?,
    })
}

/// Splits the part of the line behind the name. Element 0 is field 3 in proc(5).
pub(super) fn fields(line: &[u8]) -> Option<Vec<&str>> {
    let name_end = line.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(line.get(name_end + 1..)?).ok()?;
    Some(rest.split_ascii_whitespace().take(20).collect())
}

/// Returns the start time as Claude Code records it here: the number of clock ticks.
pub(crate) fn start_text(start: u64) -> String {
    start.to_string()
}

/// Reads the text of [`start_text`]; `None` if it is no number.
pub(crate) fn start_of(_pid: i32, text: &str) -> Option<u64> {
    text.parse().ok()
}

/// Returns all visible processes, zombies included, in no particular order. The result is not a
/// snapshot: processes start and end while it is read.
pub(crate) fn stats() -> Vec<Stat> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| stat(pid).ok()).collect()
}

/// Returns the effective user id of a process.
pub(crate) fn owner(pid: i32) -> Option<u32> {
    Some(fs::metadata(format!("/proc/{pid}")).ok()?.uid())
}

/// Returns whether a process has the file open, under whichever name, or had it open under this
/// name when it was removed; `None` where the system does not show it.
pub(crate) fn has_open(pid: i32, path: &Path) -> Option<bool> {
    let id = |path: &Path| fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
    let wanted = id(path);
    let mut removed = path.as_os_str().to_owned();
    removed.push(" (deleted)");
    let mut links = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten().map(|link| link.path());
    Some(links.any(|link| {
        (wanted.is_some() && id(&link) == wanted)
            || fs::read_link(&link).is_ok_and(|open| open.as_os_str() == removed)
    }))
}

/// Returns the command line of a process, program first. The process may have overwritten it.
pub(crate) fn argv(pid: i32) -> Option<Vec<Vec<u8>>> {
    read_proc(&format!("/proc/{pid}/cmdline")).ok().map(|line| words(&line))
}

/// Returns the variables (`NAME=value`) that a process was started with, unless it has overwritten
/// them.
pub(crate) fn environment(pid: i32) -> Option<Vec<Vec<u8>>> {
    read_proc(&format!("/proc/{pid}/environ")).ok().map(|environ| words(&environ))
}

fn words(text: &[u8]) -> Vec<Vec<u8>> {
    let text = text.strip_suffix(&[0]).unwrap_or(text);
    text.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect()
}

/// Returns the executable of a process, followed by ` (deleted)` if the file was replaced.
pub(crate) fn exe(pid: i32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe")).ok()
}

/// Returns the working directory of a process.
pub(crate) fn cwd(pid: i32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/cwd")).ok()
}

/// Returns the name of the terminal with this device number, as `/dev/pts/7`.
pub(crate) fn terminal_name(device: u32) -> Option<String> {
    // The kernel's encoding: major in bits 8..20, minor in bits 0..8 and 20..32.
    let (major, minor) = ((device >> 8) & 0xfff, (device & 0xff) | ((device >> 12) & 0xfff00));
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

/// Returns true if the process ignores this signal; a signal that it catches does not count.
pub(crate) fn ignores(pid: i32, sig: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (sig - 1)) != 0)
}

/// Returns a close-on-exec descriptor that becomes readable when the process with this pid ends.
///
/// # Errors
/// `ESRCH` if there is no such process, `ENOSYS` in a sandbox without pidfds.
pub(crate) fn exit_notice(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: pidfd_open takes a pid and flags, no pointers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0).ok_or_else(io::Error::last_os_error)?;
    // SAFETY: the call has just returned this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sends a signal to the process with this pid if `check` still holds for it, and returns whether
/// it was sent. `None` if the system cannot do both without a reuse of the pid in between.
pub(crate) fn signal_if(pid: i32, sig: i32, check: impl FnOnce() -> bool) -> Option<bool> {
    match exit_notice(pid) {
        // The handle is opened before the check. It never refers to another process later, so the
        // check holds for the signal.
        Ok(handle) => Some(check() && send(&handle, sig)),
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => None,
        Err(_) => Some(false),
    }
}

fn send(handle: &OwnedFd, sig: i32) -> bool {
    let no_info = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: the descriptor is open; a null siginfo is allowed and means "as if by kill".
    unsafe { libc::syscall(libc::SYS_pidfd_send_signal, handle.as_raw_fd(), sig, no_info, 0) == 0 }
}

/// Makes orphaned descendants children of this process instead of init's, so that this process has
/// to reap them. Returns false if the system does not support it.
pub(crate) fn become_subreaper() -> bool {
    nix::sys::prctl::set_child_subreaper(true).is_ok()
}

/// Returns true if this process adopts orphaned descendants.
pub(crate) fn is_subreaper() -> bool {
    nix::sys::prctl::get_child_subreaper().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAIL: &str = "S 17 4711 4700 34816 4711 4194304 1 0 0 0 0 0 0 0 20 0 1 0 987654 0 0";

    #[test]
    fn names_with_spaces_and_parentheses_do_not_shift_fields() {
        for name in ["sh", "a b", "a) S 1 2 3", "((", "))", ") R 1 (", ""] {
            let stat = parse(4711, format!("4711 ({name}) {TAIL}").as_bytes()).expect(name);
            assert_eq!(
                (stat.ppid, stat.session, stat.tty, stat.start),
                (17, 4700, 34816, 987_654),
                "{name}"
            );
            assert!(!stat.ended);
        }
        let raw = [b"4711 (\xff\xfe) ".as_slice(), TAIL.as_bytes()].concat();
        assert_eq!(parse(4711, &raw).map(|stat| stat.start), Some(987_654));
    }

    #[test]
    fn zombies_have_ended_and_truncated_lines_are_rejected() {
        let zombie = parse(1, format!("1 (x) Z{}", &TAIL[1..]).as_bytes()).expect("complete");
        assert!(zombie.ended);
        assert!(!zombie.stopped);
        for (letter, stopped) in [("T", true), ("t", false), ("S", false), ("R", false)] {
            let stat =
                parse(1, format!("1 (x) {letter}{}", &TAIL[1..]).as_bytes()).expect("complete");
            assert_eq!(stat.stopped, stopped, "{letter}");
        }
        assert_eq!(parse(1, b"1 (x) S 17 4711"), None);
        assert_eq!(parse(1, b""), None);
    }
}
