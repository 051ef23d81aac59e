//! Finds unusable files and directories of a team by reading each of them, and moves them into the
//! quarantine. Nothing is deleted, and reading never blocks on a FIFO in place of a file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::StoreError;
use crate::files::document::{self, Durability, HeldGate, MAX_FILE};
use crate::files::format::refuse_newer;
use crate::files::layout::QUESTION;
use crate::files::repair_surrogates;
use crate::team::TeamStore;
use crate::team::lease::LeadRecord;
use crate::team::teams::Store;
use model::decisions::question::Question;
use model::decisions::request::ShutdownRequest;
use model::id::{TaskId, TeamName};
use model::members::record::MemberRecord;
use model::team::settings::Settings;
use model::wire::Object;
use sys::clock::sleep;
use sys::fs::{self, FileKind, FsError};
use sys::rand;

/// Newest format of all documents of phalanx's own.
const OWN_FORMAT: u32 = 1;

/// Time since its last modification after which a team directory without a team file no longer
/// counts as one that is being created.
const SETTLED: Duration = Duration::from_secs(5);

/// An unusable path of a team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    pub path: PathBuf,
    /// Reason, to show to the user.
    pub problem: String,
    /// True if the team's members depend on its content. It is then moved aside only for a team
    /// that is being ended.
    pub is_vital: bool,
    /// True if only the permission to access it is missing.
    pub is_denied: bool,
}

/// Parses content; an error means that phalanx cannot use it.
type Check = fn(&[u8]) -> serde_json::Result<()>;

impl Store {
    /// Returns those directories of all teams and of all task boards that are unusable.
    pub fn broken(&self) -> Vec<Broken> {
        self.common_dirs().iter().filter_map(|dir| broken_dir(dir, true)).collect()
    }
}

impl Store {
    /// Returns teams that have phalanx's directory but no team file, which other commands do not
    /// find. Skips a team directory that was modified within [`SETTLED`], since it may be about to
    /// get its file.
    pub fn without_team_file(&self) -> Result<Vec<TeamStore>, StoreError> {
        let names = fs::list(&self.teams_dir())?;
        let named = names
            .iter()
            .filter_map(|name| TeamName::existing(name).ok().filter(|n| n.as_str() == name));
        Ok(named.map(|name| self.open(&name)).filter(TeamStore::lacks_team_file).collect())
    }

    /// Writes the missing team file of such a team, with the content that phalanx saw last, or else
    /// with `founding`. Returns false if the file is not missing.
    pub fn restore_missing(&self, name: &TeamName, founding: &Object) -> Result<bool, StoreError> {
        let team = self.open(name);
        if !team.lacks_team_file() {
            return Ok(false);
        }
        for dir in team.layout.all_dirs() {
            fs::private_dir(&dir)?;
        }
        let file = Value::Object(team.last_file().unwrap_or_else(|| founding.clone()));
        Ok(fs::create_new(&team.layout.team_file(), &document::to_bytes(&file))?)
    }
}

impl TeamStore {
    fn lacks_team_file(&self) -> bool {
        let is_settled = |dir: &Path| {
            let about = fs::about(dir).ok().flatten();
            about.is_some_and(|about| about.kind == FileKind::Directory && about.age >= SETTLED)
        };
        self.has_lost_team_file() && is_settled(&self.layout.team_dir())
    }

    /// Returns true for a team directory without a team file, which may be about to get one.
    pub fn has_lost_team_file(&self) -> bool {
        let file = fs::about(&self.layout.team_file());
        file.is_ok_and(|file| file.is_none())
            && fs::is_dir(&self.layout.ours())
            // The team file of a team in the shared store is there.
            && !fs::exists(&self.layout.store_address())
    }

    /// Returns all unusable paths of the team in the order in which to move them aside: first those
    /// that the quarantine itself needs, and directories before the files in them.
    pub fn broken(&self) -> Vec<Broken> {
        let layout = &self.layout;
        let mut found = Vec::new();
        found.extend(broken_dir(&layout.ours(), true));
        found.extend(broken_dir(&layout.quarantine(), false));
        for path in [layout.journal(), layout.older_journal()] {
            found.extend(broken_file(path, any, false));
        }
        let seen = [layout.ours(), layout.quarantine()];
        for dir in layout.all_dirs().iter().filter(|dir| !seen.contains(dir)) {
            found.extend(broken_dir(dir, *dir == layout.members()));
        }
        let has_last = self.last_file().is_some();
        found.extend(broken_file(layout.team_file(), json::<Object>, !has_last));
        found.extend(broken_file(layout.settings(), own_form::<Settings>, true));
        found.extend(broken_file(layout.last_team_file(), json::<Object>, false));
        found.extend(broken_file(layout.lead(), own_form::<LeadRecord>, false));
        for path in [layout.high_water_mark(), layout.task_list_lock(), layout.deleted_tasks()] {
            found.extend(broken_file(path, any, false));
        }
        for path in json_files(&layout.inboxes()) {
            found.extend(broken_file(path, json::<Vec<Value>>, false));
        }
        for path in json_files(&layout.members()) {
            found.extend(broken_file(path, own_form::<MemberRecord>, true));
        }
        for path in json_files(&layout.requests()) {
            let is_question = file_name(&path).starts_with(QUESTION);
            let check =
                if is_question { own_form::<Question> } else { own_form::<ShutdownRequest> };
            found.extend(broken_file(path, check, false));
        }
        for path in json_files(&layout.tasks()) {
            found.extend(broken_file(path, json::<Object>, false));
        }
        for name in fs::list(&layout.gates()).unwrap_or_default() {
            found.extend(broken_file(layout.gates().join(name), any, false));
        }
        found.extend(self.task_files_beyond_the_limit());
        found
    }

