//! The lock directory's protocol, on any [`Disk`]: made, stamped, checked, reclaimed, released. Must run under the
//! gate. Refuses to know whose disk it is and how one waits.
//!
//! Identity: the descriptor that a holder keeps open on its directory pins the inode, so that its number cannot be
//! given to another program's lock while we compare with it. mkdir(2) gives no descriptor, so between it and the open
//! another program may have put its own lock there: proper-lockfile removes a stale lock in place, and so, if it is a
//! little late, a fresh one of ours. What we open is ours only if it bears our mark; under the gate nobody else of us
//! can have made it.
//!
//! Spare: mkdir and rmdir cost a disk block each time (measured: 740 us on an ext4 that discards, two renames 14 us). A
//! directory that was given back lies aside as the next holder's, if it is to be kept. It is pinned and stamped before
//! it is moved into place, so nobody sees it old, and what is in place is the one that we have open. Only our own lies
//! there, by its mark, and only under the gate is it moved; without one, a new directory is made.

use std::cell::Cell;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::LockError;
use super::disk::{Disk, Seen};

/// Not refreshed for longer: the holder is taken for dead, by proper-lockfile's default and by us.
pub(super) const STALE: Duration = Duration::from_secs(10);
/// A holder stamps its lock anew at this age.
pub(super) const REFRESH: Duration = Duration::from_secs(5);

/// How a waiter waits.
pub(super) trait Patience {
    fn is_over(&self) -> bool;
    fn pause(&mut self);
}

/// What becomes of a lock directory that is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Afterwards {
    /// It lies aside for the next holder: for a file that is locked again and again.
    Kept,
    /// It is removed: for one file of many.
    Removed,
}

/// A lock directory made by us; given back on drop.
#[derive(Debug)]
pub(super) struct Claim<D: Disk> {
    disk: D,
    path: PathBuf,
    afterwards: Afterwards,
    dir: D::Handle,
    stamp: Cell<SystemTime>,
}

