//! Record of the messages that the reader of a mailbox was given. It is written before the mailbox
//! is marked, so that no message is delivered twice if a process dies in between or a foreign
//! writer restores an old state (MSG-02, MSG-03).

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::error::StoreError;
use crate::files::dirs;
use crate::files::document::MAX_FILE;
use sys::{failpoint, fs};

/// Number of newest ids to keep even if the mailbox no longer has them, because a late writer may
/// put them back.
const NEWEST_IDS: usize = 256;
/// Number of ids above which the record is shortened.
const PRUNE_ABOVE: usize = 2 * NEWEST_IDS;

/// The record of one mailbox. Changes require the mailbox's lock.
pub(crate) struct AckLog {
    path: PathBuf,
}

impl AckLog {
    pub(crate) fn at(path: PathBuf) -> AckLog {
        AckLog { path }
    }

    /// Returns the ids of delivered messages, oldest first.
    pub(crate) fn ids(&self) -> Result<Vec<String>, StoreError> {
        let bytes = fs::read(&self.path, MAX_FILE)?.unwrap_or_default();
        // A line torn by a crash is skipped: its messages were never reported as acknowledged.
        let batches =
            bytes.split(|b| *b == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
        Ok(batches.flat_map(|ids: Vec<String>| ids).collect())
    }

    /// Records messages as delivered and returns the ids that were not recorded before.
    pub(crate) fn record(&self, ids: &[String]) -> Result<Vec<String>, StoreError> {
        let known: BTreeSet<String> = self.ids()?.into_iter().collect();
        let fresh: Vec<String> = ids.iter().filter(|id| !known.contains(*id)).cloned().collect();
        if !fresh.is_empty() {
            dirs::make_dirs_of(&self.path)?;
            let line = serde_json::to_vec(&fresh).expect("a list of strings can be written");
            fs::append_durable(&self.path, &[line])?;
        }
        failpoint::hit("handed.recorded");
        Ok(fresh)
    }

    /// Removes ids that the mailbox no longer has, if there are more than [`PRUNE_ABOVE`].
    pub(crate) fn prune(&self, in_box: &BTreeSet<String>) -> Result<(), StoreError> {
        let known = self.ids()?;
        if known.len() <= PRUNE_ABOVE {
            return Ok(());
        }
        let newest = known.len() - NEWEST_IDS;
        let kept =
            known.iter().enumerate().filter(|(at, id)| *at >= newest || in_box.contains(*id));
        let kept: Vec<&String> = kept.map(|(_, id)| id).collect();
        if kept.len() == known.len() {
            return Ok(());
        }
        let mut line = serde_json::to_vec(&kept).expect("a list of strings can be written");
        line.push(b'\n');
        fs::write_atomic(&self.path, &line)?;
        Ok(())
    }
}