    /// Returns the team's directories that are symbolic links. Files behind them are refused.
    pub fn linked_dirs(&self) -> Vec<Broken> {
        let is_link =
            |dir: &PathBuf| *dir != self.layout.team_dir() && fs::refuse_link(dir).is_err();
        let links = self.layout.all_dirs().into_iter().filter(is_link);
        let problem = || "it is a symbolic link".to_owned();
        links
            .map(|path| Broken { path, problem: problem(), is_vital: true, is_denied: false })
            .collect()
    }

    /// Returns task files whose names are not task ids; commands cannot address them.
    fn task_files_beyond_the_limit(&self) -> Vec<Broken> {
        let is_id = |path: &PathBuf| {
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            stem.is_some_and(|stem| TaskId::parse(stem).is_ok())
        };
        let strange = json_files(&self.layout.tasks()).into_iter().filter(|path| !is_id(path));
        let problem = format!("its name is not a task id from 1 to {}", TaskId::MAX);
        strange
            .map(|path| Broken {
                path,
                problem: problem.clone(),
                is_vital: false,
                is_denied: false,
            })
            .collect()
    }

    /// Moves a broken path into the quarantine and returns its new path. A team file is atomically
    /// exchanged for the content that phalanx saw last, or else for `founding`, because a team
    /// without one counts as deleted. Returns `None` if the path has become usable and was not
    /// moved.
    pub fn set_aside(
        &self,
        broken: &Broken,
        founding: &Object,
    ) -> Result<Option<PathBuf>, StoreError> {
        if broken.is_denied && fs::make_private(&broken.path)? {
            return Ok(None);
        }
        let holds_quarantine =
            [self.layout.ours(), self.layout.quarantine()].contains(&broken.path);
        let dir = if holds_quarantine { self.layout.team_dir() } else { self.layout.quarantine() };
        fs::private_dir(&dir)?;
        let moved = dir.join(format!("{}.{}", file_name(&broken.path), rand::uuid()));
        if broken.path == self.layout.team_file() {
            let _held = HeldGate::take(&self.roster_place())?;
            if broken_file(broken.path.clone(), json::<Object>, false).is_none() {
                return Ok(None);
            }
            let file = Value::Object(self.last_file().unwrap_or_else(|| founding.clone()));
            document::write_new(&moved, &file, Durability::Permanent)?;
            fs::exchange(&broken.path, &moved)?;
            self.keep_last(&file)?;
        } else {
            fs::rename(&broken.path, &moved)?;
        }
        for dir in self.layout.all_dirs() {
            fs::private_dir(&dir)?;
        }
        Ok(Some(moved))
    }
}

fn broken_dir(dir: &Path, is_vital: bool) -> Option<Broken> {
    let broken = |problem: String, is_denied| {
        Some(Broken { path: dir.to_owned(), problem, is_vital, is_denied })
    };
    match fs::about(dir) {
        // `linked_dirs` lists links, and `doctor` reports them as foreign.
        Ok(None) => None,
        Ok(Some(about)) if about.kind == FileKind::Link => None,
        Ok(Some(about)) if about.kind != FileKind::Directory => {
            broken("it is not a directory".to_owned(), false)
        }
        Ok(Some(_)) => fs::list(dir).err().and_then(|e| broken(e.reason(), e.is_denied())),
        // Its parent is not a directory and is reported instead.
        Err(_) => None,
    }
}

fn broken_file(path: PathBuf, check: Check, is_vital: bool) -> Option<Broken> {
    let mut tries = 0;
    let (problem, is_denied) = loop {
        tries += 1;
        match fs::read_versioned(&path, MAX_FILE) {
            Ok(None) => return None,
            Ok(Some(file)) => match check(&file.bytes) {
                Ok(()) => return None,
                Err(_) if tries <= document::WRITING_TRIES && document::is_fresh(&file.version) => {
                    sleep(document::TORN_PAUSE);
                }
                Err(_) if file.bytes.is_empty() => break ("it is empty".to_owned(), false),
                Err(e) => break (e.to_string(), false),
            },
            Err(FsError::Io { source, .. })
                if source.kind() == std::io::ErrorKind::NotADirectory =>
            {
                return None;
            }
            Err(e) => break (e.reason(), e.is_denied()),
        }
    };
    Some(Broken { path, problem, is_vital, is_denied })
}

fn json<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<()> {
    repair_surrogates::parse::<T>(bytes).map(drop)
}

/// Accepts a document of phalanx's own, and any that a newer release wrote: moving it aside would
/// lose data that this release cannot read.
fn own_form<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<()> {
    let value = repair_surrogates::parse::<Value>(bytes)?;
    match refuse_newer(&value, OWN_FORMAT, PathBuf::new) {
        Ok(()) => json::<T>(bytes),
        Err(_) => Ok(()),
    }
}

/// Accepts any content of a regular file.
fn any(_: &[u8]) -> serde_json::Result<()> {
    Ok(())
}

/// Returns the JSON files in a directory; empty if it cannot be listed, which is reported for the
/// directory itself.
fn json_files(dir: &Path) -> Vec<PathBuf> {
    let names = fs::list(dir).unwrap_or_default();
    let names = names.iter().filter(|name| name.ends_with(".json") && !name.starts_with('.'));
    names.map(|name| dir.join(name)).collect()
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
