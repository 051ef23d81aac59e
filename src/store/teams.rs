//! Lists, creates and deletes teams. A team appears and disappears in one step.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::document::{self, Durability, FilePlace, Writers};
use super::error::StoreError;
use super::journal::{self, JournalReader};
use super::layout::TeamLayout;
use crate::model::event::{Event, Note};
use crate::model::id::{Incarnation, MemberName, TaskId, TeamName};
use crate::model::settings::Settings;
use crate::model::team::Team;
use crate::model::time::Timestamp;
use crate::model::topic::Topic;
use crate::model::wire::Object;
use crate::sys::lock::holds_gate_in;
use crate::sys::watch::{Changes, Watch};
use crate::sys::{failpoint, fs, rand};

/// Name prefix of directories that are being deleted.
const DELETED: &str = ".deleted-";
/// Length of the UUID at the end of such a name.
const UUID_CHARS: usize = 36;
/// Largest number of teams that are listed.
pub(super) const MAX_TEAMS: usize = 10_000;

/// All teams under one config root.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    root: PathBuf,
}

#[derive(Debug, Clone)]
pub(crate) struct TeamStore {
    pub(super) root: PathBuf,
    pub(super) name: TeamName,
    pub(super) layout: TeamLayout,
}

/// Adapts a callback to which every change is relevant.
fn all(on_change: impl Fn(Topic) + Send + 'static) -> impl Fn(Topic) -> bool + Send + 'static {
    move |topic| {
        on_change(topic);
        true
    }
}

/// Returns the team whose directory was moved aside as `.deleted-NAME-UUID`.
fn deleted(dir: &str) -> Option<TeamName> {
    let rest = dir.strip_prefix(DELETED)?;
    let (name, ending) = rest.split_at_checked(rest.len().checked_sub(UUID_CHARS + 1)?)?;
    ending.strip_prefix('-').and_then(|_| TeamName::existing(name).ok())
}

impl Store {
    /// Returns the store under `root`, without any I/O.
    pub(crate) fn at(root: &Path) -> Store {
        Store { root: root.to_owned() }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the directories that contain all teams and all task boards.
    pub(crate) fn common_dirs(&self) -> [PathBuf; 2] {
        [TeamLayout::teams(&self.root), TeamLayout::all_tasks(&self.root)]
    }

    /// Returns the directory of the user's own profiles, `NAME.toml`.
    pub(crate) fn profiles(&self) -> PathBuf {
        TeamLayout::profiles(&self.root)
    }

    /// Returns the user's files that may contain hooks: `hooks.toml`, and Claude Code's
    /// `settings.json`.
    pub(crate) fn hook_files(&self) -> [PathBuf; 2] {
        [TeamLayout::hooks(&self.root), TeamLayout::claude_settings(&self.root)]
    }

    /// Returns the file of the user's own hosts, `hosts.toml`.
    pub(crate) fn hosts_file(&self) -> PathBuf {
        TeamLayout::hosts(&self.root)
    }

    /// Returns the directory of the sockets of connections to hosts.
    pub(crate) fn ssh_dir(&self) -> PathBuf {
        TeamLayout::ssh_dir(&self.root)
    }

    /// Returns the directory of the user's agent files, `*.md`.
    pub(crate) fn agents(&self) -> PathBuf {
        TeamLayout::agents(&self.root)
    }

    /// Returns the teams that have a team file, by name. Skips directories whose names are not team
    /// names.
    pub(crate) fn teams(&self) -> Result<Vec<TeamName>, StoreError> {
        let names = fs::list(&TeamLayout::teams(&self.root))?;
        let usable = names.into_iter().filter(|n| !n.starts_with('.'));
        let sanitized =
            usable.filter_map(|n| TeamName::existing(&n).ok().filter(|t| t.as_str() == n));
        Ok(sanitized.filter(|t| self.open(t).may_exist()).take(MAX_TEAMS).collect())
    }

    /// Returns an existing team.
    ///
    /// # Errors
    /// [`StoreError::NoSuchTeam`] if it has no team file.
    pub(crate) fn team(&self, name: &TeamName) -> Result<TeamStore, StoreError> {
        let team = self.open(name);
        if team.may_exist() {
            return Ok(team);
        }
        Err(StoreError::NoSuchTeam { name: name.to_string(), known: self.teams()? })
    }

    /// Returns the team that `given` names exactly, by its directory or by the name in its team
    /// file.
    ///
    /// # Errors
    /// [`StoreError::NoSuchTeam`] if neither matches. A valid directory name matches even if there
    /// is no such team.
    pub(crate) fn find(&self, given: &str) -> Result<TeamName, StoreError> {
        let name = TeamName::existing(given)?;
        let stored = || self.open(&name).team().is_ok_and(|team| team.name == given);
        if name.as_str() == given || stored() {
            return Ok(name);
        }
        Err(StoreError::NoSuchTeam { name: given.to_owned(), known: self.teams()? })
    }

    /// Creates a team. All other files and directories are complete before its team file appears.
    ///
    /// # Errors
    /// [`StoreError::TeamTaken`] if the team's directory exists.
    pub(crate) fn create(
        &self,
        name: &TeamName,
        file: &Object,
        settings: &Settings,
    ) -> Result<TeamStore, StoreError> {
        let team = self.open(name);
        fs::private_dir(&self.root)?;
        fs::private_dir(&TeamLayout::teams(&self.root))?;
        fs::private_dir(&TeamLayout::all_tasks(&self.root))?;
        if !fs::create_dir_exclusive(&team.layout.team_dir())? {
            return Err(StoreError::TeamTaken { name: name.clone() });
        }
        // The new directory reserves the name: no other process touches what an earlier team left
        // under it.
        team.clear_remains()?;
        self.sweep_deleted();
        team.create_files(file, settings).inspect_err(|_| drop(team.delete()))?;
        Ok(team)
    }

    pub(super) fn teams_dir(&self) -> PathBuf {
        TeamLayout::teams(&self.root)
    }

    pub(super) fn open(&self, name: &TeamName) -> TeamStore {
        TeamStore {
            root: self.root.clone(),
            name: name.clone(),
            layout: TeamLayout::new(&self.root, name),
        }
    }

    /// Finishes an interrupted deletion of this team. Returns false if there was none.
    pub(crate) fn finish_deletion(&self, name: &TeamName) -> Result<bool, StoreError> {
        let team = self.open(name);
        // A process that creates a team of this name meanwhile clears the remains itself.
        if team.remains()?.is_empty() || !fs::create_dir_exclusive(&team.layout.team_dir())? {
            return Ok(false);
        }
        let cleared = team.clear_remains();
        fs::remove_dir_all(&team.layout.team_dir())?;
        cleared.map(|()| true)
    }

    /// Removes directories that deletions have moved aside, except those of an interrupted
    /// deletion, which are the only sign that the team's tasks are still to be removed. Failures
    /// are ignored; the next call tries again.
    fn sweep_deleted(&self) {
        for parent in [TeamLayout::teams(&self.root), TeamLayout::all_tasks(&self.root)] {
            for name in
                fs::list(&parent).unwrap_or_default().iter().filter(|n| n.starts_with(DELETED))
            {
                let is_needed = deleted(name).is_some_and(|name| {
                    let team = self.open(&name);
                    fs::exists(&team.layout.tasks()) && !fs::exists(&team.layout.team_dir())
                });
                if !is_needed {
                    let _ = fs::remove_dir_all(&parent.join(name));
                }
            }
        }
    }
}

impl TeamStore {
    pub(crate) fn name(&self) -> &TeamName {
        &self.name
    }

    /// Returns the config root, by which a launcher finds the store.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    fn create_files(&self, file: &Object, settings: &Settings) -> Result<(), StoreError> {
        for dir in self.layout.all_dirs() {
            fs::private_dir(&dir)?;
        }
        fs::create_new(&self.layout.task_list_lock(), b"")?;
        document::write_new(&self.layout.settings(), settings, Durability::Permanent)?;
        fs::create_new(&self.layout.inbox(&MemberName::lead()), b"[]")?;
        let file = Value::Object(file.clone());
        document::write_new(&self.layout.team_file(), &file, Durability::Permanent)?;
        self.keep_last(&file)
    }

    /// Returns the directories that deletions of a team of this name moved aside and did not
    /// remove.
    fn remains(&self) -> Result<Vec<PathBuf>, StoreError> {
        let mut found = Vec::new();
        for parent in [TeamLayout::teams(&self.root), TeamLayout::all_tasks(&self.root)] {
            let ours =
                fs::list(&parent)?.into_iter().filter(|n| deleted(n).as_ref() == Some(&self.name));
            found.extend(ours.map(|name| parent.join(name)));
        }
        Ok(found)
    }

    /// Removes what an earlier team of this name left. This includes its tasks if its deletion was
    /// interrupted before they were removed.
    fn clear_remains(&self) -> Result<(), StoreError> {
        let remains = self.remains()?;
        if !remains.is_empty() {
            fs::remove_dir_all(&self.layout.tasks())?;
        }
        for dir in remains {
            fs::remove_dir_all(&dir)?;
        }
        Ok(())
    }

    /// Deletes the team: renames its directories, so that it disappears at once, and then removes
    /// them. [`Store::finish_deletion`] or the next team of this name completes an interrupted
    /// deletion.
    pub(crate) fn delete(&self) -> Result<(), StoreError> {
        let mut aside = Vec::new();
        for dir in [self.layout.team_dir(), self.layout.tasks()] {
            let (Some(parent), true) = (dir.parent(), fs::exists(&dir)) else { continue };
            let target = parent.join(format!("{DELETED}{}-{}", self.name, rand::uuid()));
            fs::rename(&dir, &target)?;
            failpoint::hit("delete.moved");
            aside.push(target);
        }
        for dir in aside {
            fs::remove_dir_all(&dir)?;
        }
        Ok(())
    }

    /// Returns true if the process `pid` holds one of the gates of the team's files. The lease of
    /// the lead does not count.
    pub(crate) fn holds_gate(&self, pid: i32) -> bool {
        holds_gate_in(&self.layout.gates(), &self.layout.gate("lead"), pid)
    }

    /// Returns true if the team file exists.
    pub(crate) fn exists(&self) -> bool {
        fs::exists(&self.layout.team_file())
    }

    /// Like [`TeamStore::exists`], but also true if access to the team's directory is denied.
    fn may_exist(&self) -> bool {
        fs::about(&self.layout.team_file()).map_or_else(|e| e.is_denied(), |about| about.is_some())
    }

    /// Reads the team file.
    ///
    /// # Errors
    /// [`StoreError::NoSuchTeam`] if it is missing or not an object.
    pub(crate) fn team(&self) -> Result<Team, StoreError> {
        match document::read(&self.roster_place())? {
            Some(Value::Object(file)) => Ok(Team::read(&file)),
            Some(_) | None => {
                Err(StoreError::NoSuchTeam { name: self.name.to_string(), known: Vec::new() })
            }
        }
    }

    /// Saves a copy of the team file's new content, to restore a file that another program leaves
    /// empty. Requires the file's lock. Not synced: it protects against programs that die, not
    /// against power cuts.
    pub(super) fn keep_last(&self, file: &Value) -> Result<(), StoreError> {
        let bytes = document::to_bytes(file);
        fs::replace_if(&self.layout.last_team_file(), &bytes, fs::Sync::Nothing, || true)?;
        Ok(())
    }

    /// Appends an event to the journal and returns it with its id and time.
    pub(crate) fn record(&self, note: Note) -> Result<Event, StoreError> {
        let mut events = self.record_all(vec![note])?;
        Ok(events.swap_remove(0))
    }

    /// Appends several events at once and returns them in order.
    pub(crate) fn record_all(&self, notes: Vec<Note>) -> Result<Vec<Event>, StoreError> {
        journal::append(&self.layout, notes)
    }

    /// Returns a reader of all events, without any I/O.
    pub(crate) fn journal(&self) -> JournalReader {
        JournalReader::at_start(&self.layout)
    }

    /// Returns a reader of the events after this call.
    pub(crate) fn journal_end(&self) -> Result<JournalReader, StoreError> {
        JournalReader::at_tail(&self.layout, 0)
    }

    /// Returns all events.
    pub(crate) fn events(&self) -> Result<Vec<Event>, StoreError> {
        self.journal().read()
    }

    /// Returns the events since `then` and possibly some earlier ones.
    pub(crate) fn events_since(&self, then: Timestamp) -> Result<Vec<Event>, StoreError> {
        journal::events_since(&self.layout, then)
    }

    /// Returns the number of lines of the journal that are not JSON.
    pub(crate) fn torn_lines(&self) -> Result<usize, StoreError> {
        journal::torn_lines(&self.layout)
    }

    /// Returns the team's settings; `None` for a team that Claude Code created.
    pub(crate) fn settings(&self) -> Result<Option<Settings>, StoreError> {
        document::read_typed(&self.own_place("settings", self.layout.settings()))
    }

    /// Returns the path and age of the file that was written last, out of the team file and the
    /// mailboxes.
    pub(crate) fn latest_write(&self) -> Result<Option<(PathBuf, Duration)>, StoreError> {
        let inboxes = self.layout.inboxes();
        let boxes = fs::list(&inboxes)?.into_iter().map(|name| inboxes.join(name));
        let mut ages = Vec::new();
        for path in boxes.chain([self.layout.team_file()]) {
            ages.extend(fs::about(&path)?.map(|about| (path, about.age)));
        }
        Ok(ages.into_iter().min_by_key(|(_, age)| *age))
    }

    /// Changes the team's settings, if it has any.
    pub(crate) fn change_settings(
        &self,
        mut edit: impl FnMut(&mut Settings),
    ) -> Result<(), StoreError> {
        let place = self.own_place("settings", self.layout.settings());
        document::change_typed(&place, 1, |found: &mut Option<Settings>| {
            if let Some(settings) = found {
                edit(settings);
            }
            Ok(())
        })
    }

    /// Calls `on_change` on a separate thread for every change of the team's files, until the watch
    /// is dropped.
    pub(crate) fn watch(
        &self,
        on_change: impl Fn(Topic) + Send + 'static,
    ) -> Result<Watch, StoreError> {
        self.watch_dirs(&self.layout.watched(), all(on_change))
    }

    /// Like [`TeamStore::watch`], but only for changes that may concern this teammate. Many
    /// teammates watch one team, and a change reported to all of them wakes as many processes.
    pub(crate) fn watch_as(
        &self,
        name: &MemberName,
        on_change: impl Fn(Topic) + Send + 'static,
    ) -> Result<Watch, StoreError> {
        let own = name.file_stem();
        self.watch_dirs(&self.layout.watched_by_members(), move |topic| match &topic {
            Topic::Mail(stem) | Topic::Member(stem) if *stem != own => false,
            Topic::Journal | Topic::Settings => false,
            Topic::Roster
            | Topic::Mail(_)
            | Topic::Member(_)
            | Topic::Members
            | Topic::Requests
            | Topic::Tasks
            | Topic::Everything => {
                on_change(topic);
                true
            }
        })
    }

    /// Like [`TeamStore::watch`], but only for the members' records.
    pub(crate) fn watch_records(
        &self,
        on_change: impl Fn(Topic) + Send + 'static,
    ) -> Result<Watch, StoreError> {
        self.watch_dirs(&[self.layout.members()], all(on_change))
    }

    /// `on_change` returns true if the change was relevant to the caller.
    fn watch_dirs(
        &self,
        dirs: &[PathBuf],
        on_change: impl Fn(Topic) -> bool + Send + 'static,
    ) -> Result<Watch, StoreError> {
        self.create_missing_dirs()?;
        let topics = self.layout.topics();
        Ok(Watch::new(dirs, move |path| topics.topic(path).is_some_and(&on_change))?)
    }

    /// Returns a subscription to changes of the team's files after this call.
    pub(crate) fn changes(&self) -> Result<Changes, StoreError> {
        self.create_missing_dirs()?;
        Ok(Changes::on(&self.layout.watched())?)
    }

    /// Creates the directories that phalanx needs in a team that another program created. Never
    /// creates the team's own, which would bring a deleted team back.
    fn create_missing_dirs(&self) -> Result<(), StoreError> {
        for dir in self.layout.our_dirs().into_iter().filter(|dir| !fs::exists(dir)) {
            fs::create_dir_exclusive(&dir)?;
        }
        Ok(())
    }

    /// Returns the path of the team file, which other programs also use.
    pub(crate) fn team_file(&self) -> PathBuf {
        self.layout.team_file()
    }

    pub(crate) fn member_file(&self, name: &MemberName) -> PathBuf {
        self.layout.member(name)
    }

    pub(crate) fn inbox_file(&self, name: &MemberName) -> PathBuf {
        self.layout.inbox(name)
    }

    pub(crate) fn journal_file(&self) -> PathBuf {
        self.layout.journal()
    }

    /// Returns the path of the output of a member without a pane.
    pub(crate) fn log(&self, name: &MemberName) -> PathBuf {
        self.layout.logs().join(format!("{}.log", name.file_stem()))
    }

    /// Returns the path of the output of a run for one task. Names of members that phalanx starts
    /// contain no dot, so no member's log has this name.
    pub(crate) fn task_log(&self, id: TaskId) -> PathBuf {
        self.layout.logs().join(format!("task.{id}.log"))
    }

    /// Returns the path of the socket at which a run's launcher listens, unless the path is too
    /// long for a socket. Its directory may be missing.
    pub(crate) fn socket(&self, incarnation: &Incarnation) -> PathBuf {
        self.layout.socket(incarnation)
    }

    /// Returns the path of the output of a lead in the background.
    pub(crate) fn lead_log(&self) -> PathBuf {
        self.layout.logs().join("lead.log")
    }

    pub(super) fn own_place(&self, resource: &str, path: PathBuf) -> FilePlace {
        self.place(resource, path, Writers::PhalanxOnly)
    }

    /// The place of a file that describes processes of this boot.
    pub(super) fn boot_place(&self, resource: &str, path: PathBuf) -> FilePlace {
        FilePlace { durability: Durability::ThisBoot, ..self.own_place(resource, path) }
    }

    pub(super) fn place(&self, resource: &str, path: PathBuf, writers: Writers) -> FilePlace {
        let (gate, layout) = (self.layout.gate(resource), self.layout.clone());
        FilePlace { path, gate, layout, writers, durability: Durability::Permanent, last: None }
    }

    pub(super) fn roster_place(&self) -> FilePlace {
        let place = self.place("roster", self.layout.team_file(), Writers::AnyProgram);
        FilePlace { last: Some(self.layout.last_team_file()), ..place }
    }
}
