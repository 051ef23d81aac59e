//! Directories: private creation, listing, removal.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::unistd::Uid;

use super::error::{FsError, Result};
use super::file::parent_of;

const PRIVATE: u32 = 0o700;
const PRIVATE_FILE: u32 = super::write::PRIVATE;
const OP: &str = "use directory";

/// Makes sure that `path` is a directory that only this user can enter. Creates missing directories
/// with mode 0700 under any umask, and restricts a looser mode.
///
/// # Errors
/// [`FsError::Refused`] if `path` is a symbolic link, not a directory, or owned by another user;
/// [`FsError::Io`] if a system call fails.
pub fn private_dir(path: &Path) -> Result<()> {
    // Rebuilt from its components: with a trailing slash, the kernel follows a symbolic link
    // despite O_NOFOLLOW.
    let path: PathBuf = path.components().collect();
    make_missing(&path)?;
    restrict(&path)
}

/// As [`private_dir`], in a directory that exists: a team that was deleted meanwhile is not brought
/// back by a late process.
pub fn private_dir_in_existing(path: &Path) -> Result<()> {
    let path: PathBuf = path.components().collect();
    make_one(&path).map_err(|source| FsError::io("create directory", &path, source))?;
    restrict(&path)
}

/// Checks that the directory is the user's, and takes the access of others away.
fn restrict(path: &Path) -> Result<()> {
    let dir = open_dir(path)?;
    let meta = dir.metadata().map_err(|source| FsError::io(OP, path, source))?;
    let us = Uid::effective().as_raw();
    if meta.uid() != us {
        let reason = format!("it belongs to user {}, not to user {us}", meta.uid());
        return Err(FsError::refused(OP, path, reason));
    }
    if meta.mode() & 0o077 != 0 {
        let tightened = dir.set_permissions(Permissions::from_mode(PRIVATE));
        tightened.map_err(|source| FsError::io("make private", path, source))?;
    }
    Ok(())
}

/// Sets the mode of a file to 0600 or of a directory to 0700, which gives its owner access and
/// denies it to other users. Returns false, and changes nothing, for any other kind of entry and
/// for an entry of another user.
pub fn make_private(path: &Path) -> Result<bool> {
    let meta = fs::symlink_metadata(path).map_err(|source| FsError::io("look at", path, source))?;
    let mode = match meta.file_type() {
        kind if kind.is_dir() => PRIVATE,
        kind if kind.is_file() => PRIVATE_FILE,
        _ => return Ok(false),
    };
    if meta.uid() != Uid::effective().as_raw() {
        return Ok(false);
    }
    fs::set_permissions(path, Permissions::from_mode(mode))
        .map_err(|source| FsError::io("make private", path, source))?;
    Ok(true)
}

/// Creates one directory with mode 0700; returns false if the path exists. The parent must exist.
pub fn create_dir_exclusive(path: &Path) -> Result<bool> {
    match DirBuilder::new().mode(PRIVATE).create(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(source) => Err(FsError::io("make directory", path, source)),
    }
}

/// Returns the UTF-8 names in a directory, sorted; empty if the directory is missing. Skips other
/// names, because phalanx creates none.
pub fn list(dir: &Path) -> Result<Vec<String>> {
    let mut names = names(dir)?;
    names.sort_unstable();
    Ok(names)
}

/// Like [`list`], in no order.
pub fn names(dir: &Path) -> Result<Vec<String>> {
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
    Ok(names)
}

/// Removes a directory with its contents; returns false if it did not exist. Symbolic links,
/// including `path` itself, are removed but never followed.
pub fn remove_dir_all(path: &Path) -> Result<bool> {
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

/// Creates one directory. An existing entry is not an error, because another process may be
/// creating the same tree; the caller checks what the entry is.
fn make_one(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(PRIVATE).create(path) {
        // By path rather than by descriptor: under a umask like 0777 the new directory cannot be
        // opened.
        Ok(()) => fs::set_permissions(path, Permissions::from_mode(PRIVATE)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

fn open_dir(path: &Path) -> Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_DIRECTORY | libc::O_CLOEXEC;
    OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(|source| {
        // The kernel reports ENOTDIR for a symbolic link as well; the message distinguishes the
        // two.
        match fs::symlink_metadata(path) {
            Ok(meta) if meta.is_symlink() => FsError::refused(OP, path, "it is a symbolic link"),
            Ok(meta) if !meta.is_dir() => FsError::refused(OP, path, "it is not a directory"),
            _ => FsError::io(OP, path, source),
        }
    })
}
