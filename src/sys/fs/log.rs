//! A private log file of bounded size: when full, it is renamed to replace its one predecessor. A
//! `.times` file beside it records when each part was written.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::super::clock;
use super::error::{FsError, Result};
use super::file::{remove_file, rename};
use super::write::open_append;

/// Minimum interval between two records of time.
const TIMES_EVERY_MS: u64 = 1000;

/// The writing end of a log. Supports one writer per file, because the size is tracked by counting.
#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    file: File,
    len: u64,
    /// Upper bound of `len`, in bytes.
    most: u64,
    times: File,
    /// Time of the last record, in milliseconds since the Unix epoch.
    timed_at: Option<u64>,
}

impl LogFile {
    /// Empties the log at `path` and removes its predecessor. `most` bounds its size in bytes. The
    /// file keeps its inode, so that a process that has it open for appending continues to write to
    /// it.
    pub fn fresh(path: &Path, most: u64) -> Result<LogFile> {
        let file = emptied(path)?;
        let times = emptied(&times_of(path))?;
        remove_log(&older(path))?;
        Ok(LogFile { path: path.to_owned(), file, len: 0, most, times, timed_at: None })
    }

    /// Writes all of `bytes`. If they do not fit into the bound, the file is rotated first.
    pub fn append(&mut self, bytes: &[u8]) -> Result<()> {
        if self.len > 0 && self.len.saturating_add(bytes.len() as u64) > self.most {
            let full = older(&self.path);
            rename(&times_of(&self.path), &times_of(&full))?;
            rename(&self.path, &full)?;
            self.file = open_append(&self.path)?;
            self.times = open_append(&times_of(&self.path))?;
            (self.len, self.timed_at) = (0, None);
        }
        self.record_time();
        self.file
            .write_all(bytes)
            .map_err(|source| FsError::io("append to", &self.path, source))?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Records that the bytes from here on are written now. Failures are ignored.
    fn record_time(&mut self) {
        let now = clock::now_ms();
        if self.timed_at.is_some_and(|at| now.abs_diff(at) < TIMES_EVERY_MS) {
            return;
        }
        // Another process may append to the file as well, so its end is not at `self.len`.
        if let Ok(found) = self.file.metadata() {
            let _ = self.times.write_all(format!("{now} {}\n", found.len()).as_bytes());
            self.timed_at = Some(now);
        }
    }
}

/// Removes a log and its record of times, but not its predecessor.
pub fn remove_log(path: &Path) -> Result<()> {
    remove_file(path)?;
    remove_file(&times_of(path))?;
    Ok(())
}

fn emptied(path: &Path) -> Result<File> {
    let file = open_append(path)?;
    file.set_len(0).map_err(|source| FsError::io("empty", path, source))?;
    Ok(file)
}

/// Returns the path of a log's record of times. Each line is `MILLISECONDS OFFSET`: a time since
/// the Unix epoch, and the log's length in bytes at that time.
pub fn times_of(log: &Path) -> PathBuf {
    let mut name = log.as_os_str().to_owned();
    name.push(".times");
    PathBuf::from(name)
}

/// Returns the path of a log's predecessor: `<path>.1`.
pub fn older(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::super::{len, read};
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn text(path: &Path) -> String {
        let bytes = read(path, 1024).expect("readable").unwrap_or_default();
        String::from_utf8(bytes).expect("what was written")
    }

    #[test]
    fn full_log_is_rotated_and_one_predecessor_is_kept() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("a.log");
        let mut log = LogFile::fresh(&path, 10).expect("writable");
        for part in ["12345", "67890", "abc", "defghijkl", "one word too long to fit"] {
            log.append(part.as_bytes()).expect("writable");
        }
        assert_eq!(text(&path), "one word too long to fit");
        assert_eq!(text(&older(&path)), "defghijkl");
        for file in [&path, &older(&path), &times_of(&path), &times_of(&older(&path))] {
            assert_eq!(fs::metadata(file).expect("exists").permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(fs::read_dir(dir.path()).expect("readable").count(), 4);
    }

    #[test]
    fn fresh_log_discards_the_earlier_run() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("a.log");
        for file in [&path, &older(&path)] {
            fs::write(file, "earlier").expect("writable");
        }
        let mut beside = open_append(&path).expect("writable");
        let mut log = LogFile::fresh(&path, 100).expect("writable");
        log.append(b"now").expect("writable");
        beside.write_all(b" too").expect("writable");
        assert_eq!(text(&path), "now too");
        assert_eq!(len(&older(&path)).expect("readable"), None);
    }
}
