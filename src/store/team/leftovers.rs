//! Finds and removes leftovers in a team's directories: stale locks, dead sockets, specs,
//! quarantined files and directories that other users can enter. Processes are not checked: a
//! path counts as unused by its age, and a socket by a failed connection attempt.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::StoreError;
use crate::files::document::{HeldGate, Writers};
use crate::files::layout::TeamLayout;
use crate::team::TeamStore;
use crate::team::teams::Store;
use model::id::{Incarnation, TeamName};
use sys::env;
use sys::fs::{self, About, FileKind};
use sys::socket_probe::{SocketState, probe};

/// Age above which a lock directory has no living holder, and a socket has had time to get its
/// listener.
const STALE: Duration = Duration::from_secs(10);
/// Permission bits that group and others must not have on phalanx's directories.
const OTHERS: u32 = 0o077;

/// The kind of a leftover.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeftoverKind {
    /// A lock directory that its holder no longer refreshes.
    Lock { age: Duration },
    /// A socket without a listener.
    Socket,
    /// A spec that no launcher has read. It contains an environment.
    Spec { incarnation: Incarnation, age: Duration },
    /// Changes of the board that a killed process has not finished: so many tasks are not written.
    /// If they are committed, the next process that reads the board writes them.
    Batch { is_committed: bool, tasks: usize },
    /// A copy of an unreadable file.
    Quarantined,
    /// A directory that other users can enter; `mode` is its permission bits.
    Open { mode: u32 },
    /// A path that is owned by another user, or a symbolic link, in place of phalanx's directory.
    NotOurs { uid: u32, is_link: bool },
}

/// A path and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    pub path: PathBuf,
    pub kind: LeftoverKind,
}

impl Store {
    /// Returns the leftovers among the directories that all teams share.
    pub fn leftovers(&self) -> Result<Vec<Leftover>, StoreError> {
        dirs(std::iter::once(self.root().to_owned()).chain(self.common_dirs()), Some(self.root()))
    }

    /// Makes a directory private if other users can enter it. Returns true if it did.
    pub fn clear(&self, leftover: &Leftover) -> Result<bool, StoreError> {
        let is_open = matches!(leftover.kind, LeftoverKind::Open { .. });
        if is_open {
            fs::private_dir(&leftover.path)?;
        }
        Ok(is_open)
    }
}

impl TeamStore {
    /// Returns true if phalanx created the team or runs members in it.
    pub fn is_ours(&self) -> bool {
        self.shared.is_some() || fs::exists(&self.layout.settings())
    }

    /// Returns all leftovers in the team's directories.
    pub fn leftovers(&self) -> Result<Vec<Leftover>, StoreError> {
        let mut found = dirs(self.layout.all_dirs(), None)?;
        if !self.is_ours() {
            // Another program has made them in its own way; those around them are reported.
            found.retain(|one| !matches!(one.kind, LeftoverKind::Open { .. }));
        }
        found.extend(self.stale_locks()?);
        found.extend(self.unfinished_batches()?);
        found.extend(self.dead_sockets()?);
        for (path, about) in entries(&self.layout.specs())? {
            let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            if let Ok(incarnation) = Incarnation::parse(stem) {
                found.push(Leftover {
                    path,
                    kind: LeftoverKind::Spec { incarnation, age: about.age },
                });
            }
        }
        let copies = entries(&self.layout.quarantine())?;
        found.extend(
            copies.into_iter().map(|(path, _)| Leftover { path, kind: LeftoverKind::Quarantined }),
        );
        Ok(found)
    }

    /// Removes the stale locks and the temporary files of killed processes. The next writer would
    /// have to wait for the locks.
    pub fn sweep_leftovers(&self) -> Result<(), StoreError> {
        self.written_dirs().iter().for_each(|dir| fs::sweep_abandoned(dir));
        self.stale_locks()?.iter().try_for_each(|lock| self.clear(lock).map(drop))
    }

    /// The directories in which other programs write, too.
    fn written_dirs(&self) -> [PathBuf; 3] {
        [self.layout.team_dir(), self.layout.inboxes(), self.layout.tasks()]
    }

    fn stale_locks(&self) -> Result<Vec<Leftover>, StoreError> {
        let mut found = Vec::new();
        for dir in self.written_dirs() {
            for (path, about) in entries(&dir)? {
                let lock = path.extension().is_some_and(|end| end == "lock")
                    && about.kind == FileKind::Directory;
                if lock && about.age > STALE {
                    found.push(Leftover { path, kind: LeftoverKind::Lock { age: about.age } });
                }
            }
        }
        Ok(found)
    }

    /// Removes or repairs a leftover if that loses no data. Returns true if it did; leaves a path
    /// that is in use again.
    pub fn clear(&self, leftover: &Leftover) -> Result<bool, StoreError> {
        match &leftover.kind {
            LeftoverKind::Lock { .. } => self.free_lock(&leftover.path),
            LeftoverKind::Batch { .. } => {
                drop(self.lock_list()?);
                Ok(!fs::exists(&leftover.path))
            }
            LeftoverKind::Socket => {
                let dead = probe(&leftover.path) == SocketState::Refused;
                Ok(dead && fs::remove_file(&leftover.path)?)
            }
            LeftoverKind::Spec { .. } => Ok(fs::remove_file(&leftover.path)?),
            LeftoverKind::Open { .. } => {
                fs::private_dir(&leftover.path)?;
                Ok(true)
            }
            LeftoverKind::Quarantined | LeftoverKind::NotOurs { .. } => Ok(false),
        }
    }

