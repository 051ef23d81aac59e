//! Writes files with mode 0600 under any umask. Readers of a replaced file see either the old or
//! the new contents, complete.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::super::{failpoint, native, parallel, portable, rand};
use super::error::{FsError, Result};
use super::file::{exists, open_regular, open_to_read, parent_of};

pub(super) const PRIVATE: u32 = 0o600;
/// Age from which a temporary file counts as abandoned. Normally one exists for milliseconds.
const ABANDONED: Duration = Duration::from_secs(60);
/// Number of entries that a writer reads to find abandoned files. A large board has one file for
/// each task, and each change of a task would read all of their names.
const MOST_SWEPT: usize = 1000;
/// Number of files that are synced at the same time. The file system commits simultaneous syncs
/// together: on ext4, 1,000 of them take 0.1 s on 16 threads, and 2 s one after the other.
const SYNCS: usize = 16;
/// Number of files from which the whole file system is synced instead. That also writes what other
/// programs have changed, and takes one flush of the disk instead of one for each file.
const MIN_BULK: usize = 256;

/// Durability of a written file when the call returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sync {
    /// The bytes and the directory entry are synced: the file survives a power cut right after the
    /// call.
    Entry,
    /// Only the bytes are synced. After a power cut the name may still lead to the complete old
    /// file. A crash of the process loses nothing.
    Bytes,
    /// Nothing is synced. After a power cut the file may be old, empty or missing, so this is for
    /// files that are useless after a reboot.
    Nothing,
}

/// Replaces the file in one step: writes a temporary file in the same directory, syncs it and
/// renames it. After an error the old file is unchanged. A symbolic link at `path` is replaced, not
/// followed. Only one process may write at a time, because temporary files of killed writers are
/// removed first.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<()> {
    sweep_temporary(path);
    replace_if(path, bytes, Sync::Entry, || true).map(|_published| ())
}

