//! Files of lines that other processes append to while they are read.

use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::error::{FsError, Result};
use super::file::open_to_read;

/// Bytes to read at a time.
const CHUNK: usize = 256 * 1024;

/// Identifies a file under whatever path. The time of creation, if the file system records it,
/// distinguishes a new file that got the inode of a removed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileId {
    dev: u64,
    ino: u64,
    created: Option<SystemTime>,
}

/// A file of lines, opened for reading. It stays the same file if its path is renamed, replaced or
/// removed meanwhile.
#[derive(Debug)]
pub struct LineFile {
    path: PathBuf,
    file: File,
    id: FileId,
    len: u64,
}

impl LineFile {
    /// Opens the file; `None` if it does not exist.
    pub fn open(path: &Path) -> Result<Option<LineFile>> {
        let Some((file, meta)) = open_to_read(path)? else { return Ok(None) };
        let id = FileId { dev: meta.dev(), ino: meta.ino(), created: meta.created().ok() };
        Ok(Some(LineFile { path: path.to_owned(), file, id, len: meta.len() }))
    }

    pub fn id(&self) -> FileId {
        self.id
    }

    /// Returns the length in bytes at the time of opening.
    pub fn size(&self) -> u64 {
        self.len
    }

    /// Calls `each` with every line from byte `offset` on, without its newline, until it returns
    /// `Break`. Returns the offset after the last line that was passed on. A last line without a
    /// newline may still be written and is left for the next call.
    pub fn read_lines(
        &self,
        offset: u64,
        mut each: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<u64> {
        let (mut at, mut unread) = (offset, Vec::new());
        let mut chunk = vec![0; CHUNK];
        loop {
            let count = match self.file.read_at(&mut chunk, at + unread.len() as u64) {
                Ok(0) => return Ok(at),
                Ok(count) => count,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(FsError::io("read", &self.path, source)),
            };
            let searched = unread.len();
            unread.extend_from_slice(&chunk[..count]);
            let Some(end) = unread[searched..].iter().rposition(|b| *b == b'\n') else { continue };
            let end = searched + end + 1;
            for line in unread[..end].split_inclusive(|b| *b == b'\n') {
                at += line.len() as u64;
                if each(&line[..line.len() - 1]).is_break() {
                    return Ok(at);
                }
            }
            unread.drain(..end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn lines(file: &LineFile, offset: u64) -> (Vec<String>, u64) {
        let mut lines = Vec::new();
        let end = file.read_lines(offset, |line| {
            lines.push(String::from_utf8_lossy(line).into_owned());
            ControlFlow::Continue(())
        });
        (lines, end.expect("readable"))
    }

    #[test]
    fn incomplete_last_line_is_left_for_the_next_read() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("log");
        assert!(LineFile::open(&path).expect("missing is no error").is_none());
        fs::write(&path, "one\n\ntw").expect("writable");
        let file = LineFile::open(&path).expect("readable").expect("exists");
        assert_eq!(lines(&file, 0), (vec!["one".to_owned(), String::new()], 5));
        fs::write(&path, "one\n\ntwo\n").expect("writable");
        assert_eq!(lines(&file, 5), (vec!["two".to_owned()], 9));
        assert_eq!(lines(&file, 99), (Vec::new(), 99));
        let first = file.read_lines(0, |_| ControlFlow::Break(()));
        assert_eq!(first.expect("readable"), 4);
    }

    #[test]
    fn line_longer_than_a_chunk_is_read_whole() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("log");
        let long = "x".repeat(3 * CHUNK);
        fs::write(&path, format!("a\n{long}\nb\n")).expect("writable");
        let file = LineFile::open(&path).expect("readable").expect("exists");
        assert_eq!(lines(&file, 0).0, ["a", long.as_str(), "b"]);
    }

    #[test]
    fn open_file_is_not_affected_by_a_replacement() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (path, next) = (dir.path().join("log"), dir.path().join("next"));
        fs::write(&path, "old\n").expect("writable");
        let file = LineFile::open(&path).expect("readable").expect("exists");
        fs::write(&next, "new\n").expect("writable");
        fs::rename(&next, &path).expect("own files");
        assert_eq!(lines(&file, 0).0, ["old"]);
        let replaced = LineFile::open(&path).expect("readable").expect("exists");
        let again = LineFile::open(&path).expect("readable").expect("exists");
        assert!(file.id() != replaced.id() && replaced.id() == again.id());
    }
}
