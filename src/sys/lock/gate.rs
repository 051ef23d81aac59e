//! A flock on a file that serves no other purpose. The kernel releases it when its holder dies.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use fs4::{FileExt, TryLockError};

use super::super::clock::Deadline;
use super::super::fs::{FsError, open_regular};
use super::super::proc::Process;
use super::super::{native, portable};
use super::backoff::Backoff;
use super::error::LockError;
use super::observer::{Holder, WaitReport};

/// Wait after which a waiter claims the next turn.
const TURN_AFTER: Duration = Duration::from_secs(1);
/// Maximum time for which newcomers hold back for the waiter that has claimed the next turn.
const TURN: Duration = Duration::from_secs(5);

/// An exclusive lock, released on drop. The file (mode 0600) is created if missing and never
/// deleted: after a deletion, a second process could acquire the lock on a new file of the same
/// name.
#[derive(Debug)]
pub struct Gate {
    file: File,
}

impl Gate {
    /// Acquires the lock, waiting up to `deadline`. The directory of `path` must exist. The name
    /// must not end in `.lock`, because a regular file of that name breaks proper-lockfile for
    /// good.
    ///
    /// Waiters that retry immediately can starve waiters in back-off. A waiter that has waited for
    /// [`TURN_AFTER`] therefore locks a second file, and newcomers hold back while it is locked.
    /// This only serves fairness: they hold back no longer than [`TURN`], in case the process that
    /// locks it is stopped.
    ///
    /// # Errors
    /// [`LockError::Timeout`] if the lock is held up to the deadline; [`LockError::Io`] if a file
    /// cannot be opened or locked.
    pub fn open(path: &Path, deadline: Duration) -> Result<Gate, LockError> {
        let deadline = Deadline::after(deadline);
        let file = open_file(path)?;
        let next = path.with_added_extension("next");
        if next.exists() {
            let turn = open_file(&next)?;
            let mut crowd = Backoff::new(Duration::from_millis(1), Duration::from_millis(4));
            let limit = Deadline::after(TURN.min(deadline.remaining()));
            while !try_lock(&turn, &next)? && !limit.expired() {
                crowd.pause(&limit);
            }
        }
        let mut backoff = Backoff::new(Duration::from_micros(200), Duration::from_millis(5));
        let (mut turn, mut report) = (None, WaitReport::default());
        loop {
            if try_lock(&file, path)? {
                return Ok(Gate { file });
            }
            if deadline.expired() {
                return Err(LockError::timeout(path, &deadline, holder_of(&file)));
            }
            if turn.is_none() && deadline.elapsed() >= TURN_AFTER {
                let wanted = open_file(&next)?;
                turn = try_lock(&wanted, &next)?.then_some(wanted);
            }
            report
                .update(path, &deadline, || (Holder::Process(holder_of(&file)), deadline.length()));
            backoff.pause(&deadline);
        }
    }

    /// Returns device and inode of the gate's file.
    pub(super) fn file_id(&self) -> io::Result<(u64, u64)> {
        self.file.metadata().map(|found| (found.dev(), found.ino()))
    }

    /// Acquires the lock if it is free, as for a lease. Returns `None` if another process, or
    /// another handle of this process, holds it.
    ///
    /// # Errors
    /// [`LockError::Io`] if the file cannot be opened or locked.
    pub fn try_open(path: &Path) -> Result<Option<Gate>, LockError> {
        let file = open_file(path)?;
        Ok(try_lock(&file, path)?.then_some(Gate { file }))
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        // Unlocked explicitly: a child between fork and exec has a copy of the descriptor, and
        // would keep the lock after close(2). Fails only for an invalid descriptor.
        let _ = FileExt::unlock(&self.file);
    }
}

/// Calls the trait's method by its full name, because std's inherent `File::try_lock` would
/// silently take precedence over that of fs4.
fn try_lock(file: &File, path: &Path) -> Result<bool, LockError> {
    match FileExt::try_lock(file) {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(source)) => Err(LockError::io(path, source)),
    }
}

fn open_file(path: &Path) -> Result<File, LockError> {
    let fail = |source| LockError::io(path, source);
    if path.as_os_str().as_encoded_bytes().ends_with(b".lock") {
        return Err(fail(io::Error::new(
            io::ErrorKind::InvalidInput,
            "a gate must not be named *.lock",
        )));
    }
    // Opened for writing, because NFS turns a flock into a record lock, which requires it.
    let mut options = OpenOptions::new();
    let opened =
        open_regular("open", path, options.read(true).write(true).create(true).mode(0o600));
    let file = match opened {
        // The holder of a gate can be seen on a read-only file system, too.
        Err(FsError::Io { source, .. }) if source.kind() == io::ErrorKind::ReadOnlyFilesystem => {
            open_regular("open", path, OpenOptions::new().read(true))
        }
        opened => opened,
    };
    let (file, meta) = file.map_err(|error| fail(io::Error::other(error)))?;
    let mode = meta.permissions().mode() & 0o777;
    if mode != 0o600 {
        file.set_permissions(Permissions::from_mode(0o600)).map_err(fail)?;
    }
    Ok(file)
}

/// Returns the holder of the flock as `process 4711 (phalanx)`; `None` where the system does not
/// show it. Called only once a wait has lasted long.
fn holder_of(file: &File) -> Option<String> {
    let pid = pid_of_holder(file.metadata().ok()?.ino())?;
    let name = native::program_name(pid).unwrap_or_default();
    Some(format!("process {pid} ({name})"))
}

/// Returns the process that holds the gate at `path`; `None` if none does, and where the system
/// does not show it.
pub fn gate_holder(path: &Path) -> Option<Process> {
    Process::of(pid_of_holder(fs::symlink_metadata(path).ok()?.ino())?)
}

fn pid_of_holder(inode: u64) -> Option<i32> {
    flock_lists()
        .find_map(|flocks| flocks.iter().find(|(_, held)| *held == inode).map(|(pid, _)| *pid))
}

/// Returns true if the system shows that process `pid` holds a gate in the directory, other than
/// the file `besides`.
pub fn holds_gate_in(dir: &Path, besides: &Path, pid: i32) -> bool {
    let files =
        fs::read_dir(dir).into_iter().flatten().flatten().filter(|file| file.path() != besides);
    let inodes: Vec<u64> = files.filter_map(|file| Some(file.metadata().ok()?.ino())).collect();
    let is_held = |(holder, inode): &(i32, u64)| *holder == pid && inodes.contains(inode);
    flock_lists().any(|flocks| flocks.iter().any(is_held))
}

/// Lists the flocks (pid and inode) up to three times: Linux writes its list page by page and can
/// skip a lock while others come and go.
fn flock_lists() -> impl Iterator<Item = Vec<(i32, u64)>> {
    let reads = if portable::is_forced() { 0 } else { 3 };
    (0..reads).map(|_| native::flocks())
}
