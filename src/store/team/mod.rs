//! A team: where its parts are stored, and whether it exists.

pub(crate) mod broken;
mod deletion;
pub(crate) mod ended;
pub(crate) mod journal;
pub(crate) mod lease;
pub(crate) mod leftovers;
pub(crate) mod links;
pub(crate) mod roster;
pub(crate) mod teams;
pub(crate) mod transfer;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use self::journal::{JournalReader, LogPlace};
use crate::error::StoreError;
use crate::files::dirs;
use crate::files::document::{self, Durability, FilePlace, Writers};
use crate::files::documents::{self, DocumentPlace};
use crate::files::layout::TeamLayout;
use crate::shared::SharedTeam;
use database::DocumentKind;
use model::id::{HostName, Incarnation, MemberName, TaskId, TeamName};
use model::team::Team;
use model::team::event::{Event, Note};
use model::team::settings::{self, Settings};
use model::time::Timestamp;
use sys::fs;
use sys::lock::{Gate, LOCK_DEADLINE, holds_gate_in};

/// A team under a config root, or in a shared store.
#[derive(Debug, Clone)]
pub struct TeamStore {
    pub(crate) root: PathBuf,
    pub(crate) name: TeamName,
    /// The team's files; of a team in the shared store, only those that belong to this host.
    pub(crate) layout: TeamLayout,
    /// The team in the shared store; `None` for a team of files.
    pub(crate) shared: Option<SharedTeam>,
}

impl TeamStore {
    /// Returns the place of a document; `file` is its place in a team of files.
    pub(crate) fn document(
        &self,
        kind: DocumentKind,
        key: &str,
        file: impl FnOnce() -> FilePlace,
    ) -> DocumentPlace {
        match &self.shared {
            Some(shared) => DocumentPlace::Shared(shared.document(kind, key)),
            None => DocumentPlace::File(file()),
        }
    }

    pub fn name(&self) -> &TeamName {
        &self.name
    }

    /// Returns the config root, by which a launcher finds the store.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns true if the process `pid` holds one of the gates of the team's files. The lease of
    /// the lead does not count.
    pub fn holds_gate(&self, pid: i32) -> bool {
        holds_gate_in(&self.layout.gates(), &self.layout.gate("lead"), pid)
    }

    /// Returns true if the team file exists, or may exist because the shared store cannot be
    /// reached, or access to the team's directory is denied.
    pub fn exists(&self) -> bool {
        self.may_exist().unwrap_or(true)
    }

    /// Like [`TeamStore::exists`], but fails if the shared store cannot be reached.
    pub(crate) fn may_exist(&self) -> Result<bool, StoreError> {
        match &self.shared {
            Some(shared) => shared.exists(),
            None => Ok(fs::about(&self.layout.team_file())
                .map_or_else(|e| e.is_denied(), |about| about.is_some())),
        }
    }

    /// Returns true if the team is in the shared store.
    pub fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// Reads the team file.
    ///
    /// # Errors
    /// [`StoreError::NoSuchTeam`] if it is missing or not an object.
    pub fn team(&self) -> Result<Team, StoreError> {
        match documents::read(&self.roster_document())? {
            Some(Value::Object(file)) => Ok(Team::read(&file)),
            Some(_) | None => {
                Err(StoreError::NoSuchTeam { name: self.name.to_string(), known: Vec::new() })
            }
        }
    }

    /// Saves a copy of the team file's new content, to restore a file that another program leaves
    /// empty. Requires the file's lock. Not synced: it protects against programs that die, not
    /// against power cuts.
    pub(crate) fn keep_last(&self, file: &Value) -> Result<(), StoreError> {
        let bytes = document::to_bytes(file);
        fs::replace_if(&self.layout.last_team_file(), &bytes, fs::Sync::Nothing, || true)?;
        Ok(())
    }

    /// Appends an event to the journal and returns it with its id and time.
    pub fn record(&self, note: Note) -> Result<Event, StoreError> {
        let mut events = self.record_all(vec![note])?;
        Ok(events.swap_remove(0))
    }

    /// Appends an event that nothing depends on, and ignores a failure. Does not wait for the
    /// shared store, whose round trip would delay what the caller does next.
    pub fn record_unconfirmed(&self, note: Note) {
        journal::append_unconfirmed(&self.log_place(), note);
    }

    /// Appends several events at once and returns them in order.
    pub fn record_all(&self, notes: Vec<Note>) -> Result<Vec<Event>, StoreError> {
        journal::append(&self.log_place(), notes)
    }

    /// Returns a reader of all events, without any I/O.
    pub fn journal(&self) -> JournalReader {
        JournalReader::at_start(self.log_place())
    }

    /// Returns a reader of the events after this call.
    pub fn journal_end(&self) -> Result<JournalReader, StoreError> {
        JournalReader::at_end(self.log_place())
    }

    /// Returns all events.
    pub fn events(&self) -> Result<Vec<Event>, StoreError> {
        self.journal().read()
    }

    /// Returns the events since `then` and possibly some earlier ones.
    pub fn events_since(&self, then: Timestamp) -> Result<Vec<Event>, StoreError> {
        journal::events_since(&self.log_place(), then)
    }

    /// Returns the last events: as many that `is_enough` accepts them, or all.
    pub fn last_events(
        &self,
        is_enough: impl Fn(&[Event]) -> bool,
    ) -> Result<Vec<Event>, StoreError> {
        journal::last_events(&self.log_place(), is_enough)
    }

    /// Returns the number of lines of the journal that are not JSON.
    pub fn torn_lines(&self) -> Result<usize, StoreError> {
        if self.shared.is_some() { Ok(0) } else { journal::torn_lines(&self.layout) }
    }

