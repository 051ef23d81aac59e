//! The lock directory of proper-lockfile 4.1.2 beside a file, behind a gate of our own.
//!
//! Order: gate, then directory; released in reverse. At most one phalanx process at a time is
//! behind the gate, so only locks of other programs are polled for. A directory that a killed
//! phalanx process has left is taken over at once, if it has the [`GateMark`] of the gate.

use std::cell::Cell;
use std::ffi::OsString;
use std::fs::{self, File, FileTimes, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::super::clock::Deadline;
use super::super::failpoint;
use super::backoff::Backoff;
use super::error::LockError;
use super::gate::Gate;
use super::mark::GateMark;
use super::observer::{Holder, WaitReport};

/// Age of the stamp from which the holder counts as dead: proper-lockfile's default.
pub(super) const STALE: Duration = Duration::from_secs(10);
/// Age of the stamp from which its holder renews it.
const REFRESH: Duration = Duration::from_secs(5);
/// Delay of a renewal on a busy machine.
const RENEWAL_DELAY: Duration = Duration::from_secs(1);

/// The gate of a target and its lock directory `FILE.lock`, released on drop.
#[derive(Debug)]
pub struct DirLock {
    claim: ClaimedDir,
    // Fields are dropped in order: the directory is removed before the gate opens.
    _gate: Gate,
}

impl DirLock {
    /// Locks `target`, waiting up to `deadline` in total. The target need not exist for us, but
    /// proper-lockfile requires it. `gate` is the flock file that all phalanx processes use for
    /// this target; its name must not end in `.lock`.
    ///
    /// # Errors
    /// [`LockError::Timeout`] if another process holds the lock up to the deadline;
    /// [`LockError::Io`] if the gate or the directory cannot be made.
    pub fn acquire(target: &Path, gate: &Path, deadline: Duration) -> Result<DirLock, LockError> {
        let deadline = Deadline::after(deadline);
        let gate = Gate::open(gate, deadline.remaining())?;
        Ok(DirLock { claim: ClaimedDir::acquire(target, &gate, deadline)?, _gate: gate })
    }

    /// Like [`DirLock::acquire`], without waiting; `None` if another process holds the lock.
    pub fn try_acquire(target: &Path, gate: &Path) -> Result<Option<DirLock>, LockError> {
        let Some(gate) = Gate::try_open(gate)? else { return Ok(None) };
        match ClaimedDir::acquire(target, &gate, Deadline::after(Duration::ZERO)) {
            Ok(claim) => Ok(Some(DirLock { claim, _gate: gate })),
            Err(LockError::Timeout { .. }) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Returns true if the lock directory is the one that we made and no other program has touched
    /// it. Renews its stamp if it is older than 5 s; no thread does that. To be called immediately
    /// before the change under the lock is published.
    pub fn still_ours(&self) -> bool {
        self.claim.still_ours()
    }

    /// Lets a test be a holder that has not renewed its stamp for a while.
    #[cfg(test)]
    pub(super) fn pretend_stamped(&self, time: SystemTime) {
        self.claim.renew(time);
    }
}

/// The lock directory alone, for a process that holds the gate already.
#[derive(Debug)]
pub struct PeerLock<'g> {
    claim: ClaimedDir,
    _gate: &'g Gate,
}

impl PeerLock<'_> {
    /// Locks `target` against programs that do not use the gate, waiting up to `deadline`. `gate`
    /// is the one of [`DirLock::acquire`].
    ///
    /// # Errors
    /// As [`DirLock::acquire`].
    pub fn acquire<'g>(
        gate: &'g Gate,
        target: &Path,
        deadline: Duration,
    ) -> Result<PeerLock<'g>, LockError> {
        let deadline = Deadline::after(deadline);
        Ok(PeerLock { claim: ClaimedDir::acquire(target, gate, deadline)?, _gate: gate })
    }

    /// See [`DirLock::still_ours`].
    pub fn still_ours(&self) -> bool {
        self.claim.still_ours()
    }
}

/// A lock directory that this process made or took over; removed on drop. The open descriptor pins
/// its inode, so that no other directory can have the same number while the two are compared.
#[derive(Debug)]
struct ClaimedDir {
    path: PathBuf,
    dir: File,
    /// The modification time that we gave it last.
    stamp: Cell<SystemTime>,
}

