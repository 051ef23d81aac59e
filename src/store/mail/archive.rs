//! Archive of read messages, which keeps mailboxes short (PF-01). A crash can leave a message in
//! the archive twice or also in the mailbox, so readers deduplicate by id.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::PathBuf;

use serde_json::Value;

use crate::error::StoreError;
use crate::files::dirs;
use model::mail::envelope::Envelope;
use sys::failpoint;
use sys::fs::{self, LineFile};

/// Number of read messages that stay in the mailbox.
const STAY: usize = 32;
/// Number of read messages at which the older ones are archived. Twice `STAY`, so that messages are
/// archived in batches: each is written to the disk once more.
const FULL: usize = 2 * STAY;

/// The archive of one mailbox. Changes require the mailbox's lock; reads do not.
pub(crate) struct Archive {
    path: PathBuf,
}

impl Archive {
    pub(crate) fn at(path: PathBuf) -> Archive {
        Archive { path }
    }

    /// Moves the oldest read messages from `entries` to the archive, if there are at least
    /// [`FULL`]. The caller then publishes the mailbox without them; a crash in between leaves them
    /// in both files.
    pub(crate) fn take_old(&self, entries: &mut Vec<Value>) -> Result<(), StoreError> {
        if !is_full(entries) {
            return Ok(());
        }
        let (mut going, mut lines) = (count_read(entries) - STAY, Vec::new());
        entries.retain(|entry| {
            let goes = going > 0 && is_read(entry);
            if goes {
                going -= 1;
                lines.push(entry.to_string().into_bytes());
            }
            !goes
        });
        dirs::make_dirs_of(&self.path)?;
        fs::append_durable(&self.path, &lines)?;
        failpoint::hit("archive.appended");
        Ok(())
    }

    /// Returns the archived messages, oldest first, without duplicates.
    pub(crate) fn entries(&self) -> Result<Vec<Value>, StoreError> {
        let (mut entries, mut known) = (Vec::new(), BTreeSet::new());
        self.for_each_line(|line| {
            // A line torn by a crash does not parse. Its message is still in the mailbox.
            let entry = serde_json::from_slice::<Value>(line).ok();
            entries.extend(entry.filter(|entry| known.insert(Envelope::read(entry).msg_id)));
            ControlFlow::Continue(())
        })?;
        Ok(entries)
    }

    /// Returns the archived message that phalanx wrote with this id. The archive can be long, so
    /// only lines that contain the id are parsed.
    pub(crate) fn find(&self, msg_id: &str) -> Result<Option<Envelope>, StoreError> {
        let written = Value::from(msg_id).to_string();
        let mut found = None;
        self.for_each_line(|line| {
            let may_be_it = std::str::from_utf8(line).is_ok_and(|line| line.contains(&written));
            let entry = may_be_it.then(|| serde_json::from_slice::<Value>(line).ok()).flatten();
            found = entry
                .map(|entry| Envelope::read(&entry))
                .filter(|envelope| envelope.msg_id == msg_id);
            if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(found)
    }

    /// Calls `each` with each line, oldest first, until it returns `Break`. The file is opened
    /// once: [`Archive::remove`] may replace it meanwhile.
    fn for_each_line(&self, each: impl FnMut(&[u8]) -> ControlFlow<()>) -> Result<(), StoreError> {
        if let Some(file) = LineFile::open(&self.path)? {
            file.read_lines(0, each)?;
        }
        Ok(())
    }

    /// Removes messages from the archive.
    pub(crate) fn remove(&self, ids: &BTreeSet<&String>) -> Result<(), StoreError> {
        let mut entries = self.entries()?;
        let before = entries.len();
        entries.retain(|entry| !ids.contains(&Envelope::read(entry).msg_id));
        if entries.len() == before {
            return Ok(());
        }
        let mut text = Vec::new();
        for entry in &entries {
            text.extend_from_slice(entry.to_string().as_bytes());
            text.push(b'\n');
        }
        fs::write_atomic(&self.path, &text)?;
        Ok(())
    }
}

/// Returns true if at least [`FULL`] messages were read.
pub(crate) fn is_full(entries: &[Value]) -> bool {
    count_read(entries) >= FULL
}

fn count_read(entries: &[Value]) -> usize {
    entries.iter().filter(|entry| is_read(entry)).count()
}

fn is_read(entry: &Value) -> bool {
    entry.get("read").and_then(Value::as_bool).unwrap_or(false)
}
