//! Kills helper processes, preferably while they hold a lock.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use nix::sys::signal::Signal;

use crate::process::{Peer, age, wait_for};

impl Peer {
    pub(crate) fn is_over(&mut self) -> bool {
        self.child.try_wait().expect("wait").is_some()
    }

    /// Stops and kills the process. Returns whether it held this lock, which then is made stale.
    pub(crate) fn die(&mut self, lock: &Path) -> bool {
        self.signal(Signal::SIGSTOP);
        let stopped = || {
            let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap_or_default();
            stat.rsplit(") ").next().is_some_and(|s| s.starts_with(['T', 'Z'])).then_some(())
        };
        wait_for("a process to stand still", stopped);
        let held = self.holds(lock);
        self.child.kill().expect("kill");
        self.end();
        if held {
            age(lock);
        }
        held
    }

    /// Returns whether the process holds this lock: a holder of ours keeps the directory open.
    pub(crate) fn holds(&self, lock: &Path) -> bool {
        has_open(&self.pid().to_string(), lock)
    }
}

fn has_open(pid: &str, lock: &Path) -> bool {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    open.filter_map(|fd| fs::read_link(fd.path()).ok()).any(|file| file == lock)
}

/// Identity of a held lock. The inode may be that of the previous holder; the stamp is its own.
type Standing = (u64, SystemTime);

fn standing(lock: &Path) -> Option<Standing> {
    let meta = fs::symlink_metadata(lock).ok()?;
    Some((meta.ino(), meta.modified().ok()?))
}

/// Detects a lock whose holder died between creating and opening it: no process has it open.
#[derive(Default)]
pub(crate) struct Ghost {
    seen: Option<(Standing, Instant)>,
}

impl Ghost {
    /// Makes a lock stale that has existed for a second and that no process has open.
    pub(crate) fn lay(&mut self, lock: &Path) {
        let Some(now) = standing(lock) else { return self.seen = None };
        match self.seen {
            Some((seen, since)) if seen == now => {
                let waited = since.elapsed() > Duration::from_secs(1);
                // Checked again, because a holder that has exited in between is not found either.
                if waited && !is_open_anywhere(lock) && standing(lock) == Some(now) {
                    age(lock);
                    self.seen = None;
                }
            }
            Some(_) | None => self.seen = Some((now, Instant::now())),
        }
    }
}

fn is_open_anywhere(lock: &Path) -> bool {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|entry| entry.file_name().into_string().ok()).any(|pid| has_open(&pid, lock))
}
