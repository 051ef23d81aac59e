//! The records of members' runs (`phalanx/members/<name>.json`). Several processes write one record, each what it
//! knows: the spawner, the launcher, the member, the lead.

use super::document;
use super::error::StoreError;
use super::teams::TeamStore;
use crate::model::id::{Incarnation, MemberName};
use crate::model::record::{FORMAT, MemberRecord};
use crate::sys::{env, fs};

impl TeamStore {
    /// The record of a member's latest run.
    pub(crate) fn member_record(
        &self,
        name: &MemberName,
    ) -> Result<Option<MemberRecord>, StoreError> {
        let found: Option<MemberRecord> = document::read_typed(&self.member_place(name))?;
        Ok(found.map(|record| record.seen_in(&env::boot_id())))
    }

    /// The records of all members that ever ran, by name. A file that cannot be read is an error of its own: the
    /// others are given all the same.
    pub(crate) fn member_records(&self) -> Result<Vec<MemberRecord>, StoreError> {
        let files = fs::list(&self.layout.members())?;
        let stems =
            files.iter().filter_map(|f| f.strip_suffix(".json")).filter(|s| !s.starts_with('.'));
        let names = stems.filter_map(|s| MemberName::existing(s).ok());
        names.filter_map(|name| self.member_record(&name).transpose()).collect()
    }

    /// Starts the record of a new run; what an earlier run left is replaced.
    pub(crate) fn begin_record(&self, record: &MemberRecord) -> Result<(), StoreError> {
        document::change_typed(
            &self.member_place(&record.name),
            FORMAT,
            |found: &mut Option<MemberRecord>| {
                *found = Some(record.clone());
                Ok(())
            },
        )
    }

    /// Changes the record of this run; none if it is no longer the latest one (then nothing is written).
    pub(crate) fn change_record<T>(
        &self,
        name: &MemberName,
        incarnation: &Incarnation,
        mut edit: impl FnMut(&mut MemberRecord) -> T,
    ) -> Result<Option<T>, StoreError> {
        document::change_typed(
            &self.member_place(name),
            FORMAT,
            |found: &mut Option<MemberRecord>| {
                Ok(found.as_mut().filter(|r| r.is(incarnation)).map(&mut edit))
            },
        )
    }

    /// Removes the record of a run that never came to be.
    pub(crate) fn forget_record(
        &self,
        name: &MemberName,
        incarnation: &Incarnation,
    ) -> Result<(), StoreError> {
        if self.member_record(name)?.is_some_and(|r| r.is(incarnation)) {
            fs::remove_file(&self.layout.member(name))?;
        }
        Ok(())
    }

    fn member_place(&self, name: &MemberName) -> document::Place {
        self.of_this_boot(&format!("member-{}", name.file_stem()), self.layout.member(name))
    }
}
