//! Mailboxes of members. Any program appends to a mailbox; entries are marked and removed only on
//! behalf of its reader.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::StoreError;
use crate::files::document::{
    self, Durability, FilePlace, HeldGate, ParsedFile, PeerExclusion, Writers,
};
use crate::files::repair_surrogates;
use crate::mail::ack_log::AckLog;
use crate::mail::archive::{self, Archive};
use crate::mail::shared_mail::SharedMailbox;
use crate::shared::until_written;
use crate::team::{TeamStore, journal};
use database::MailScope;
use model::digest;
use model::id::MemberName;
use model::mail::envelope::{Envelope, MAX_TEXT};
use model::team::event::{Event, Note};
use model::wire::{self, Object};
use sys::{failpoint, fs};

/// When [`Mailbox::acknowledge`] marks messages in the mailbox itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marking {
    /// Only if the owner reads the mailbox through phalanx; any other belongs to the owner's
    /// program.
    IfReadByPhalanx,
    /// For an owner that is not running.
    Always,
}

pub struct Mailbox<'a> {
    team: &'a TeamStore,
    pub(crate) owner: MemberName,
    pub(crate) acks: AckLog,
    archive: Archive,
}

impl TeamStore {
    /// Returns the mailbox of a member; its file need not exist.
    pub fn mailbox(&self, owner: &MemberName) -> Mailbox<'_> {
        Mailbox {
            team: self,
            owner: owner.clone(),
            acks: AckLog::at(self.layout.deliveries(owner)),
            archive: Archive::at(self.layout.archive(owner)),
        }
    }

    /// Syncs mailboxes that were created with [`Mailbox::create`], all at once.
    pub fn sync_mailboxes(&self, owners: &[&MemberName]) -> Result<(), StoreError> {
        if self.shared.is_some() {
            return Ok(());
        }
        let paths: Vec<_> = owners.iter().map(|owner| self.layout.inbox(owner)).collect();
        Ok(fs::persist(&paths)?)
    }
}

/// Parses the entries of a mailbox one after the other, because the JSON tree of a long mailbox
/// takes many times its size. Returns `None` if it is not an array.
fn envelopes(
    bytes: &[u8],
    keep: impl Fn(&Envelope) -> bool,
) -> serde_json::Result<Option<Vec<Envelope>>> {
    if bytes.trim_ascii_start().first() != Some(&b'[') {
        return serde_json::from_slice(bytes).map(|_: IgnoredAny| None);
    }
    let mut kept = Vec::new();
    for entry in serde_json::from_slice::<Vec<&RawValue>>(bytes)? {
        let envelope = Envelope::read(&serde_json::from_str(entry.get())?);
        if keep(&envelope) {
            kept.push(envelope);
        }
    }
    Ok(Some(kept))
}

pub(crate) fn check_length(envelope: &Envelope) -> Result<(), StoreError> {
    match envelope.text.len() {
        bytes if bytes > MAX_TEXT => Err(StoreError::MessageTooLong { bytes, limit: MAX_TEXT }),
        _ => Ok(()),
    }
}

