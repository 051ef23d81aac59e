//! Where the messages go that were read long ago, so that a mailbox stays short for as long as its reader reads (PF-01).
//! Lines are added; an entry may stand there twice, and counts once.

use std::collections::BTreeSet;

use serde_json::Value;

use super::error::StoreError;
use super::mailbox::Mailbox;
use crate::model::envelope::Envelope;
use crate::sys::{failpoint, fs};

/// So many of the messages that were read stay in the mailbox.
const STAY: usize = 32;
/// With so many, the older ones go. Not at each one more: what goes is written to the disk twice.
const FULL: usize = 2 * STAY;
/// How much of the archive is read in one go.
const CHUNK: u64 = 4 * 1024 * 1024;

impl Mailbox<'_> {
    /// Moves what was read long ago from `entries` into the archive. Under the mailbox's lock; the mailbox is published
    /// without them afterwards: who dies in between leaves them in both.
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

    /// What is in the archive, oldest first, each message once.
    pub(super) fn archived(&self) -> Result<Vec<Value>, StoreError> {
        let path = self.team.layout.archive(&self.owner);
        let (mut entries, mut rest, mut at) = (Vec::new(), Vec::new(), 0);
        loop {
            let bytes = fs::read_range(&path, at, CHUNK)?;
            if bytes.is_empty() {
                break;
            }
            at += bytes.len() as u64;
            rest.extend_from_slice(&bytes);
            let Some(end) = rest.iter().rposition(|b| *b == b'\n') else { continue };
            let lines = rest[..end].split(|b| *b == b'\n');
            // A line that a crash cut short is still in the mailbox.
            entries.extend(lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok()));
            rest.drain(..=end);
        }
        let mut known = BTreeSet::new();
        entries.retain(|entry| known.insert(Envelope::read(entry).msg_id));
        Ok(entries)
    }

    /// Takes messages out of the archive. Under the mailbox's lock.
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

/// Whether so many were read that some are to go into the archive.
pub(super) fn is_full(entries: &[Value]) -> bool {
    read(entries) >= FULL
}

fn read(entries: &[Value]) -> usize {
    entries.iter().filter(|entry| is_read(entry)).count()
}

fn is_read(entry: &Value) -> bool {
    entry.get("read").and_then(Value::as_bool).unwrap_or(false)
}