/// Like [`write_atomic`], but with the durability `sync` and without the removal of abandoned
/// files. Calls `check` immediately before the rename; if that returns false, returns false and
/// leaves the file unchanged.
pub fn replace_if(
    path: &Path,
    bytes: &[u8],
    sync: Sync,
    check: impl FnOnce() -> bool,
) -> Result<bool> {
    let temp = Temp::create(path, bytes, sync)?;
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

/// Replaces or creates a file that another program reads, such as its configuration: follows a
/// symbolic link, keeps the mode, and makes missing directories.
pub fn write_foreign(path: &Path, bytes: &[u8]) -> Result<()> {
    let dir = parent_of(path);
    fs::create_dir_all(dir).map_err(|source| FsError::io("create", dir, source))?;
    let path = if exists(path) { super::file::canonical(path)? } else { path.to_owned() };
    let mode = fs::metadata(&path).map_or(Permissions::from_mode(0o644), |meta| meta.permissions());
    let temp = Temp::create(&path, bytes, Sync::Entry)?;
    fs::set_permissions(&temp.path, mode).map_err(|source| FsError::io("write", &path, source))?;
    temp.publish(&path)?;
    sync_dir_of(&path);
    Ok(())
}

/// Creates the file with these bytes, complete as soon as it is visible. Returns false, and changes
/// nothing, if `path` exists.
pub fn create_new(path: &Path, bytes: &[u8]) -> Result<bool> {
    create_with(path, bytes, Sync::Entry)
}

/// Like [`create_new`], with the durability `sync`.
pub fn create_with(path: &Path, bytes: &[u8], sync: Sync) -> Result<bool> {
    if exists(path) {
        return Ok(false);
    }
    let temp = Temp::create(path, bytes, sync)?;
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

/// Copies a file to the new file `to`, with its modification time and without a sync. Returns false,
/// and creates nothing, if `from` does not exist.
pub fn copy_new(from: &Path, to: &Path) -> Result<bool> {
    let Some((mut source, meta)) = open_to_read(from)? else { return Ok(false) };
    let mut copy = create_private(to).map_err(|source| FsError::io("create", to, source))?;
    let time = meta.modified();
    let copied = io::copy(&mut source, &mut copy).and_then(|_| copy.set_modified(time?));
    copied.map_err(|source| FsError::io("write", to, source))?;
    Ok(true)
}

/// Creates files in one directory and syncs them with their entries, all at once. The files are
/// visible before they are complete, so nothing may read the directory yet.
pub fn create_all(files: &[(PathBuf, Vec<u8>)]) -> Result<()> {
    for (path, bytes) in files {
        let file = create_private(path).map_err(|source| FsError::io("create", path, source))?;
        fill(file, bytes, Sync::Nothing).map_err(|source| FsError::io("write", path, source))?;
    }
    let paths: Vec<PathBuf> = files.iter().map(|(path, _)| path.clone()).collect();
    persist(&paths)?;
    failpoint::hit("temp.synced");
    Ok(())
}

/// Moves a file to a path of the same file system. Returns false, and changes nothing, if that path
/// exists.
pub fn move_new(from: &Path, to: &Path) -> Result<bool> {
    match rename_no_replace(from, to) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(source) => Err(FsError::io("create", to, source)),
    }
}

/// Removes temporary files that killed writers of this file left behind, and those of other files
/// in the directory that are older than a minute, among the first [`MOST_SWEPT`] entries;
/// [`sweep_abandoned`] removes the rest. The caller must hold the lock that all writers of the file
/// acquire, because another writer's temporary file may be in use. Only [`create_new`] and its like
/// need no lock: a creator whose file is swept finds that the file exists.
pub fn sweep_temporary(path: &Path) {
    let Some(name) = path.file_name() else { return };
    let prefix = [b".", name.as_encoded_bytes(), b"."].concat();
    remove_temporary(parent_of(path), MOST_SWEPT, |found| found.starts_with(&prefix));
}

/// Removes the temporary files in a directory that are older than a minute. The next writer would
/// do so, but there may be none.
pub fn sweep_abandoned(dir: &Path) {
    remove_temporary(dir, usize::MAX, |_| false);
}

/// Removes the temporary files among `most` entries of a directory that are older than a minute, or
/// whose names `is_abandoned` returns true for.
fn remove_temporary(dir: &Path, most: usize, is_abandoned: impl Fn(&[u8]) -> bool) {
    // A file that cannot be removed does no harm; the next sweep tries again.
    for entry in fs::read_dir(dir).into_iter().flatten().flatten().take(most) {
        let name = entry.file_name();
        let name = name.as_encoded_bytes();
        let temporary = name.starts_with(b".") && name.ends_with(b".tmp");
        if temporary && (is_abandoned(name) || is_older(&entry, ABANDONED)) {
            // The directory that was to become a lock is one, and empty.
            let _ = fs::remove_file(entry.path()).or_else(|_| fs::remove_dir(entry.path()));
        }
    }
}

fn is_older(entry: &fs::DirEntry, than: Duration) -> bool {
    let written = entry.metadata().and_then(|meta| meta.modified());
    written
        .is_ok_and(|written| SystemTime::now().duration_since(written).is_ok_and(|age| age > than))
}

/// Like [`append_lines`], for one line.
pub fn append_line(path: &Path, line: &[u8]) -> Result<()> {
    append_lines(path, &[line.to_vec()])
}

/// Appends each line and a newline, all in one write, so that lines of several processes never
/// interleave. Creates the file with mode 0600, or restricts a looser mode.
///
/// # Errors
/// [`FsError::Refused`] if a line contains a newline, or if `path` is a symbolic link or not a
/// regular file; [`FsError::Io`] if the write fails or is incomplete.
pub fn append_lines(path: &Path, lines: &[Vec<u8>]) -> Result<()> {
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
    // Not write_all: after a short write, its second write could follow another process's line.
    let written = file.write(&record).map_err(|source| FsError::io(OP, path, source))?;
    if written < record.len() {
        return Err(FsError::io(OP, path, io::Error::from(io::ErrorKind::WriteZero)));
    }
    Ok(())
}

/// Appends each line and a newline, and syncs the file before it returns. Only one process may
/// write at a time: a line that a crash cut short is terminated first, so that it does not corrupt
/// the new one.
pub fn append_durable(path: &Path, lines: &[Vec<u8>]) -> Result<()> {
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

/// Syncs files that were written without a sync, and their directory entries. All must be in the
/// same directory.
pub fn persist(paths: &[PathBuf]) -> Result<()> {
    sync_bytes(paths)?;
    if let Some(first) = paths.first() {
        sync_dir_of(first);
    }
    Ok(())
}

fn sync_bytes(paths: &[PathBuf]) -> Result<()> {
    if let Some(first) = paths.first().filter(|_| paths.len() >= MIN_BULK && !portable::is_forced())
    {
        let dir = parent_of(first);
        let synced = File::open(dir).and_then(|dir| native::sync_file_system(&dir));
        if synced.map_err(|source| FsError::io("write down", dir, source))? {
            return Ok(());
        }
    }
    let synced = parallel::parallel_map(paths, SYNCS, |path| {
        let synced = File::open(path).and_then(|file| file.sync_data());
        synced.map_err(|source| FsError::io("write down", path, source))
    });
    synced.into_iter().collect()
}

/// Opens a regular file for appending. Creates it with mode 0600, or restricts a looser mode.
pub(crate) fn open_append(path: &Path) -> Result<File> {
    const OP: &str = "append to";
    let mut options = OpenOptions::new();
    let (file, meta) = open_regular(OP, path, options.append(true).create(true).mode(PRIVATE))?;
    if meta.permissions().mode() & 0o777 != PRIVATE {
        make_private(&file).map_err(|source| FsError::io("make private", path, source))?;
    }
    Ok(file)
}

/// Creates a file with mode 0600. O_EXCL does not follow a symbolic link at `path`.
fn create_private(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(path)?;
    // A umask like 0777 clears bits of the mode given to open; fchmod ignores the umask.
    make_private(&file)?;
    Ok(file)
}

pub(super) fn make_private(file: &File) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(PRIVATE))
}

