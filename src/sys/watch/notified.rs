//! Changes found by comparing directories: at intervals, or where the system reports only that a
//! directory has changed.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use notify::{Config, Event, EventHandler, EventKind, PollWatcher, RecursiveMode, Watcher};

#[cfg(target_os = "macos")]
use super::super::native::DirWatcher;
use super::super::transient::is_transient;

/// Watches directories until dropped.
pub(super) struct Notified {
    trigger: Trigger,
    dirs: Snapshots,
}

type Snapshots = Arc<Mutex<Vec<Snapshot>>>;

/// What leads to a comparison.
enum Trigger {
    /// notify also finds changes of contents, because modification times over a network are too
    /// coarse and too late.
    Interval(PollWatcher),
    #[cfg(target_os = "macos")]
    System(DirWatcher),
}

impl Notified {
    /// Calls `on_event` with the path of each changed entry, or with `None` if changes were lost
    /// and anything may have changed. The system triggers the comparison.
    #[cfg(target_os = "macos")]
    pub(super) fn by_system(
        on_event: impl Fn(Option<&Path>) -> bool + Send + 'static,
    ) -> io::Result<Notified> {
        let dirs = Snapshots::default();
        let handler = Handler { on_event, dirs: Arc::clone(&dirs) };
        let watcher = DirWatcher::new(move || handler.compare(Vec::new()))?;
        Ok(Notified { trigger: Trigger::System(watcher), dirs })
    }

    /// Calls `on_event` as `by_system` does; the comparison takes place at this interval.
    pub(super) fn by_polling(
        every: Duration,
        on_event: impl Fn(Option<&Path>) -> bool + Send + 'static,
    ) -> io::Result<Notified> {
        let dirs = Snapshots::default();
        let handler = Handler { on_event, dirs: Arc::clone(&dirs) };
        let config = Config::default().with_poll_interval(every).with_compare_contents(true);
        let watcher = PollWatcher::new(handler, config).map_err(io::Error::other)?;
        Ok(Notified { trigger: Trigger::Interval(watcher), dirs })
    }

    pub(super) fn add(&mut self, dir: &Path) -> io::Result<()> {
        // notify accepts a missing directory.
        fs::read_dir(dir)?;
        match &mut self.trigger {
            Trigger::Interval(watcher) => {
                watcher.watch(dir, RecursiveMode::NonRecursive).map_err(io::Error::other)?;
            }
            #[cfg(target_os = "macos")]
            Trigger::System(watcher) => watcher.add(dir)?,
        }
        let snapshot = Snapshot::of(dir);
        let mut dirs = self.dirs.lock().unwrap_or_else(PoisonError::into_inner);
        dirs.retain(|known| known.dir != snapshot.dir);
        dirs.push(snapshot);
        Ok(())
    }
}

/// Compares the directories and reports what has changed.
struct Handler<F> {
    on_event: F,
    dirs: Snapshots,
}

impl<F: Fn(Option<&Path>) -> bool> Handler<F> {
    /// Reports what differs from the last comparison, and the paths that are `known` to have
    /// changed.
    fn compare(&self, known: Vec<PathBuf>) {
        let mut dirs = self.dirs.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changed: Vec<PathBuf> = dirs.iter_mut().flat_map(Snapshot::update).collect();
        for path in known {
            let is_watched = dirs.iter().any(|snapshot| snapshot.dir == path) && path.exists();
            if !is_watched && !changed.contains(&path) {
                changed.push(path);
            }
        }
        // Not locked during the callbacks, which may be slow.
        drop(dirs);
        changed.retain(|path| !path.file_name().is_some_and(is_transient));
        for path in changed {
            (self.on_event)(Some(&path));
        }
    }
}

impl<F: Fn(Option<&Path>) -> bool + Send + 'static> EventHandler for Handler<F> {
    fn handle_event(&mut self, event: notify::Result<Event>) {
        match event {
            Ok(event) if !event.need_rescan() => {
                let kind = event.kind;
                if matches!(
                    kind,
                    EventKind::Create(_) | EventKind::Modify(_) | EventKind::Remove(_)
                ) {
                    self.compare(event.paths);
                }
            }
            // The watcher failed, so anything may have changed.
            Ok(_) | Err(_) => drop((self.on_event)(None)),
        }
    }
}

/// The entries of a directory at one moment.
#[derive(Debug)]
struct Snapshot {
    dir: PathBuf,
    entries: HashMap<PathBuf, EntryVersion>,
}

/// What differs between two versions of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct EntryVersion {
    inode: u64,
    bytes: u64,
    /// Time of the last change, in seconds and nanoseconds.
    changed: (i64, i64),
}

impl Snapshot {
    fn of(dir: &Path) -> Snapshot {
        Snapshot { dir: dir.to_owned(), entries: read_versions(dir) }
    }

    /// Reads the directory again; returns the paths of entries that are new, different or gone.
    fn update(&mut self) -> Vec<PathBuf> {
        let now = read_versions(&self.dir);
        let differs =
            |(path, version): &(&PathBuf, &EntryVersion)| self.entries.get(*path) != Some(*version);
        let mut changed: Vec<PathBuf> =
            now.iter().filter(differs).map(|(path, _)| path.clone()).collect();
        changed.extend(self.entries.keys().filter(|path| !now.contains_key(*path)).cloned());
        self.entries = now;
        changed
    }
}

/// Returns the versions of a directory's entries; none for a directory that cannot be read.
fn read_versions(dir: &Path) -> HashMap<PathBuf, EntryVersion> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let versions = entries.filter_map(|entry| {
        // Of the entry itself, not of a link's target.
        let meta = entry.metadata().ok()?;
        let changed = (meta.ctime(), meta.ctime_nsec());
        Some((entry.path(), EntryVersion { inode: meta.ino(), bytes: meta.len(), changed }))
    });
    versions.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshot_finds_new_replaced_grown_and_removed_entries() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let at = |name: &str| dir.path().join(name);
        for name in ["kept", "grown", "replaced", "removed"] {
            fs::write(at(name), "1").expect("writable");
        }
        let mut snapshot = Snapshot::of(dir.path());
        assert_eq!(snapshot.update(), Vec::<PathBuf>::new());
        fs::write(at("grown"), "12").expect("writable");
        fs::write(at("other"), "2").expect("writable");
        fs::rename(at("other"), at("replaced")).expect("writable");
        fs::remove_file(at("removed")).expect("there");
        fs::write(at("new"), "1").expect("writable");
        let mut changed = snapshot.update();
        changed.sort();
        assert_eq!(changed, ["grown", "new", "removed", "replaced"].map(at));
        fs::remove_dir_all(dir.path()).expect("ours");
        assert_eq!(snapshot.update().len(), 4, "all entries are gone");
    }

    #[test]
    fn lost_events_are_reported_as_such() {
        let lost = Event::new(EventKind::Other).set_flag(notify::event::Flag::Rescan);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&seen);
        let on_event = move |path: Option<&Path>| {
            sink.lock().expect("one thread").push(path.map(Path::to_owned));
            true
        };
        let mut handler = Handler { on_event, dirs: Snapshots::default() };
        handler.handle_event(Ok(lost));
        handler.handle_event(Err(notify::Error::generic("broken")));
        assert_eq!(*seen.lock().expect("one thread"), [None, None]);
    }
}
