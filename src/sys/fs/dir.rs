//! Directories: private creation, listing, removal. Refuses to know what is kept in them.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::super::env;
use super::{FsError, Result, parent_of};

const PRIVATE: u32 = 0o700;
const PRIVATE_FILE: u32 = super::write::PRIVATE;
const OP: &str = "use directory";

/// Makes sure that `path` is a directory that only we can enter: creates what is missing with 0700 under any umask,
/// tightens a looser one of ours, refuses a symbolic link, a file, and another user's directory.
pub(crate) fn private_dir(path: &Path) -> Result<()> {
    // By components: a trailing slash would make the kernel follow a symbolic link in spite of O_NOFOLLOW.
    let path: PathBuf = path.components().collect();
    make_missing(&path)?;
    let dir = open_dir(&path)?;
    let meta = dir.metadata().map_err(|source| FsError::io(OP, &path, source))?;
    let us = env::effective_uid();
    if meta.uid() != us {
        let reason = format!("it belongs to user {}, not to user {us}", meta.uid());
        return Err(FsError::refused(OP, &path, reason));
    }
    if meta.mode() & 0o077 != 0 {
        let tightened = dir.set_permissions(Permissions::from_mode(PRIVATE));
        tightened.map_err(|source| FsError::io("make private", &path, source))?;
    }
    Ok(())
}

/// Gives the owner of a file or directory its permissions back, and everybody else none; false for
/// anything else, and for what belongs to another user.
pub(crate) fn make_private(path: &Path) -> Result<bool> {
    let meta = fs::symlink_metadata(path).map_err(|source| FsError::io("look at", path, source))?;
    let mode = match meta.file_type() {
        kind if kind.is_dir() => PRIVATE,
        kind if kind.is_file() => PRIVATE_FILE,
        _ => return Ok(false),
    };
    if meta.uid() != env::effective_uid() {
        return Ok(false);
    }
    fs::set_permissions(path, Permissions::from_mode(mode))
        .map_err(|source| FsError::io("make private", path, source))?;
    Ok(true)
}

/// Makes one directory with 0700; false when there is something of that name already. The parent must exist.
pub(crate) fn create_dir_exclusive(path: &Path) -> Result<bool> {
    match DirBuilder::new().mode(PRIVATE).create(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(source) => Err(FsError::io("make directory", path, source)),
    }
}

/// The UTF-8 names in a directory, sorted; empty when the directory is missing. Other names are left out: nothing
/// of ours has one.
pub(crate) fn list(dir: &Path) -> Result<Vec<String>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(FsError::io("list", dir, source)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|source| FsError::io("list", dir, source))?;
        names.extend(entry.file_name().into_string());
    }
    names.sort_unstable();
    Ok(names)
}

/// Removes a directory with all that is in it; false when there was nothing. Symbolic links are removed, never
/// followed, `path` itself included.
pub(crate) fn remove_dir_all(path: &Path) -> Result<bool> {
    match fs::remove_dir_all(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(FsError::io("remove", path, source)),
    }
}

fn make_missing(path: &Path) -> Result<()> {
    match make_one(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && parent_of(path) != path => {
            make_missing(parent_of(path))?;
            make_one(path).map_err(|source| FsError::io("create directory", path, source))
        }
        outcome => outcome.map_err(|source| FsError::io("create directory", path, source)),
    }
}

/// Existing is fine here (another process may be making the same tree); the final check decides what it is.
fn make_one(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(PRIVATE).create(path) {
        // By path, not by descriptor: under an umask like 0777 we could not even open what we just made.
        Ok(()) => fs::set_permissions(path, Permissions::from_mode(PRIVATE)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

fn open_dir(path: &Path) -> Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_DIRECTORY | libc::O_CLOEXEC;
    OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(|source| {
        // The kernel says "not a directory" for a symbolic link, too; say which it is.
        match fs::symlink_metadata(path) {
            Ok(meta) if meta.is_symlink() => FsError::refused(OP, path, "it is a symbolic link"),
            Ok(meta) if !meta.is_dir() => FsError::refused(OP, path, "it is not a directory"),
            _ => FsError::io(OP, path, source),
        }
    })
}
