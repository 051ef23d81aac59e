//! Reports that something changed in directories. Events are only hints: callers read the files
//! themselves, and also sweep periodically.

mod notified;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use thiserror::Error;

use super::{native, portable};
use notified::Notified;

/// Failure to watch directories.
#[derive(Debug, Error)]
pub enum WatchError {
    /// No watcher could be created.
    #[error("cannot watch for file changes")]
    Start {
        #[source]
        source: io::Error,
    },
    /// A directory could not be added: it is missing, or the limit of watches is reached.
    #[error("cannot watch {}", dir.display())]
    Add {
        dir: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl WatchError {
    /// Returns true if a limit of the system is reached.
    fn is_limit(&self) -> bool {
        let (WatchError::Start { source } | WatchError::Add { source, .. }) = self;
        // On macOS each watched file is an open one.
        source.kind() == io::ErrorKind::QuotaExceeded
            || matches!(source.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
    }
}

/// Interval of comparing directories where the system does not report changes.
const POLL: Duration = Duration::from_secs(2);
/// The same for tests of the portable way.
const TEST_POLL: Duration = Duration::from_millis(20);

/// Ways to detect changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detection {
    /// Events of the system.
    Events,
    /// Comparison of the directories, and of the files in them, at this interval.
    Polling(Duration, PollingReason),
}

/// The reason why directories are compared instead of waiting for events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PollingReason {
    /// The system does not report changes by other machines.
    NetworkFiles,
    /// A limit of the system is reached (on Linux: of inotify instances or watches).
    LimitReached,
}

impl Detection {
    /// Selects polling for all directories if any of them is on a network file system.
    fn for_dirs(dirs: &[PathBuf]) -> Detection {
        if dirs.iter().any(|dir| is_remote(dir)) {
            Detection::Polling(POLL, PollingReason::NetworkFiles)
        } else if portable::is_forced() {
            Detection::Polling(TEST_POLL, PollingReason::NetworkFiles)
        } else {
            Detection::Events
        }
    }
}

/// A watch on directories, which calls back for each changed entry until dropped.
pub struct Watch {
    source: EventSource,
    detection: Detection,
    dirs: Arc<Mutex<Vec<PathBuf>>>,
}

/// The watcher behind a [`Watch`].
enum EventSource {
    #[cfg(target_os = "linux")]
    Inotify(native::Inotify),
    Notified(Notified),
}

impl EventSource {
    fn new(
        detection: Detection,
        on_event: impl Fn(Option<&Path>) -> bool + Send + 'static,
    ) -> io::Result<EventSource> {
        match detection {
            #[cfg(target_os = "linux")]
            Detection::Events => native::Inotify::new(on_event).map(EventSource::Inotify),
            #[cfg(target_os = "macos")]
            Detection::Events => Notified::by_system(on_event).map(EventSource::Notified),
            Detection::Polling(every, _) => {
                Notified::by_polling(every, on_event).map(EventSource::Notified)
            }
        }
    }

    fn add(&mut self, dir: &Path) -> io::Result<()> {
        match self {
            #[cfg(target_os = "linux")]
            EventSource::Inotify(source) => source.add(dir),
            EventSource::Notified(source) => source.add(dir),
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Watch")
            .field("detection", &self.detection)
            .field("dirs", &self.dirs)
            .finish_non_exhaustive()
    }
}

impl Watch {
    /// Watches these directories, which must exist, but not their subdirectories. `on_change` runs
    /// on the watcher's own thread with the changed path or, after lost events, with each
    /// directory. It returns true if the change was of use; after changes of no use, later ones may
    /// be reported some milliseconds late. Lock directories and temporary files of `sys` are not
    /// reported: a watcher that locks the files it reads would wake itself endlessly.
    ///
    /// # Errors
    /// [`WatchError::Start`] if no watcher can be created; [`WatchError::Add`] if a directory
    /// cannot be added. If the cause is a limit of the system, directories are polled instead.
    pub fn new(
        dirs: &[PathBuf],
        on_change: impl Fn(&Path) -> bool + Send + 'static,
    ) -> Result<Watch, WatchError> {
        // Only one watcher at a time calls it.
        let on_change = Arc::new(Mutex::new(on_change));
        let by = |detection| {
            let on_change = Arc::clone(&on_change);
            Watch::by(detection, dirs, move |path: &Path| {
                let on_change = on_change.lock().unwrap_or_else(PoisonError::into_inner);
                on_change(path)
            })
        };
        match by(Detection::for_dirs(dirs)) {
            Err(e) if e.is_limit() => by(Detection::Polling(POLL, PollingReason::LimitReached)),
            other => other,
        }
    }

