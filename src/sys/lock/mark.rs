//! The mark on a lock directory: an extended attribute that names the gate of its maker.
//!
//! A phalanx process makes and holds a lock directory behind its gate only. A directory with the
//! mark of a gate that this process holds was therefore left by a process that was killed. Pids
//! are not compared: those of another machine or container mean nothing here.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{XattrFlags, fgetxattr, fsetxattr};

use super::super::env;
use super::gate::Gate;

/// The name of the attribute. Other programs make their lock directories without it.
const ATTRIBUTE: &str = "user.phalanx.gate";

/// Identifies a gate on one machine between two starts of it. A gate of another machine has another
/// mark even if both are the same file of a network file system, where a flock may exclude only
/// the processes of one machine.
#[derive(Debug)]
pub(super) struct GateMark {
    /// At most 50 bytes, so that ext4 keeps it in the inode of the directory.
    text: String,
    /// A short form for file names.
    short: String,
}

impl GateMark {
    /// Returns the mark of a gate; `None` if the system has no id of its boot.
    pub(super) fn of(gate: &Gate) -> Option<GateMark> {
        let boot = env::boot_id();
        let (dev, ino) = gate.file_id().ok()?;
        let start: String = boot.chars().take(8).collect();
        let short = format!("{start}-{ino:x}");
        (!boot.is_empty()).then(|| GateMark { text: format!("{boot}/{dev:x}:{ino:x}"), short })
    }

    /// Sets the mark. Fails on file systems without extended attributes.
    pub(super) fn set(&self, dir: &File) -> io::Result<()> {
        Ok(fsetxattr(dir, ATTRIBUTE, self.text.as_bytes(), XattrFlags::empty())?)
    }

    /// Returns true if the directory has this mark.
    pub(super) fn is_on(&self, dir: &File) -> bool {
        // One byte longer than the mark: a longer text is another mark.
        let mut found = vec![0; self.text.len() + 1];
        let len = fgetxattr(dir, ATTRIBUTE, &mut found);
        len.is_ok_and(|len| found.get(..len) == Some(self.text.as_bytes()))
    }

    /// Returns the path at which a lock directory is made and marked. Only one process behind the
    /// gate uses it, so the next one continues with what a killed process has left there.
    pub(super) fn spare_path(&self, lock: &Path) -> PathBuf {
        let mut name = OsString::from(".");
        name.push(lock.file_name().unwrap_or_default());
        name.push(format!(".{}.tmp", self.short));
        lock.with_file_name(name)
    }
}
