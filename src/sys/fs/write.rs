//! Writing files so that readers see all or nothing and strangers see nothing (0600 under any umask).
//! Refuses to know why something is written.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::super::rand;
use super::{FsError, Result, open_regular, parent_of};

const PRIVATE: u32 = 0o600;

/// Replaces the file in one step: a unique temporary file in the same directory, fsync, rename. After an error the
/// old file is as it was. A symbolic link at `path` is replaced, not followed.
pub(crate) fn write_atomic(path: &Path, bytes: &[u8]) -> Result<()> {
    write_atomic_if(path, bytes, || true).map(|_published| ())
}

/// Like [`write_atomic`], but asks `check` immediately before the rename. False: nothing was published.
pub(crate) fn write_atomic_if(path: &Path, bytes: &[u8], check: impl FnOnce() -> bool) -> Result<bool> {
    let mut temp = Temp::create(path)?;
    temp.fill(bytes).map_err(|source| FsError::io("write", &temp.path, source))?;
    if !check() {
        return Ok(false);
    }
    temp.publish(path)?;
    Ok(true)
}

/// Creates the file with these bytes; false (and untouched) when something is already there. Readers may see it
/// before it is complete.
pub(crate) fn create_new(path: &Path, bytes: &[u8]) -> Result<bool> {
    let mut file = match create_private(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
        Err(source) => return Err(FsError::io("create", path, source)),
    };
    if let Err(source) = file.write_all(bytes).and_then(|()| file.sync_all()) {
        // Half a file under its final name would be taken for the whole one.
        let _ = fs::remove_file(path);
        return Err(FsError::io("write", path, source));
    }
    sync_dir_of(path);
    Ok(true)
}

/// Appends `line` and a newline in one write, so that lines of several processes never mix. Creates the file (0600),
/// tightens a looser one. Refuses a line with a newline in it, and symbolic links.
pub(crate) fn append_line(path: &Path, line: &[u8]) -> Result<()> {
    const OP: &str = "append to";
    if line.contains(&b'\n') {
        return Err(FsError::refused(OP, path, "the line contains a newline"));
    }
    let mut file = open_append(path)?;
    let mut record = Vec::with_capacity(line.len() + 1);
    record.extend_from_slice(line);
    record.push(b'\n');
    // Not write_all: its second write would come after somebody else's line.
    let written = file.write(&record).map_err(|source| FsError::io(OP, path, source))?;
    if written < record.len() {
        return Err(FsError::io(OP, path, io::Error::from(io::ErrorKind::WriteZero)));
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

fn make_private(file: &File) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(PRIVATE))
}

/// Makes a new or renamed entry survive a power cut. Failure is not reported: the entry is already visible to all,
/// and an error would make the caller write it a second time.
fn sync_dir_of(path: &Path) {
    let _ = File::open(parent_of(path)).and_then(|dir| dir.sync_all());
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

    fn fill(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.file.sync_all()
    }

    fn publish(mut self, target: &Path) -> Result<()> {
        fs::rename(&self.path, target).map_err(|source| FsError::io("replace", target, source))?;
        self.published = true;
        sync_dir_of(target);
        Ok(())
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        if !self.published {
            let _ = fs::remove_file(&self.path);
        }
    }
}
