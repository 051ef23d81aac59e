//! Lists and creates teams. A team appears in one step.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::StoreError;
use crate::files::document::{self, Durability};
use crate::files::layout::TeamLayout;
use crate::shared::access::{SharedStore, StoreAccess, StoreAddress};
use crate::shared::roster_names;
use crate::team::TeamStore;
use database::DatabaseError;
use model::id::{HostName, Incarnation, MemberName, TeamName};
use model::team::settings::Settings;
use model::wire::Object;
use sys::fs;

/// Largest number of teams that are listed.
pub(crate) const MAX_TEAMS: usize = 10_000;

/// All teams under one config root, or in one shared store.
#[derive(Debug, Clone)]
pub struct Store {
    root: PathBuf,
    access: Option<StoreAccess>,
    /// The store of all teams; `None` if teams are files, unless a team's address says otherwise.
    shared: Option<SharedStore>,
}

fn no_access() -> StoreError {
    let reason = "this process has no access to shared stores".to_owned();
    StoreError::Database(DatabaseError::BadUrl { reason })
}

impl Store {
    /// Returns the store under `root`, without any I/O.
    pub fn at(root: &Path) -> Store {
        Store { root: root.to_owned(), access: None, shared: None }
    }

    /// Returns the same store with access to shared stores, which teams under the root may be in.
    pub fn with_access(self, access: StoreAccess) -> Store {
        Store { access: Some(access), ..self }
    }

    /// Returns the store under another root.
    pub fn under(&self, root: &Path) -> Store {
        Store { root: root.to_owned(), access: self.access.clone(), shared: None }
    }

    /// Returns the same store for the processes of a run.
    pub fn acting_for(&self, incarnation: &Incarnation) -> Store {
        let mut store = self.clone();
        if let Some(access) = &mut store.access {
            access.incarnation = Some(incarnation.to_string());
        }
        store
    }

    /// Returns the teams of the shared store at `url`, without any I/O. Files that belong to this
    /// host are under the same root.
    ///
    /// # Errors
    /// [`StoreError::Database`] for an invalid address.
    pub fn shared_at(&self, url: &str) -> Result<Store, StoreError> {
        self.joining(url, None, None)
    }

    /// Like [`Store::shared_at`], on the host of this name.
    pub fn joining(
        &self,
        url: &str,
        password: Option<&str>,
        host: Option<&HostName>,
    ) -> Result<Store, StoreError> {
        let access = self.access.as_ref().ok_or_else(no_access)?;
        Ok(Store { shared: Some(access.open(url, password, host, &self.root)?), ..self.clone() })
    }

    /// Returns the teams of a shared store that this process has connected to.
    #[cfg(test)]
    pub(crate) fn connected(root: &Path, shared: SharedStore) -> Store {
        Store { root: root.to_owned(), access: None, shared: Some(shared) }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the directories that contain all teams and all task boards.
    pub(crate) fn common_dirs(&self) -> [PathBuf; 2] {
        [TeamLayout::teams(&self.root), TeamLayout::all_tasks(&self.root)]
    }

    /// Returns the directory of the user's own profiles, `NAME.toml`.
    pub fn profiles(&self) -> PathBuf {
        TeamLayout::profiles(&self.root)
    }

    /// Returns the directory of the user's own templates of manifests, `NAME.toml`.
    pub fn templates(&self) -> PathBuf {
        TeamLayout::templates(&self.root)
    }

    /// Returns the user's files that may contain hooks: `hooks.toml`, and Claude Code's
    /// `settings.json`.
    pub fn hook_files(&self) -> [PathBuf; 2] {
        [TeamLayout::hooks(&self.root), TeamLayout::claude_settings(&self.root)]
    }

    /// Returns the file of the user's keys and colours of the dashboard, `watch.toml`.
    pub fn watch_settings_file(&self) -> PathBuf {
        TeamLayout::watch_settings(&self.root)
    }

    /// Returns the file of the user's own hosts, `hosts.toml`.
    pub fn hosts_file(&self) -> PathBuf {
        TeamLayout::hosts(&self.root)
    }

    /// Returns the directory of the sockets of connections to hosts.
    pub fn ssh_dir(&self) -> PathBuf {
        TeamLayout::ssh_dir(&self.root)
    }

    /// Returns the directory of the user's agent files, `*.md`.
    pub fn agents(&self) -> PathBuf {
        TeamLayout::agents(&self.root)
    }

    /// Returns the teams that have a team file, by name. Skips directories whose names are not team
    /// names.
    pub fn teams(&self) -> Result<Vec<TeamName>, StoreError> {
        if let Some(shared) = &self.shared {
            let names = shared.database.teams()?;
            return Ok(names.iter().filter_map(|name| TeamName::existing(name).ok()).collect());
        }
        let names = fs::list(&TeamLayout::teams(&self.root))?;
        let usable = names.into_iter().filter(|n| !n.starts_with('.'));
        let sanitized =
            usable.filter_map(|n| TeamName::existing(&n).ok().filter(|t| t.as_str() == n));
        // A team whose store cannot be reached may exist.
        let may_exist =
            |t: &TeamName| self.locate(t).is_ok_and(|team| team.may_exist().unwrap_or(true));
        Ok(sanitized.filter(may_exist).take(MAX_TEAMS).collect())
    }

    /// Returns an existing team.
    ///
    /// # Errors
    /// [`StoreError::NoSuchTeam`] if it has no team file.
    pub fn team(&self, name: &TeamName) -> Result<TeamStore, StoreError> {
        let team = self.locate(name)?;
        if team.may_exist()? {
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
    pub fn find(&self, given: &str) -> Result<TeamName, StoreError> {
        let name = TeamName::existing(given)?;
        let stored = || {
            let team = self.locate(&name).and_then(|team| team.team());
            team.is_ok_and(|team| team.name == given)
        };
        if name.as_str() == given || stored() {
            return Ok(name);
        }
        Err(StoreError::NoSuchTeam { name: given.to_owned(), known: self.teams()? })
    }

    /// Creates a team. All other files and directories are complete before its team file appears.
    ///
    /// # Errors
    /// [`StoreError::TeamTaken`] if the team's directory exists.
    pub fn create(
        &self,
        name: &TeamName,
        file: &Object,
        settings: &Settings,
    ) -> Result<TeamStore, StoreError> {
        let team = self.open(name);
        if let Some(shared) = &team.shared {
            let names = roster_names(&Value::Object(file.clone()));
            shared.create(file, &names, Some(settings))?;
            team.join_host()?;
            return Ok(team);
        }
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

    pub(crate) fn teams_dir(&self) -> PathBuf {
        TeamLayout::teams(&self.root)
    }

    /// Returns the team without any I/O: it may not exist, or be in a shared store.
    pub fn open(&self, name: &TeamName) -> TeamStore {
        TeamStore {
            root: self.root.clone(),
            name: name.clone(),
            layout: TeamLayout::new(&self.root, name),
            shared: self.shared.clone().map(|shared| shared.team(name)),
        }
    }

    /// Returns the team where its address says that it is.
    pub(super) fn locate(&self, name: &TeamName) -> Result<TeamStore, StoreError> {
        let team = self.open(name);
        if team.shared.is_some() {
            return Ok(team);
        }
        let Some(StoreAddress { url, host, .. }) = team.read_address()? else { return Ok(team) };
        let access = self.access.as_ref().ok_or_else(no_access)?;
        let shared = access.open(&url, None, Some(&host), &self.root)?;
        Ok(TeamStore { shared: Some(shared.team(name)), ..team })
    }
}

impl TeamStore {
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
}
