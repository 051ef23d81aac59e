//! Processes that wait for input of their terminal, by `/proc/PID/syscall`. A process may read that
//! file of its descendants with the same user id, also where Yama restricts `ptrace`.

use std::fs;
use std::os::unix::fs::MetadataExt;

use super::super::stat::{InputWait, Wait};
use super::process::{fields, read_proc, stats};

/// Device number of `/dev/tty`.
const DEV_TTY: u64 = 5 << 8;

/// System calls that wait for several descriptors.
const EVENT_CALLS: &[libc::c_long] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_select,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
];

/// The fields of `/proc/PID/stat` about a process's job.
struct Job {
    is_asleep: bool,
    group: i32,
    tty: u32,
    /// The foreground group of its terminal.
    foreground: i32,
}

/// Returns the process in the foreground of the terminal of `pid` that waits for input. A read of
/// the terminal takes precedence over other waits.
pub(crate) fn input_wait(pid: i32) -> Option<InputWait> {
    let Job { tty, foreground, .. } = job(pid).filter(|job| job.tty != 0)?;
    let leader = waits(foreground, tty);
    if leader.as_ref().is_some_and(|found| found.wait == Wait::Read) {
        return leader;
    }
    // The leader of the group may wait for the process that reads, as a script does.
    let others = stats().into_iter().filter(|stat| stat.tty == tty && stat.pid != foreground);
    let of_group = others.filter(|stat| job(stat.pid).is_some_and(|job| job.group == foreground));
    let found = leader.into_iter().chain(of_group.filter_map(|stat| waits(stat.pid, tty)));
    found.min_by_key(|found| found.wait)
}

fn job(pid: i32) -> Option<Job> {
    let line = read_proc(&format!("/proc/{pid}/stat")).ok()?;
    let fields = fields(&line)?;
    let number = |at: usize| fields.get(at)?.parse::<i32>().ok();
    Some(Job {
        is_asleep: *fields.first()? == "S",
        group: number(2)?,
        tty: number(4)?.cast_unsigned(),
        foreground: number(5)?,
    })
}

/// Returns the way in which a process waits, by the thread that waits in the most telling way.
fn waits(pid: i32, tty: u32) -> Option<InputWait> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let threads = threads.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let waits = threads.filter_map(|thread| {
        let dir = format!("/proc/{pid}/task/{thread}");
        let wait = match fs::read_to_string(format!("{dir}/syscall")) {
            Ok(line) => wait_of(pid, &line, tty)?,
            // A program with the rights of another user, such as `sudo`.
            Err(_) => job(pid).filter(|job| job.is_asleep).map(|_| Wait::Hidden)?,
        };
        Some(InputWait { pid, turns: turns(&dir)?, wait })
    });
    waits.min_by_key(|found| found.wait)
}

/// Interprets a line such as `0 0x0 0x7f… …`: the number of the system call and its arguments; or
/// `running`.
fn wait_of(pid: i32, line: &str, tty: u32) -> Option<Wait> {
    let mut words = line.split_ascii_whitespace();
    let call: libc::c_long = words.next()?.parse().ok()?;
    if EVENT_CALLS.contains(&call) {
        return Some(Wait::Event);
    }
    if ![libc::SYS_read, libc::SYS_readv].contains(&call) {
        return None;
    }
    let descriptor = u32::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
    let device = fs::metadata(format!("/proc/{pid}/fd/{descriptor}")).ok()?.rdev();
    [u64::from(tty), DEV_TTY].contains(&device).then_some(Wait::Read)
}

/// Returns how often a thread has waited so far.
fn turns(dir: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("{dir}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
    line.trim().parse().ok()
}
