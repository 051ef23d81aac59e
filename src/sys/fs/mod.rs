//! Files: bounded reads, atomic private writes, directories. Reads and appends refuse a path whose
//! last component is a symbolic link.

mod about;
mod dir;
mod lines;
mod log;
mod write;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use thiserror::Error;

pub(crate) use about::{About, Kind, about, refuse_link};
pub(crate) use dir::{create_dir_exclusive, list, make_private, private_dir, remove_dir_all};
pub(crate) use lines::{FileId, LineFile};
pub(crate) use log::{Log, older, times_of};
pub(super) use write::open_append;
pub(crate) use write::{
    Sync, append_durable, append_line, append_lines, create_new, create_with, exchange, persist,
    replace_if, sweep_temporary, sync_dir_of, write_atomic,
};

/// A failed file operation. `op` is a verb phrase that precedes the path in the message, such as
/// "read" or "list".
#[derive(Debug, Error)]
pub(crate) enum FsError {
    /// A system call failed.
    #[error("cannot {op} {}", path.display())]
    Io {
        op: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The operation was not attempted, because the path or the data is not safe for it.
    #[error("refused to {op} {}: {reason}", path.display())]
    Refused { op: &'static str, path: PathBuf, reason: String },
    /// The file holds more bytes than the caller accepts.
    #[error("refused to read {}: larger than {limit} bytes", path.display())]
    TooLarge { path: PathBuf, limit: u64 },
}

impl FsError {
    pub(super) fn io(op: &'static str, path: &Path, source: io::Error) -> FsError {
        FsError::Io { op, path: path.to_owned(), source }
    }

    /// Returns the reason without the path, for messages that name the path themselves.
    pub(crate) fn reason(&self) -> String {
        match self {
            FsError::Io { source, .. } => source.to_string(),
            FsError::Refused { reason, .. } => reason.clone(),
            FsError::TooLarge { limit, .. } => format!("it is larger than {limit} bytes"),
        }
    }

    /// Returns true if this process lacks the permission.
    pub(crate) fn is_denied(&self) -> bool {
        matches!(self, FsError::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied)
    }

    fn refused(op: &'static str, path: &Path, reason: impl Into<String>) -> FsError {
        FsError::Refused { op, path: path.to_owned(), reason: reason.into() }
    }
}

type Result<T> = std::result::Result<T, FsError>;

/// Fingerprint of a file's contents that does not require reading them. An atomic replace changes
/// the inode, a write in place changes the time or the length. Two writes in place of the same
/// length within one tick of the clock are not distinguished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) dev: u64,
    pub(crate) ino: u64,
    pub(crate) len: u64,
    /// Modification time in nanoseconds since the Unix epoch.
    pub(crate) mtime: i128,
}

impl Identity {
    fn of(meta: &fs::Metadata) -> Identity {
        let mtime = i128::from(meta.mtime()) * 1_000_000_000 + i128::from(meta.mtime_nsec());
        Identity { dev: meta.dev(), ino: meta.ino(), len: meta.len(), mtime }
    }
}

/// Returns the identity of the file itself, not of a symbolic link's target; `None` if there is no
/// file.
pub(crate) fn identity(path: &Path) -> Result<Option<Identity>> {
    match fs::symlink_metadata(path) {
        Ok(meta) => Ok(Some(Identity::of(&meta))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(FsError::io("look at", path, source)),
    }
}

/// Returns the whole file; `None` if it does not exist.
///
/// # Errors
/// [`FsError::Refused`] if it is a symbolic link or not a regular file, [`FsError::TooLarge`] if it
/// exceeds `limit` bytes, [`FsError::Io`] if a system call fails.
pub(crate) fn read(path: &Path, limit: u64) -> Result<Option<Vec<u8>>> {
    Ok(read_identified(path, limit)?.map(|read| read.bytes))
}

/// The contents of a file and the identity of the file they were read from.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(crate) bytes: Vec<u8>,
    /// Taken before the first byte was read.
    pub(crate) identity: Identity,
}

/// Like [`read`], but returns the file's identity as well.
pub(crate) fn read_identified(path: &Path, limit: u64) -> Result<Option<Contents>> {
    let Some(mut file) = open_to_read(path)? else { return Ok(None) };
    let identity =
        Identity::of(&file.metadata().map_err(|source| FsError::io("read", path, source))?);
    // Checked before anything is allocated, so that an oversized file costs nothing.
    if identity.len > limit {
        return Err(FsError::TooLarge { path: path.to_owned(), limit });
    }
    // Spare capacity for callers that append to the contents.
    let mut bytes = Vec::with_capacity(usize::try_from(identity.len).unwrap_or(0) + 1024);
    // Reads one byte past the limit, to detect a file that grows during the read.
    let taken = (&mut file).take(limit.saturating_add(1)).read_to_end(&mut bytes);
    taken.map_err(|source| FsError::io("read", path, source))?;
    if bytes.len() as u64 > limit {
        return Err(FsError::TooLarge { path: path.to_owned(), limit });
    }
    Ok(Some(Contents { bytes, identity }))
}

/// Returns up to `max` bytes from `offset` on; empty at or beyond the end, or if the file is
/// missing (a log that has not been started).
pub(crate) fn read_range(path: &Path, offset: u64, max: u64) -> Result<Vec<u8>> {
    let Some(mut file) = open_to_read(path)? else { return Ok(Vec::new()) };
    let mut bytes = Vec::new();
    let read =
        file.seek(SeekFrom::Start(offset)).and_then(|_| file.take(max).read_to_end(&mut bytes));
    read.map_err(|source| FsError::io("read", path, source))?;
    Ok(bytes)
}

/// Returns the last `max_bytes` bytes: the whole file if it is shorter, nothing if it is missing.
pub(crate) fn read_tail(path: &Path, max_bytes: u64) -> Result<Vec<u8>> {
    let length = len(path)?.unwrap_or(0);
    read_range(path, length.saturating_sub(max_bytes), max_bytes)
}

/// Returns the file's length in bytes; `None` if there is no file. A symbolic link is not followed.
pub(crate) fn len(path: &Path) -> Result<Option<u64>> {
    match fs::symlink_metadata(path) {
        Ok(meta) => Ok(Some(meta.len())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(FsError::io("look at", path, source)),
    }
}

/// Returns true if anything exists at `path`, even a dangling symbolic link.
pub(crate) fn exists(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// Returns true if `path` leads to a directory, following symbolic links.
pub(crate) fn is_dir(path: &Path) -> bool {
    path.is_dir()
}

/// Returns the absolute path without symbolic links. The path must exist.
pub(crate) fn canonical(path: &Path) -> Result<PathBuf> {
    fs::canonicalize(path).map_err(|source| FsError::io("resolve", path, source))
}

/// Moves a file or directory within one file system, replacing a file at `to`.
pub(crate) fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).map_err(|source| FsError::io("rename", from, source))
}

/// Removes a file or a symbolic link; returns false if it did not exist.
pub(crate) fn remove_file(path: &Path) -> Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(FsError::io("remove", path, source)),
    }
}

fn open_to_read(path: &Path) -> Result<Option<File>> {
    match open_regular("read", path, OpenOptions::new().read(true)) {
        Ok(file) => Ok(Some(file)),
        Err(FsError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Opens `path` with `options` and verifies that it is a regular file and not a symbolic link.
pub(super) fn open_regular(
    op: &'static str,
    path: &Path,
    options: &mut OpenOptions,
) -> Result<File> {
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
    Ok(file)
}

/// Returns the directory that holds `path`; `.` for a bare name.
fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests;
