//! Copies mailboxes. A message in a file goes to the store; a message in the store goes to the file
//! of a member on this host whose program reads it there.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::FileBridge;
use crate::error::StoreError;
use crate::files::document;
use crate::mail::mailbox::Mailbox;
use database::{Appended, MailEntry, MailRow, MailScope};
use model::id::MemberName;
use model::mail::envelope::Envelope;
use model::time::Timestamp;
use model::wire;
use sys::clock;

/// The messages in the file of a mailbox: whether each is marked as read, by its id.
type MarksInFile = BTreeMap<String, bool>;

impl FileBridge {
    /// Copies the mailbox with this name in file names.
    pub(super) fn copy_mailbox(&mut self, stem: &str) -> Result<(), StoreError> {
        let files = self.files.clone();
        let team = self.team.team()?;
        let named = |name: &MemberName| name.file_stem() == stem;
        let Some(owner) = team.members.into_iter().map(|member| member.name).find(named) else {
            return self.report_unknown_owner(stem);
        };
        let mailbox = files.mailbox(&owner);
        let entries = match document::read(&mailbox.place()) {
            Ok(Some(Value::Array(entries))) => entries,
            Ok(_) => Vec::new(),
            Err(e) if e.is_about_content() => return self.report(e.to_string()),
            Err(e) => return Err(e),
        };
        let known: BTreeSet<String> = mailbox.acks.ids()?.into_iter().collect();
        let sent = self.send(&owner, &mailbox, &entries, &known)?;
        if self.readers.contains(&owner) {
            return self.receive(&owner, &mailbox, &entries, &known);
        }
        take_out(&mailbox, &sent)
    }

    /// Appends the messages that programs wrote into the file to the mailbox in the store. Returns
    /// their ids.
    fn send(
        &self,
        owner: &MemberName,
        mailbox: &Mailbox<'_>,
        entries: &[Value],
        known: &BTreeSet<String>,
    ) -> Result<BTreeSet<String>, StoreError> {
        let new: Vec<MailEntry> = entries
            .iter()
            .map(|entry| MailEntry {
                msg_id: Envelope::read(entry).msg_id,
                body: by_common_clock(entry).to_string(),
            })
            .filter(|entry| !known.contains(&entry.msg_id))
            .collect();
        if new.is_empty() {
            return Ok(BTreeSet::new());
        }
        let (stem, name) = (owner.file_stem(), owner.folded());
        let team = self.shared.name();
        // The store has each id once, so that a repeated call after a crash adds nothing.
        match self.shared.database.append_mail(team, &stem, &name, &new, &[])? {
            Appended::Stored(_) => {}
            // The member has just left; the messages stay in the file.
            Appended::NoMember => return Ok(BTreeSet::new()),
        }
        let ids: Vec<String> = new.into_iter().map(|entry| entry.msg_id).collect();
        mailbox.acks.record(&ids)?;
        Ok(ids.into_iter().collect())
    }

    /// Appends new messages in the store to the file, and brings the marks of the others up to
    /// date on both sides. `known` are the messages that both sides have had.
    fn receive(
        &self,
        owner: &MemberName,
        mailbox: &Mailbox<'_>,
        entries: &[Value],
        known: &BTreeSet<String>,
    ) -> Result<(), StoreError> {
        let (team, stem) = (self.shared.name(), owner.file_stem());
        let rows = self.shared.database.mail(team, &stem, MailScope::Undelivered)?;
        let in_file: MarksInFile = entries
            .iter()
            .map(|entry| {
                let envelope = Envelope::read(entry);
                (envelope.msg_id, envelope.read)
            })
            .collect();
        // Claude Code marks the messages that it has read, or removes them.
        let is_read = |id: &String| in_file.get(id).copied().unwrap_or(known.contains(id));
        let read: Vec<String> = rows.iter().map(|row| row.msg_id.clone()).filter(is_read).collect();
        if !read.is_empty() {
            self.shared.database.deliver_mail(team, &stem, &read, false)?;
        }
        let open: BTreeSet<&String> = rows.iter().map(|row| &row.msg_id).collect();
        let is_marked_in_store = |id: &String| {
            in_file.get(id) == Some(&false) && known.contains(id) && !open.contains(id)
        };
        let marked: BTreeSet<String> =
            in_file.keys().filter(|id| is_marked_in_store(id)).cloned().collect();
        let new: Vec<&MailRow> = rows
            .iter()
            .filter(|row| !in_file.contains_key(&row.msg_id) && !known.contains(&row.msg_id))
            .collect();
        if new.is_empty() && marked.is_empty() {
            return mailbox.acks.prune(&in_file.into_keys().collect());
        }
        write_in(mailbox, &new, &marked)?;
        let ids: Vec<String> = new.iter().map(|row| row.msg_id.clone()).collect();
        mailbox.acks.record(&ids).map(drop)
    }

