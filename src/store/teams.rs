//! Which teams there are; making one and taking one away. A team appears and disappears in one step.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::document::{self, Kept, Place, Shared};
use super::error::StoreError;
use super::layout::Layout;
use crate::model::id::{Incarnation, MemberName, TaskId, TeamName};
use crate::model::settings::Settings;
use crate::model::team::Team;
use crate::model::topic::Topic;
use crate::model::wire::Object;
use crate::sys::lock::holds_gate_in;
use crate::sys::watch::{Changes, Watch};
use crate::sys::{failpoint, fs, rand};

/// Prefix of what is being taken away.
const DELETED: &str = ".deleted-";
/// The length of the random part at its end.
const UUID_CHARS: usize = 36;
const MAX_TEAMS: usize = 10_000;

/// All teams under one config root.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    root: PathBuf,
}

/// One team's files.
#[derive(Debug, Clone)]
pub(crate) struct TeamStore {
    pub(super) root: PathBuf,
    pub(super) name: TeamName,
    pub(super) layout: Layout,
}

/// For whom every change is of use.
fn all(on_change: impl Fn(Topic) + Send + 'static) -> impl Fn(Topic) -> bool + Send + 'static {
    move |topic| {
        on_change(topic);
        true
    }
}

/// The team that a directory was moved aside for: `.deleted-NAME-UUID`.
fn deleted(dir: &str) -> Option<TeamName> {
    let rest = dir.strip_prefix(DELETED)?;
    let (name, ending) = rest.split_at_checked(rest.len().checked_sub(UUID_CHARS + 1)?)?;
    ending.strip_prefix('-').and_then(|_| TeamName::existing(name).ok())
}

impl Store {
    /// The store under `root`; nothing is read or made yet.
    pub(crate) fn at(root: &Path) -> Store {
        Store { root: root.to_owned() }
    }

    /// The config root.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The directories of all teams and of all boards.
    pub(crate) fn common_dirs(&self) -> [PathBuf; 2] {
        [Layout::teams(&self.root), Layout::all_tasks(&self.root)]
    }

    /// Where the users' own profiles are: `NAME.toml`.
    pub(crate) fn profiles(&self) -> PathBuf {
        Layout::profiles(&self.root)
    }

    /// The files of the user that hooks can stand in: `hooks.toml`, and Claude's `settings.json`.
    pub(crate) fn hook_files(&self) -> [PathBuf; 2] {
        [Layout::hooks(&self.root), Layout::claude_settings(&self.root)]
    }

    /// Where the user's agent files are: `*.md`.
    pub(crate) fn agents(&self) -> PathBuf {
        Layout::agents(&self.root)
    }

    /// The teams that have a team file, by name. Directories whose name no team could have are passed over.
    pub(crate) fn teams(&self) -> Result<Vec<TeamName>, StoreError> {
        let names = fs::list(&Layout::teams(&self.root))?;
        let usable = names.into_iter().take(MAX_TEAMS).filter(|n| !n.starts_with('.'));
        let sanitized =
            usable.filter_map(|n| TeamName::existing(&n).ok().filter(|t| t.as_str() == n));
        Ok(sanitized.filter(|t| self.open(t).may_exist()).collect())
    }

    /// A team that exists.
    pub(crate) fn team(&self, name: &TeamName) -> Result<TeamStore, StoreError> {
        let team = self.open(name);
        if team.may_exist() {
            return Ok(team);
        }
        Err(StoreError::NoSuchTeam { name: name.to_string(), known: self.teams()? })
    }

    /// The team that `given` names exactly: its directory's name, or the name in its team file.
    ///
    /// # Errors
    /// The names are those of no team. A directory's name passes whether there is such a team or not.
    pub(crate) fn find(&self, given: &str) -> Result<TeamName, StoreError> {
        let name = TeamName::existing(given)?;
        let stored = || self.open(&name).team().is_ok_and(|team| team.name == given);
        if name.as_str() == given || stored() {
            return Ok(name);
        }
        Err(StoreError::NoSuchTeam { name: given.to_owned(), known: self.teams()? })
    }

    /// Makes a team: all its directories and its files, complete before its team file appears.
    pub(crate) fn create(
        &self,
        name: &TeamName,
        file: &Object,
        settings: &Settings,
    ) -> Result<TeamStore, StoreError> {
        let team = self.open(name);
        fs::private_dir(&self.root)?;
        fs::private_dir(&Layout::teams(&self.root))?;
        fs::private_dir(&Layout::all_tasks(&self.root))?;
        if !fs::create_dir_exclusive(&team.layout.team_dir())? {
            return Err(StoreError::TeamTaken { name: name.clone() });
        }
        // The name is ours: nobody else touches what an earlier team has left under it.
        team.clear_remains()?;
        self.sweep_deleted();
        team.furnish(file, settings).inspect_err(|_| drop(team.delete()))?;
        Ok(team)
    }

    pub(super) fn teams_dir(&self) -> PathBuf {
        Layout::teams(&self.root)
    }

    pub(super) fn open(&self, name: &TeamName) -> TeamStore {
        TeamStore {
            root: self.root.clone(),
            name: name.clone(),
            layout: Layout::new(&self.root, name),
        }
    }

    /// Finishes a deletion of this team that was cut short; whether there was one.
    pub(crate) fn finish_deletion(&self, name: &TeamName) -> Result<bool, StoreError> {
        let team = self.open(name);
        // Whoever makes a team of this name meanwhile clears up by itself.
        if team.remains()?.is_empty() || !fs::create_dir_exclusive(&team.layout.team_dir())? {
            return Ok(false);
        }
        let cleared = team.clear_remains();
        fs::remove_dir_all(&team.layout.team_dir())?;
        cleared.map(|()| true)
    }

    /// Removes what deletions have moved aside, but for what tells of one that was cut short: the tasks of that team
    /// are still in their place. What cannot be removed is tried again next time.
    fn sweep_deleted(&self) {
        for parent in [Layout::teams(&self.root), Layout::all_tasks(&self.root)] {
            for name in
                fs::list(&parent).unwrap_or_default().iter().filter(|n| n.starts_with(DELETED))
            {
                let tells = deleted(name).is_some_and(|name| {
                    let team = self.open(&name);
                    fs::exists(&team.layout.tasks()) && !fs::exists(&team.layout.team_dir())
                });
                if !tells {
                    let _ = fs::remove_dir_all(&parent.join(name));
                }
            }
        }
    }
}

impl TeamStore {
    /// The team's name.
    pub(crate) fn name(&self) -> &TeamName {
        &self.name
    }

    /// The config root the team lies under: a launcher finds the store by it.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    fn furnish(&self, file: &Object, settings: &Settings) -> Result<(), StoreError> {
        for dir in self.layout.all_dirs() {
            fs::private_dir(&dir)?;
        }
        fs::create_new(&self.layout.task_list_lock(), b"")?;
        document::write_new(&self.layout.settings(), settings, Kept::ForGood)?;
        self.mailbox(&MemberName::lead()).found()?;
        let file = Value::Object(file.clone());
        document::write_new(&self.layout.team_file(), &file, Kept::ForGood)?;
        self.keep_last(&file)
    }

    /// What deletions of a team of this name have moved aside and not removed.
    fn remains(&self) -> Result<Vec<PathBuf>, StoreError> {
        let mut found = Vec::new();
        for parent in [Layout::teams(&self.root), Layout::all_tasks(&self.root)] {
            let ours =
                fs::list(&parent)?.into_iter().filter(|n| deleted(n).as_ref() == Some(&self.name));
            found.extend(ours.map(|name| parent.join(name)));
        }
        Ok(found)
    }

    /// Removes what an earlier team of this name has left, its tasks too if its deletion was cut short before them.
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

    /// Takes the team away: it is gone for everybody at once, then its files are removed. Cut short, it is finished by
    /// [`Store::finish_deletion`], or by the next team of this name.
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

    /// Returns true if this process holds one of the locks by which phalanx guards the team's files.
    /// The lease of the lead is none of these.
    pub(crate) fn holds_gate(&self, pid: i32) -> bool {
        holds_gate_in(&self.layout.gates(), &self.layout.gate("lead"), pid)
    }

    /// Whether the team file is (still) there.
    pub(crate) fn exists(&self) -> bool {
        fs::exists(&self.layout.team_file())
    }

    /// Like [`TeamStore::exists`]; true, too, where the team's directory may not be looked into.
    fn may_exist(&self) -> bool {
        fs::about(&self.layout.team_file()).map_or_else(|e| e.is_denied(), |about| about.is_some())
    }

    /// The team file as it stands.
    pub(crate) fn team(&self) -> Result<Team, StoreError> {
        match document::read(&self.roster_place())? {
            Some(Value::Object(file)) => Ok(Team::read(&file)),
            Some(_) | None => {
                Err(StoreError::NoSuchTeam { name: self.name.to_string(), known: Vec::new() })
            }
        }
    }

    /// Keeps what the team file is to hold, for whoever finds it left empty; under its lock. Not worth a wait for the disk:
    /// it is for programs that die, not for machines.
    pub(super) fn keep_last(&self, file: &Value) -> Result<(), StoreError> {
        let bytes = document::to_bytes(file);
        fs::replace_if(&self.layout.last_team_file(), &bytes, fs::Sync::Nothing, || true)?;
        Ok(())
    }

    /// How the team is run. A team that Claude Code made has no such file: none.
    pub(crate) fn settings(&self) -> Result<Option<Settings>, StoreError> {
        document::read_typed(&self.ours("settings", self.layout.settings()))
    }

    /// Of the team file and the mailboxes, the one that was written last, and its age.
    pub(crate) fn latest_write(&self) -> Result<Option<(PathBuf, Duration)>, StoreError> {
        let inboxes = self.layout.inboxes();
        let boxes = fs::list(&inboxes)?.into_iter().map(|name| inboxes.join(name));
        let mut ages = Vec::new();
        for path in boxes.chain([self.layout.team_file()]) {
            ages.extend(fs::about(&path)?.map(|about| (path, about.age)));
        }
        Ok(ages.into_iter().min_by_key(|(_, age)| *age))
    }

    /// Changes how the team is run.
    pub(crate) fn change_settings(
        &self,
        mut edit: impl FnMut(&mut Settings),
    ) -> Result<(), StoreError> {
        let place = self.ours("settings", self.layout.settings());
        document::change_typed(&place, 1, |found: &mut Option<Settings>| {
            if let Some(settings) = found {
                edit(settings);
            }
            Ok(())
        })
    }

    /// Calls `on_change` for every change of the team's files, from a thread of its own, until the watch is dropped.
    pub(crate) fn watch(
        &self,
        on_change: impl Fn(Topic) + Send + 'static,
    ) -> Result<Watch, StoreError> {
        self.watch_dirs(&self.layout.watched(), all(on_change))
    }

    /// Like [`TeamStore::watch`], only of what may concern this teammate: many of them watch one team, and each change
    /// that is told to all wakes as many processes.
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

    /// Like [`TeamStore::watch`], only of the members' records.
    pub(crate) fn watch_records(
        &self,
        on_change: impl Fn(Topic) + Send + 'static,
    ) -> Result<Watch, StoreError> {
        self.watch_dirs(&[self.layout.members()], all(on_change))
    }

    /// `on_change` says whether the change was of use.
    fn watch_dirs(
        &self,
        dirs: &[PathBuf],
        on_change: impl Fn(Topic) -> bool + Send + 'static,
    ) -> Result<Watch, StoreError> {
        self.make_room()?;
        let topics = self.layout.topics();
        Ok(Watch::new(dirs, move |path| topics.of(path).is_some_and(&on_change))?)
    }

    /// Tells when any of the team's files changes; what changed before this call is not told.
    pub(crate) fn changes(&self) -> Result<Changes, StoreError> {
        self.make_room()?;
        Ok(Changes::on(&self.layout.watched())?)
    }

    /// Makes the directories that phalanx needs in a team that another program made. The team's own is never made here:
    /// who comes after a team was deleted must not bring it back.
    fn make_room(&self) -> Result<(), StoreError> {
        for dir in self.layout.our_dirs().into_iter().filter(|dir| !fs::exists(dir)) {
            fs::create_dir_exclusive(&dir)?;
        }
        Ok(())
    }

    /// The team file, which other programs read too.
    pub(crate) fn team_file(&self) -> PathBuf {
        self.layout.team_file()
    }

    /// Where the record of a member's run is kept.
    pub(crate) fn member_file(&self, name: &MemberName) -> PathBuf {
        self.layout.member(name)
    }

    /// Where a member's mail is kept.
    pub(crate) fn inbox_file(&self, name: &MemberName) -> PathBuf {
        self.layout.inbox(name)
    }

    /// Where the journal is kept.
    pub(crate) fn journal_file(&self) -> PathBuf {
        self.layout.journal()
    }

    /// Where a member's output is kept when it has no pane.
    pub(crate) fn log(&self, name: &MemberName) -> PathBuf {
        self.layout.logs().join(format!("{}.log", name.file_stem()))
    }

    /// Where the output of a run for one task is kept. No member's log has such a name.
    pub(crate) fn task_log(&self, id: TaskId) -> PathBuf {
        self.layout.logs().join(format!("task.{id}.log"))
    }

    /// Where the launcher of a run listens, unless that path is too long for a socket. The directory may be missing.
    pub(crate) fn socket(&self, incarnation: &Incarnation) -> PathBuf {
        self.layout.socket(incarnation)
    }

    /// Where the lead's own words go when it runs in the background.
    pub(crate) fn lead_log(&self) -> PathBuf {
        self.layout.logs().join("lead.log")
    }

    pub(super) fn ours(&self, resource: &str, path: PathBuf) -> Place {
        self.place(resource, path, Shared::AmongUs)
    }

    /// Of a file that speaks of this boot's processes.
    pub(super) fn of_this_boot(&self, resource: &str, path: PathBuf) -> Place {
        Place { kept: Kept::ForThisBoot, ..self.ours(resource, path) }
    }

    pub(super) fn place(&self, resource: &str, path: PathBuf, shared: Shared) -> Place {
        let (gate, layout) = (self.layout.gate(resource), self.layout.clone());
        Place { path, gate, layout, shared, kept: Kept::ForGood, last: None }
    }

    pub(super) fn roster_place(&self) -> Place {
        let place = self.place("roster", self.layout.team_file(), Shared::WithOthers);
        Place { last: Some(self.layout.last_team_file()), ..place }
    }
}