    /// Returns the team's settings; `None` for a team that Claude Code created.
    pub fn settings(&self) -> Result<Option<Settings>, StoreError> {
        let settings: Option<Settings> =
            documents::read_typed(&self.settings_place(), settings::FORMAT)?;
        Ok(match self.host() {
            Some(host) => settings.map(|settings| settings.seen_from(host)),
            None => settings,
        })
    }

    fn settings_place(&self) -> DocumentPlace {
        self.document(DocumentKind::Settings, "", || {
            self.own_place("settings", self.layout.settings())
        })
    }

    /// Gives the team settings if it has none.
    pub fn begin_settings(&self, settings: &Settings) -> Result<(), StoreError> {
        documents::change_typed(
            &self.settings_place(),
            settings::FORMAT,
            |found: &mut Option<Settings>| {
                found.get_or_insert_with(|| settings.clone());
                Ok(())
            },
        )
    }

    /// Returns the path and age of the file that was written last, out of the team file and the
    /// mailboxes; `None` for a team in the shared store, which only phalanx writes.
    pub fn latest_write(&self) -> Result<Option<(PathBuf, Duration)>, StoreError> {
        if self.shared.is_some() {
            return Ok(None);
        }
        let inboxes = self.layout.inboxes();
        let boxes = fs::list(&inboxes)?.into_iter().map(|name| inboxes.join(name));
        let mut ages = Vec::new();
        for path in boxes.chain([self.layout.team_file()]) {
            ages.extend(fs::about(&path)?.map(|about| (path, about.age)));
        }
        Ok(ages.into_iter().min_by_key(|(_, age)| *age))
    }

    /// Changes the team's settings, if it has any.
    pub fn change_settings(&self, mut edit: impl FnMut(&mut Settings)) -> Result<(), StoreError> {
        documents::change_typed(
            &self.settings_place(),
            settings::FORMAT,
            |found: &mut Option<Settings>| {
                match (found, self.host()) {
                    (Some(settings), Some(host)) => {
                        let mut seen = settings.clone().seen_from(host);
                        edit(&mut seen);
                        *settings = seen.shared_by(host);
                    }
                    (Some(settings), None) => edit(settings),
                    (None, _) => (),
                }
                Ok(())
            },
        )
    }

    /// Returns the name of this host in a team of the shared store.
    pub fn host(&self) -> Option<&HostName> {
        self.shared.as_ref().map(|shared| &shared.host)
    }

    /// Makes the shared store refuse all later calls of a run. Has no effect in a team of files.
    pub fn fence(&self, incarnation: &Incarnation) -> Result<(), StoreError> {
        match &self.shared {
            Some(shared) => Ok(shared.database.fence(shared.name(), incarnation.as_str())?),
            None => Ok(()),
        }
    }

    /// Returns the path of the team file, which other programs also use.
    pub fn team_file(&self) -> PathBuf {
        self.layout.team_file()
    }

    pub fn member_file(&self, name: &MemberName) -> PathBuf {
        self.layout.member(name)
    }

    pub fn inbox_file(&self, name: &MemberName) -> PathBuf {
        self.layout.inbox(name)
    }

    pub fn journal_file(&self) -> PathBuf {
        self.layout.journal()
    }

    /// Keeps other processes from placing members until the lock is dropped, so that each sees the
    /// panes of the others. The system releases it when its holder dies.
    ///
    /// # Errors
    /// [`StoreError::Lock`] if another process holds it for too long.
    pub fn lock_placements(&self) -> Result<Gate, StoreError> {
        let gate = self.layout.gate("placements");
        dirs::make_dirs_of(&gate)?;
        Ok(Gate::open(&gate, LOCK_DEADLINE)?)
    }

    /// Returns the path of the output of a member without a pane.
    pub fn log(&self, name: &MemberName) -> PathBuf {
        self.layout.logs().join(format!("{}.log", name.file_stem()))
    }

    /// Returns the path of the output of a run for one task. Names of members that phalanx starts
    /// contain no dot, so no member's log has this name.
    pub fn task_log(&self, id: TaskId) -> PathBuf {
        self.layout.logs().join(format!("task.{id}.log"))
    }

    /// Returns the path of the socket at which a run's launcher listens, unless the path is too
    /// long for a socket. Its directory may be missing.
    pub fn socket(&self, incarnation: &Incarnation) -> PathBuf {
        self.layout.socket(incarnation)
    }

    /// Returns the path of the output of a lead in the background.
    pub fn lead_log(&self) -> PathBuf {
        self.layout.logs().join("lead.log")
    }

    pub(crate) fn own_place(&self, resource: &str, path: PathBuf) -> FilePlace {
        self.place(resource, path, Writers::PhalanxOnly)
    }

    /// The place of a file that describes processes of this boot.
    pub(crate) fn boot_place(&self, resource: &str, path: PathBuf) -> FilePlace {
        FilePlace { durability: Durability::ThisBoot, ..self.own_place(resource, path) }
    }

    pub(crate) fn place(&self, resource: &str, path: PathBuf, writers: Writers) -> FilePlace {
        let (gate, layout) = (self.layout.gate(resource), self.layout.clone());
        FilePlace { path, gate, layout, writers, durability: Durability::Permanent, last: None }
    }

    /// The team file.
    pub(crate) fn roster_document(&self) -> DocumentPlace {
        self.document(DocumentKind::Config, "", || self.roster_place())
    }

    pub(crate) fn log_place(&self) -> LogPlace {
        LogPlace { layout: self.layout.clone(), shared: self.shared.clone() }
    }

    pub(crate) fn roster_place(&self) -> FilePlace {
        let place = self.place("roster", self.layout.team_file(), Writers::AnyProgram);
        FilePlace { last: Some(self.layout.last_team_file()), ..place }
    }
}
