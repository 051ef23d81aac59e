//! Where the messages go that were read long ago, so that a mailbox stays short for as long as its reader reads (PF-01).
//! Lines are added; an entry may stand there twice, and counts once.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

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
const CHUNK: u64 = 256 * 1024;

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
        let (mut entries, mut known) = (Vec::new(), BTreeSet::new());
        self.each_archived(|line| {
            // A line that a crash cut short is still in the mailbox.
            let entry = serde_json::from_slice::<Value>(line).ok();
            entries.extend(entry.filter(|entry| known.insert(Envelope::read(entry).msg_id)));
            ControlFlow::Continue(())
        })?;
        Ok(entries)
    }

    /// A message of ours in the archive. However long that is, it is read bit by bit, and only what may be it is parsed.
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

    /// Goes through the lines of the archive, oldest first, until it is told to stop.
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
