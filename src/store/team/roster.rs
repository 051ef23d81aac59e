//! The roster of a team: joining, leaving and changing entries of the team file under its lock. A
//! member on the roster need not be running.

use serde_json::Value;

use crate::error::StoreError;
use crate::files::document::{self, HeldGate, MAX_FILE};
use crate::files::{documents, repair_surrogates};
use crate::team::TeamStore;
use model::id::{MemberName, TeamName};
use model::team::event::{EventKind, Note};
use model::team::{LeadProcess, Member, Team};
use model::wire::{self, Object};
use sys::fs::{self, FileVersion};

/// Key of the ids of hidden panes.
const HIDDEN: &str = "hiddenPaneIds";

/// A snapshot of the team file.
#[derive(Debug)]
pub struct TeamFile {
    /// `None` if the file is missing.
    pub version: Option<FileVersion>,
    /// `None` if the file is torn or missing.
    file: Option<Object>,
    /// True if phalanx's copy of the team file has the same content.
    pub is_remembered: bool,
}

impl TeamFile {
    /// Returns the team; `None` if the file is torn or missing.
    pub fn team(&self) -> Option<Team> {
        self.file.as_ref().map(Team::read)
    }
}

/// The roster during a change; exists only while the lock is held.
pub struct Roster<'a> {
    team: &'a TeamName,
    file: &'a mut Object,
    is_given_up: bool,
}

impl TeamStore {
    /// Changes the roster under its lock. `edit` may run several times, since Claude Code rewrites
    /// the file without a lock (observed).
    ///
    /// # Errors
    /// [`StoreError::NoSuchTeam`] if the team file is missing; the error of `edit`.
    pub fn change_roster<T>(
        &self,
        mut edit: impl FnMut(&mut Roster) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        documents::change(&self.roster_document(), |found| {
            let Some(Value::Object(mut file)) = found else {
                return Err(StoreError::NoSuchTeam {
                    name: self.name.to_string(),
                    known: Vec::new(),
                });
            };
            if self.shared.is_none() {
                fs::sweep_temporary(&self.layout.last_team_file());
            }
            let mut roster = Roster { team: &self.name, file: &mut file, is_given_up: false };
            let answer = edit(&mut roster)?;
            if roster.is_given_up {
                return Ok((None, answer));
            }
            let file = Value::Object(file);
            if self.shared.is_none() {
                self.keep_last(&file)?;
            }
            Ok((Some(file), answer))
        })
    }

    /// Reads the team file once, without waiting for writers.
    pub fn team_file_now(&self) -> Result<TeamFile, StoreError> {
        if self.shared.is_some() {
            // It is always whole, and no other program writes it.
            let file = match documents::read(&self.roster_document())? {
                Some(Value::Object(file)) => Some(file),
                Some(_) | None => None,
            };
            return Ok(TeamFile { version: None, file, is_remembered: true });
        }
        let Some(read) = fs::read_versioned(&self.layout.team_file(), MAX_FILE)? else {
            return Ok(TeamFile { version: None, file: None, is_remembered: false });
        };
        let file = repair_surrogates::parse::<Object>(&read.bytes).ok();
        let is_remembered = file.is_some() && self.last_file() == file;
        Ok(TeamFile { version: Some(read.version), file, is_remembered })
    }

    /// Saves a whole team file that another program wrote as phalanx's copy, unless the file has
    /// changed since. Returns true if it did. Takes no lock, so that a process that is stopped here
    /// blocks no other; a change in between is seen at the next check.
    pub fn remember_team_file(&self, seen: &TeamFile) -> Result<bool, StoreError> {
        let Some(file) = seen.file.clone() else { return Ok(false) };
        Ok(self.team_file_version()? == seen.version
            && self.keep_last(&Value::Object(file)).is_ok())
    }

    /// Returns the version of the team file, which changes with each write.
    pub fn team_file_version(&self) -> Result<Option<FileVersion>, StoreError> {
        Ok(fs::version(&self.layout.team_file())?)
    }

    /// Returns the team file as phalanx last saw it whole.
    pub(crate) fn last_file(&self) -> Option<Object> {
        let bytes = fs::read(&self.layout.last_team_file(), MAX_FILE).ok()??;
        repair_surrogates::parse(&bytes).ok()
    }

    /// Returns the entry that a member had when phalanx last saw the team file whole.
    pub fn last_entry(&self, name: &MemberName) -> Result<Option<Object>, StoreError> {
        let file = if self.shared.is_some() { None } else { self.last_file() };
        let members = file.as_ref().and_then(|file| file.get("members")).and_then(Value::as_array);
        let entry =
            members.and_then(|members| members.iter().find(|entry| is_entry_of(entry, name)));
        Ok(entry.and_then(Value::as_object).cloned())
    }

