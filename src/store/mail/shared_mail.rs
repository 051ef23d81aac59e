//! Mailboxes in the shared store. A message is read as soon as it was delivered, and none is
//! archived: a row costs its readers nothing.

use serde_json::Value;

use crate::error::StoreError;
use crate::shared::SharedTeam;
use crate::team::journal;
use database::{Appended, LogEntry, MailEntry, MailRow, MailScope};
use model::id::MemberName;
use model::mail::envelope::Envelope;
use model::team::event::Event;
use model::wire;

/// The mailbox of a member of a team in the shared store.
pub(crate) struct SharedMailbox<'a> {
    pub(crate) team: &'a SharedTeam,
    pub(crate) owner: &'a MemberName,
}

impl SharedMailbox<'_> {
    pub(crate) fn create(&self, first: Option<&Envelope>) -> Result<bool, StoreError> {
        let is_new =
            self.team.database.create_mailbox(self.team.name(), &self.owner.file_stem())?;
        if let Some(first) = first.filter(|_| is_new) {
            self.append(std::slice::from_ref(first), &[])?;
        }
        Ok(is_new)
    }

    pub(crate) fn delete(&self) -> Result<(), StoreError> {
        Ok(self.team.database.delete_mailbox(self.team.name(), &self.owner.file_stem())?)
    }

    /// Appends messages and the events about them, all or nothing. Returns false if the owner is
    /// not on the roster.
    pub(crate) fn append(
        &self,
        envelopes: &[Envelope],
        events: &[Event],
    ) -> Result<bool, StoreError> {
        Ok(matches!(self.append_entries(envelopes, events)?, Appended::Stored(_)))
    }

    fn append_entries(
        &self,
        envelopes: &[Envelope],
        events: &[Event],
    ) -> Result<Appended, StoreError> {
        let entry = |envelope: &Envelope| MailEntry {
            msg_id: envelope.msg_id.clone(),
            body: Value::Object(envelope.to_entry()).to_string(),
        };
        let entries: Vec<MailEntry> = envelopes.iter().map(entry).collect();
        let lines: Vec<LogEntry> = events.iter().map(journal::log_entry).collect();
        let (stem, name) = (self.owner.file_stem(), self.owner.folded());
        let team = self.team.name();
        Ok(self.team.database.append_mail(team, &stem, &name, &entries, &lines)?)
    }

    /// Appends a message unless the mailbox has had one with its id. Returns true if it did.
    pub(crate) fn append_new(&self, envelope: &Envelope) -> Result<bool, StoreError> {
        let appended = self.append_entries(std::slice::from_ref(envelope), &[])?;
        Ok(matches!(appended, Appended::Stored(ids) if !ids.is_empty()))
    }

    pub(crate) fn read(&self, scope: MailScope) -> Result<Vec<Envelope>, StoreError> {
        let rows = self.team.database.mail(self.team.name(), &self.owner.file_stem(), scope)?;
        rows.iter().map(|row| self.envelope(row)).collect()
    }

    pub(crate) fn find(&self, msg_id: &str) -> Result<Option<Envelope>, StoreError> {
        let stem = self.owner.file_stem();
        let found = self.team.database.find_mail(self.team.name(), &stem, msg_id)?;
        found.map(|row| self.envelope(&row)).transpose()
    }

    /// Marks messages as delivered, and removes them if `remove` is set. Returns the ids that were
    /// not delivered before.
    pub(crate) fn deliver(&self, ids: &[String], remove: bool) -> Result<Vec<String>, StoreError> {
        let stem = self.owner.file_stem();
        Ok(self.team.database.deliver_mail(self.team.name(), &stem, ids, remove)?)
    }

    fn envelope(&self, row: &MailRow) -> Result<Envelope, StoreError> {
        let mut entry: Value = serde_json::from_str(&row.body).map_err(|e| {
            let what =
                format!("message {} to {} of team {}", row.msg_id, self.owner, self.team.name);
            StoreError::BadDocument { what, problem: e.to_string() }
        })?;
        if let Some(entry) = entry.as_object_mut() {
            wire::put(entry, "read", row.delivered);
        }
        // The row's id counts: an entry of another program has none in its body.
        Ok(Envelope { msg_id: row.msg_id.clone(), ..Envelope::read(&entry) })
    }
}
