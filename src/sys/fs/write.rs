//! Writing files so that readers see all or nothing and strangers see nothing (0600 under any umask).
//! Refuses to know why something is written.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};

use super::super::{failpoint, rand};
use super::{FsError, Result, exists, open_regular, parent_of};

pub(super) const PRIVATE: u32 = 0o600;
/// A temporary file lives for milliseconds; one of this age has lost its writer.
const ABANDONED: Duration = Duration::from_secs(60);

/// How far a replaced file is written down before the call returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sync {
    /// The bytes and the directory entry: survives a power cut right after the call.
    Entry,
    /// The bytes only. After a power cut the name may still lead to the old file, whole; a process that dies takes
    /// nothing with it.
    Bytes,
    /// Nothing. After a power cut the file may be the old one, empty or missing: for what the next boot has no use for.
    Nothing,
}

/// Replaces the file in one step: a unique temporary file in the same directory, fsync, rename. After an error the
/// old file is as it was. A symbolic link at `path` is replaced, not followed. For one writer at a time: what an earlier
/// one left when it was killed is swept.
pub(crate) fn write_atomic(path: &Path, bytes: &[u8]) -> Result<()> {
    sweep_temporary(path);
    replace_if(path, bytes, Sync::Entry, || true).map(|_published| ())
}

/// Like [`write_atomic`], but calls `check` immediately before the rename. Returns false, and leaves the
/// file as it is, if `check` does.
pub(crate) fn replace_if(
    path: &Path,
    bytes: &[u8],
    sync: Sync,
    check: impl FnOnce() -> bool,
) -> Result<bool> {
    let mut temp = Temp::create(path)?;
    temp.fill(bytes, sync).map_err(|source| FsError::io("write", &temp.path, source))?;
    failpoint::hit("rename.before");
    if !check() {
        return Ok(false);
    }
    temp.publish(path)?;
    failpoint::hit("rename.after");
    if sync == Sync::Entry {
        sync_dir_of(path);
    }
    Ok(true)
}

/// Creates the file with these bytes, complete from the first moment on; false (and untouched) when something is
/// already there.
pub(crate) fn create_new(path: &Path, bytes: &[u8]) -> Result<bool> {
    create_with(path, bytes, Sync::Entry)
}

/// Like [`create_new`], written down only as far as `sync` says.
pub(crate) fn create_with(path: &Path, bytes: &[u8], sync: Sync) -> Result<bool> {
    if exists(path) {
        return Ok(false);
    }
    let mut temp = Temp::create(path)?;
    temp.fill(bytes, sync).map_err(|source| FsError::io("write", &temp.path, source))?;
    failpoint::hit("rename.before");
    if !temp.publish_new(path)? {
        return Ok(false);
    }
    failpoint::hit("rename.after");
    if sync == Sync::Entry {
        sync_dir_of(path);
    }
    Ok(true)
}