impl ClaimedDir {
    /// Makes the directory, polling with growing pauses while another program holds it. `gate` is
    /// held by this process.
    fn acquire(target: &Path, gate: &Gate, deadline: Deadline) -> Result<ClaimedDir, LockError> {
        let path = lock_path(target)?;
        let mark = GateMark::of(gate);
        let mut backoff = Backoff::new(Duration::from_millis(1), Duration::from_millis(20));
        let mut report = WaitReport::default();
        let mut is_last_try = false;
        loop {
            if let Some(claim) = ClaimedDir::make(&path, mark.as_ref())? {
                return Ok(claim);
            }
            if let Some(claim) = mark.as_ref().and_then(|mark| ClaimedDir::adopt(&path, mark)) {
                return Ok(claim);
            }
            let is_free = remove_if_stale(&path)?;
            // A lock that was removed at the deadline is worth one more try, not an endless race.
            if deadline.expired() && (!is_free || is_last_try) {
                return Err(LockError::timeout(&path, &deadline, describe(&path)));
            }
            is_last_try = deadline.expired();
            if !is_free {
                report.update(&path, &deadline, || holder(&path, &deadline));
                backoff.pause(&deadline);
            }
        }
    }

    /// Makes the directory, with the mark if the file system permits that. Returns none if the path
    /// is taken.
    fn make(path: &Path, mark: Option<&GateMark>) -> Result<Option<ClaimedDir>, LockError> {
        if let Some(made) = mark.and_then(|mark| ClaimedDir::make_marked(path, mark).ok()) {
            return Ok(made);
        }
        match fs::create_dir(path) {
            Ok(()) => ClaimedDir::of_made(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
            Err(source) => Err(LockError::io(path, source)),
        }
    }

    /// Makes and marks the directory beside its path and renames it, so that it has the mark from
    /// the moment at which it can be seen. Returns none if the path is taken.
    ///
    /// # Errors
    /// If the file system has no extended attributes, or no rename that replaces nothing, as NFS.
    fn make_marked(path: &Path, mark: &GateMark) -> io::Result<Option<ClaimedDir>> {
        if lock_metadata(path)?.is_some() {
            return Ok(None);
        }
        let spare = mark.spare_path(path);
        match fs::create_dir(&spare) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => failpoint::hit("lock.made"),
        }
        let dir = open_dir(&spare)?;
        let placed = mark.set(&dir).and_then(|()| {
            failpoint::hit("lock.marked");
            // A directory that a killed process has left has an old stamp.
            dir.set_modified(SystemTime::now())?;
            Ok(renameat_with(CWD, &spare, CWD, path, RenameFlags::NOREPLACE)?)
        });
        match placed {
            Ok(()) => {
                failpoint::hit("lock.placed");
                ClaimedDir::of_open(path, dir).map(Some)
            }
            Err(error) => {
                let _ = fs::remove_dir(&spare);
                let is_taken = error.kind() == io::ErrorKind::AlreadyExists;
                if is_taken { Ok(None) } else { Err(error) }
            }
        }
    }

    /// Takes over the directory of a killed process, which has the mark of the gate that this
    /// process holds. The directory is stamped through its descriptor and never removed, so that a
    /// program which has replaced it meanwhile keeps its own.
    fn adopt(path: &Path, mark: &GateMark) -> Option<ClaimedDir> {
        let dir = open_dir(path).ok().filter(|dir| mark.is_on(dir))?;
        let claim = ClaimedDir::of_open(path, dir).ok()?;
        claim.renew(SystemTime::now());
        claim.is_ours().then_some(claim)
    }

