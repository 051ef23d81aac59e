//! Files below a directory, reached without following a symbolic link: each component of a path is
//! opened from the one before it.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::time::UNIX_EPOCH;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, chmodat, mkdirat, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;

use super::error::{FsError, Result};
use super::write::{Sync, Temp, sweep_temporary};

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// O_NONBLOCK: opening a FIFO must not block.
const FILE: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// A directory that is held open. Its own path may lead through symbolic links, but its last
/// component is a directory.
#[derive(Debug)]
pub struct Beneath {
    path: PathBuf,
    dir: OwnedFd,
}

/// An entry below a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryBeneath {
    /// Relative to the directory that was listed.
    pub path: PathBuf,
    /// False for links, sockets, devices and FIFOs, and for directories that cannot be read.
    pub is_file: bool,
    /// Length in bytes.
    pub len: u64,
    /// Time of the last modification, in milliseconds since the Unix epoch.
    pub modified_ms: u64,
}

impl Beneath {
    /// Opens a directory; `None` if it does not exist.
    ///
    /// # Errors
    /// [`FsError::Refused`] if it is a symbolic link or not a directory.
    pub fn open(path: &Path) -> Result<Option<Beneath>> {
        let dir = open_dir(CWD, path, path)?;
        Ok(dir.map(|dir| Beneath { path: path.to_owned(), dir }))
    }

    /// Creates the missing directories of the relative path `inside` with mode 0700.
    ///
    /// # Errors
    /// [`FsError::Refused`] if a component is a symbolic link or not a directory, or if the path
    /// is not plain names.
    pub fn make_dirs(&self, inside: &Path) -> Result<()> {
        self.walk(inside, true).map(drop)
    }

    /// Returns the regular file `inside`, which has at most `limit` bytes; `None` if it does not
    /// exist.
    ///
    /// # Errors
    /// [`FsError::Refused`] if a component is a symbolic link, or the file is not a regular one;
    /// [`FsError::TooLarge`] if it is larger.
    pub fn read(&self, inside: &Path, limit: u64) -> Result<Option<Vec<u8>>> {
        let full = self.path.join(inside);
        let (parent, name) = split(inside, &full)?;
        let Some(dir) = self.walk(parent, false)? else { return Ok(None) };
        let file = match openat(&dir, name, FILE, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(FsError::refused("read", &full, IS_LINK)),
            Err(Errno::NXIO) => return Err(FsError::refused("read", &full, NOT_REGULAR)),
            Err(errno) => return Err(FsError::io("read", &full, errno.into())),
        };
        let meta = file.metadata().map_err(|source| FsError::io("read", &full, source))?;
        if !meta.is_file() {
            return Err(FsError::refused("read", &full, NOT_REGULAR));
        }
        let mut bytes = Vec::new();
        // One byte more than allowed, to detect a file that grows during the read.
        let read = file.take(limit.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(|source| FsError::io("read", &full, source))?;
        if bytes.len() as u64 > limit {
            return Err(FsError::TooLarge { path: full, limit });
        }
        Ok(Some(bytes))
    }

    /// Returns the length of the regular file `inside`; `None` if nothing exists there.
    ///
    /// # Errors
    /// As [`Beneath::read`].
    pub fn len(&self, inside: &Path) -> Result<Option<u64>> {
        let full = self.path.join(inside);
        let (parent, name) = split(inside, &full)?;
        let Some(dir) = self.walk(parent, false)? else { return Ok(None) };
        let stat = match statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(FsError::io("look at", &full, errno.into())),
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(Some(u64::try_from(stat.st_size).unwrap_or(u64::MAX))),
            FileType::Symlink => Err(FsError::refused("use", &full, IS_LINK)),
            _ => Err(FsError::refused("use", &full, NOT_REGULAR)),
        }
    }

    /// Replaces the file `inside` in one step and creates its missing directories. `scratch` names
    /// a temporary file in a private directory of the same file system; only one process may write
    /// with that name at a time.
    ///
    /// # Errors
    /// [`FsError::Refused`] if a component is a symbolic link, or what exists there is not a
    /// regular file. Nothing is changed then.
    pub fn replace(&self, inside: &Path, bytes: &[u8], scratch: &Path) -> Result<()> {
        self.len(inside)?;
        let full = self.path.join(inside);
        let (parent, name) = split(inside, &full)?;
        let Some(dir) = self.walk(parent, true)? else {
            return Err(FsError::io("write", &full, io::ErrorKind::NotFound.into()));
        };
        sweep_temporary(scratch);
        Temp::create(scratch, bytes, Sync::Bytes)?.publish_with(|from| {
            renameat(CWD, from, &dir, name)
                .map_err(|errno| FsError::io("replace", &full, errno.into()))
        })
    }