    /// Restores a team file that another program left torn, and journals that.
    pub fn restore_team_file(&self) -> Result<(), StoreError> {
        let place = self.roster_place();
        let held = HeldGate::take(&place)?;
        let restored = document::restore(&place, &held)?;
        if let Some(file) = restored {
            self.keep_last(&file)?;
            let path = place.path.to_string_lossy();
            let note = Note::of(EventKind::Repaired).with("what", "team_file").with("where", path);
            self.record(note)?;
        }
        Ok(())
    }
}

impl Roster<'_> {
    /// Leaves the file as it is, for an edit that fails for a reason that is not the store's.
    pub fn give_up(&mut self) {
        self.is_given_up = true;
    }

    /// Returns the team as of this change.
    pub fn team(&self) -> Team {
        Team::read(self.file)
    }

    /// Adds a teammate.
    ///
    /// # Errors
    /// [`StoreError::MemberTaken`] if the name is in use, ignoring case (ID-04, ID-05).
    pub fn join(&mut self, member: &Member) -> Result<(), StoreError> {
        // Parse the whole file only if the name is taken.
        if self.has(&member.name)
            && let Some(holder) = self.team().member(&member.name)
        {
            return Err(StoreError::MemberTaken {
                team: self.team.clone(),
                holder: holder.name.clone(),
            });
        }
        self.put(member.to_entry());
        Ok(())
    }

    /// Restores the entry of a teammate that another program removed. Returns false if it is still
    /// there.
    pub fn put_back(&mut self, name: &MemberName, entry: Object) -> bool {
        let was_out = !self.has(name);
        if was_out {
            self.put(entry);
        }
        was_out
    }

    fn has(&self, name: &MemberName) -> bool {
        let members = self.file.get("members").and_then(Value::as_array);
        members.is_some_and(|members| members.iter().any(|entry| is_entry_of(entry, name)))
    }

    fn put(&mut self, entry: Object) {
        match self.file.get_mut("members").and_then(Value::as_array_mut) {
            Some(members) => members.push(Value::Object(entry)),
            None => wire::put(self.file, "members", vec![Value::Object(entry)]),
        }
    }

    /// Removes a teammate. Returns true if it was on the roster. Its pane is removed from the
    /// hidden ones as well, because the id may be reused.
    pub fn leave(&mut self, name: &MemberName) -> bool {
        if let Some(pane) = self.team().member(name).map(|member| member.pane_id.clone()) {
            self.set_hidden(&pane, false);
        }
        let Some(members) = self.file.get_mut("members").and_then(Value::as_array_mut) else {
            return false;
        };
        let before = members.len();
        members.retain(|entry| !is_entry_of(entry, name));
        members.len() < before
    }

    pub fn set_lead(&mut self, lead: &LeadProcess) {
        wire::put(self.file, "leadProcess", lead.to_object());
    }

    pub fn drop_lead(&mut self) {
        self.file.shift_remove("leadProcess");
    }

    pub fn is_hidden(&self, pane: &str) -> bool {
        wire::texts(self.file, HIDDEN).iter().any(|id| id == pane)
    }

    /// Marks the pane as hidden or as visible.
    pub fn set_hidden(&mut self, pane: &str, hidden: bool) {
        match (self.file.get_mut(HIDDEN).and_then(Value::as_array_mut), hidden) {
            (Some(ids), false) => ids.retain(|id| id.as_str() != Some(pane)),
            (Some(ids), true) if ids.iter().all(|id| id.as_str() != Some(pane)) => {
                ids.push(pane.into())
            }
            (Some(_), true) | (None, false) => (),
            (None, true) => wire::put(self.file, HIDDEN, vec![pane]),
        }
    }

    /// Returns one field of a member's entry.
    pub(crate) fn field(&self, name: &MemberName, key: &str) -> Option<Value> {
        let members = self.file.get("members").and_then(Value::as_array)?;
        members.iter().find(|entry| is_entry_of(entry, name))?.get(key).cloned()
    }

    /// Sets one field of a member's entry. Returns false if the member is not on the roster.
    pub fn set(&mut self, name: &MemberName, key: &str, value: impl Into<Value>) -> bool {
        let members = self.file.get_mut("members").and_then(Value::as_array_mut);
        let entry = members.and_then(|m| m.iter_mut().find(|e| is_entry_of(e, name)));
        let Some(entry) = entry.and_then(Value::as_object_mut) else { return false };
        wire::put(entry, key, value);
        true
    }
}

fn is_entry_of(entry: &Value, name: &MemberName) -> bool {
    entry.get("name").and_then(Value::as_str).is_some_and(|n| name.clashes_with(n))
}
