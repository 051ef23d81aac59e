//! The lock directory of proper-lockfile 4.1.2 beside a file, behind a gate of our own. Refuses to know the file.
//!
//! Order: gate, then directory; released in reverse. Under the gate at most one of our processes looks at the lock
//! directory, so stale locks are reclaimed by one at a time and only foreign programs are polled for.
//!
//! Identity: the descriptor that a holder keeps open on its directory pins the inode, so that its number cannot be
//! given to another program's lock while we compare with it.

use std::cell::Cell;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, FileTimes, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};

use super::super::clock::Deadline;
use super::super::rand;
use super::{Backoff, Gate, LockError};

/// Not refreshed for longer: the holder is taken for dead, by proper-lockfile's default and by us.
const STALE: Duration = Duration::from_secs(10);
/// A holder stamps its lock anew at this age.
const REFRESH: Duration = Duration::from_secs(5);

/// The lock directory `FILE.lock`, made by us and removed on drop.
#[derive(Debug)]
pub(crate) struct DirLock {
    path: PathBuf,
    dir: File,
    stamp: Cell<SystemTime>,
    // Last, for fields are dropped in order: the gate opens only after our `drop` has removed the directory.
    _gate: Gate,
}

impl DirLock {
    /// Locks `target` (which need not exist for us; proper-lockfile insists), waiting up to `deadline` in total.
    /// `gate` is the flock file that all our processes use for this target; it must not be named `*.lock`.
    pub(crate) fn acquire(target: &Path, gate: &Path, deadline: Duration) -> Result<DirLock, LockError> {
        let deadline = Deadline::after(deadline);
        let path = lock_path(target)?;
        let gate = Gate::open(gate, deadline.remaining())?;
        let mut backoff = Backoff::new(Duration::from_millis(1), Duration::from_millis(20));
        let mut last_try = false;
        loop {
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return DirLock::made(path, gate),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (),
                Err(source) => return Err(LockError::io(&path, source)),
            }
            let freed = reclaim_if_stale(&path)?;
            // What was freed at the last moment is worth one more try, but not a race for ever.
            if deadline.expired() && (!freed || last_try) {
                return Err(LockError::timeout(&path, &deadline, describe(&path)));
            }
            last_try = deadline.expired();
            if !freed {
                backoff.pause(&deadline);
            }
        }
    }

    fn made(path: PathBuf, gate: Gate) -> Result<DirLock, LockError> {
        let opened = open_dir(&path).and_then(|dir| {
            let stamp = dir.metadata()?.modified()?;
            Ok((dir, stamp))
        });
        match opened {
            Ok((dir, stamp)) => Ok(DirLock { path, dir, stamp: Cell::new(stamp), _gate: gate }),
            Err(source) => {
                let _ = fs::remove_dir(&path);
                Err(LockError::io(&path, source))
            }
        }
    }

    /// True when the lock directory is the one that we made and nobody has touched it; stamps it anew when due.
    /// To be asked immediately before publishing what was done under the lock.
    pub(crate) fn still_ours(&self) -> bool {
        self.refresh_if_due();
        self.is_ours() && self.is_untouched()
    }

    /// Stamps the lock's time when it is older than 5 s, so that others do not take it for abandoned. Call it in
    /// work that lasts; there is no thread that does.
    pub(crate) fn refresh_if_due(&self) {
        // The wall clock, since others compare the stamp with it, and since it goes on while a laptop sleeps.
        let now = SystemTime::now();
        let due = now.duration_since(self.stamp.get()).is_ok_and(|age| age > REFRESH);
        // Never touch a lock that is not ours: its owner would find it compromised.
        if !due || !self.is_ours() || !self.is_untouched() {
            return;
        }
        let stamped = self.dir.set_times(FileTimes::new().set_modified(now));
        // Read back: file systems keep fewer digits than we wrote.
        if let Ok(seen) = stamped.and_then(|()| self.dir.metadata()?.modified()) {
            self.stamp.set(seen);
        }
    }

    /// Lets a test be a holder that has not stamped its lock for a while.
    #[cfg(test)]
    pub(super) fn pretend_stamped(&self, time: SystemTime) {
        self.dir.set_times(FileTimes::new().set_modified(time)).expect("our own directory");
        self.stamp.set(self.dir.metadata().and_then(|meta| meta.modified()).expect("our own directory"));
    }

    fn is_ours(&self) -> bool {
        let (Ok(there), Ok(made)) = (fs::symlink_metadata(&self.path), self.dir.metadata()) else {
            return false;
        };
        (there.dev(), there.ino()) == (made.dev(), made.ino())
    }

    fn is_untouched(&self) -> bool {
        self.dir.metadata().and_then(|meta| meta.modified()).is_ok_and(|seen| seen == self.stamp.get())
    }
}

