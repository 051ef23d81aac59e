//! Who is on the team: joining, leaving and changing an entry of the team file under its lock. Whether somebody is
//! alive is not known here.

use serde_json::Value;

use super::document::{self, Held, MAX_FILE};
use super::error::StoreError;
use super::lenient;
use super::teams::TeamStore;
use crate::model::event::{EventKind, Note};
use crate::model::id::{MemberName, TeamName};
use crate::model::team::{LeadProcess, Member, Team};
use crate::model::wire::{self, Object};
use crate::sys::fs::{self, Identity};

/// The key with the ids of the panes that are out of sight.
const HIDDEN: &str = "hiddenPaneIds";

/// The team file as it stood at one moment.
#[derive(Debug)]
pub(crate) struct TeamFile {
    /// None: the file is missing.
    pub(crate) identity: Option<Identity>,
    /// None: the file is torn or missing.
    file: Option<Object>,
    /// True if phalanx remembers this content.
    pub(crate) is_remembered: bool,
}

impl TeamFile {
    /// None: the file is torn or missing.
    pub(crate) fn team(&self) -> Option<Team> {
        self.file.as_ref().map(Team::read)
    }
}

/// The roster, open for changes; exists only while the lock is held.
pub(crate) struct Roster<'a> {
    team: &'a TeamName,
    file: &'a mut Object,
}

impl TeamStore {
    /// Changes the roster under its lock. `edit` may run again if Claude Code rewrote the file meanwhile: it takes no
    /// lock (observed).
    pub(crate) fn change_roster<T>(
        &self,
        mut edit: impl FnMut(&mut Roster) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        document::change(&self.roster_place(), |found| {
            let Some(Value::Object(mut file)) = found else {
                return Err(StoreError::NoSuchTeam {
                    name: self.name.to_string(),
                    known: Vec::new(),
                });
            };
            fs::sweep_temporary(&self.layout.last_team_file());
            let answer = edit(&mut Roster { team: &self.name, file: &mut file })?;
            let file = Value::Object(file);
            self.keep_last(&file)?;
            Ok((Some(file), answer))
        })
    }

    /// The team file as it stands, read once and without waiting for writers.
    pub(crate) fn team_file_now(&self) -> Result<TeamFile, StoreError> {
        let Some(read) = fs::read_identified(&self.layout.team_file(), MAX_FILE)? else {
            return Ok(TeamFile { identity: None, file: None, is_remembered: false });
        };
        let file = lenient::parse::<Object>(&read.bytes).ok();
        let is_remembered = file.is_some() && self.last_file() == file;
        Ok(TeamFile { identity: Some(read.identity), file, is_remembered })
    }

    /// Remembers a whole team file that another program wrote, unless it has changed since; returns
    /// true if that was done. Takes no lock: a process that is stopped here stops no other, and
    /// what comes in between is seen at the next look.
    pub(crate) fn remember_team_file(&self, seen: &TeamFile) -> Result<bool, StoreError> {
        let Some(file) = seen.file.clone() else { return Ok(false) };
        Ok(self.team_file_identity()? == seen.identity
            && self.keep_last(&Value::Object(file)).is_ok())
    }

    /// The identity of the team file: another one after each change.
    pub(crate) fn team_file_identity(&self) -> Result<Option<Identity>, StoreError> {
        Ok(fs::identity(&self.layout.team_file())?)
    }

    /// The team file as phalanx last saw it whole.
    pub(super) fn last_file(&self) -> Option<Object> {
        let bytes = fs::read(&self.layout.last_team_file(), MAX_FILE).ok()??;
        lenient::parse(&bytes).ok()
    }

    /// The entry that a member had when the team file was last changed by us.
    pub(crate) fn last_entry(&self, name: &MemberName) -> Result<Option<Object>, StoreError> {
        let file = self.last_file();
        let members = file.as_ref().and_then(|file| file.get("members")).and_then(Value::as_array);
        let entry =
            members.and_then(|members| members.iter().find(|entry| is_entry_of(entry, name)));
        Ok(entry.and_then(Value::as_object).cloned())
    }

    /// Restores a team file that another program has left torn, and journals that.
    pub(crate) fn restore_team_file(&self) -> Result<(), StoreError> {
        let place = self.roster_place();
        let held = Held::take(&place)?;
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
    /// The team as it stands in this change.
    pub(crate) fn team(&self) -> Team {
        Team::read(self.file)
    }

    /// Adds a teammate.
    ///
    /// # Errors
    /// [`StoreError::MemberTaken`] where the name is in use, without regard to case (ID-04, ID-05).
    pub(crate) fn join(&mut self, member: &Member) -> Result<(), StoreError> {
        // Only where it is taken is the whole file taken apart.
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

    /// Puts back the entry of a teammate whom another program has written out; whether it was out.
    pub(crate) fn put_back(&mut self, name: &MemberName, entry: Object) -> bool {
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

    /// Takes a teammate off; whether it was on. Its pane does not stay among the hidden ones: the id may come again.
    pub(crate) fn leave(&mut self, name: &MemberName) -> bool {
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

    /// Writes which process leads.
    pub(crate) fn set_lead(&mut self, lead: &LeadProcess) {
        wire::put(self.file, "leadProcess", lead.to_object());
    }

    /// Takes out which process leads.
    pub(crate) fn drop_lead(&mut self) {
        self.file.shift_remove("leadProcess");
    }

    /// Whether the pane of this id is said to be out of sight.
    pub(crate) fn is_hidden(&self, pane: &str) -> bool {
        wire::texts(self.file, HIDDEN).iter().any(|id| id == pane)
    }

    /// Says whether the pane of this id is out of sight.
    pub(crate) fn set_hidden(&mut self, pane: &str, hidden: bool) {
        match (self.file.get_mut(HIDDEN).and_then(Value::as_array_mut), hidden) {
            (Some(ids), false) => ids.retain(|id| id.as_str() != Some(pane)),
            (Some(ids), true) if ids.iter().all(|id| id.as_str() != Some(pane)) => {
                ids.push(pane.into())
            }
            (Some(_), true) | (None, false) => (),
            (None, true) => wire::put(self.file, HIDDEN, vec![pane]),
        }
    }

    /// Sets one field of a member's entry; whether the member is on the roster.
    pub(crate) fn set(&mut self, name: &MemberName, key: &str, value: impl Into<Value>) -> bool {
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
