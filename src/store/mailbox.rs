//! A member's mailbox: appended to by anybody, marked by its reader (protocol.md, section 4). What a message means is
//! not known here.

use serde_json::Value;

use super::document::{self, Place, Shared};
use super::error::StoreError;
use super::teams::TeamStore;
use crate::model::envelope::{Envelope, MAX_TEXT};
use crate::model::id::MemberName;
use crate::model::wire;
use crate::sys::fs;

/// One member's mailbox.
pub(crate) struct Mailbox<'a> {
    team: &'a TeamStore,
    owner: MemberName,
}

impl TeamStore {
    /// The mailbox of a member; it need not exist.
    pub(crate) fn mailbox(&self, owner: &MemberName) -> Mailbox<'_> {
        Mailbox { team: self, owner: owner.clone() }
    }
}

impl Mailbox<'_> {
    /// Makes the empty box, so that other programs can lock it. False: there was one.
    pub(crate) fn found(&self) -> Result<bool, StoreError> {
        Ok(fs::create_new(&self.place().path, b"[]")?)
    }

    /// Removes the box of a teammate that never came up.
    pub(crate) fn abandon(&self) -> Result<(), StoreError> {
        fs::remove_file(&self.place().path)?;
        Ok(())
    }

    /// Everything in the box, oldest first.
    pub(crate) fn entries(&self) -> Result<Vec<Envelope>, StoreError> {
        match document::read(&self.place())? {
            Some(Value::Array(entries)) => Ok(entries.iter().map(Envelope::read).collect()),
            Some(other) => Ok(vec![Envelope::read(&other)]),
            None => Ok(Vec::new()),
        }
    }

    /// What has not been read, oldest first.
    pub(crate) fn unread(&self) -> Result<Vec<Envelope>, StoreError> {
        Ok(self.entries()?.into_iter().filter(|e| !e.read).collect())
    }

    /// Puts a message at the end, if its owner is on the roster at that moment (MSG-05: no file is made for a
    /// stranger).
    pub(crate) fn append(&self, envelope: &Envelope) -> Result<(), StoreError> {
        if envelope.text.len() > MAX_TEXT {
            return Err(StoreError::MessageTooLong { bytes: envelope.text.len(), limit: MAX_TEXT });
        }
        self.on_roster()?;
        self.change(|entries| {
            // Looked at again under the lock: the owner may have left while we waited for it.
            self.on_roster()?;
            entries.push(Value::Object(envelope.to_entry()));
            Ok(())
        })
    }

    /// Marks these messages as read. Only whoever has handed them over may call this (invariant 4).
    pub(crate) fn mark_read(&self, ids: &[String]) -> Result<(), StoreError> {
        self.edit_listed(ids, |entry| wire::put(entry, "read", true))
    }

    /// Removes these messages.
    pub(crate) fn remove(&self, ids: &[String]) -> Result<(), StoreError> {
        self.change(|entries| {
            entries.retain(|e| !ids.contains(&Envelope::read(e).msg_id));
            Ok(())
        })
    }

    fn edit_listed(&self, ids: &[String], edit: impl Fn(&mut wire::Object)) -> Result<(), StoreError> {
        if ids.is_empty() {
            return Ok(());
        }
        self.change(|entries| {
            let listed = entries.iter_mut().filter(|e| ids.contains(&Envelope::read(e).msg_id));
            listed.filter_map(Value::as_object_mut).for_each(&edit);
            Ok(())
        })
    }

    fn on_roster(&self) -> Result<(), StoreError> {
        let team = self.team.team()?;
        if team.member(&self.owner).is_some() {
            return Ok(());
        }
        let known = team.members.into_iter().map(|m| m.name).collect();
        Err(StoreError::NoSuchMember { team: self.team.name.clone(), name: self.owner.clone(), known })
    }

    fn change(
        &self,
        mut edit: impl FnMut(&mut Vec<Value>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        document::change(&self.place(), |found| {
            let mut entries = match found {
                Some(Value::Array(entries)) => entries,
                // Something else than an array stays as the first entry: it is somebody's message (MSG-07).
                Some(other) => vec![other],
                None => Vec::new(),
            };
            edit(&mut entries)?;
            Ok((Some(Value::Array(entries)), ()))
        })
    }

    fn place(&self) -> Place {
        let gate = format!("inbox-{}", self.owner.file_stem());
        self.team.place(&gate, self.team.layout.inbox(&self.owner), Shared::WithOthers)
    }
}
