//! Reads the state of one process or of all processes from /proc.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use nix::unistd::Uid;

/// Some fields of /proc/PID/stat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) pid: i32,
    /// Pid of the parent.
    pub(super) ppid: i32,
    /// Session id, which is the pid of the session's leader.
    pub(super) session: i32,
    /// Device number of the controlling terminal; 0 if there is none.
    pub(super) tty: u32,
    /// Start time in clock ticks since boot.
    pub(super) start: u64,
    /// The process is a zombie or about to vanish.
    pub(super) ended: bool,
    /// The process is stopped by a signal (`SIGSTOP`, Ctrl-Z), not by a debugger.
    pub(super) stopped: bool,
}

impl Stat {
    pub(super) fn of(pid: i32) -> io::Result<Stat> {
        let line = fs::read(format!("/proc/{pid}/stat"))?;
        Stat::parse(pid, &line).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
    }

    /// Parses a line such as `4711 (any ) name) S 1 4711 4711 34816 …`. The name may contain spaces
    /// and parentheses, so it ends at the last `)`.
    pub(super) fn parse(pid: i32, line: &[u8]) -> Option<Stat> {
        let name_end = line.iter().rposition(|byte| *byte == b')')?;
        let rest = std::str::from_utf8(line.get(name_end + 1..)?).ok()?;
        // Element 0 is field 3 in proc(5).
        let fields: Vec<&str> = rest.split_ascii_whitespace().take(20).collect();
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
}

/// Returns all visible processes, zombies included, in no particular order. The result is not a
/// snapshot: processes start and end while it is read.
pub(super) fn all() -> Vec<Stat> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| Stat::of(pid).ok()).collect()
}

/// Returns true if the process belongs to this user and was started with one of `words`
/// (`NAME=value`) in its environment. Misses a process that has overwritten its environment.
pub(super) fn has_word(pid: i32, words: &[String]) -> bool {
    let owner = fs::metadata(format!("/proc/{pid}")).map(|meta| meta.uid());
    if !owner.is_ok_and(|uid| uid == Uid::effective().as_raw()) {
        return false;
    }
    let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environ.split(|byte| *byte == 0).any(|found| words.iter().any(|word| found == word.as_bytes()))
}

/// Returns true if the process ignores this signal; a signal that it catches does not count.
pub(in crate::sys) fn ignores(pid: i32, sig: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (sig - 1)) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAIL: &str = "S 17 4711 4700 34816 4711 4194304 1 0 0 0 0 0 0 0 20 0 1 0 987654 0 0";

    #[test]
    fn names_with_spaces_and_parentheses_do_not_shift_fields() {
        for name in ["sh", "a b", "a) S 1 2 3", "((", "))", ") R 1 (", ""] {
            let stat = Stat::parse(4711, format!("4711 ({name}) {TAIL}").as_bytes()).expect(name);
            assert_eq!(
                (stat.ppid, stat.session, stat.tty, stat.start),
                (17, 4700, 34816, 987_654),
                "{name}"
            );
            assert!(!stat.ended);
        }
        let raw = [b"4711 (\xff\xfe) ".as_slice(), TAIL.as_bytes()].concat();
        assert_eq!(Stat::parse(4711, &raw).map(|stat| stat.start), Some(987_654));
    }

    #[test]
    fn zombies_have_ended_and_truncated_lines_are_rejected() {
        let zombie = Stat::parse(1, format!("1 (x) Z{}", &TAIL[1..]).as_bytes()).expect("complete");
        assert!(zombie.ended);
        assert!(!zombie.stopped);
        for (letter, stopped) in [("T", true), ("t", false), ("S", false), ("R", false)] {
            let stat = Stat::parse(1, format!("1 (x) {letter}{}", &TAIL[1..]).as_bytes())
                .expect("complete");
            assert_eq!(stat.stopped, stopped, "{letter}");
        }
        assert_eq!(Stat::parse(1, b"1 (x) S 17 4711"), None);
        assert_eq!(Stat::parse(1, b""), None);
    }
}