    fn by(
        detection: Detection,
        dirs: &[PathBuf],
        on_change: impl Fn(&Path) -> bool + Send + 'static,
    ) -> Result<Watch, WatchError> {
        let watched = Arc::new(Mutex::new(Vec::new()));
        let seen_by_handler = Arc::clone(&watched);
        let on_event = move |change: Option<&Path>| report(change, &seen_by_handler, &on_change);
        let source = EventSource::new(detection, on_event);
        let source = source.map_err(|source| WatchError::Start { source })?;
        let mut watch = Watch { source, detection, dirs: watched };
        dirs.iter().try_for_each(|dir| watch.add(dir))?;
        Ok(watch)
    }

    /// Returns why directories are compared every two seconds; `None` if the system reports
    /// changes.
    pub fn polling(&self) -> Option<PollingReason> {
        match self.detection {
            Detection::Events => None,
            Detection::Polling(_, reason) => Some(reason),
        }
    }

    /// Watches one more directory. Adding it again is harmless, and required after it was removed
    /// and recreated.
    ///
    /// # Errors
    /// [`WatchError::Add`] if it is missing or the limit of watches is reached.
    pub fn add(&mut self, dir: &Path) -> Result<(), WatchError> {
        self.source.add(dir).map_err(|source| WatchError::Add { dir: dir.to_owned(), source })?;
        let mut dirs = self.dirs.lock().unwrap_or_else(PoisonError::into_inner);
        if !dirs.iter().any(|known| known == dir) {
            dirs.push(dir.to_owned());
        }
        Ok(())
    }
}

/// Reports a change and returns whether that was of use. `None` means that anything may have
/// changed.
fn report(
    change: Option<&Path>,
    dirs: &Mutex<Vec<PathBuf>>,
    on_change: &impl Fn(&Path) -> bool,
) -> bool {
    match change {
        Some(path) => on_change(path),
        None => {
            // A copy, so that a slow callback does not block `add`.
            let dirs = dirs.lock().unwrap_or_else(PoisonError::into_inner).clone();
            dirs.iter().map(|dir| on_change(dir)).filter(|useful| *useful).count() > 0
        }
    }
}

/// Returns true if the system does not report changes that other machines make in `dir`.
pub(super) fn is_remote(dir: &Path) -> bool {
    native::is_remote(dir)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{PATIENCE, until};
    use super::super::{fs as sysfs, lock::DirLock};
    use super::*;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::mpsc::{Receiver, sync_channel};

    /// A blocking interface to [`Watch`], which reports whether anything has changed since the
    /// last call.
    #[derive(Debug)]
    struct Changes {
        // Dropping it ends the subscription.
        _watch: Watch,
        pending: Receiver<()>,
    }

    impl Changes {
        /// Subscribes to the directories. A caller that subscribes before its first read misses no
        /// change.
        ///
        /// # Errors
        /// As [`Watch::new`].
        fn on(dirs: &[PathBuf]) -> Result<Changes, WatchError> {
            // Capacity 1: a full channel already means that something changed, so a burst
            // coalesces.
            let (sender, pending) = sync_channel(1);
            let notify = move |_: &Path| {
                let _ = sender.try_send(());
                true
            };
            let watch = Watch::new(dirs, notify)?;
            Ok(Changes { _watch: watch, pending })
        }

        /// Returns true if something has changed since the last call, or changes within `limit`.
        fn wait(&self, limit: Duration) -> bool {
            self.pending.recv_timeout(limit).is_ok()
        }
    }

    fn seen_paths(dir: &Path) -> (Watch, Arc<Mutex<Vec<PathBuf>>>) {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&seen);
        let push = move |path: &Path| {
            sink.lock().expect("no panics in here").push(path.to_owned());
            true
        };
        (Watch::new(&[dir.to_owned()], push).expect("inotify works here"), seen)
    }

