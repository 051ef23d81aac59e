//! Which teams there are; making one and taking one away. A team appears and disappears in one step.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::document::{self, Place, Shared};
use super::error::StoreError;
use super::layout::Layout;
use crate::model::id::{MemberName, TeamName};
use crate::model::settings::Settings;
use crate::model::team::Team;
use crate::model::topic::Topic;
use crate::model::wire::Object;
use crate::sys::watch::{Changes, Watch};
use crate::sys::{fs, rand};

/// Prefix of what is being taken away.
const DELETED: &str = ".deleted-";
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

impl Store {
    /// The store under `root`; nothing is read or made yet.
    pub(crate) fn at(root: &Path) -> Store {
        Store { root: root.to_owned() }
    }

    /// Where the users' own profiles are: `NAME.toml`.
    pub(crate) fn profiles(&self) -> PathBuf {
        Layout::profiles(&self.root)
    }

    /// The teams that have a team file, by name. Directories whose name no team could have are passed over.
    pub(crate) fn teams(&self) -> Result<Vec<TeamName>, StoreError> {
        let names = fs::list(&Layout::teams(&self.root))?;
        let usable = names.into_iter().take(MAX_TEAMS).filter(|n| !n.starts_with('.'));
        let sanitized = usable.filter_map(|n| TeamName::existing(&n).ok().filter(|t| t.as_str() == n));
        Ok(sanitized.filter(|t| fs::exists(&Layout::new(&self.root, t).team_file())).collect())
    }

    /// A team that exists.
    pub(crate) fn team(&self, name: &TeamName) -> Result<TeamStore, StoreError> {
        let team = self.open(name);
        if fs::exists(&team.layout.team_file()) {
            return Ok(team);
        }
        Err(StoreError::NoSuchTeam { name: name.clone(), known: self.teams()? })
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
        self.sweep_deleted();
        if !fs::create_dir_exclusive(&team.layout.team_dir())? {
            return Err(StoreError::TeamTaken { name: name.clone() });
        }
        team.furnish(file, settings).inspect_err(|_| drop(team.delete()))?;
        Ok(team)
    }

    fn open(&self, name: &TeamName) -> TeamStore {
        TeamStore { root: self.root.clone(), name: name.clone(), layout: Layout::new(&self.root, name) }
    }

    /// Finishes deletions that were interrupted; what cannot be removed is tried again next time.
    fn sweep_deleted(&self) {
        for parent in [Layout::teams(&self.root), Layout::all_tasks(&self.root)] {
            for name in fs::list(&parent).unwrap_or_default().iter().filter(|n| n.starts_with(DELETED)) {
                let _ = fs::remove_dir_all(&parent.join(name));
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
        document::write_new(&self.layout.settings(), settings)?;
        self.mailbox(&MemberName::lead()).found()?;
        document::write_new(&self.layout.team_file(), &Value::Object(file.clone()))?;
        Ok(())
    }

    /// Takes the team away: it is gone for everybody at once, then its files are removed.
    pub(crate) fn delete(&self) -> Result<(), StoreError> {
        let mut aside = Vec::new();
        for dir in [self.layout.team_dir(), self.layout.tasks()] {
            let (Some(parent), true) = (dir.parent(), fs::exists(&dir)) else { continue };
            let target = parent.join(format!("{DELETED}{}-{}", self.name, rand::uuid()));
            fs::rename(&dir, &target)?;
            aside.push(target);
        }
        for dir in aside {
            fs::remove_dir_all(&dir)?;
        }
        Ok(())
    }

    /// Whether the team file is (still) there.
    pub(crate) fn exists(&self) -> bool {
        fs::exists(&self.layout.team_file())
    }

    /// The team file as it stands.
    pub(crate) fn team(&self) -> Result<Team, StoreError> {
        match document::read(&self.roster_place())? {
            Some(Value::Object(file)) => Ok(Team::read(&file)),
            Some(_) | None => Err(StoreError::NoSuchTeam { name: self.name.clone(), known: Vec::new() }),
        }
    }

    /// How the team is run. A team that Claude Code made has no such file: none.
    pub(crate) fn settings(&self) -> Result<Option<Settings>, StoreError> {
        document::read_typed(&self.ours("settings", self.layout.settings()))
    }

    /// Changes how the team is run.
    pub(crate) fn change_settings(&self, mut edit: impl FnMut(&mut Settings)) -> Result<(), StoreError> {
        let place = self.ours("settings", self.layout.settings());
        document::change_typed(&place, 1, |found: &mut Option<Settings>| {
            if let Some(settings) = found {
                edit(settings);
            }
            Ok(())
        })
    }

    /// Calls `on_change` for every change of the team's files, from a thread of its own, until the watch is dropped.
    pub(crate) fn watch(&self, on_change: impl Fn(Topic) + Send + 'static) -> Result<Watch, StoreError> {
        let layout = self.layout.clone();
        let watch = Watch::new(&self.layout.watched(), move |path| {
            if let Some(topic) = layout.topic(path) {
                on_change(topic);
            }
        })?;
        Ok(watch)
    }

    /// Tells when any of the team's files changes; what changed before this call is not told.
    pub(crate) fn changes(&self) -> Result<Changes, StoreError> {
        Ok(Changes::on(&self.layout.watched())?)
    }

    /// The team file, which other programs read too.
    pub(crate) fn team_file(&self) -> PathBuf {
        self.layout.team_file()
    }

    /// Where a member's output is kept when it has no pane.
    pub(crate) fn log(&self, name: &MemberName) -> PathBuf {
        self.layout.logs().join(format!("{}.log", name.file_stem()))
    }

    /// Where the lead's own words go when it runs in the background.
    pub(crate) fn lead_log(&self) -> PathBuf {
        self.layout.logs().join("lead.log")
    }

    pub(super) fn ours(&self, resource: &str, path: PathBuf) -> Place {
        self.place(resource, path, Shared::AmongUs)
    }

    pub(super) fn place(&self, resource: &str, path: PathBuf, shared: Shared) -> Place {
        Place { path, gate: self.layout.gate(resource), layout: self.layout.clone(), shared, seen: None }
    }

    pub(super) fn roster_place(&self) -> Place {
        self.place("roster", self.layout.team_file(), Shared::WithOthers)
    }
}
