//! Sudden deaths of helper processes, at a point where it hurts.

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

    /// Kills it where it stands. True when it held this lock; then the time that makes the lock stale has passed.
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

    /// Whether it holds this lock of ours: a holder keeps the directory open.
    pub(crate) fn holds(&self, lock: &Path) -> bool {
        has_open(&self.pid().to_string(), lock)
    }
}

fn has_open(pid: &str, lock: &Path) -> bool {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    open.filter_map(|fd| fs::read_link(fd.path()).ok()).any(|file| file == lock)
}

/// One holder's lock: its directory may have been the one before's, its stamp is its own.
type Standing = (u64, SystemTime);

fn standing(lock: &Path) -> Option<Standing> {
    let meta = fs::symlink_metadata(lock).ok()?;
    Some((meta.ino(), meta.modified().ok()?))
}

/// A lock whose holder died between making it and opening it: nothing tells of that death but that nobody has it.
#[derive(Default)]
pub(crate) struct Ghost {
    seen: Option<(Standing, Instant)>,
}

impl Ghost {
    /// Lets the stale time pass for a lock that has stood for a second and that no process has open.
    pub(crate) fn lay(&mut self, lock: &Path) {
        let Some(now) = standing(lock) else { return self.seen = None };
        match self.seen {
            Some((seen, since)) if seen == now => {
                let waited = since.elapsed() > Duration::from_secs(1);
                // Looked at again, for a holder that has left meanwhile was not found either.
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