/// Removes what writers of this file left when they were killed, and what killed writers of other files left here more
/// than a minute ago. Only for whoever holds the lock that all writers of the file take: another's temporary file may be
/// one that is being written.
pub(crate) fn sweep_temporary(path: &Path) {
    let Some(name) = path.file_name() else { return };
    let prefix = [b".", name.as_encoded_bytes(), b"."].concat();
    // A file that cannot be removed now is in nobody's way, and is tried again at the next write.
    for entry in fs::read_dir(parent_of(path)).into_iter().flatten().flatten() {
        let found = entry.file_name();
        let found = found.as_encoded_bytes();
        let temporary = found.starts_with(b".") && found.ends_with(b".tmp");
        if temporary && (found.starts_with(&prefix) || is_older(&entry, ABANDONED)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn is_older(entry: &fs::DirEntry, than: Duration) -> bool {
    let written = entry.metadata().and_then(|meta| meta.modified());
    written
        .is_ok_and(|written| SystemTime::now().duration_since(written).is_ok_and(|age| age > than))
}

/// Like [`append_lines`], for one.
pub(crate) fn append_line(path: &Path, line: &[u8]) -> Result<()> {
    append_lines(path, &[line.to_vec()])
}

/// Appends each line and a newline, all in one write, so that lines of several processes never mix. Creates the file
/// (0600), tightens a looser one. Refuses a line with a newline in it, and symbolic links.
pub(crate) fn append_lines(path: &Path, lines: &[Vec<u8>]) -> Result<()> {
    const OP: &str = "append to";
    if lines.iter().any(|line| line.contains(&b'\n')) {
        return Err(FsError::refused(OP, path, "the line contains a newline"));
    }
    let mut file = open_append(path)?;
    let mut record = Vec::with_capacity(lines.iter().map(|line| line.len() + 1).sum());
    for line in lines {
        record.extend_from_slice(line);
        record.push(b'\n');
    }
    // Not write_all: its second write would come after somebody else's line.
    let written = file.write(&record).map_err(|source| FsError::io(OP, path, source))?;
    if written < record.len() {
        return Err(FsError::io(OP, path, io::Error::from(io::ErrorKind::WriteZero)));
    }
    Ok(())
}

/// Like [`append_line`], and the line is on the disk when the call returns. For one writer at a time: a line that was
/// cut short by a crash is ended first, so that it cannot spoil this one.
pub(crate) fn append_durable(path: &Path, lines: &[Vec<u8>]) -> Result<()> {
    const OP: &str = "append to";
    let fresh = !exists(path);
    let mut record = Vec::new();
    if super::read_tail(path, 1)?.first().is_some_and(|last| *last != b'\n') {
        record.push(b'\n');
    }
    for line in lines {
        record.extend_from_slice(line);
        record.push(b'\n');
    }
    let mut file = open_append(path)?;
    let written = file.write_all(&record).and_then(|()| file.sync_data());
    written.map_err(|source| FsError::io(OP, path, source))?;
    if fresh {
        sync_dir_of(path);
    }
    Ok(())
}

/// Brings files that were written without waiting for the disk there, and their names: all in one directory.
pub(crate) fn persist(paths: &[PathBuf]) -> Result<()> {
    for path in paths {
        let synced = File::open(path).and_then(|file| file.sync_data());
        synced.map_err(|source| FsError::io("write down", path, source))?;
    }
    if let Some(first) = paths.first() {
        sync_dir_of(first);
    }
    Ok(())
}

/// Opens (creating it 0600, tightening a looser one of ours) a regular file for appending.
pub(in crate::sys) fn open_append(path: &Path) -> Result<File> {
    const OP: &str = "append to";
    let mut options = OpenOptions::new();
    let file = open_regular(OP, path, options.append(true).create(true).mode(PRIVATE))?;
    let meta = file.metadata().map_err(|source| FsError::io(OP, path, source))?;
    if meta.permissions().mode() & 0o777 != PRIVATE {
        make_private(&file).map_err(|source| FsError::io("make private", path, source))?;
    }
    Ok(file)
}

/// O_EXCL does not follow symbolic links either.
fn create_private(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(path)?;
    // An umask like 0777 takes bits from the mode given to open; fchmod is above any umask.
    make_private(&file)?;
    Ok(file)
}

pub(super) fn make_private(file: &File) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(PRIVATE))
}

/// Makes a new or renamed entry survive a power cut. Failure is not reported: the entry is already visible to all,
/// and an error would make the caller write it a second time.
pub(crate) fn sync_dir_of(path: &Path) {
    let _ = File::open(parent_of(path)).and_then(|dir| dir.sync_all());
}

/// Swaps two paths in one step, whatever they are. File systems without such a rename do it in two:
/// `path` is missing in between.
pub(crate) fn exchange(path: &Path, other: &Path) -> Result<()> {
    let failed = |source| FsError::io("exchange", path, source);
    match renameat2(AT_FDCWD, path, AT_FDCWD, other, RenameFlags::RENAME_EXCHANGE) {
        Ok(()) => Ok(()),
        Err(Errno::EINVAL | Errno::ENOSYS | Errno::EOPNOTSUPP) => {
            let between = other.with_added_extension("tmp");
            fs::rename(path, &between).map_err(failed)?;
            fs::rename(other, path).map_err(failed)?;
            fs::rename(&between, other).map_err(failed)
        }
        Err(errno) => Err(failed(errno.into())),
    }
}

/// File systems without such a rename get a second name for the file; its first one goes with the [`Temp`].
fn rename_no_replace(from: &Path, to: &Path) -> io::Result<()> {
    match renameat2(AT_FDCWD, from, AT_FDCWD, to, RenameFlags::RENAME_NOREPLACE) {
        Ok(()) => Ok(()),
        Err(Errno::EINVAL | Errno::ENOSYS | Errno::EOPNOTSUPP) => {
            fs::hard_link(from, to)?;
            fs::remove_file(from)?;
            // A second name is nothing that watchers are told of; the closing of what was opened for writing is.
            OpenOptions::new().write(true).open(to).map(drop)
        }
        Err(errno) => Err(errno.into()),
    }
}

/// A temporary file that disappears unless it is published, also when a caller's check panics.
struct Temp {
    path: PathBuf,
    file: File,
    published: bool,
}

impl Temp {
    fn create(target: &Path) -> Result<Temp> {
        let Some(name) = target.file_name() else {
            return Err(FsError::refused("write", target, "it has no file name"));
        };
        let mut temp_name = std::ffi::OsString::from(".");
        temp_name.push(name);
        temp_name.push(format!(".{}.tmp", rand::uuid()));
        let path = target.with_file_name(temp_name);
        let file = create_private(&path).map_err(|source| FsError::io("create", &path, source))?;
        Ok(Temp { path, file, published: false })
    }

    fn fill(&mut self, bytes: &[u8], sync: Sync) -> io::Result<()> {
        self.file.write_all(bytes)?;
        failpoint::hit("temp.written");
        if sync != Sync::Nothing {
            // Not sync_all: of the metadata only the length matters, and that is written down with the bytes.
            self.file.sync_data()?;
            failpoint::hit("temp.synced");
        }
        Ok(())
    }

    fn publish(mut self, target: &Path) -> Result<()> {
        fs::rename(&self.path, target).map_err(|source| FsError::io("replace", target, source))?;
        self.published = true;
        Ok(())
    }

    /// False: something lies at `target` already.
    fn publish_new(mut self, target: &Path) -> Result<bool> {
        match rename_no_replace(&self.path, target) {
            Ok(()) => self.published = true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
            Err(source) => return Err(FsError::io("create", target, source)),
        }
        Ok(true)
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        if !self.published {
            let _ = fs::remove_file(&self.path);
        }
    }
}
