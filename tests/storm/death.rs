//! Sudden deaths of helper processes, at a point where it hurts.

use std::fs;
use std::path::Path;

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
        let open = fs::read_dir(format!("/proc/{}/fd", self.pid())).into_iter().flatten().flatten();
        open.filter_map(|fd| fs::read_link(fd.path()).ok()).any(|file| file == lock)
    }
}
