//! Bounded reads, versions of files, and opening of regular files.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use super::super::whole::read_whole;
use super::error::{FsError, Result};

/// Fingerprint of a file's contents that does not require reading them. An atomic replace changes
/// the inode, a write in place changes the time or the length. Two writes in place of the same
/// length within one tick of the clock are not distinguished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileVersion {
    /// Number of the device that holds the file.
    pub dev: u64,
    /// Inode number.
    pub ino: u64,
    /// Length in bytes.
    pub len: u64,
    /// Modification time in nanoseconds since the Unix epoch.
    pub mtime: i128,
}

impl FileVersion {
    fn of(meta: &fs::Metadata) -> FileVersion {
        let mtime = i128::from(meta.mtime()) * 1_000_000_000 + i128::from(meta.mtime_nsec());
        FileVersion { dev: meta.dev(), ino: meta.ino(), len: meta.len(), mtime }
    }
}

/// Returns the version of the file itself, not of a symbolic link's target; `None` if there is no
/// file.
pub fn version(path: &Path) -> Result<Option<FileVersion>> {
    match fs::symlink_metadata(path) {
        Ok(meta) => Ok(Some(FileVersion::of(&meta))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(FsError::io("look at", path, source)),
    }
}

/// Returns the whole file; `None` if it does not exist.
///
/// # Errors
/// [`FsError::Refused`] if it is a symbolic link or not a regular file, [`FsError::TooLarge`] if it
/// exceeds `limit` bytes, [`FsError::Io`] if a system call fails.
pub fn read(path: &Path, limit: u64) -> Result<Option<Vec<u8>>> {
    Ok(read_versioned(path, limit)?.map(|read| read.bytes))
}

/// The contents of a file and the version of the file they were read from.
#[derive(Debug)]
pub struct Contents {
    pub bytes: Vec<u8>,
    /// Taken before the first byte was read.
    pub version: FileVersion,
}

/// Like [`read`], but returns the file's version as well.
pub fn read_versioned(path: &Path, limit: u64) -> Result<Option<Contents>> {
    let Some((mut file, meta)) = open_to_read(path)? else { return Ok(None) };
    let version = FileVersion::of(&meta);
    // Checked before anything is allocated, so that an oversized file costs nothing.
    if version.len > limit {
        return Err(FsError::TooLarge { path: path.to_owned(), limit });
    }
    let in_memory = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    // Spare capacity for callers that append to the contents.
    let first = in_memory(version.len).saturating_add(1024);
    // A file without a length, such as one of /proc, ends where nothing is read.
    let at_least = if version.len == 0 { usize::MAX } else { in_memory(version.len) };
    let bytes = read_whole(&mut file, first, at_least, in_memory(limit))
        .map_err(|source| FsError::io("read", path, source))?;
    if bytes.len() as u64 > limit {
        return Err(FsError::TooLarge { path: path.to_owned(), limit });
    }
    Ok(Some(Contents { bytes, version }))
}

/// Returns up to `max` bytes from `offset` on; empty at or beyond the end, or if the file is
/// missing (a log that has not been started).
pub fn read_range(path: &Path, offset: u64, max: u64) -> Result<Vec<u8>> {
    let Some((mut file, _)) = open_to_read(path)? else { return Ok(Vec::new()) };
    let mut bytes = Vec::new();
    let read =
        file.seek(SeekFrom::Start(offset)).and_then(|_| file.take(max).read_to_end(&mut bytes));
    read.map_err(|source| FsError::io("read", path, source))?;
    Ok(bytes)
}

/// Returns the last `max_bytes` bytes: the whole file if it is shorter, nothing if it is missing.
pub fn read_tail(path: &Path, max_bytes: u64) -> Result<Vec<u8>> {
    let length = len(path)?.unwrap_or(0);
    read_range(path, length.saturating_sub(max_bytes), max_bytes)
}

/// Returns the file's length in bytes; `None` if there is no file. A symbolic link is not followed.
pub fn len(path: &Path) -> Result<Option<u64>> {
    match fs::symlink_metadata(path) {
        Ok(meta) => Ok(Some(meta.len())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(FsError::io("look at", path, source)),
    }
}

/// Returns true if anything exists at `path`, even a dangling symbolic link.
pub fn exists(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// Returns true if `path` leads to a directory, following symbolic links.
pub fn is_dir(path: &Path) -> bool {
    path.is_dir()
}

/// Returns the absolute path without symbolic links. The path must exist.
pub fn canonical(path: &Path) -> Result<PathBuf> {
    fs::canonicalize(path).map_err(|source| FsError::io("resolve", path, source))
}

/// Creates a symbolic link to `target`. Returns false, and changes nothing, if `path` exists.
pub fn link(target: &Path, path: &Path) -> Result<bool> {
    match symlink(target, path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(source) => Err(FsError::io("create link", path, source)),
    }
}

/// Returns the target of a symbolic link; `None` if `path` is none, or nothing exists there.
pub fn link_target(path: &Path) -> Result<Option<PathBuf>> {
    match fs::read_link(path) {
        Ok(target) => Ok(Some(target)),
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidInput) =>
        {
            Ok(None)
        }
        Err(source) => Err(FsError::io("look at", path, source)),
    }
}

/// Moves a file or directory within one file system, replacing a file at `to`.
pub fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).map_err(|source| FsError::io("rename", from, source))
}

/// Removes a file or a symbolic link; returns false if it did not exist.
pub fn remove_file(path: &Path) -> Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(FsError::io("remove", path, source)),
    }
}

pub(super) fn open_to_read(path: &Path) -> Result<Option<(File, fs::Metadata)>> {
    match open_regular("read", path, OpenOptions::new().read(true)) {
        Ok(opened) => Ok(Some(opened)),
        Err(FsError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Opens `path` with `options` and verifies that it is a regular file and not a symbolic link.
/// Returns the metadata that show it.
pub(crate) fn open_regular(
    op: &'static str,
    path: &Path,
    options: &mut OpenOptions,
) -> Result<(File, fs::Metadata)> {
    // O_NONBLOCK: opening a planted FIFO must fail the check below instead of blocking. The flag
    // has no effect on regular files.
    let opened =
        options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC).open(path);
    let file = opened.map_err(|source| match source.raw_os_error() {
        Some(libc::ELOOP) => FsError::refused(op, path, "it is a symbolic link"),
        // A FIFO without a reader, opened for writing.
        Some(libc::ENXIO) => FsError::refused(op, path, "it is not a regular file"),
        Some(libc::EISDIR) => FsError::refused(op, path, "it is a directory"),
        _ => FsError::io(op, path, source),
    })?;
    let meta = file.metadata().map_err(|source| FsError::io(op, path, source))?;
    if !meta.is_file() {
        return Err(FsError::refused(op, path, "it is not a regular file"));
    }
    Ok((file, meta))
}

/// Returns the directory that holds `path`; `.` for a bare name.
pub(super) fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