impl<D: Disk> Claim<D> {
    /// Puts a directory at `path`, waiting for whoever has made it; none when patience was over first.
    pub(super) fn take(
        disk: D,
        path: &Path,
        afterwards: Afterwards,
        patience: &mut impl Patience,
    ) -> Result<Option<Claim<D>>, LockError> {
        let mut last_try = false;
        loop {
            let claim = |(dir, stamp)| {
                let (disk, path, stamp) = (disk.clone(), path.to_owned(), Cell::new(stamp));
                Claim { disk, path, afterwards, dir, stamp }
            };
            if let Ok(moved) = move_spare(&disk, path) {
                return Ok(Some(claim(moved)));
            }
            match disk.make(path) {
                Ok(()) => {
                    if let Some(made) = open_made(&disk, path)? {
                        return Ok(Some(claim(made)));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (),
                Err(source) => return Err(LockError::io(path, source)),
            }
            let freed = reclaim_if_stale(&disk, path)?;
            // What was freed at the last moment is worth one more try, but not a race for ever.
            if patience.is_over() && (!freed || last_try) {
                return Ok(None);
            }
            last_try = patience.is_over();
            if !freed {
                patience.pause();
            }
        }
    }

    /// True when the directory is the one that we made and nobody has touched it; stamps it anew when due.
    pub(super) fn still_ours(&self) -> bool {
        self.refresh_if_due();
        self.is_ours() && self.is_untouched()
    }

    /// Stamps the lock's time when it is older than 5 s, so that others do not take it for abandoned.
    pub(super) fn refresh_if_due(&self) {
        // The wall clock, since others compare the stamp with it, and since it goes on while a laptop sleeps.
        let now = self.disk.now();
        let due = now.duration_since(self.stamp.get()).is_ok_and(|age| age > REFRESH);
        // Never touch a lock that is not ours: its owner would find it compromised.
        if due && self.is_ours() && self.is_untouched() {
            self.stamp_as(now);
        }
    }

    fn stamp_as(&self, time: SystemTime) {
        let stamped = self.disk.stamp(&self.dir, time);
        // Read back: file systems keep fewer digits than we wrote.
        if let Ok(seen) = stamped.and_then(|()| self.disk.look_at(&self.dir)) {
            self.stamp.set(seen.stamp);
        }
    }

    /// Lets a test be a holder that has not stamped its lock for a while.
    #[cfg(test)]
    pub(super) fn pretend_stamped(&self, time: SystemTime) {
        self.stamp_as(time);
    }

    fn is_ours(&self) -> bool {
        let (Ok(there), Ok(made)) = (self.disk.look(&self.path), self.disk.look_at(&self.dir))
        else {
            return false;
        };
        there.id == made.id
    }

    fn is_untouched(&self) -> bool {
        self.disk.look_at(&self.dir).is_ok_and(|seen| seen.stamp == self.stamp.get())
    }
}

impl<D: Disk> Drop for Claim<D> {
    /// Gives the directory back if it is still the one we made.
    fn drop(&mut self) {
        let Ok(Seen { id, .. }) = self.disk.look_at(&self.dir) else { return };
        if self.is_ours() {
            release(&self.disk, &self.path, self.afterwards, |there| there.id == id);
        }
    }
}

/// Where a lock directory lies that was moved out of its place: given back, or reclaimed.
fn spare_of(lock: &Path) -> PathBuf {
    with_suffix(lock, ".released")
}

/// The spare directory in its place, with its stamp. Fails where there is none, and where the place is taken.
fn move_spare<D: Disk>(disk: &D, lock: &Path) -> io::Result<(D::Handle, SystemTime)> {
    let spare = spare_of(lock);
    let dir = disk.open(&spare)?;
    // A release that was killed may have left another program's lock there.
    if !disk.look_at(&dir)?.is_marked {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    disk.stamp(&dir, disk.now())?;
    // Read back: file systems keep fewer digits than we wrote.
    let stamp = disk.look_at(&dir)?.stamp;
    disk.rename_to_free(&spare, lock)?;
    Ok((dir, stamp))
}

/// The directory that was just made, with its stamp. None when what lies there now is not what we made.
fn open_made<D: Disk>(disk: &D, lock: &Path) -> Result<Option<(D::Handle, SystemTime)>, LockError> {
    let opened = disk.open(lock).and_then(|dir| {
        let seen = disk.look_at(&dir)?;
        Ok((dir, seen))
    });
    match opened {
        Ok((_, seen)) if !seen.is_marked && keeps_marks(disk, lock) => Ok(None),
        Ok((dir, Seen { stamp, .. })) => Ok(Some((dir, stamp))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => {
            release(disk, lock, Afterwards::Removed, |there| there.is_marked);
            Err(LockError::io(lock, source))
        }
    }
}

/// Whether this disk keeps the mark: some, such as FAT, keep no modes. There, what we open is believed to be ours.
fn keeps_marks<D: Disk>(disk: &D, lock: &Path) -> bool {
    let probe = with_suffix(lock, ".probe");
    // Fails when one was left behind: it tells as much.
    let _ = disk.make(&probe);
    let seen = disk.look(&probe);
    let _ = disk.remove(&probe);
    seen.is_ok_and(|seen| seen.is_marked)
}

/// Gives the directory back if it is ours, also when it was taken from us a moment ago: what was moved aside is looked
/// at before it is kept or removed. The name is always the same, since a later release replaces what a killed one left
/// there.
fn release<D: Disk>(
    disk: &D,
    lock: &Path,
    afterwards: Afterwards,
    is_ours: impl Fn(&Seen) -> bool,
) {
    let aside = spare_of(lock);
    if disk.rename(lock, &aside).is_err() {
        return;
    }
    let ours = disk.look(&aside).is_ok_and(|there| is_ours(&there));
    let done = match afterwards {
        Afterwards::Kept => ours,
        // Fails when somebody put a file inside; the next one who waits for it is told so.
        Afterwards::Removed => ours && disk.remove(&aside).is_ok(),
    };
    if !done {
        put_back(disk, &aside, lock);
    }
}

pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut longer = OsString::from(path);
    longer.push(suffix);
    PathBuf::from(longer)
}

/// True when the place may be free now. Moves an abandoned directory aside before removing it: proper-lockfile's own
/// way, removing it in place, can remove a live lock that a faster waiter has just put there.
fn reclaim_if_stale<D: Disk>(disk: &D, lock: &Path) -> Result<bool, LockError> {
    let Some(stale) = staleness(disk, lock)? else { return Ok(true) };
    if !stale {
        return Ok(false);
    }
    // Where a killed reclaimer leaves what the next one of us clears away.
    let aside = spare_of(lock);
    match disk.rename(lock, &aside) {
        Ok(()) => (),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(source) => return Err(LockError::io(lock, source)),
    }
    finish_reclaim(disk, lock, &aside)
}

pub(super) fn finish_reclaim<D: Disk>(
    disk: &D,
    lock: &Path,
    aside: &Path,
) -> Result<bool, LockError> {
    // Between our look and our rename a foreign program may have reclaimed, too: then we hold its fresh lock.
    if staleness(disk, aside)? != Some(true) {
        put_back(disk, aside, lock);
        return Ok(false);
    }
    disk.remove(aside).map(|()| true).map_err(|source| {
        put_back(disk, aside, lock);
        LockError::io(lock, source)
    })
}

/// Returns a lock to its place unless that has been taken; then it is nobody's any more.
fn put_back<D: Disk>(disk: &D, aside: &Path, lock: &Path) {
    if disk.rename_to_free(aside, lock).is_err() {
        let _ = disk.remove(aside);
    }
}

/// `None` when the lock is gone. A stamp in the future is fresh: proper-lockfile's probe writes such.
fn staleness<D: Disk>(disk: &D, lock: &Path) -> Result<Option<bool>, LockError> {
    let seen = match disk.look(lock) {
        Ok(seen) => seen,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(LockError::io(lock, source)),
    };
    if !seen.is_dir {
        return Err(LockError::io(lock, io::ErrorKind::NotADirectory.into()));
    }
    Ok(Some(disk.now().duration_since(seen.stamp).is_ok_and(|age| age > STALE)))
}
