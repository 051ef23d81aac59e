//! Handoffs from other teams, one file for each team and type (`phalanx/handoffs/`). The lead gets
//! one message about each, even if the process dies that hands over.

use std::collections::BTreeSet;
use std::path::Path;

use crate::error::StoreError;
use crate::files::dirs;
use crate::files::document::{FilePlace, HeldGate};
use crate::mail::ack_log::AckLog;
use crate::mail::shared_mail::SharedMailbox;
use crate::shared::SharedTeam;
use crate::team::TeamStore;
use database::{LogEntry, LogKind, LogScope};
use model::id::MemberName;
use model::mail::envelope::{Envelope, MAX_TEXT};
use model::mail::handoff::TeamHandoff;
use sys::{failpoint, fs};

/// Largest file of handoffs, in bytes.
const MAX_HANDOFFS: u64 = 16 * 1024 * 1024;
const ENDING: &str = ".jsonl";

/// The handoffs that a team has received.
#[derive(Debug, Default)]
pub struct ReceivedHandoffs {
    /// Oldest first.
    pub handoffs: Vec<TeamHandoff>,
    /// Sentences about lines and files that cannot be read.
    pub faults: Vec<String>,
}

impl TeamStore {
    /// Stores a handoff from another team.
    ///
    /// # Errors
    /// [`StoreError::MessageTooLong`] if the body exceeds [`MAX_TEXT`];
    /// [`StoreError::HandoffsFull`] if the file would exceed its limit;
    /// [`StoreError::NoSuchTeam`] if the team was deleted meanwhile.
    pub fn store_handoff(&self, handoff: &TeamHandoff) -> Result<(), StoreError> {
        let bytes = serde_json::to_vec(&handoff.body).map_or(0, |body| body.len());
        if bytes > MAX_TEXT {
            return Err(StoreError::MessageTooLong { bytes, limit: MAX_TEXT });
        }
        if let Some(shared) = &self.shared {
            return shared.store_handoff(handoff);
        }
        let place = self.handoffs_place();
        let _held = HeldGate::take(&place)?;
        self.team()?;
        self.append_handoff(handoff)?;
        failpoint::hit("handoff.stored");
        Ok(())
    }

    /// Appends a handoff to its file. The caller has the gate.
    pub(crate) fn append_handoff(&self, handoff: &TeamHandoff) -> Result<(), StoreError> {
        let line = serde_json::to_vec(handoff).expect("a handoff has string keys only");
        let file = format!("{}.{}{ENDING}", handoff.from_team, handoff.kind);
        let path = self.layout.handoffs().join(file);
        dirs::make_dirs_of(&path)?;
        if fs::len(&path)?.unwrap_or_default() + line.len() as u64 >= MAX_HANDOFFS {
            return Err(StoreError::HandoffsFull { path, limit: MAX_HANDOFFS });
        }
        Ok(fs::append_durable(&path, &[line])?)
    }

    /// Returns the handoffs from other teams. Unreadable lines do not hide the others.
    pub fn received_handoffs(&self) -> Result<ReceivedHandoffs, StoreError> {
        if let Some(shared) = &self.shared {
            return shared.received_handoffs();
        }
        let dir = self.layout.handoffs();
        fs::refuse_link(&dir)?;
        let mut found = ReceivedHandoffs::default();
        let notified = self.layout.notified_handoffs();
        for name in fs::list(&dir)?.into_iter().filter(|name| name.ends_with(ENDING)) {
            let path = dir.join(name);
            if path == notified {
                continue;
            }
            match fs::read(&path, MAX_HANDOFFS) {
                Ok(bytes) => found.add(&path, &bytes.unwrap_or_default()),
                Err(e) => found.faults.push(format!("skipped a file: {e}")),
            }
        }
        found.handoffs.sort_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
        Ok(found)
    }

    /// Sends the lead the message about each handoff for which it has not been sent, and returns
    /// these handoffs. A message has the id of its handoff.
    pub fn notify_of_handoffs(
        &self,
        message: impl Fn(&TeamHandoff) -> Envelope,
    ) -> Result<Vec<TeamHandoff>, StoreError> {
        if let Some(shared) = &self.shared {
            return shared.notify_of_handoffs(message);
        }
        if !fs::exists(&self.layout.handoffs()) {
            return Ok(Vec::new());
        }
        let place = self.handoffs_place();
        let _held = HeldGate::take(&place)?;
        let notified = AckLog::at(place.path);
        let mut done: BTreeSet<String> = notified.ids()?.into_iter().collect();
        let mailbox = self.mailbox(&MemberName::lead());
        let mut sent = Vec::new();
        for handoff in self.received_handoffs()?.handoffs {
            if !done.insert(handoff.id.clone()) {
                continue;
            }
            // A process may have died after it sent the message.
            let is_new = mailbox.find(&handoff.id)?.is_none();
            if is_new {
                mailbox.append(&message(&handoff))?;
            }
            notified.record(std::slice::from_ref(&handoff.id))?;
            sent.extend(is_new.then_some(handoff));
        }
        Ok(sent)
    }

    /// The place whose gate excludes other phalanx processes from all handoffs of the team.
    fn handoffs_place(&self) -> FilePlace {
        self.own_place("handoffs", self.layout.notified_handoffs())
    }
}

impl ReceivedHandoffs {
    fn add(&mut self, path: &Path, bytes: &[u8]) {
        for (at, line) in bytes.split(|b| *b == b'\n').enumerate() {
            if line.trim_ascii().is_empty() {
                continue;
            }
            match serde_json::from_slice(line) {
                Ok(handoff) => self.handoffs.push(handoff),
                Err(e) => {
                    let place = format!("{}:{}", path.display(), at + 1);
                    self.faults.push(format!("skipped {place}: no handoff: {e}"));
                }
            }
        }
    }
}

/// Returns the line of a handoff in the shared store.
pub(crate) fn log_entry(handoff: &TeamHandoff) -> LogEntry {
    let body = serde_json::to_string(handoff).expect("a handoff has string keys only");
    LogEntry { id: handoff.id.clone(), at: handoff.at.0, task: None, body }
}

/// Handoffs in the shared store are the lines of a log.
impl SharedTeam {
    fn store_handoff(&self, handoff: &TeamHandoff) -> Result<(), StoreError> {
        Ok(self.database.append_log(self.name(), LogKind::Handoff, &[log_entry(handoff)])?)
    }

    fn received_handoffs(&self) -> Result<ReceivedHandoffs, StoreError> {
        let scope = LogScope::After { seq: 0, limit: u32::MAX };
        let mut found = ReceivedHandoffs::default();
        for line in self.database.log(self.name(), LogKind::Handoff, &scope)? {
            match serde_json::from_str(&line.body) {
                Ok(handoff) => found.handoffs.push(handoff),
                Err(e) => found.faults.push(format!("skipped handoff {}: {e}", line.seq)),
            }
        }
        Ok(found)
    }

    /// Sends the messages. The mailbox stores each id once, so that no message is sent twice.
    fn notify_of_handoffs(
        &self,
        message: impl Fn(&TeamHandoff) -> Envelope,
    ) -> Result<Vec<TeamHandoff>, StoreError> {
        let lead = MemberName::lead();
        let mailbox = SharedMailbox { team: self, owner: &lead };
        let mut sent = Vec::new();
        for handoff in self.received_handoffs()?.handoffs {
            if mailbox.append_new(&message(&handoff))? {
                sent.push(handoff);
            }
        }
        Ok(sent)
    }
}
