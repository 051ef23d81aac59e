//! Record of the messages that the reader of a mailbox was given. It is written before the mailbox
//! is marked, so that no message is delivered twice if a process dies in between or a foreign
//! writer restores an old state (MSG-02, MSG-03).

use std::collections::BTreeSet;

use super::document::MAX_FILE;
use super::error::StoreError;
use super::mailbox::Mailbox;
use crate::sys::{failpoint, fs};

/// Number of newest ids to keep even if the mailbox no longer has them, because a late writer may
/// put them back.
const KEPT: usize = 256;
/// Number of ids above which the record is shortened.
const LONG: usize = 2 * KEPT;

impl Mailbox<'_> {
    /// Returns the ids of delivered messages, oldest first.
    pub(super) fn handed(&self) -> Result<Vec<String>, StoreError> {
        let bytes = fs::read(&self.team.layout.handed(&self.owner), MAX_FILE)?.unwrap_or_default();
        // A line torn by a crash is skipped: its messages were never reported as acknowledged.
        let batches =
            bytes.split(|b| *b == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
        Ok(batches.flat_map(|ids: Vec<String>| ids).collect())
    }

    /// Records messages as delivered and returns the ids that were not recorded before. Requires
    /// the mailbox's lock.
    pub(super) fn record_handed(&self, ids: &[String]) -> Result<Vec<String>, StoreError> {
        let known: BTreeSet<String> = self.handed()?.into_iter().collect();
        let fresh: Vec<String> = ids.iter().filter(|id| !known.contains(*id)).cloned().collect();
        if !fresh.is_empty() {
            let path = self.team.layout.handed(&self.owner);
            self.make_dir_of(&path)?;
            let line = serde_json::to_vec(&fresh).expect("a list of strings can be written");
            fs::append_durable(&path, &[line])?;
        }
        failpoint::hit("handed.recorded");
        Ok(fresh)
    }

    /// Removes ids that the mailbox no longer has, if there are more than [`LONG`]. Requires the
    /// mailbox's lock.
    pub(super) fn prune_handed(&self, in_box: &BTreeSet<String>) -> Result<(), StoreError> {
        let known = self.handed()?;
        if known.len() <= LONG {
            return Ok(());
        }
        let newest = known.len() - KEPT;
        let kept =
            known.iter().enumerate().filter(|(at, id)| *at >= newest || in_box.contains(*id));
        let kept: Vec<&String> = kept.map(|(_, id)| id).collect();
        if kept.len() == known.len() {
            return Ok(());
        }
        let mut line = serde_json::to_vec(&kept).expect("a list of strings can be written");
        line.push(b'\n');
        fs::write_atomic(&self.team.layout.handed(&self.owner), &line)?;
        Ok(())
    }
}
