//! Which messages the reader of a mailbox has been given: written down before the mailbox says so itself, so that none
//! is given twice when a process dies in between, or when a foreign writer puts an old state back (MSG-02, MSG-03).

use std::collections::BTreeSet;

use super::document::MAX_FILE;
use super::error::StoreError;
use super::mailbox::Mailbox;
use crate::sys::{failpoint, fs};

/// So many of the newest ids stay although the mailbox no longer has them: a late writer may put them back.
const KEPT: usize = 256;
/// With more ids than this the record is shortened.
const LONG: usize = 2 * KEPT;

impl Mailbox<'_> {
    /// The ids that were handed over, oldest first.
    pub(super) fn handed(&self) -> Result<Vec<String>, StoreError> {
        let bytes = fs::read(&self.team.layout.handed(&self.owner), MAX_FILE)?.unwrap_or_default();
        // A line that a crash cut short says nothing: its messages were not acknowledged to anybody.
        let batches =
            bytes.split(|b| *b == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
        Ok(batches.flat_map(|ids: Vec<String>| ids).collect())
    }

    /// Writes down that these were handed over; gives those of which that was not known. Under the mailbox's lock.
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

    /// Takes out the ids that the mailbox no longer has, when there are many. Under the mailbox's lock.
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
