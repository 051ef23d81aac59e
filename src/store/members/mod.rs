//! Records of members' runs (`phalanx/members/<name>.json`). The spawner, the launcher, the member
//! and the lead write to the same record, each its own fields.

pub(crate) mod environments;
pub(crate) mod specs;
pub(crate) mod usage;

use crate::error::StoreError;
use crate::files::document::FilePlace;
use crate::files::documents::{self, DocumentPlace};
use crate::files::reread::{Reread, read_versioned};
use crate::shared::until_written;
use crate::team::TeamStore;
use crate::team::journal::now;
use database::DocumentKind;
use model::id::{Incarnation, MemberName};
use model::members::record::{FORMAT, MemberRecord};
use model::time::Timestamp;
use sys::env;
use sys::proc::{self, Liveness};

/// Time from the request for a run to its entry in the team, at most. A record that is older and
/// has no entry was left by a process that died.
const JOINING_MS: u64 = 60_000;

/// Returns true for a run that another process may be about to add to the team.
fn is_being_started(record: &MemberRecord, now: Timestamp) -> bool {
    let spawner = record.spawner.filter(|_| !record.is_elsewhere);
    let is_dead = spawner.is_some_and(|s| proc::liveness(s.pid, s.start) == Liveness::Dead);
    !record.state.is_over() && !is_dead && now.since(record.asked_at) < JOINING_MS
}

impl TeamStore {
    /// Returns the record of a member's latest run.
    pub fn member_record(&self, name: &MemberName) -> Result<Option<MemberRecord>, StoreError> {
        let found: Option<MemberRecord> = documents::read_typed(&self.member_place(name), FORMAT)?;
        Ok(found.map(|record| self.as_seen_here(record, self.machine().as_deref())))
    }

    fn as_seen_here(&self, record: MemberRecord, machine: Option<&str>) -> MemberRecord {
        record.seen_in(&env::boot_id(), self.host(), machine)
    }

    /// Returns the records of all members that ever ran, by name. Skips files that a power cut left
    /// torn or that have another form; each of these is journaled as quarantined.
    pub fn member_records(&self) -> Result<Vec<MemberRecord>, StoreError> {
        self.member_records_again(&mut Reread::default())
    }

    /// Like [`TeamStore::member_records`], for a process that has read them before.
    pub fn member_records_again(
        &self,
        known: &mut Reread<MemberRecord>,
    ) -> Result<Vec<MemberRecord>, StoreError> {
        let machine = self.machine();
        let seen = |record| self.as_seen_here(record, machine.as_deref());
        if let Some(shared) = &self.shared {
            let records: Vec<MemberRecord> = shared.documents(DocumentKind::Member, FORMAT)?;
            return Ok(records.into_iter().map(seen).collect());
        }
        let is_name = |stem: &str| MemberName::existing(stem).is_ok();
        known.read(&self.layout.members(), is_name, |stem| {
            match read_versioned::<MemberRecord>(self.record_file(stem), FORMAT) {
                Err(StoreError::Corrupt { .. }) => Ok(None),
                found => Ok(found?.map(|(version, record)| (version, seen(record)))),
            }
        })
    }

    /// Starts the record of a new run, which replaces that of an earlier one except for what
    /// [`MemberRecord::follow`] takes over.
    ///
    /// # Errors
    /// [`StoreError::MemberTaken`] if another process starts a member of this name at the same time
    /// and both are in the shared store, whose roster no lock protects meanwhile.
    pub fn begin_record(&self, record: &MemberRecord) -> Result<(), StoreError> {
        if let Some(shared) = &self.shared {
            let place = shared.document(DocumentKind::Member, &record.name.file_stem());
            let written = until_written(|| {
                let stored = place.stored()?;
                let found = stored.as_ref().and_then(|s| serde_json::from_str(&s.body).ok());
                let found: Option<MemberRecord> =
                    found.map(|found| self.as_seen_here(found, self.machine().as_deref()));
                if found.as_ref().is_some_and(|found| is_being_started(found, now())) {
                    let (team, holder) = (self.name.clone(), record.name.clone());
                    return Err(StoreError::MemberTaken { team, holder });
                }
                let record = record_after(found.as_ref(), record);
                let value = serde_json::to_value(record).expect("a record has string keys");
                Ok(place.put(&value, stored.map(|stored| stored.version))?.then_some(()))
            })?;
            return written.ok_or_else(|| place.contended());
        }
        documents::change_typed(
            &self.member_place(&record.name),
            FORMAT,
            |found: &mut Option<MemberRecord>| {
                *found = Some(record_after(found.as_ref(), record));
                Ok(())
            },
        )
    }

    /// Changes the record of this run. Returns `None` and writes nothing if the run is not the
    /// latest one.
    pub fn change_record<T>(
        &self,
        name: &MemberName,
        incarnation: &Incarnation,
        mut edit: impl FnMut(&mut MemberRecord) -> T,
    ) -> Result<Option<T>, StoreError> {
        documents::change_typed(
            &self.member_place(name),
            FORMAT,
            |found: &mut Option<MemberRecord>| {
                Ok(found.as_mut().filter(|r| r.is(incarnation)).map(&mut edit))
            },
        )
    }

    /// Withdraws the record of a run that failed to start: that of the run before it, if there was
    /// one, is valid again.
    pub fn forget_record(
        &self,
        name: &MemberName,
        incarnation: &Incarnation,
    ) -> Result<(), StoreError> {
        let place = self.member_place(name);
        documents::change_typed(&place, FORMAT, |found: &mut Option<MemberRecord>| {
            let withdrawn = found.as_mut().filter(|record| record.is(incarnation));
            if let Some(before) = withdrawn.and_then(|record| record.before.take()) {
                *found = Some(*before);
            }
            Ok(())
        })?;
        documents::remove_if(&place, FORMAT, |record: &MemberRecord| record.is(incarnation))
    }

    fn member_place(&self, name: &MemberName) -> DocumentPlace {
        let stem = name.file_stem();
        self.document(DocumentKind::Member, &stem, || self.record_file(&stem))
    }

    fn record_file(&self, stem: &str) -> FilePlace {
        let path = self.layout.members().join(format!("{stem}.json"));
        self.boot_place(&format!("member-{stem}"), path)
    }
}

/// Returns the record of a new run after that of an earlier one.
fn record_after(before: Option<&MemberRecord>, record: &MemberRecord) -> MemberRecord {
    let mut record = record.clone();
    if let Some(before) = before {
        record.follow(before);
        // Only a start can fail. If the earlier run was one that was cut, it is left out.
        if record.spawner.is_some() {
            let earlier = before.before.clone();
            record.before = earlier.or_else(|| Some(Box::new(before.clone())));
        }
    }
    record
}
