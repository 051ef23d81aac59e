//! A member's mailbox: appended to by anybody, marked by its reader (protocol.md, section 4). What a message means is
//! not known here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::append;
use super::archive;
use super::document::{self, Held, Kept, MAX_FILE, Others, Place, Shared};
use super::error::StoreError;
use super::teams::TeamStore;
use crate::model::digest;
use crate::model::envelope::{Envelope, MAX_TEXT};
use crate::model::id::MemberName;
use crate::model::wire::{self, Object};
use crate::sys::{failpoint, fs};

/// One member's mailbox.
pub(crate) struct Mailbox<'a> {
    pub(super) team: &'a TeamStore,
    pub(super) owner: MemberName,
}

impl TeamStore {
    /// The mailbox of a member; it need not exist.
    pub(crate) fn mailbox(&self, owner: &MemberName) -> Mailbox<'_> {
        Mailbox { team: self, owner: owner.clone() }
    }
}

impl TeamStore {
    /// Brings boxes that were made with [`Mailbox::found_with`] to the disk, all at once.
    pub(crate) fn persist_boxes(&self, owners: &[&MemberName]) -> Result<(), StoreError> {
        let paths: Vec<_> = owners.iter().map(|owner| self.layout.inbox(owner)).collect();
        Ok(fs::persist(&paths)?)
    }
}

fn check_length(envelope: &Envelope) -> Result<(), StoreError> {
    match envelope.text.len() {
        bytes if bytes > MAX_TEXT => Err(StoreError::MessageTooLong { bytes, limit: MAX_TEXT }),
        _ => Ok(()),
    }
}