    /// Returns the paths reported since the last call. Events arrive in order: once the marker file
    /// of this call is reported, all earlier changes have been.
    fn reported(dir: &Path, seen: &Mutex<Vec<PathBuf>>) -> Vec<PathBuf> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let marker = dir.join(format!("marker-{}", NEXT.fetch_add(1, Ordering::Relaxed)));
        fs::write(&marker, "x").expect("writable");
        let paths = || seen.lock().expect("no panics in the callback");
        until("the marker reported", || paths().contains(&marker));
        let is_marker = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"marker-"))
        };
        paths().drain(..).filter(|path| !is_marker(path)).collect()
    }

    #[test]
    fn every_replace_is_noticed_and_reads_are_not() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let file = dir.path().join("inbox.json");
        let (_watch, seen) = seen_paths(dir.path());
        for round in 0..5 {
            sysfs::write_atomic(&file, format!("{round}").as_bytes()).expect("writable");
            assert!(reported(dir.path(), &seen).contains(&file), "replace {round} was missed");
        }
        fs::read(&file).expect("readable");
        sysfs::list(dir.path()).expect("readable");
        assert_eq!(reported(dir.path(), &seen), Vec::<PathBuf>::new());
    }

    #[test]
    fn wait_reports_a_change_made_after_the_subscription() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let changes = Changes::on(&[dir.path().to_owned()]).expect("inotify works here");
        assert!(!changes.wait(Duration::ZERO));
        sysfs::write_atomic(&dir.path().join("inbox.json"), b"[]").expect("writable");
        assert!(changes.wait(PATIENCE));
    }

    /// A reader that reads right after an event may still see the change before the last; another
    /// event must follow.
    #[test]
    fn reader_that_reads_at_once_misses_no_change() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let file = dir.path().join("inbox.json");
        let changes = Changes::on(&[dir.path().to_owned()]).expect("inotify works here");
        let last = 3_000;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (1..=last).for_each(|n: u32| fs::write(&file, n.to_string()).expect("writable"))
            });
            let read = || fs::read_to_string(&file).ok().and_then(|text| text.parse::<u32>().ok());
            while read() != Some(last) {
                assert!(changes.wait(PATIENCE), "the last change was not reported");
            }
        });
    }

    #[test]
    fn locks_on_watched_files_are_not_reported() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let gates = tempfile::tempdir().expect("a temporary directory");
        let file = dir.path().join("inbox.json");
        sysfs::write_atomic(&file, b"[]").expect("writable");
        let (_watch, seen) = seen_paths(dir.path());
        for _ in 0..3 {
            let gate = gates.path().join("gate");
            drop(DirLock::acquire(&file, &gate, PATIENCE).expect("free lock"));
        }
        assert_eq!(reported(dir.path(), &seen), Vec::<PathBuf>::new());
        sysfs::replace_if(&file, b"[1]", sysfs::Sync::Bytes, || false).expect("writable");
        assert_eq!(
            reported(dir.path(), &seen),
            Vec::<PathBuf>::new(),
            "the write was not published"
        );
    }

    #[test]
    fn changed_paths_are_reported_in_directories_added_later_too() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let late = tempfile::tempdir().expect("a temporary directory");
        let (mut watch, seen) = seen_paths(dir.path());
        watch.add(late.path()).expect("exists");
        watch.add(late.path()).expect("twice is harmless");
        let (first, second) = (dir.path().join("a"), late.path().join("b"));
        fs::write(&first, "x").expect("writable");
        fs::write(&second, "x").expect("writable");
        until("both paths reported", || {
            let seen = seen.lock().expect("no panics in the callback");
            seen.contains(&first) && seen.contains(&second)
        });
        let (_watch, seen) = seen_paths(dir.path());
        fs::remove_file(&first).expect("exists");
        until("the removal reported", || {
            seen.lock().expect("no panics in the callback").contains(&first)
        });
    }

    /// CR-10: events are only hints, so polling must find the same changes.
    #[test]
    fn cr_10_polling_detects_replace_write_and_removal() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let file = dir.path().join("inbox.json");
        fs::write(&file, "one").expect("writable");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&seen);
        let push = move |path: &Path| {
            sink.lock().expect("no panics in here").push(path.to_owned());
            true
        };
        let detection = Detection::Polling(Duration::from_millis(20), PollingReason::NetworkFiles);
        let watch =
            Watch::by(detection, &[dir.path().to_owned()], push).expect("polling works everywhere");
        assert_eq!(watch.polling(), Some(PollingReason::NetworkFiles));
        let noticed = |what: &str| {
            until(what, || seen.lock().expect("no panics in the callback").contains(&file));
            seen.lock().expect("no panics in the callback").clear();
        };
        sysfs::write_atomic(&file, b"two").expect("writable");
        noticed("the replace");
        fs::write(&file, "one").expect("writable");
        noticed("the write in place");
        fs::remove_file(&file).expect("exists");
        noticed("the removal");
        let by_events =
            Watch::by(Detection::Events, &[], |_: &Path| true).expect("inotify works here");
        assert_eq!(by_events.polling(), None);
    }

    #[test]
    fn missing_directory_is_named_in_the_error() {
        let missing = PathBuf::from("/no/such/directory");
        let error = Changes::on(&[missing]).expect_err("nothing to watch");
        assert!(error.to_string().contains("/no/such/directory"), "{error}");
    }

    #[test]
    fn overflow_reports_every_watched_directory() {
        let dirs = Mutex::new(vec![PathBuf::from("/a"), PathBuf::from("/b")]);
        let seen = Mutex::new(Vec::new());
        let push = |path: &Path| {
            seen.lock().expect("one thread").push(path.to_owned());
            true
        };
        assert!(report(None, &dirs, &push));
        assert_eq!(*seen.lock().expect("one thread"), [PathBuf::from("/a"), PathBuf::from("/b")]);
    }
}