/// Syncs the directory of `path`, so that a new or renamed entry survives a power cut. Failure is
/// not reported: the entry is already visible, and an error would make the caller write it again.
pub fn sync_dir_of(path: &Path) {
    let _ = File::open(parent_of(path)).and_then(|dir| dir.sync_all());
}

/// Swaps two paths of any kind in one step. A file system without RENAME_EXCHANGE needs three
/// renames, during which `path` is missing for a moment.
pub fn exchange(path: &Path, other: &Path) -> Result<()> {
    let exchanged = match renameat_with(CWD, path, CWD, other, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(()),
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => exchange_by_renames(path, other),
        Err(errno) => Err(errno.into()),
    };
    exchanged.map_err(|source| FsError::io("exchange", path, source))
}

/// Swaps two paths by three renames. If the second one fails, undoes the first, so that `path` is
/// not left missing.
pub(super) fn exchange_by_renames(path: &Path, other: &Path) -> io::Result<()> {
    let between = other.with_added_extension("tmp");
    fs::rename(path, &between)?;
    if let Err(error) = fs::rename(other, path) {
        let _ = fs::rename(&between, path);
        return Err(error);
    }
    fs::rename(&between, other)
}

/// Renames `from` to `to` unless `to` exists. A file system without RENAME_NOREPLACE gets a hard
/// link instead, and `from` is removed.
fn rename_no_replace(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            fs::hard_link(from, to)?;
            fs::remove_file(from)?;
            // `sys::watch` does not report a hard link, but it does report the close of a file
            // opened for writing.
            OpenOptions::new().write(true).open(to).map(drop)
        }
        Err(errno) => Err(errno.into()),
    }
}

/// A temporary file that is removed on drop unless it was published, even if a caller's check
/// panics.
pub(super) struct Temp {
    path: PathBuf,
    published: bool,
}

impl Temp {
    /// Creates the file with these bytes, and syncs them unless `sync` is [`Sync::Nothing`].
    pub(super) fn create(target: &Path, bytes: &[u8], sync: Sync) -> Result<Temp> {
        let Some(name) = target.file_name() else {
            return Err(FsError::refused("write", target, "it has no file name"));
        };
        let mut temp_name = std::ffi::OsString::from(".");
        temp_name.push(name);
        temp_name.push(format!(".{}.tmp", rand::uuid()));
        let path = target.with_file_name(temp_name);
        let file = create_private(&path).map_err(|source| FsError::io("create", &path, source))?;
        let temp = Temp { path, published: false };
        match fill(file, bytes, sync) {
            Ok(()) => Ok(temp),
            Err(source) => Err(FsError::io("write", &temp.path, source)),
        }
    }

    fn publish(mut self, target: &Path) -> Result<()> {
        fs::rename(&self.path, target).map_err(|source| FsError::io("replace", target, source))?;
        self.published = true;
        Ok(())
    }

    /// Publishes it with `rename`, which moves the path that it gets.
    pub(super) fn publish_with(mut self, rename: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        failpoint::hit("rename.before");
        rename(&self.path)?;
        self.published = true;
        failpoint::hit("rename.after");
        Ok(())
    }

    /// Returns false if `target` exists.
    pub(super) fn publish_new(mut self, target: &Path) -> Result<bool> {
        match rename_no_replace(&self.path, target) {
            Ok(()) => self.published = true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
            // The process that has created the target holds its lock and has swept our file.
            Err(error) if error.kind() == io::ErrorKind::NotFound && exists(target) => {
                return Ok(false);
            }
            Err(source) => return Err(FsError::io("create", target, source)),
        }
        Ok(true)
    }
}

fn fill(mut file: File, bytes: &[u8], sync: Sync) -> io::Result<()> {
    file.write_all(bytes)?;
    failpoint::hit("temp.written");
    if sync != Sync::Nothing {
        // Not sync_all: of the metadata only the length matters, which sync_data writes too.
        file.sync_data()?;
        failpoint::hit("temp.synced");
    }
    Ok(())
}

impl Drop for Temp {
    fn drop(&mut self) {
        if !self.published {
            let _ = fs::remove_file(&self.path);
        }
    }
}
