//! Archive of read messages, which keeps mailboxes short (PF-01). A crash can leave a message in
//! the archive twice or also in the mailbox, so readers deduplicate by id.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use serde_json::Value;

use super::error::StoreError;
use super::mailbox::Mailbox;
use crate::model::envelope::Envelope;
use crate::sys::{failpoint, fs};

/// Number of read messages that stay in the mailbox.
const STAY: usize = 32;
/// Number of read messages at which the older ones are archived. Twice `STAY`, so that messages are
/// archived in batches: each is written to the disk once more.
const FULL: usize = 2 * STAY;
/// Bytes of the archive to read at a time.
const CHUNK: u64 = 256 * 1024;

impl Mailbox<'_> {
    /// Moves the oldest read messages from `entries` to the archive, if there are at least
    /// [`FULL`]. Requires the mailbox's lock. The caller then publishes the mailbox without them; a
    /// crash in between leaves them in both files.
    pub(super) fn archive_old(&self, entries: &mut Vec<Value>) -> Result<(), StoreError> {
        if !is_full(entries) {
            return Ok(());
        }
        let (mut going, mut lines) = (read(entries) - STAY, Vec::new());
        entries.retain(|entry| {
            let goes = going > 0 && is_read(entry);
            if goes {
                going -= 1;
                lines.push(entry.to_string().into_bytes());
            }
            !goes
        });
        let path = self.team.layout.archive(&self.owner);
        self.make_dir_of(&path)?;
        fs::append_durable(&path, &lines)?;
        failpoint::hit("archive.appended");
        Ok(())
    }

    /// Returns the archived messages, oldest first, without duplicates.
    pub(super) fn archived(&self) -> Result<Vec<Value>, StoreError> {
        let (mut entries, mut known) = (Vec::new(), BTreeSet::new());
        self.each_archived(|line| {
            // A line torn by a crash does not parse. Its message is still in the mailbox.
            let entry = serde_json::from_slice::<Value>(line).ok();
            entries.extend(entry.filter(|entry| known.insert(Envelope::read(entry).msg_id)));
            ControlFlow::Continue(())
        })?;
        Ok(entries)
    }

    /// Returns the archived message that phalanx wrote with this id. The archive can be long, so it
    /// is read in chunks and only lines that contain the id are parsed.
    pub(super) fn find_archived(&self, msg_id: &str) -> Result<Option<Envelope>, StoreError> {
        let written = Value::from(msg_id).to_string();
        let mut found = None;
        self.each_archived(|line| {
            let may_be_it = std::str::from_utf8(line).is_ok_and(|line| line.contains(&written));
            let entry = may_be_it.then(|| serde_json::from_slice::<Value>(line).ok()).flatten();
            found = entry
                .map(|entry| Envelope::read(&entry))
                .filter(|envelope| envelope.msg_id == msg_id);
            if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(found)
    }

    /// Calls `look` with each line of the archive, oldest first, until it returns `Break`.
    fn each_archived(
        &self,
        mut look: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let path = self.team.layout.archive(&self.owner);
        let (mut rest, mut at) = (Vec::new(), 0);
        loop {
            let bytes = fs::read_range(&path, at, CHUNK)?;
            if bytes.is_empty() {
                return Ok(());
            }
            at += bytes.len() as u64;
            rest.extend_from_slice(&bytes);
            let Some(end) = rest.iter().rposition(|b| *b == b'\n') else { continue };
            if rest[..end].split(|b| *b == b'\n').try_for_each(&mut look).is_break() {
                return Ok(());
            }
            rest.drain(..=end);
        }
    }

    /// Removes messages from the archive. Requires the mailbox's lock.
    pub(super) fn remove_archived(&self, ids: &BTreeSet<&String>) -> Result<(), StoreError> {
        let mut entries = self.archived()?;
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
        fs::write_atomic(&self.team.layout.archive(&self.owner), &text)?;
        Ok(())
    }
}

/// Returns true if at least [`FULL`] messages were read.
pub(super) fn is_full(entries: &[Value]) -> bool {
    read(entries) >= FULL
}

fn read(entries: &[Value]) -> usize {
    entries.iter().filter(|entry| is_read(entry)).count()
}

fn is_read(entry: &Value) -> bool {
    entry.get("read").and_then(Value::as_bool).unwrap_or(false)
}