    /// Opens the directory that was just made. None if another program has removed it as stale.
    fn of_made(path: &Path) -> Result<Option<ClaimedDir>, LockError> {
        match open_dir(path).and_then(|dir| ClaimedDir::of_open(path, dir)) {
            Ok(claim) => Ok(Some(claim)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => {
                let _ = fs::remove_dir(path);
                Err(LockError::io(path, source))
            }
        }
    }

    fn of_open(path: &Path, dir: File) -> io::Result<ClaimedDir> {
        let stamp = Cell::new(dir.metadata()?.modified()?);
        Ok(ClaimedDir { path: path.to_owned(), dir, stamp })
    }

    fn still_ours(&self) -> bool {
        // The wall clock: other programs compare the stamp with it, and it goes on while a laptop
        // sleeps.
        let now = SystemTime::now();
        let is_due = now.duration_since(self.stamp.get()).is_ok_and(|age| age > REFRESH);
        // Never touches a lock that is not ours: its owner would find it compromised.
        if is_due && self.is_ours() {
            self.renew(now);
        }
        self.is_ours()
    }

    /// Returns true if the directory at the path is the one that is open, with the stamp that we
    /// gave it.
    fn is_ours(&self) -> bool {
        let (Ok(there), Ok(made)) = (fs::symlink_metadata(&self.path), self.dir.metadata()) else {
            return false;
        };
        (there.dev(), there.ino()) == (made.dev(), made.ino())
            && made.modified().is_ok_and(|stamp| stamp == self.stamp.get())
    }

    fn renew(&self, time: SystemTime) {
        let set = self.dir.set_times(FileTimes::new().set_modified(time));
        // Read back: file systems keep fewer digits than were written.
        if let Ok(stamp) = set.and_then(|()| self.dir.metadata()?.modified()) {
            self.stamp.set(stamp);
        }
    }
}

impl Drop for ClaimedDir {
    fn drop(&mut self) {
        if self.is_ours() {
            let _ = fs::remove_dir(&self.path);
        }
    }
}

fn open_dir(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_DIRECTORY | libc::O_CLOEXEC;
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Removes a lock whose stamp is stale, as proper-lockfile does. Returns true if the path may be
/// free.
fn remove_if_stale(lock: &Path) -> Result<bool, LockError> {
    let Some(seen) = lock_metadata(lock).map_err(|source| LockError::io(lock, source))? else {
        return Ok(true);
    };
    if !seen.is_dir() {
        return Err(LockError::io(lock, io::ErrorKind::NotADirectory.into()));
    }
    // A stamp in the future is fresh: proper-lockfile's probe writes such.
    if age(&seen).is_none_or(|age| age <= STALE) {
        return Ok(false);
    }
    match fs::remove_dir(lock) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(source) => Err(LockError::io(lock, source)),
    }
}

fn lock_metadata(lock: &Path) -> io::Result<Option<Metadata>> {
    match fs::symlink_metadata(lock) {
        Ok(seen) => Ok(Some(seen)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Time since the stamp; none if it lies in the future.
fn age(seen: &Metadata) -> Option<Duration> {
    SystemTime::now().duration_since(seen.modified().ok()?).ok()
}

/// The holder of the lock directory, and the longest time to wait for it. A living program renews
/// its stamp every 5 s.
fn holder(lock: &Path, deadline: &Deadline) -> (Holder, Duration) {
    let age = lock_metadata(lock).ok().flatten().and_then(|seen| age(&seen));
    if age.is_some_and(|age| age > REFRESH + RENEWAL_DELAY) {
        (Holder::Gone, STALE)
    } else {
        (Holder::OtherProgram, deadline.length())
    }
}

/// A directory without our mark does not name its maker; its age is all there is.
fn describe(lock: &Path) -> Option<String> {
    let age = age(&lock_metadata(lock).ok()??).unwrap_or_default();
    Some(format!("another program (lock refreshed {} ms ago)", age.as_millis()))
}

/// `realpath(target).lock`, the key that Node uses; for a missing target, its directory's real
/// path.
fn lock_path(target: &Path) -> Result<PathBuf, LockError> {
    let fail = |source| LockError::io(target, source);
    let real = match fs::canonicalize(target) {
        Ok(real) => real,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let name =
                target.file_name().ok_or_else(|| fail(io::ErrorKind::InvalidInput.into()))?;
            let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty());
            fs::canonicalize(parent.unwrap_or(Path::new("."))).map_err(fail)?.join(name)
        }
        Err(source) => return Err(fail(source)),
    };
    let mut path = OsString::from(real);
    path.push(".lock");
    Ok(PathBuf::from(path))
}