impl Mailbox<'_> {
    /// Makes the empty box, so that other programs can lock it. False: there was one.
    pub(crate) fn found(&self) -> Result<bool, StoreError> {
        Ok(fs::create_new(&self.place().path, b"[]")?)
    }

    /// Makes the box with this message in it, or empty, and does not wait for the disk: [`TeamStore::persist_boxes`]
    /// does. False: there is one, and it is as it was.
    pub(crate) fn found_with(&self, first: Option<&Envelope>) -> Result<bool, StoreError> {
        let entries: Vec<Object> = first.map(Envelope::to_entry).into_iter().collect();
        first.map_or(Ok(()), check_length)?;
        document::write_new(&self.place().path, &entries, Kept::ForThisBoot)
    }

    /// Removes the box of a teammate that never came up.
    pub(crate) fn abandon(&self) -> Result<(), StoreError> {
        fs::remove_file(&self.place().path)?;
        Ok(())
    }

    /// Everything in the box, oldest first.
    pub(crate) fn entries(&self) -> Result<Vec<Envelope>, StoreError> {
        let found = document::read(&self.place())?;
        Ok(self.listed(found)?.iter().map(Envelope::read).collect())
    }

    /// Everything that is known of, oldest first: what was read long ago, and the box.
    pub(crate) fn all(&self) -> Result<Vec<Envelope>, StoreError> {
        // The box comes first: what is moved to the archive meanwhile is then in both, and counts once.
        let entries = self.entries()?;
        let in_box: BTreeSet<&String> = entries.iter().map(|e| &e.msg_id).collect();
        let archived = self.archived()?;
        let older = archived.iter().map(Envelope::read).filter(|e| !in_box.contains(&e.msg_id));
        let mut all: Vec<Envelope> = older.collect();
        all.extend(entries);
        Ok(all)
    }

    /// A message that phalanx has put in here with this id, also one that was read long ago.
    pub(crate) fn find(&self, msg_id: &str) -> Result<Option<Envelope>, StoreError> {
        // The box comes first: what is moved to the archive meanwhile is then in both.
        let in_box = self.entries()?.into_iter().find(|envelope| envelope.msg_id == msg_id);
        if in_box.is_some() { Ok(in_box) } else { self.find_archived(msg_id) }
    }

    /// What has not been handed over, oldest first.
    pub(crate) fn unread(&self) -> Result<Vec<Envelope>, StoreError> {
        // The record comes first: an id leaves it only after the box has said so itself.
        let mut handed: BTreeSet<String> = self.handed()?.into_iter().collect();
        let mut entries = self.entries()?;
        entries.retain(|e| !e.read && handed.insert(e.msg_id.clone()));
        Ok(entries)
    }

    /// Puts a message at the end, if its owner is on the roster at that moment (MSG-05: no file is made for a
    /// stranger).
    pub(crate) fn append(&self, envelope: &Envelope) -> Result<(), StoreError> {
        check_length(envelope)?;
        match append::append(&self.place(), &envelope.to_entry(), || self.on_roster())? {
            true => Ok(()),
            false => Err(StoreError::BoxFull { owner: self.owner.clone(), limit: MAX_FILE }),
        }
    }

    /// Like [`Mailbox::append`], for several at once: the box is written one time.
    pub(crate) fn append_all(&self, envelopes: &[Envelope]) -> Result<(), StoreError> {
        if let [one] = envelopes {
            return self.append(one);
        }
        envelopes.iter().try_for_each(check_length)?;
        let place = self.place();
        let held = Held::take(&place)?;
        self.on_roster()?;
        document::change_held(&place, &held, Others::OutBriefly, &mut |found| {
            let mut entries = self.listed(found)?;
            entries.extend(envelopes.iter().map(|envelope| Value::Object(envelope.to_entry())));
            Ok((Some(Value::Array(entries)), ()))
        })
    }

    /// Says that these messages were handed over: from now on they are not unread, whatever happens. The box itself is
    /// marked and shortened only where its owner reads it through phalanx; any other belongs to its owner's program.
    /// Only whoever has handed them over may call this (invariant 4). Gives those of which nobody has said so before.
    pub(crate) fn acknowledge(&self, ids: &[String]) -> Result<Vec<String>, StoreError> {
        self.settle(ids, self.is_read_by_us()?)
    }

    /// Like [`Mailbox::acknowledge`], but nobody else is kept out of the box: it is left as it is, to
    /// [`Mailbox::mark_handed`]. A writer that asks for its lock once and then gives up loses its message (observed: Claude
    /// Code 2.1.34), and one that has just written often writes again.
    pub(crate) fn hand_over(&self, ids: &[String]) -> Result<Vec<String>, StoreError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let _held = Held::take(&self.place())?;
        self.record_handed(ids)
    }

    /// Marks in the box, if phalanx reads it, what was handed over and is not marked yet.
    pub(crate) fn mark_handed(&self) -> Result<(), StoreError> {
        let place = self.place();
        let held = Held::take(&place)?;
        let handed: BTreeSet<String> = self.handed()?.into_iter().collect();
        let is_left = self.entries()?.iter().any(|e| !e.read && handed.contains(&e.msg_id));
        if is_left { self.tidy(&place, &held, self.is_read_by_us()?) } else { Ok(()) }
    }

    /// Like [`Mailbox::acknowledge`], and marks them whoever reads the box: for an owner that does not run.
    pub(crate) fn mark_read(&self, ids: &[String]) -> Result<Vec<String>, StoreError> {
        self.settle(ids, true)
    }

    /// Removes these messages; gives those of which nobody has said before that they were handed over.
    pub(crate) fn remove(&self, ids: &[String]) -> Result<Vec<String>, StoreError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let place = self.place();
        let held = Held::take(&place)?;
        let fresh = self.record_handed(ids)?;
        let ids: BTreeSet<&String> = ids.iter().collect();
        let in_box = self.rewrite(&place, &held, Others::OutBriefly, |entries| {
            entries.retain(|e| !ids.contains(&Envelope::read(e).msg_id));
            Ok(())
        })?;
        self.remove_archived(&ids)?;
        self.prune_handed(&in_box)?;
        failpoint::hit("unlock.before");
        Ok(fresh)
    }

    /// Writes a message's text into a file of its own, which only we can read. Gives its path; the same message always
    /// gets the same.
    pub(crate) fn put_aside(&self, envelope: &Envelope) -> Result<PathBuf, StoreError> {
        let dir = self.team.layout.letters(&self.owner);
        fs::private_dir(&dir)?;
        let file = dir.join(format!("{}.txt", digest::of(&[envelope.msg_id.as_bytes()])));
        fs::write_atomic(&file, envelope.text.as_bytes())?;
        Ok(file)
    }

    /// Whether the owner is given its messages by phalanx: the lead of a team that phalanx runs, and every member that
    /// it started, unless that is a program that reads the box itself.
    pub(crate) fn is_read_by_us(&self) -> Result<bool, StoreError> {
        if self.owner == MemberName::lead() {
            return Ok(fs::exists(&self.team.layout.settings()));
        }
        let record = self.team.member_record(&self.owner)?;
        Ok(record.is_some_and(|record| !record.is_native()))
    }

    fn settle(&self, ids: &[String], rewrite: bool) -> Result<Vec<String>, StoreError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let place = self.place();
        let held = Held::take(&place)?;
        let fresh = self.record_handed(ids)?;
        self.tidy(&place, &held, rewrite)?;
        failpoint::hit("unlock.before");
        Ok(fresh)
    }

    /// Marks what was handed over, with `rewrite`; and the record of it keeps what is still needed.
    fn tidy(&self, place: &Place, held: &Held, rewrite: bool) -> Result<(), StoreError> {
        let in_box = if rewrite {
            self.mark_and_shorten(place, held)?
        } else {
            self.entries()?.into_iter().map(|e| e.msg_id).collect()
        };
        self.prune_handed(&in_box)
    }

    /// Gives the ids of what is in the box then.
    fn mark_and_shorten(&self, place: &Place, held: &Held) -> Result<BTreeSet<String>, StoreError> {
        let mut is_full = false;
        let in_box = self.rewrite(place, held, Others::OutBriefly, |entries| {
            self.mark(entries)?;
            is_full = archive::is_full(entries);
            Ok(())
        })?;
        if !is_full {
            return Ok(in_box);
        }
        // What another program takes out must not go into the archive.
        self.rewrite(place, held, Others::OutAllAlong, |entries| self.archive_old(entries))
    }

    /// Marks whatever was handed over: also what an earlier call recorded and did not live to mark.
    fn mark(&self, entries: &mut [Value]) -> Result<(), StoreError> {
        let handed: BTreeSet<String> = self.handed()?.into_iter().collect();
        for entry in entries {
            let envelope = Envelope::read(entry);
            if !envelope.read
                && handed.contains(&envelope.msg_id)
                && let Some(entry) = entry.as_object_mut()
            {
                wire::put(entry, "read", true);
            }
        }
        Ok(())
    }

    /// Changes the box under its lock, if there is one; gives the ids of what is in it then.
    fn rewrite(
        &self,
        place: &Place,
        held: &Held,
        others: Others,
        mut edit: impl FnMut(&mut Vec<Value>) -> Result<(), StoreError>,
    ) -> Result<BTreeSet<String>, StoreError> {
        document::change_held(place, held, others, &mut |found| {
            if found.is_none() {
                return Ok((None, BTreeSet::new()));
            }
            let mut entries = self.listed(found)?;
            edit(&mut entries)?;
            let ids = entries.iter().map(|e| Envelope::read(e).msg_id).collect();
            Ok((Some(Value::Array(entries)), ids))
        })
    }

    /// What the file holds must be an array; anything else is set aside and said, as what does not parse is (MSG-07).
    fn listed(&self, found: Option<Value>) -> Result<Vec<Value>, StoreError> {
        match found {
            Some(Value::Array(entries)) => Ok(entries),
            Some(_) => Err(document::quarantine(&self.place(), "it is not an array".to_owned())),
            None => Ok(Vec::new()),
        }
    }

    /// Makes a directory of ours when it is first needed; never the team's own, which may just have been taken away.
    pub(super) fn make_dir_of(&self, path: &Path) -> Result<(), StoreError> {
        if let Some(dir) = path.parent().filter(|dir| !fs::exists(dir)) {
            fs::create_dir_exclusive(dir)?;
        }
        Ok(())
    }

    fn on_roster(&self) -> Result<(), StoreError> {
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

    fn place(&self) -> Place {
        let gate = format!("inbox-{}", self.owner.file_stem());
        self.team.place(&gate, self.team.layout.inbox(&self.owner), Shared::WithOthers)
    }
}
