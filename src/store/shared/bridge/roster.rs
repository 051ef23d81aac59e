//! Copies the team file. The store's is written to the disk; of changes on the disk, the fields of
//! members' entries are written to the store.

use std::collections::BTreeSet;

use serde_json::Value;

use super::FileBridge;
use crate::error::StoreError;
use crate::files::document::{self, CONFLICT_TRIES};
use database::DocumentKind;
use model::id::MemberName;
use model::team::Team;
use model::wire::{self, Object};
use sys::fs;

/// Fields by which an entry is found; a program cannot change them.
const IDENTITY: [&str; 2] = ["name", "agentId"];

/// A field of a member's entry that a program has changed in the file.
struct ChangedField {
    member: MemberName,
    key: String,
    /// The value on both sides before, and in the file now.
    before: Option<Value>,
    now: Value,
}

impl FileBridge {
    pub(super) fn copy_roster(&mut self) -> Result<(), StoreError> {
        let place = self.files.roster_place();
        for _ in 0..CONFLICT_TRIES {
            let found = document::read(&place)?;
            self.send_fields(found.as_ref())?;
            let stored = self.stored_roster()?;
            let is_same = |now: &Option<Value>| *now == found;
            let written = document::change(&place, |now| {
                let wanted = is_same(&now).then(|| Value::Object(stored.clone()));
                Ok((wanted.clone(), wanted.is_some()))
            })?;
            if written {
                self.files.keep_last(&Value::Object(stored.clone()))?;
                return self.prepare_members(&Team::read(&stored));
            }
        }
        Err(StoreError::Contended { path: place.path, tries: CONFLICT_TRIES })
    }

    /// Returns the team file in the shared store.
    pub(super) fn stored_roster(&self) -> Result<Object, StoreError> {
        match self.shared.document(DocumentKind::Config, "").read()? {
            Some(Value::Object(file)) => Ok(file),
            Some(_) | None => Err(StoreError::NoSuchTeam {
                name: self.team.name().to_string(),
                known: Vec::new(),
            }),
        }
    }

    /// Writes the fields that a program has changed in the file to the store, unless they have
    /// changed there, too.
    fn send_fields(&self, found: Option<&Value>) -> Result<(), StoreError> {
        let Some(file) = found.and_then(Value::as_object) else { return Ok(()) };
        let Some(last) = self.files.last_file() else { return Ok(()) };
        let changed = changed_fields(&last, file);
        if changed.is_empty() {
            return Ok(());
        }
        self.team.change_roster(|roster| {
            for field in &changed {
                if roster.field(&field.member, &field.key) == field.before {
                    roster.set(&field.member, &field.key, field.now.clone());
                }
            }
            Ok(())
        })
    }

    /// Creates missing mailboxes, which other programs lock before they write to them, and finds
    /// the members whose mailboxes are read from files.
    fn prepare_members(&mut self, team: &Team) -> Result<(), StoreError> {
        for member in &team.members {
            let inbox = self.files.layout.inbox(&member.name);
            if !fs::exists(&inbox) {
                fs::create_new(&inbox, b"[]")?;
            }
        }
        let records = self.team.member_records()?;
        let reads_files = records
            .into_iter()
            .filter(|record| record.is_native() && !record.is_elsewhere && !record.state.is_over());
        self.readers = reads_files.map(|record| record.name).collect();
        Ok(())
    }

    /// Returns the owners of all mailboxes on this host, as in file names.
    pub(super) fn owners(&self) -> Result<BTreeSet<String>, StoreError> {
        let files = fs::list(&self.files.layout.inboxes())?;
        let stems = files.iter().filter_map(|file| file.strip_suffix(".json"));
        Ok(stems.filter(|stem| !stem.starts_with('.')).map(str::to_owned).collect())
    }
}

fn entries(file: &Object) -> impl Iterator<Item = &Object> {
    let members = file.get("members").and_then(Value::as_array);
    members.into_iter().flatten().filter_map(Value::as_object)
}

/// Returns the fields of the entries in both files that differ. A field that is missing now was not
/// removed on purpose: programs write the whole entry as they know it.
fn changed_fields(last: &Object, file: &Object) -> Vec<ChangedField> {
    let mut changed = Vec::new();
    for entry in entries(file) {
        let Some(name) = wire::text(entry, "name") else { continue };
        let Ok(member) = MemberName::existing(&name) else { continue };
        let is_same = |old: &&Object| wire::text(old, "name").as_ref() == Some(&name);
        let Some(old) = entries(last).find(is_same) else { continue };
        let differing = entry
            .iter()
            .filter(|(key, now)| old.get(*key) != Some(now) && !IDENTITY.contains(&key.as_str()));
        changed.extend(differing.map(|(key, now)| ChangedField {
            member: member.clone(),
            key: key.clone(),
            before: old.get(key).cloned(),
            now: now.clone(),
        }));
    }
    changed
}
