//! A peer that locks as proper-lockfile 4.1.2 does (lib/lockfile.js), call for call. Knows nothing of phalanx.

use std::io::ErrorKind;
use std::path::Path;

use super::super::disk::{Disk, Seen};
use super::world::Actor;
use super::{LOCK, POLL, STALE_MS};

pub(super) struct Node {
    actor: Actor,
}

impl Node {
    pub(super) fn new(actor: Actor) -> Node {
        Node { actor }
    }

    /// Takes the lock, reads, works while its timer refreshes the lock, writes one more, releases.
    pub(super) fn increment(&self, work: u64) {
        let mut stamp = self.lock();
        let value = self.actor.call().expect("alive").value;
        for _ in 0..work / (STALE_MS / 2) {
            self.actor.world.sleep(STALE_MS / 2);
            match self.update(stamp) {
                Some(fresh) => stamp = fresh,
                // Thrown: the program ends without releasing.
                None => return self.actor.world.state().compromised += 1,
            }
        }
        self.actor.world.sleep(work % (STALE_MS / 2));
        {
            let mut state = self.actor.call().expect("alive");
            state.value = value + 1;
            state.written += 1;
        }
        // Releases whatever is there.
        let _ = self.actor.remove(Path::new(LOCK));
    }

    fn lock(&self) -> u64 {
        loop {
            if self.acquire(true) {
                match self.probe() {
                    Some(stamp) => return stamp,
                    // "If it failed, try to remove the lock", and report the error: the caller tries again.
                    None => drop(self.actor.remove(Path::new(LOCK))),
                }
            }
            self.actor.world.sleep(POLL);
        }
    }

    /// `acquireLock`; the second round does not look at staleness.
    fn acquire(&self, look: bool) -> bool {
        if self.actor.make_plain(Path::new(LOCK)).is_ok() {
            return true;
        }
        if !look {
            return false;
        }
        match self.actor.look(Path::new(LOCK)) {
            Err(error) => error.kind() == ErrorKind::NotFound && self.acquire(false),
            Ok(seen) if stamp_of(&seen) >= self.actor.world.now_ms() - STALE_MS => false,
            Ok(_) => {
                let _ = self.actor.remove(Path::new(LOCK));
                self.acquire(false)
            }
        }
    }

    /// `mtimePrecision.probe`: stamps the lock a little in the future. None when somebody has moved the lock.
    fn probe(&self) -> Option<u64> {
        let stamp = self.actor.world.now_ms().div_ceil(1_000) * 1_000 + 5;
        self.actor.touch(Path::new(LOCK), stamp).ok()?;
        Some(stamp_of(&self.actor.look(Path::new(LOCK)).ok()?))
    }

    /// `updateLock`: none where the lock is compromised.
    fn update(&self, stamp: u64) -> Option<u64> {
        let seen = self.actor.look(Path::new(LOCK)).ok()?;
        let fresh = self.actor.world.now_ms();
        (stamp_of(&seen) == stamp && self.actor.touch(Path::new(LOCK), fresh).is_ok())
            .then_some(fresh)
    }
}

fn stamp_of(seen: &Seen) -> u64 {
    let age = seen.stamp.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(age.as_millis()).expect("a time of the model")
}