impl Mailbox<'_> {
    /// Creates the mailbox, with `first` in it if given, so that other programs can lock it. Does
    /// not sync it; [`TeamStore::sync_mailboxes`] does that. Returns false if it exists already,
    /// and leaves it unchanged.
    ///
    /// # Errors
    /// [`StoreError::MessageTooLong`] if the text exceeds [`MAX_TEXT`].
    pub fn create(&self, first: Option<&Envelope>) -> Result<bool, StoreError> {
        if let Some(shared) = self.shared() {
            first.map_or(Ok(()), check_length)?;
            return shared.create(first);
        }
        let entries: Vec<Object> = first.map(Envelope::to_entry).into_iter().collect();
        first.map_or(Ok(()), check_length)?;
        self.make_dir()?;
        document::write_new(&self.place().path, &entries, Durability::ThisBoot)
    }

    /// Removes the mailbox of a teammate that failed to start.
    pub fn delete(&self) -> Result<(), StoreError> {
        if let Some(shared) = self.shared() {
            return shared.delete();
        }
        fs::remove_file(&self.place().path)?;
        Ok(())
    }

    /// Returns the messages in the mailbox, oldest first.
    pub fn entries(&self) -> Result<Vec<Envelope>, StoreError> {
        if let Some(shared) = self.shared() {
            return shared.read(MailScope::Recent);
        }
        self.file_entries_where(|_| true)
    }

    /// Returns the messages in the mailbox that `keep` accepts, oldest first and each once. Those
    /// that were delivered count as read.
    pub fn entries_where(
        &self,
        keep: impl Fn(&Envelope) -> bool,
    ) -> Result<Vec<Envelope>, StoreError> {
        if let Some(shared) = self.shared() {
            let mut recent = shared.read(MailScope::Recent)?;
            recent.retain(keep);
            return Ok(recent);
        }
        // As in `unread_where`, the record of deliveries is read first.
        let delivered: BTreeSet<String> = self.acks.ids()?.into_iter().collect();
        let mut seen = BTreeSet::new();
        let mut entries = self.file_entries_where(&keep)?;
        entries.iter_mut().for_each(|e| e.read |= delivered.contains(&e.msg_id));
        entries.retain(|e| keep(e) && seen.insert(e.msg_id.clone()));
        Ok(entries)
    }

    /// Returns the messages in the mailbox's file that `keep` accepts, oldest first.
    fn file_entries_where(
        &self,
        keep: impl Fn(&Envelope) -> bool,
    ) -> Result<Vec<Envelope>, StoreError> {
        let parse = |bytes: &[u8]| repair_surrogates::parse_by(bytes, |b| envelopes(b, &keep));
        match document::read_parsed(&self.place(), parse)? {
            Some(ParsedFile { parsed: Some(entries), .. }) => Ok(entries),
            Some(ParsedFile { parsed: None, .. }) => Err(self.no_array()),
            None => Ok(Vec::new()),
        }
    }

    /// Returns all messages, oldest first, including archived ones.
    pub fn all(&self) -> Result<Vec<Envelope>, StoreError> {
        if let Some(shared) = self.shared() {
            return shared.read(MailScope::All);
        }
        // Read the mailbox first: a message that is archived meanwhile is then found in both and
        // counts once.
        let entries = self.entries()?;
        let in_box: BTreeSet<&String> = entries.iter().map(|e| &e.msg_id).collect();
        let archived = self.archive.entries()?;
        let older = archived.iter().map(Envelope::read).filter(|e| !in_box.contains(&e.msg_id));
        let mut all: Vec<Envelope> = older.collect();
        all.extend(entries);
        Ok(all)
    }

    /// Returns the message that phalanx wrote with this id, even if it is archived.
    pub fn find(&self, msg_id: &str) -> Result<Option<Envelope>, StoreError> {
        if let Some(shared) = self.shared() {
            return shared.find(msg_id);
        }
        // Read the mailbox first, so that a message archived meanwhile is not missed.
        let in_box = self.entries()?.into_iter().find(|envelope| envelope.msg_id == msg_id);
        if in_box.is_some() { Ok(in_box) } else { self.archive.find(msg_id) }
    }

    /// Returns the messages that were not delivered, oldest first.
    pub fn unread(&self) -> Result<Vec<Envelope>, StoreError> {
        self.unread_where(|_| true)
    }

    /// Returns the messages that were not delivered and that `keep` accepts, oldest first. A
    /// mailbox can hold many messages that its reader has no use for yet.
    pub fn unread_where(
        &self,
        keep: impl Fn(&Envelope) -> bool,
    ) -> Result<Vec<Envelope>, StoreError> {
        if let Some(shared) = self.shared() {
            let mut unread = shared.read(MailScope::Undelivered)?;
            unread.retain(keep);
            return Ok(unread);
        }
        // Read the record of deliveries first: an id leaves it only after its message has left the
        // mailbox.
        let mut delivered: BTreeSet<String> = self.acks.ids()?.into_iter().collect();
        let mut entries = self.file_entries_where(|e| !e.read && keep(e))?;
        entries.retain(|e| delivered.insert(e.msg_id.clone()));
        Ok(entries)
    }

    /// Like [`Mailbox::append`], but writes several messages at once.
    pub fn append_all(&self, envelopes: &[Envelope]) -> Result<(), StoreError> {
        if let [one] = envelopes {
            return self.append(one);
        }
        envelopes.iter().try_for_each(check_length)?;
        if let Some(shared) = self.shared() {
            return self.append_shared(&shared, envelopes, &[]);
        }
        let place = self.place();
        let held = HeldGate::take(&place)?;
        self.on_roster()?;
        self.make_dir()?;
        document::change_held(&place, &held, PeerExclusion::WhilePublishing, &mut |found| {
            let mut entries = self.entries_of(found)?;
            entries.extend(envelopes.iter().map(|envelope| Value::Object(envelope.to_entry())));
            Ok(Some(Value::Array(entries)))
        })
    }

    /// Appends a message unless one with its id was appended before, also by another process at the
    /// same time (MSG-22).
    ///
    /// # Errors
    /// As [`Mailbox::append`].
    pub fn append_once(&self, envelope: &Envelope) -> Result<(), StoreError> {
        if self.shared().is_some() {
            // The shared store keeps one message of an id.
            return self.append(envelope);
        }
        check_length(envelope)?;
        let place = self.place();
        let held = HeldGate::take(&place)?;
        self.on_roster()?;
        self.make_dir()?;
        if self.archive.find(&envelope.msg_id)?.is_some() {
            return Ok(());
        }
        document::change_held(&place, &held, PeerExclusion::WhilePublishing, &mut |found| {
            let mut entries = self.entries_of(found)?;
            let is_known = entries.iter().any(|e| Envelope::read(e).msg_id == envelope.msg_id);
            entries.push(Value::Object(envelope.to_entry()));
            Ok((!is_known).then_some(Value::Array(entries)))
        })
    }

    /// Appends messages, and the events about them to the journal. In the shared store that is one
    /// call, all or nothing.
    ///
    /// # Errors
    /// As [`Mailbox::append`]; the messages of a team of files may then be stored.
    pub fn append_with_events(
        &self,
        envelopes: &[Envelope],
        notes: Vec<Note>,
    ) -> Result<(), StoreError> {
        let Some(shared) = self.shared() else {
            self.append_all(envelopes)?;
            return self.team.record_all(notes).map(drop);
        };
        envelopes.iter().try_for_each(check_length)?;
        let events = journal::events_of(&self.team.layout, notes);
        self.append_shared(&shared, envelopes, &events)
    }

    /// Records these messages as delivered, after which they are no longer unread, and marks and
    /// shortens the mailbox as `marking` says. Must be called only after the messages were
    /// delivered. Returns the ids that were not recorded before.
    pub fn acknowledge(&self, ids: &[String], marking: Marking) -> Result<Vec<String>, StoreError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        if let Some(shared) = self.shared() {
            return shared.deliver(ids, false);
        }
        let rewrite = marking == Marking::Always || self.is_read_by_phalanx()?;
        let place = self.place();
        let held = HeldGate::take(&place)?;
        let fresh = self.acks.record(ids)?;
        self.mark_and_prune(&place, &held, rewrite)?;
        failpoint::hit("unlock.before");
        Ok(fresh)
    }

    /// Like [`Mailbox::acknowledge`], but leaves the mailbox to [`Mailbox::mark_delivered`], so
    /// that no other program is locked out. A writer that tries to lock once and gives up loses its
    /// message (observed: Claude Code 2.1.34), and a program that has just written often writes
    /// again.
    pub fn record_delivered(&self, ids: &[String]) -> Result<Vec<String>, StoreError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        if let Some(shared) = self.shared() {
            return shared.deliver(ids, false);
        }
        let _held = HeldGate::take(&self.place())?;
        self.acks.record(ids)
    }

    /// Marks delivered messages that are not marked yet, if phalanx reads the mailbox.
    pub fn mark_delivered(&self) -> Result<(), StoreError> {
        if self.team.shared.is_some() {
            return Ok(());
        }
        let place = self.place();
        let held = HeldGate::take(&place)?;
        let delivered: BTreeSet<String> = self.acks.ids()?.into_iter().collect();
        let left = self.file_entries_where(|e| !e.read && delivered.contains(&e.msg_id))?;
        if !left.is_empty() {
            self.mark_and_prune(&place, &held, self.is_read_by_phalanx()?)
        } else {
            Ok(())
        }
    }

    /// Removes these messages from the mailbox and the archive. Returns the ids that were not
    /// recorded as delivered before.
    pub fn remove(&self, ids: &[String]) -> Result<Vec<String>, StoreError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        if let Some(shared) = self.shared() {
            return shared.deliver(ids, true);
        }
        let place = self.place();
        let held = HeldGate::take(&place)?;
        let fresh = self.acks.record(ids)?;
        let ids: BTreeSet<&String> = ids.iter().collect();
        let in_box = self.rewrite(&place, &held, PeerExclusion::WhilePublishing, |entries| {
            entries.retain(|e| !ids.contains(&Envelope::read(e).msg_id));
            Ok(())
        })?;
        self.archive.remove(&ids)?;
        self.acks.prune(&in_box)?;
        failpoint::hit("unlock.before");
        Ok(fresh)
    }

    /// Writes a message's text to a separate file that only the user can read, and returns its
    /// path. The same message always gets the same path.
    pub fn spill_text(&self, envelope: &Envelope) -> Result<PathBuf, StoreError> {
        let dir = self.team.layout.spilled_bodies(&self.owner);
        fs::private_dir(&dir)?;
        let file = dir.join(format!("{}.txt", digest::hash(&[envelope.msg_id.as_bytes()])));
        fs::write_atomic(&file, envelope.text.as_bytes())?;
        Ok(file)
    }

    /// Returns true if phalanx delivers the owner's messages: to the lead of a team that phalanx
    /// runs, and to each member that it started, unless the member's program reads the mailbox
    /// itself.
    pub fn is_read_by_phalanx(&self) -> Result<bool, StoreError> {
        if self.owner == MemberName::lead() {
            return Ok(self.team.is_ours());
        }
        let record = self.team.member_record(&self.owner)?;
        Ok(record.is_some_and(|record| !record.is_native()))
    }

    /// If `rewrite` is set, marks delivered messages and archives old ones. Prunes the record of
    /// deliveries.
    fn mark_and_prune(
        &self,
        place: &FilePlace,
        held: &HeldGate,
        rewrite: bool,
    ) -> Result<(), StoreError> {
        if !rewrite {
            let in_box = self.entries()?.into_iter().map(|e| e.msg_id).collect();
            return self.acks.prune(&in_box);
        }
        let mut is_full = false;
        let mut in_box = self.rewrite(place, held, PeerExclusion::WhilePublishing, |entries| {
            self.mark(entries)?;
            is_full = archive::is_full(entries);
            Ok(())
        })?;
        if is_full {
            // Exclude other programs from the start: a message that they remove must not be
            // archived.
            in_box = self.rewrite(place, held, PeerExclusion::Throughout, |entries| {
                self.archive.take_old(entries)
            })?;
        }
        self.acks.prune(&in_box)
    }

    /// Marks all delivered messages, including those recorded by an earlier call that crashed
    /// before it marked them.
    fn mark(&self, entries: &mut [Value]) -> Result<(), StoreError> {
        let delivered: BTreeSet<String> = self.acks.ids()?.into_iter().collect();
        for entry in entries {
            let envelope = Envelope::read(entry);
            if !envelope.read
                && delivered.contains(&envelope.msg_id)
                && let Some(entry) = entry.as_object_mut()
            {
                wire::put(entry, "read", true);
            }
        }
        Ok(())
    }

    /// Edits the mailbox under its lock if it exists, and returns the ids of its messages
    /// afterwards.
    fn rewrite(
        &self,
        place: &FilePlace,
        held: &HeldGate,
        exclusion: PeerExclusion,
        mut edit: impl FnMut(&mut Vec<Value>) -> Result<(), StoreError>,
    ) -> Result<BTreeSet<String>, StoreError> {
        let mut ids = BTreeSet::new();
        document::change_held(place, held, exclusion, &mut |found| {
            if found.is_none() {
                return Ok(None);
            }
            let mut entries = self.entries_of(found)?;
            edit(&mut entries)?;
            ids = entries.iter().map(|e| Envelope::read(e).msg_id).collect();
            Ok(Some(Value::Array(entries)))
        })?;
        Ok(ids)
    }

    /// Returns the entries of the file. Content that is not an array is quarantined and reported,
    /// like content that does not parse (MSG-07).
    fn entries_of(&self, found: Option<Value>) -> Result<Vec<Value>, StoreError> {
        match found {
            Some(Value::Array(entries)) => Ok(entries),
            Some(_) => Err(self.no_array()),
            None => Ok(Vec::new()),
        }
    }

    fn no_array(&self) -> StoreError {
        document::quarantine(&self.place(), "it is not an array".to_owned())
    }

    /// Appends to the mailbox and the journal in the shared store, if its owner is on the roster.
    pub(crate) fn append_shared(
        &self,
        shared: &SharedMailbox<'_>,
        envelopes: &[Envelope],
        events: &[Event],
    ) -> Result<(), StoreError> {
        let stored = until_written(|| {
            if shared.append(envelopes, events)? {
                return Ok(Some(()));
            }
            // A member that has joined meanwhile gets the message at the next attempt.
            self.on_roster().map(|()| None)
        })?;
        stored.ok_or_else(|| StoreError::Contended {
            path: format!("the mailbox of {}", self.owner).into(),
            tries: 1,
        })
    }

    /// Returns the mailbox in the shared store; `None` for a team of files.
    pub(crate) fn shared(&self) -> Option<SharedMailbox<'_>> {
        self.team.shared.as_ref().map(|team| SharedMailbox { team, owner: &self.owner })
    }

    pub(crate) fn on_roster(&self) -> Result<(), StoreError> {
        let team = self.team.team()?;
        if team.member(&self.owner).is_some() {
            return Ok(());
        }
        let known = team.members.into_iter().map(|m| m.name).collect();
        Err(StoreError::NoSuchMember {
            team: self.team.name.clone(),
            name: self.owner.clone(),
            known,
        })
    }

    /// Creates the directory of the mailboxes, which a team of Claude Code lacks until its first
    /// message. The directory of the team is not created: it may have been deleted.
    pub(crate) fn make_dir(&self) -> Result<(), StoreError> {
        let dir = self.team.layout.inboxes();
        if !fs::exists(&dir) {
            fs::private_dir_in_existing(&dir)?;
        }
        Ok(())
    }

    pub(crate) fn place(&self) -> FilePlace {
        let gate = format!("inbox-{}", self.owner.file_stem());
        self.team.place(&gate, self.team.layout.inbox(&self.owner), Writers::AnyProgram)
    }
}