impl Drop for DirLock {
    /// Removes the lock directory if it is still the one we made; then the gate opens.
    fn drop(&mut self) {
        if self.is_ours() {
            // Fails when somebody put a file inside; the next one who waits for it is told so.
            let _ = fs::remove_dir(&self.path);
        }
    }
}

/// `realpath(target).lock`, the key that Node uses; for a missing target, its directory's real path.
fn lock_path(target: &Path) -> Result<PathBuf, LockError> {
    let fail = |source| LockError::io(target, source);
    let real = match fs::canonicalize(target) {
        Ok(real) => real,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let name = target.file_name().ok_or_else(|| fail(io::ErrorKind::InvalidInput.into()))?;
            let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty());
            fs::canonicalize(parent.unwrap_or(Path::new("."))).map_err(fail)?.join(name)
        }
        Err(source) => return Err(fail(source)),
    };
    Ok(with_suffix(&real, ".lock"))
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut longer = OsString::from(path);
    longer.push(suffix);
    PathBuf::from(longer)
}

/// True when the place may be free now. Must be called under the gate. Moves an abandoned directory aside before
/// removing it: proper-lockfile's own way, removing it in place, can remove a live lock that a faster waiter has
/// just put there.
fn reclaim_if_stale(lock: &Path) -> Result<bool, LockError> {
    let Some(stale) = staleness(lock)? else { return Ok(true) };
    if !stale {
        return Ok(false);
    }
    let aside = with_suffix(lock, &format!(".{}", rand::uuid()));
    match fs::rename(lock, &aside) {
        Ok(()) => (),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(source) => return Err(LockError::io(lock, source)),
    }
    finish_reclaim(lock, &aside)
}

pub(super) fn finish_reclaim(lock: &Path, aside: &Path) -> Result<bool, LockError> {
    // Between our look and our rename a foreign program may have reclaimed, too: then we hold its fresh lock.
    if staleness(aside)? != Some(true) {
        put_back(aside, lock);
        return Ok(false);
    }
    fs::remove_dir(aside).map(|()| true).map_err(|source| {
        put_back(aside, lock);
        LockError::io(lock, source)
    })
}

/// Returns a lock to its place unless that has been taken; then it is nobody's any more.
fn put_back(aside: &Path, lock: &Path) {
    if rename_no_replace(aside, lock).is_err() {
        let _ = fs::remove_dir(aside);
    }
}

/// A plain rename would silently replace an empty directory, which is just what a lock is.
fn rename_no_replace(from: &Path, to: &Path) -> nix::Result<()> {
    renameat2(AT_FDCWD, from, AT_FDCWD, to, RenameFlags::RENAME_NOREPLACE)
}

/// `None` when the lock is gone. A stamp in the future is fresh: proper-lockfile's probe writes such.
fn staleness(lock: &Path) -> Result<Option<bool>, LockError> {
    let meta = match fs::symlink_metadata(lock) {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(LockError::io(lock, source)),
    };
    if !meta.is_dir() {
        return Err(LockError::io(lock, io::ErrorKind::NotADirectory.into()));
    }
    let stamp = meta.modified().map_err(|source| LockError::io(lock, source))?;
    Ok(Some(SystemTime::now().duration_since(stamp).is_ok_and(|age| age > STALE)))
}

/// The directory itself does not say who made it; its age is all there is.
fn describe(lock: &Path) -> Option<String> {
    let stamp = fs::symlink_metadata(lock).and_then(|meta| meta.modified()).ok()?;
    let age = SystemTime::now().duration_since(stamp).unwrap_or_default();
    Some(format!("another program (its lock was stamped {} ms ago)", age.as_millis()))
}

fn open_dir(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_DIRECTORY | libc::O_CLOEXEC;
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}