    fn report_unknown_owner(&mut self, stem: &str) -> Result<(), StoreError> {
        let Ok(owner) = MemberName::existing(stem) else { return Ok(()) };
        let place = self.files.mailbox(&owner).place();
        let is_empty = match document::read(&place) {
            Ok(Some(Value::Array(entries))) => entries.is_empty(),
            Ok(_) | Err(_) => true,
        };
        if is_empty {
            return Ok(());
        }
        let path = place.path.display();
        self.report(format!("`{owner}` is not on the team; its messages stay in {path}"))
    }
}

/// Returns an entry with the time of the clock that the team's hosts share: the program that wrote
/// it uses the clock of its machine.
fn by_common_clock(entry: &Value) -> Value {
    let (mut entry, offset_ms) = (entry.clone(), clock::offset_ms());
    let Envelope { timestamp, msg_id: id, .. } = Envelope::read(&entry);
    let at = Timestamp::parse(&timestamp).filter(|_| offset_ms != 0);
    if let (Some(at), Some(entry)) = (at, entry.as_object_mut()) {
        // One without an id gets it from its contents, the time included.
        wire::put(entry, "msg_id", id.as_str());
        wire::put(entry, "timestamp", Timestamp(at.0.saturating_add_signed(offset_ms)).iso());
    }
    entry
}

/// Appends messages to the file, and marks those with the ids `marked` as read.
fn write_in(
    mailbox: &Mailbox<'_>,
    new: &[&MailRow],
    marked: &BTreeSet<String>,
) -> Result<(), StoreError> {
    document::change(&mailbox.place(), |found| {
        let mut entries = entries_of(found);
        let mut present = BTreeSet::new();
        for entry in &mut entries {
            let id = Envelope::read(entry).msg_id;
            if marked.contains(&id)
                && let Some(entry) = entry.as_object_mut()
            {
                wire::put(entry, "read", true);
            }
            present.insert(id);
        }
        let missing = new.iter().filter(|row| !present.contains(&row.msg_id));
        entries.extend(missing.map(|row| entry_of(row)));
        Ok((Some(Value::Array(entries)), ()))
    })
}

/// Returns the entry of a message. It keeps its id, from which one without an id would differ if
/// its text was changed by the way.
fn entry_of(row: &MailRow) -> Value {
    match serde_json::from_str(&row.body) {
        Ok(Value::Object(mut entry)) => {
            wire::put(&mut entry, "read", false);
            wire::put(&mut entry, "msg_id", row.msg_id.as_str());
            Value::Object(entry)
        }
        Ok(other) => other,
        Err(_) => Value::String(row.body.clone()),
    }
}

/// Removes messages from the file of a member that does not read it.
fn take_out(mailbox: &Mailbox<'_>, ids: &BTreeSet<String>) -> Result<(), StoreError> {
    if ids.is_empty() {
        return Ok(());
    }
    document::change(&mailbox.place(), |found| {
        let mut entries = entries_of(found);
        entries.retain(|entry| !ids.contains(&Envelope::read(entry).msg_id));
        Ok((Some(Value::Array(entries)), ()))
    })
}

fn entries_of(found: Option<Value>) -> Vec<Value> {
    match found {
        Some(Value::Array(entries)) => entries,
        Some(_) | None => Vec::new(),
    }
}
