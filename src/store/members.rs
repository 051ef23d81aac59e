//! Records of members' runs (`phalanx/members/<name>.json`). The spawner, the launcher, the member
//! and the lead write to the same record, each its own fields.

use super::documents::{self, DocumentPlace};
use super::error::StoreError;
use super::team::TeamStore;
use crate::database::DocumentKind;
use crate::model::id::{Incarnation, MemberName};
use crate::model::record::{FORMAT, MemberRecord};
use crate::sys::{env, fs};

impl TeamStore {
    /// Returns the record of a member's latest run.
    pub(crate) fn member_record(
        &self,
        name: &MemberName,
    ) -> Result<Option<MemberRecord>, StoreError> {
        let found: Option<MemberRecord> = documents::read_typed(&self.member_place(name))?;
        Ok(found.map(|record| record.seen_in(&env::boot_id(), self.host())))
    }

    /// Returns the records of all members that ever ran, by name. Skips files that a power cut left
    /// torn or that have another form; each of these is journaled as quarantined.
    pub(crate) fn member_records(&self) -> Result<Vec<MemberRecord>, StoreError> {
        if let Some(shared) = &self.shared {
            let records: Vec<MemberRecord> = shared.documents(DocumentKind::Member)?;
            return Ok(records
                .into_iter()
                .map(|r| r.seen_in(&env::boot_id(), self.host()))
                .collect());
        }
        let files = fs::list(&self.layout.members())?;
        let stems =
            files.iter().filter_map(|f| f.strip_suffix(".json")).filter(|s| !s.starts_with('.'));
        let names = stems.filter_map(|s| MemberName::existing(s).ok());
        let records = names.filter_map(|name| match self.member_record(&name) {
            Err(StoreError::Corrupt { .. }) => None,
            found => found.transpose(),
        });
        records.collect()
    }

    /// Starts the record of a new run, which replaces that of an earlier one.
    pub(crate) fn begin_record(&self, record: &MemberRecord) -> Result<(), StoreError> {
        documents::change_typed(
            &self.member_place(&record.name),
            FORMAT,
            |found: &mut Option<MemberRecord>| {
                *found = Some(record.clone());
                Ok(())
            },
        )
    }

    /// Changes the record of this run. Returns `None` and writes nothing if the run is not the
    /// latest one.
    pub(crate) fn change_record<T>(
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

    /// Removes the record of a run that failed to start.
    pub(crate) fn forget_record(
        &self,
        name: &MemberName,
        incarnation: &Incarnation,
    ) -> Result<(), StoreError> {
        documents::remove_if(&self.member_place(name), |record: &MemberRecord| {
            record.is(incarnation)
        })
    }

    fn member_place(&self, name: &MemberName) -> DocumentPlace {
        let stem = name.file_stem();
        self.document(DocumentKind::Member, &stem, || {
            self.boot_place(&format!("member-{stem}"), self.layout.member(name))
        })
    }
}
