//! Metadata of a path: kind, owner, mode and age.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::error::{FsError, Result};

/// Kind of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    File,
    Directory,
    /// A symbolic link.
    Link,
    Socket,
    /// A device or a FIFO.
    Other,
}

/// Metadata that can be read without opening the entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct About {
    pub kind: FileKind,
    /// Permission bits, including setuid, setgid and sticky.
    pub mode: u32,
    /// User id of the owner.
    pub uid: u32,
    /// Id of the group.
    pub gid: u32,
    /// Time since the last modification; zero if that lies in the future.
    pub age: Duration,
}

/// The free space of a file system for processes without privileges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FreeSpace {
    pub bytes: u64,
    /// `None` if the file system has no fixed number of inodes.
    pub inodes: Option<u64>,
}

/// Returns the free space of the file system that `path` is on; `None` if that is not known.
pub fn free_space(path: &Path) -> Option<FreeSpace> {
    let found = rustix::fs::statvfs(path).ok()?;
    Some(FreeSpace {
        bytes: found.f_bavail.saturating_mul(found.f_frsize),
        inodes: (found.f_files > 0).then_some(found.f_favail),
    })
}

/// Returns the metadata of `path` itself, not of a symbolic link's target; `None` if nothing exists
/// there.
pub fn about(path: &Path) -> Result<Option<About>> {
    let meta = match fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(FsError::io("look at", path, source)),
    };
    let kind = match meta.file_type() {
        kind if kind.is_file() => FileKind::File,
        kind if kind.is_dir() => FileKind::Directory,
        kind if kind.is_symlink() => FileKind::Link,
        kind if kind.is_socket() => FileKind::Socket,
        _ => FileKind::Other,
    };
    let written = meta.modified().map_err(|source| FsError::io("look at", path, source))?;
    let age = SystemTime::now().duration_since(written).unwrap_or_default();
    let (uid, gid) = (meta.uid(), meta.gid());
    Ok(Some(About { kind, mode: meta.mode() & 0o7777, uid, gid, age }))
}

/// Checks that `path` is not a symbolic link. Any other entry passes, and so does a missing one.
///
/// # Errors
/// [`FsError::Refused`] if `path` is a symbolic link.
pub fn refuse_link(path: &Path) -> Result<()> {
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_symlink() => {
            Err(FsError::refused("use", path, "it is a symbolic link"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;

    #[test]
    fn kind_owner_mode_and_age_are_reported() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let at = |name: &str| dir.path().join(name);
        fs::write(at("file"), "x").expect("writable");
        fs::set_permissions(at("file"), fs::Permissions::from_mode(0o640)).expect("own file");
        fs::create_dir(at("dir")).expect("writable");
        symlink(at("nowhere"), at("link")).expect("writable");
        let _listener = UnixListener::bind(at("socket")).expect("writable");
        let kind = |name: &str| about(&at(name)).expect("readable").map(|about| about.kind);
        assert_eq!(
            ["file", "dir", "link", "socket", "nothing"].map(kind),
            [
                Some(FileKind::File),
                Some(FileKind::Directory),
                Some(FileKind::Link),
                Some(FileKind::Socket),
                None
            ]
        );
        let file = about(&at("file")).expect("readable").expect("there");
        assert_eq!((file.mode, file.uid), (0o640, nix::unistd::Uid::effective().as_raw()));
        assert!(file.age < Duration::from_secs(60));
    }
}