    /// Removes the entry `inside`, which may be of any kind except a directory; returns false if
    /// there is none. A symbolic link itself is removed.
    ///
    /// # Errors
    /// [`FsError::Refused`] if a component above it is a symbolic link.
    pub fn remove(&self, inside: &Path) -> Result<bool> {
        let full = self.path.join(inside);
        let (parent, name) = split(inside, &full)?;
        let Some(dir) = self.walk(parent, false)? else { return Ok(false) };
        match unlinkat(&dir, name, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(FsError::io("remove", &full, errno.into())),
        }
    }

    /// Returns the entries below the directory, sorted by path, without the directories
    /// themselves, and whether these are all: it stops after `most` entries.
    pub fn list(&self, most: usize) -> Result<(Vec<EntryBeneath>, bool)> {
        let (mut found, mut open, mut seen) = (Vec::new(), vec![PathBuf::new()], 0);
        while let Some(inside) = open.pop() {
            let full = self.path.join(&inside);
            let entries = match fs::read_dir(&full) {
                Ok(entries) => entries,
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(_) if !inside.as_os_str().is_empty() => {
                    let path = inside;
                    found.push(EntryBeneath { path, is_file: false, len: 0, modified_ms: 0 });
                    continue;
                }
                Err(source) => return Err(FsError::io("list", &full, source)),
            };
            for entry in entries {
                let entry = entry.map_err(|source| FsError::io("list", &full, source))?;
                seen += 1;
                if seen > most {
                    found.sort_by(|a: &EntryBeneath, b| a.path.cmp(&b.path));
                    return Ok((found, false));
                }
                // Metadata of the entry itself, not of a link's target. A file can vanish
                // meanwhile.
                let Ok(meta) = entry.metadata() else { continue };
                let path = inside.join(entry.file_name());
                if meta.is_dir() {
                    open.push(path);
                    continue;
                }
                let age = meta.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
                let modified_ms =
                    age.and_then(|age| u64::try_from(age.as_millis()).ok()).unwrap_or_default();
                let (is_file, len) = (meta.is_file(), meta.len());
                found.push(EntryBeneath { path, is_file, len, modified_ms });
            }
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok((found, true))
    }

    /// Opens the directory `inside`; `None` if it is missing and not to be made.
    fn walk(&self, inside: &Path, make: bool) -> Result<Option<OwnedFd>> {
        // Before anything is made.
        if !inside.components().all(|step| matches!(step, Component::Normal(_))) {
            let full = self.path.join(inside);
            return Err(FsError::refused("use", &full, "the path is not plain names"));
        }
        let cloned = self.dir.try_clone();
        let mut at = cloned.map_err(|source| FsError::io("use directory", &self.path, source))?;
        let mut full = self.path.clone();
        for name in inside.iter() {
            full.push(name);
            if make {
                match mkdirat(&at, name, Mode::RWXU) {
                    // A umask like 0777 clears bits of the mode given to mkdir.
                    Ok(()) => chmodat(&at, name, Mode::RWXU, AtFlags::empty())
                        .map_err(|errno| FsError::io("make private", &full, errno.into()))?,
                    Err(Errno::EXIST) => {}
                    Err(errno) => {
                        return Err(FsError::io("create directory", &full, errno.into()));
                    }
                }
            }
            match open_dir(&at, Path::new(name), &full)? {
                Some(next) => at = next,
                None => return Ok(None),
            }
        }
        Ok(Some(at))
    }
}

const IS_LINK: &str = "it is a symbolic link";
const NOT_REGULAR: &str = "it is not a regular file";

/// Opens the directory `name` of the directory `at`. `full` is its path, for messages.
fn open_dir(at: impl AsFd, name: &Path, full: &Path) -> Result<Option<OwnedFd>> {
    match openat(at, name, DIRECTORY, Mode::empty()) {
        Ok(dir) => Ok(Some(dir)),
        Err(Errno::NOENT) => Ok(None),
        // Systems differ in which of the two they report for a symbolic link.
        Err(Errno::LOOP | Errno::NOTDIR) => {
            let why = "it is a symbolic link or not a directory";
            Err(FsError::refused("use directory", full, why))
        }
        Err(errno) => Err(FsError::io("use directory", full, errno.into())),
    }
}

/// Splits a relative path into its directory and its last name.
fn split<'p>(inside: &'p Path, full: &Path) -> Result<(&'p Path, &'p Path)> {
    let name = inside.components().next_back();
    match (inside.parent(), name) {
        (Some(parent), Some(Component::Normal(name))) => Ok((parent, Path::new(name))),
        _ => Err(FsError::refused("use", full, "it has no file name")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    const LIMIT: u64 = 1000;

    /// Returns a directory `in`, with a secret outside of it.
    fn place() -> (tempfile::TempDir, Beneath, PathBuf) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir(dir.path().join("in")).expect("a directory");
        fs::write(dir.path().join("secret"), "secret").expect("a file");
        let beneath = Beneath::open(&dir.path().join("in")).expect("readable").expect("exists");
        let scratch = dir.path().join("scratch");
        (dir, beneath, scratch)
    }

    #[test]
    fn files_are_written_read_listed_and_removed() {
        let (_dir, beneath, scratch) = place();
        let name = Path::new("a/b/c.txt");
        assert_eq!(beneath.read(name, LIMIT).expect("no error"), None);
        assert!(!beneath.remove(name).expect("no error"));
        for text in ["one", "two!"] {
            beneath.replace(name, text.as_bytes(), &scratch).expect("written");
            assert_eq!(beneath.read(name, LIMIT).expect("read").as_deref(), Some(text.as_bytes()));
        }
        let (found, all) = beneath.list(10).expect("listed");
        assert!(all && found.len() == 1 && found[0].is_file && found[0].modified_ms > 0);
        assert_eq!((found[0].path.as_path(), found[0].len), (name, 4));
        let mode = |path: &str| {
            fs::metadata(beneath.path.join(path)).expect("exists").permissions().mode() & 0o777
        };
        assert_eq!((mode("a"), mode("a/b"), mode("a/b/c.txt")), (0o700, 0o700, 0o600));
        assert!(matches!(beneath.read(name, 3), Err(FsError::TooLarge { limit: 3, .. })));
        assert!(!beneath.list(2).expect("listed").1, "two directories, one file");
        assert!(beneath.remove(name).expect("removed"));
        assert!(beneath.remove(Path::new("a/b")).is_err(), "a directory is not removed");
    }

    #[test]
    fn no_path_leads_out_of_the_directory() {
        let (dir, beneath, scratch) = place();
        let root = beneath.path.clone();
        symlink("../secret", root.join("link")).expect("a link");
        symlink("..", root.join("up")).expect("a link");
        symlink("missing", root.join("dangling")).expect("a link");
        symlink("../made", root.join("new")).expect("a link");
        let outside = dir.path().join("secret");
        let hostile = [
            "../secret",
            "a/../../secret",
            outside.to_str().expect("UTF-8"),
            "link",
            "up/secret",
            "up/in/x",
            "dangling",
            "new",
            "",
            ".",
            "..",
            "/",
        ];
        for name in hostile.map(Path::new) {
            assert!(beneath.read(name, LIMIT).is_err(), "read {name:?}");
            assert!(beneath.replace(name, b"x", &scratch).is_err(), "write {name:?}");
        }
        for name in ["../secret", "up/secret", "a/../../secret"].map(Path::new) {
            assert!(beneath.remove(name).is_err(), "remove {name:?}");
        }
        assert_eq!(fs::read_to_string(&outside).expect("still there"), "secret");
        assert!(!dir.path().join("made").exists() && !root.join("missing").exists());
        assert!(beneath.remove(Path::new("link")).expect("the link itself"));
        assert!(outside.exists());
        assert!(Beneath::open(&root.join("up")).is_err(), "the root itself is a link");
        assert!(Beneath::open(&outside).is_err(), "the root is a file");
    }

    #[test]
    fn fifos_devices_and_directories_are_refused_without_blocking() {
        let (_dir, beneath, scratch) = place();
        let root = beneath.path.clone();
        nix::unistd::mkfifo(&root.join("fifo"), nix::sys::stat::Mode::S_IRWXU).expect("a FIFO");
        fs::create_dir(root.join("dir")).expect("a directory");
        for name in ["fifo", "dir"].map(Path::new) {
            assert!(beneath.read(name, LIMIT).is_err(), "{name:?}");
            assert!(beneath.replace(name, b"x", &scratch).is_err(), "{name:?}");
        }
        let devices = Beneath::open(Path::new("/dev")).expect("readable").expect("exists");
        assert!(devices.read(Path::new("zero"), LIMIT).is_err());
        let (found, all) = beneath.list(10).expect("listed");
        assert!(all && found.len() == 1 && !found[0].is_file, "{found:?}");
    }

    #[test]
    fn temporary_file_of_a_refused_write_is_removed() {
        let (dir, beneath, scratch) = place();
        let long = "x".repeat(300);
        assert!(beneath.replace(Path::new(&long), b"x", &scratch).is_err());
        let names: Vec<_> = fs::read_dir(dir.path()).expect("readable").flatten().collect();
        assert_eq!(names.len(), 2, "{names:?}");
    }
}
