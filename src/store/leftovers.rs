//! What lies in a team's directories and should not: locks, sockets and specs that somebody left, files that could not
//! be read, directories that others can enter. Whose processes live is not known here: what may be in use is told by its
//! age and by nothing else.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::document::{Held, Place, Shared};
use super::error::StoreError;
use super::layout::Layout;
use super::teams::{Store, TeamStore};
use crate::model::id::{Incarnation, TeamName};
use crate::sys::env;
use crate::sys::fs::{self, About, Kind};
use crate::sys::knock::{Knock, knock};

/// A lock directory of this age has no holder any more (protocol.md, section 2), and a socket of this age had the time to
/// be listened at.
const STALE: Duration = Duration::from_secs(10);
/// What others must not have on a directory of ours.
const OTHERS: u32 = 0o077;

/// What is wrong with a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Left {
    /// A lock directory that nobody refreshes.
    Lock { age: Duration },
    /// A socket that nobody listens at.
    Socket,
    /// A spec that no launcher took: it holds an environment.
    Spec { incarnation: Incarnation, age: Duration },
    /// A copy of a file that could not be read.
    Quarantined,
    /// A directory that other users can enter.
    Open { mode: u32 },
    /// Something of another user's, or a symbolic link, where our directory should be.
    NotOurs { uid: u32, is_link: bool },
}

/// Something that was left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Leftover {
    pub(crate) path: PathBuf,
    pub(crate) left: Left,
}

impl Store {
    /// What is wrong with the directories that all teams share.
    pub(crate) fn leftovers(&self) -> Result<Vec<Leftover>, StoreError> {
        dirs(std::iter::once(self.root().to_owned()).chain(self.common_dirs()), Some(self.root()))
    }

    /// Makes a directory private that others could enter; whether that was done.
    pub(crate) fn clear(&self, leftover: &Leftover) -> Result<bool, StoreError> {
        let is_open = matches!(leftover.left, Left::Open { .. });
        if is_open {
            fs::private_dir(&leftover.path)?;
        }
        Ok(is_open)
    }
}

impl TeamStore {
    /// Whether phalanx made the team, or runs members in it.
    pub(crate) fn is_ours(&self) -> bool {
        fs::exists(&self.layout.settings())
    }

    /// Everything that was left in the team's directories.
    pub(crate) fn leftovers(&self) -> Result<Vec<Leftover>, StoreError> {
        let mut found = dirs(self.layout.all_dirs(), None)?;
        found.extend(self.stale_locks()?);
        found.extend(self.dead_sockets()?);
        for (path, about) in entries(&self.layout.specs())? {
            let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            if let Ok(incarnation) = Incarnation::parse(stem) {
                found.push(Leftover { path, left: Left::Spec { incarnation, age: about.age } });
            }
        }
        let copies = entries(&self.layout.quarantine())?;
        found
            .extend(copies.into_iter().map(|(path, _)| Leftover { path, left: Left::Quarantined }));
        Ok(found)
    }

    /// Frees locks whose holders are gone: a process that was killed gives none back, and who comes next waits for it.
    pub(crate) fn free_stale_locks(&self) -> Result<(), StoreError> {
        self.stale_locks()?.iter().try_for_each(|lock| self.clear(lock).map(drop))
    }

    fn stale_locks(&self) -> Result<Vec<Leftover>, StoreError> {
        let mut found = Vec::new();
        for dir in [self.layout.team_dir(), self.layout.inboxes(), self.layout.tasks()] {
            for (path, about) in entries(&dir)? {
                let lock = path.extension().is_some_and(|end| end == "lock")
                    && about.kind == Kind::Directory;
                if lock && about.age > STALE {
                    found.push(Leftover { path, left: Left::Lock { age: about.age } });
                }
            }
        }
        Ok(found)
    }

    /// Clears away what can be cleared without loss; whether that was done. What is in use again is left.
    pub(crate) fn clear(&self, leftover: &Leftover) -> Result<bool, StoreError> {
        match &leftover.left {
            Left::Lock { .. } => self.free_lock(&leftover.path),
            Left::Socket => {
                let dead = knock(&leftover.path) == Knock::Refused;
                Ok(dead && fs::remove_file(&leftover.path)?)
            }
            Left::Spec { .. } => Ok(fs::remove_file(&leftover.path)?),
            Left::Open { .. } => {
                fs::private_dir(&leftover.path)?;
                Ok(true)
            }
            Left::Quarantined | Left::NotOurs { .. } => Ok(false),
        }
    }

    /// Takes the lock as everybody does, which frees it where it is stale, and gives it back.
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
        let place: Place = self.place(&gate, path, Shared::WithOthers);
        let held = Held::take(&place)?;
        drop(held.keep_others_out(&place)?);
        Ok(about.kind == Kind::Directory && !fs::exists(lock))
    }

    /// Sockets in the team's own directories that nobody listens at.
    fn dead_sockets(&self) -> Result<Vec<Leftover>, StoreError> {
        let mut found = Vec::new();
        let inner = entries(&self.layout.ours())?;
        let dirs =
            inner.iter().filter(|(_, about)| about.kind == Kind::Directory).map(|(path, _)| path);
        for dir in dirs.chain([&self.layout.ours()]) {
            for (path, about) in entries(dir)? {
                let old = about.kind == Kind::Socket && about.age > STALE;
                if old && knock(&path) == Knock::Refused {
                    found.push(Leftover { path, left: Left::Socket });
                }
            }
        }
        Ok(found)
    }
}

/// Which of these directories others can enter, or are not ours. `shared` may be entered: it is the user's own place.
fn dirs(
    dirs: impl IntoIterator<Item = PathBuf>,
    shared: Option<&Path>,
) -> Result<Vec<Leftover>, StoreError> {
    let mut found = Vec::new();
    for path in dirs {
        let Some(about) = fs::about(&path)? else { continue };
        let is_link = about.kind == Kind::Link;
        if about.uid != env::effective_uid() || (is_link && shared != Some(path.as_path())) {
            found.push(Leftover { path, left: Left::NotOurs { uid: about.uid, is_link } });
        } else if about.mode & OTHERS != 0 && !is_link && shared != Some(path.as_path()) {
            found.push(Leftover { path, left: Left::Open { mode: about.mode } });
        }
    }
    Ok(found)
}

/// What is in a directory, by name; nothing where there is no such directory.
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

/// The config root, the team and the run that a spec file's path names; none if it has not the form of one.
pub(crate) fn spec_of(path: &Path) -> Option<(PathBuf, TeamName, Incarnation)> {
    let incarnation = Incarnation::parse(path.file_stem()?.to_str()?).ok()?;
    let dir = path.ancestors().nth(4)?;
    let team = path.ancestors().nth(3)?.file_name()?.to_str()?;
    let team = TeamName::existing(team).ok().filter(|name| name.as_str() == team)?;
    let root = dir.parent()?;
    let same = path.is_absolute() && Layout::new(root, &team).spec(&incarnation) == path;
    same.then(|| (root.to_owned(), team, incarnation))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "00000000-0000-4000-8000-000000000000";

    #[test]
    fn the_path_of_a_spec_says_whose_it_is() {
        let path = format!("/a b/teams/demo/phalanx/specs/{RUN}.json");
        let (root, team, run) = spec_of(Path::new(&path)).expect("a spec");
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
            assert_eq!(spec_of(Path::new(&path)), None, "{path}");
        }
    }
}