    /// Acquires the lock like any writer, which removes it if it is stale, and releases it.
    fn free_lock(&self, lock: &Path) -> Result<bool, StoreError> {
        let Some(about) = fs::about(lock)?.filter(|about| about.age > STALE) else {
            return Ok(false);
        };
        let path = lock.with_extension("");
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let gate = match path.parent() {
            Some(dir) if dir == self.layout.inboxes() => format!("inbox-{stem}"),
            Some(dir) if dir == self.layout.tasks() && path == self.layout.task_list_lock() => {
                "task-list".to_owned()
            }
            Some(dir) if dir == self.layout.tasks() => format!("task-{stem}"),
            Some(_) | None => "roster".to_owned(),
        };
        let place = self.place(&gate, path, Writers::AnyProgram);
        let held = HeldGate::take(&place)?;
        drop(held.exclude_peers(&place)?);
        Ok(about.kind == FileKind::Directory && !fs::exists(lock))
    }

    /// Returns the changes of several tasks that no living process is writing.
    fn unfinished_batches(&self) -> Result<Vec<Leftover>, StoreError> {
        let mut found = Vec::new();
        for (path, is_committed) in
            [(self.layout.committed_batch(), true), (self.layout.staged_batch(), false)]
        {
            if fs::exists(&path) && !self.is_list_locked()? {
                let tasks = self.tasks_of_batch(&path)?;
                found.push(Leftover { path, kind: LeftoverKind::Batch { is_committed, tasks } });
            }
        }
        Ok(found)
    }

    /// Returns the sockets without a listener in phalanx's directories of the team.
    fn dead_sockets(&self) -> Result<Vec<Leftover>, StoreError> {
        let mut found = Vec::new();
        let inner = entries(&self.layout.ours())?;
        let dirs = inner
            .iter()
            .filter(|(_, about)| about.kind == FileKind::Directory)
            .map(|(path, _)| path);
        for dir in dirs.chain([&self.layout.ours()]) {
            for (path, about) in entries(dir)? {
                let old = about.kind == FileKind::Socket && about.age > STALE;
                if old && probe(&path) == SocketState::Refused {
                    found.push(Leftover { path, kind: LeftoverKind::Socket });
                }
            }
        }
        Ok(found)
    }
}

/// Returns the directories that other users can enter or that are not ours. `shared` may be open or
/// a link, because the user manages it.
fn dirs(
    dirs: impl IntoIterator<Item = PathBuf>,
    shared: Option<&Path>,
) -> Result<Vec<Leftover>, StoreError> {
    let mut found = Vec::new();
    for path in dirs {
        let Some(about) = fs::about(&path)? else { continue };
        let is_link = about.kind == FileKind::Link;
        if about.uid != env::effective_uid() || (is_link && shared != Some(path.as_path())) {
            found.push(Leftover { path, kind: LeftoverKind::NotOurs { uid: about.uid, is_link } });
        } else if about.mode & OTHERS != 0 && !is_link && shared != Some(path.as_path()) {
            found.push(Leftover { path, kind: LeftoverKind::Open { mode: about.mode } });
        }
    }
    Ok(found)
}

/// Returns the entries of a directory, sorted by name; empty if it does not exist.
fn entries(dir: &Path) -> Result<Vec<(PathBuf, About)>, StoreError> {
    let mut found = Vec::new();
    for name in fs::list(dir)? {
        let path = dir.join(name);
        if let Some(about) = fs::about(&path)? {
            found.push((path, about));
        }
    }
    Ok(found)
}

/// Splits the path of a spec file into config root, team and run; `None` if it does not have that
/// form.
pub fn parse_spec_path(path: &Path) -> Option<(PathBuf, TeamName, Incarnation)> {
    let incarnation = Incarnation::parse(path.file_stem()?.to_str()?).ok()?;
    let dir = path.ancestors().nth(4)?;
    let team = path.ancestors().nth(3)?.file_name()?.to_str()?;
    let team = TeamName::existing(team).ok().filter(|name| name.as_str() == team)?;
    let root = dir.parent()?;
    let same = path.is_absolute() && TeamLayout::new(root, &team).spec(&incarnation) == path;
    same.then(|| (root.to_owned(), team, incarnation))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "00000000-0000-4000-8000-000000000000";

    #[test]
    fn spec_path_yields_root_team_and_run() {
        let path = format!("/a b/teams/demo/phalanx/specs/{RUN}.json");
        let (root, team, run) = parse_spec_path(Path::new(&path)).expect("a spec");
        assert_eq!((root.as_path(), team.as_str(), run.as_str()), (Path::new("/a b"), "demo", RUN));
        let hostile = [
            format!("teams/demo/phalanx/specs/{RUN}.json"),
            format!("/a/teams/demo/phalanx/logs/{RUN}.json"),
            format!("/a/teams/De mo/phalanx/specs/{RUN}.json"),
            format!("/a/teams/../phalanx/specs/{RUN}.json"),
            format!("/a/teams/demo/phalanx/specs/{RUN}.txt"),
            "/a/teams/demo/phalanx/specs/x.json".to_owned(),
            "/".to_owned(),
        ];
        for path in hostile {
            assert_eq!(parse_spec_path(Path::new(&path)), None, "{path}");
        }
    }
}
