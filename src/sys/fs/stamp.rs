//! Stamps of the files in one directory, for caches of their contents.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::fcntl::AtFlags;
use nix::sys::stat::fstatat;

/// Metadata of a file that changes with its content. The kernel sets the time of the last status
/// change itself, so a program that restores the modification time still leaves another stamp. Two
/// changes within the resolution of the clock may leave the same one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    /// Inode number.
    pub ino: u64,
    /// Length in bytes.
    pub len: u64,
    /// Modification time in nanoseconds since the Unix epoch, at most that of the year 2554.
    pub mtime: u64,
    /// Time of the last status change, likewise.
    pub ctime: u64,
}

/// An open directory. Files are found by name alone, which is faster than by path.
#[derive(Debug)]
pub struct StampDir(File);

impl StampDir {
    /// Returns `None` if `path` is not a readable directory or is a symbolic link.
    pub fn open(path: &Path) -> Option<StampDir> {
        let flags = libc::O_NOFOLLOW | libc::O_DIRECTORY | libc::O_CLOEXEC;
        let dir = OpenOptions::new().read(true).custom_flags(flags).open(path);
        Some(StampDir(dir.ok()?))
    }

    /// Returns the stamp of the entry itself, not of a symbolic link's target; `None` if it cannot
    /// be read.
    pub fn stamp(&self, name: &str) -> Option<FileStamp> {
        let stat = fstatat(&self.0, name, AtFlags::AT_SYMLINK_NOFOLLOW).ok()?;
        // A time before the epoch counts as the last one, which is never in the past.
        let nanos = |seconds: i64, nanos: i64| {
            let seconds = u64::try_from(seconds).unwrap_or(u64::MAX);
            seconds.saturating_mul(1_000_000_000).saturating_add(nanos.unsigned_abs())
        };
        Some(FileStamp {
            ino: stat.st_ino,
            len: stat.st_size.unsigned_abs(),
            mtime: nanos(stat.st_mtime, stat.st_mtime_nsec),
            ctime: nanos(stat.st_ctime, stat.st_ctime_nsec),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn stamp_differs_after_a_change_that_restores_the_modification_time() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("file");
        fs::write(&path, "one").expect("writable");
        let stamps = StampDir::open(dir.path()).expect("a directory");
        let before = stamps.stamp("file").expect("a file");
        let modified = fs::metadata(&path).and_then(|meta| meta.modified()).expect("readable");
        let mut after = before;
        // The clock of the file system advances in ticks of a few milliseconds.
        while after == before {
            fs::write(&path, "two").expect("writable");
            File::options()
                .write(true)
                .open(&path)
                .and_then(|f| f.set_modified(modified))
                .expect("own file");
            after = stamps.stamp("file").expect("a file");
        }
        assert_eq!((after.mtime, after.len, after.ino), (before.mtime, before.len, before.ino));
        assert!(after.ctime > before.ctime);
        assert_eq!(stamps.stamp("none"), None);
        assert!(StampDir::open(&path).is_none());
    }
}
