//! The few calls that the lock directory's protocol makes, so that it runs on the real file system and, in the model
//! of the tests, on one in memory. Refuses to know what the calls are for.

use std::fs::{self, DirBuilder, File, FileTimes, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::SystemTime;

use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};

/// What is there, at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) is_dir: bool,
    /// Device and inode: the same for the same thing as long as somebody keeps it open.
    pub(super) id: (u64, u64),
    pub(super) stamp: SystemTime,
    /// Made by [`Disk::make`], not by another program.
    pub(super) is_marked: bool,
}

/// The mark: the owner may not write into it. Other programs make their locks with what the umask leaves of 0777, and
/// no umask in use takes that right from the owner. Nobody needs it: the directory stays empty.
const MARKED: u32 = 0o500;
const OWNER_WRITES: u32 = 0o200;

/// A file system with a wall clock.
pub(super) trait Disk: Clone {
    /// An open directory; pins its identity.
    type Handle;

    fn now(&self) -> SystemTime;
    /// mkdir(2), with a mark that no other program's lock has: fails where anything is.
    fn make(&self, path: &Path) -> io::Result<()>;
    /// Opens a directory, never through a symbolic link.
    fn open(&self, path: &Path) -> io::Result<Self::Handle>;
    /// lstat(2).
    fn look(&self, path: &Path) -> io::Result<Seen>;
    /// fstat(2).
    fn look_at(&self, dir: &Self::Handle) -> io::Result<Seen>;
    fn stamp(&self, dir: &Self::Handle, time: SystemTime) -> io::Result<()>;
    /// rename(2).
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Fails where anything is at `to`: a plain rename would silently replace an empty directory, which is just what
    /// a lock is.
    fn rename_to_free(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// rmdir(2).
    fn remove(&self, path: &Path) -> io::Result<()>;
}

/// The real one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Real;

impl Disk for Real {
    type Handle = File;

    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    fn make(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().mode(MARKED).create(path)
    }

    fn open(&self, path: &Path) -> io::Result<File> {
        let flags = libc::O_NOFOLLOW | libc::O_DIRECTORY | libc::O_CLOEXEC;
        OpenOptions::new().read(true).custom_flags(flags).open(path)
    }

    fn look(&self, path: &Path) -> io::Result<Seen> {
        seen(&fs::symlink_metadata(path)?)
    }

    fn look_at(&self, dir: &File) -> io::Result<Seen> {
        seen(&dir.metadata()?)
    }

    fn stamp(&self, dir: &File, time: SystemTime) -> io::Result<()> {
        dir.set_times(FileTimes::new().set_modified(time))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn rename_to_free(&self, from: &Path, to: &Path) -> io::Result<()> {
        Ok(renameat2(AT_FDCWD, from, AT_FDCWD, to, RenameFlags::RENAME_NOREPLACE)?)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }
}

fn seen(meta: &Metadata) -> io::Result<Seen> {
    let is_marked = meta.mode() & OWNER_WRITES == 0;
    Ok(Seen {
        is_dir: meta.is_dir(),
        id: (meta.dev(), meta.ino()),
        stamp: meta.modified()?,
        is_marked,
    })
}
