//! Notices that something changed in directories, and that is all: the caller looks itself. A hint beside a slow
//! sweep, never the truth. Refuses to know what the files are.

#[cfg(target_os = "linux")]
mod inotify;

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::sys::statfs::statfs;
use notify::{Config, Event, EventKind, PollWatcher, RecursiveMode, Watcher};
use thiserror::Error;

/// Why directories cannot be watched. Callers fall back to their sweep.
#[derive(Debug, Error)]
pub(crate) enum WatchError {
    /// No watcher at all (on Linux: the user's limit of inotify instances).
    #[error("cannot watch for file changes")]
    Start {
        #[source]
        source: io::Error,
    },
    /// One directory could not be added: missing, or the limit of watches is reached.
    #[error("cannot watch {}", dir.display())]
    Add {
        dir: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// How often directories are compared where the system does not tell of changes.
const POLL: Duration = Duration::from_secs(2);

/// How changes are noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Means {
    /// The system tells of them.
    Told,
    /// The directories are read again and again, with the files in them.
    Polled(Duration),
}

impl Means {
    /// What these directories need: one on a network file system is enough to poll them all.
    fn for_dirs(dirs: &[PathBuf]) -> Means {
        if dirs.iter().any(|dir| is_remote(dir)) { Means::Polled(POLL) } else { Means::Told }
    }
}

/// Calls back for each changed entry of the watched directories until dropped.
pub(crate) struct Watch {
    eye: Eye,
    means: Means,
    dirs: Arc<Mutex<Vec<PathBuf>>>,
}

/// What sees the changes.
enum Eye {
    #[cfg(target_os = "linux")]
    Inotify(inotify::Inotify),
    Notify(Box<dyn Watcher + Send>),
}

impl Eye {
    fn add(&mut self, dir: &Path) -> io::Result<()> {
        match self {
            #[cfg(target_os = "linux")]
            Eye::Inotify(eye) => eye.add(dir),
            Eye::Notify(eye) => {
                eye.watch(dir, RecursiveMode::NonRecursive).map_err(io::Error::other)
            }
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Watch")
            .field("means", &self.means)
            .field("dirs", &self.dirs)
            .finish_non_exhaustive()
    }
}

impl Watch {
    /// Watches these directories (not what lies below them; each must exist). `on_change` runs on the watcher's own
    /// thread with the changed path; after lost events, with each directory. It says whether that was of use: what is
    /// not may be told some milliseconds later when more of it comes. Lock directories and temporary files of `sys`
    /// itself are not reported, or a watcher that locks what it looks at would wake itself for ever.
    pub(crate) fn new(
        dirs: &[PathBuf],
        on_change: impl Fn(&Path) -> bool + Send + 'static,
    ) -> Result<Watch, WatchError> {
        Watch::by(Means::for_dirs(dirs), dirs, on_change)
    }

    fn by(
        means: Means,
        dirs: &[PathBuf],
        on_change: impl Fn(&Path) -> bool + Send + 'static,
    ) -> Result<Watch, WatchError> {
        let watched = Arc::new(Mutex::new(Vec::new()));
        let seen_by_handler = Arc::clone(&watched);
        let tell = move |change: Option<&Path>| report(change, &seen_by_handler, &on_change);
        let eye = match means {
            Means::Told => told(tell),
            Means::Polled(every) => {
                // By content: over a network, times are too coarse and too late.
                let config =
                    Config::default().with_poll_interval(every).with_compare_contents(true);
                let watcher = PollWatcher::new(move |event| sort_out(event, &tell), config);
                watcher.map(|watcher| Eye::Notify(Box::new(watcher))).map_err(io::Error::other)
            }
        };
        let eye = eye.map_err(|source| WatchError::Start { source })?;
        let mut watch = Watch { eye, means, dirs: watched };
        dirs.iter().try_for_each(|dir| watch.add(dir))?;
        Ok(watch)
    }

    /// True where changes of other machines would not be told and everything is looked at every two seconds instead.
    pub(crate) fn is_polling(&self) -> bool {
        self.means != Means::Told
    }

    /// Watches one more directory. Adding one again is harmless, and needed after it was removed and made anew.
    pub(crate) fn add(&mut self, dir: &Path) -> Result<(), WatchError> {
        self.eye.add(dir).map_err(|source| WatchError::Add { dir: dir.to_owned(), source })?;
        let mut dirs = self.dirs.lock().unwrap_or_else(PoisonError::into_inner);
        if !dirs.iter().any(|known| known == dir) {
            dirs.push(dir.to_owned());
        }
        Ok(())
    }
}

#[cfg(target_os = "linux")]
fn told(tell: impl Fn(Option<&Path>) -> bool + Send + 'static) -> io::Result<Eye> {
    inotify::Inotify::new(tell).map(Eye::Inotify)
}

#[cfg(not(target_os = "linux"))]
fn told(tell: impl Fn(Option<&Path>) -> bool + Send + 'static) -> io::Result<Eye> {
    let watcher = notify::recommended_watcher(move |event| sort_out(event, &tell));
    watcher.map(|watcher| Eye::Notify(Box::new(watcher))).map_err(io::Error::other)
}

/// Passes on what notify saw.
fn sort_out(event: notify::Result<Event>, tell: &impl Fn(Option<&Path>) -> bool) {
    match event {
        Ok(event) if !event.need_rescan() => {
            let changes = matches!(
                event.kind,
                EventKind::Create(_) | EventKind::Modify(_) | EventKind::Remove(_)
            );
            let paths = event.paths.iter().filter(|_| changes);
            for path in paths.filter(|path| !path.file_name().is_some_and(is_passing)) {
                tell(Some(path));
            }
        }
        // The queue overflowed or the watcher failed: anything may have changed anywhere.
        Ok(_) | Err(_) => drop(tell(None)),
    }
}

/// Tells of a change; whether that was of use. None: anything may have changed.
fn report(
    change: Option<&Path>,
    dirs: &Mutex<Vec<PathBuf>>,
    on_change: &impl Fn(&Path) -> bool,
) -> bool {
    match change {
        Some(path) => on_change(path),
        None => {
            // A copy, so that a callback may take its time without blocking `add`.
            let dirs = dirs.lock().unwrap_or_else(PoisonError::into_inner).clone();
            dirs.iter().map(|dir| on_change(dir)).filter(|told| *told).count() > 0
        }
    }
}

/// True when changes that other machines make here are not told. Unknown is local: the sweep comes anyway.
pub(super) fn is_remote(dir: &Path) -> bool {
    // The type is of another width on each platform; these numbers fit 32 bits.
    statfs(dir)
        .is_ok_and(|found| is_remote_type(u64::try_from(found.filesystem_type().0).unwrap_or(0)))
}

/// By the number in `statfs(2)`.
fn is_remote_type(magic: u64) -> bool {
    const NFS: u64 = 0x6969;
    const SMB: u64 = 0x517B;
    const CIFS: u64 = 0xFF53_4D42;
    const SMB2: u64 = 0xFE53_4D42;
    const FUSE: u64 = 0x6573_5546;
    const V9FS: u64 = 0x0102_1997;
    matches!(magic & 0xFFFF_FFFF, NFS | SMB | CIFS | SMB2 | FUSE | V9FS)
}

/// What `sys::fs` and `sys::lock` (and other programs' locks of the same protocol) leave for a moment in passing.
fn is_passing(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    let temporary = name.starts_with(b".") && name.ends_with(b".tmp");
    let lock = name.ends_with(b".lock") || name.windows(6).any(|part| part == b".lock.");
    temporary || lock
}

/// Blocking convenience over [`Watch`]: has anything changed since the last look?
#[derive(Debug)]
pub(crate) struct Changes {
    // Held for its drop, too: it ends the subscription.
    watch: Watch,
    pending: Receiver<()>,
}

impl Changes {
    /// Subscribes to the directories. Subscribe before the first look, then nothing is missed.
    pub(crate) fn on(dirs: &[PathBuf]) -> Result<Changes, WatchError> {
        // Room for one: a full channel already says "something changed", so that a burst coalesces by itself.
        let (sender, pending) = sync_channel(1);
        let note = move |_: &Path| {
            let _ = sender.try_send(());
            true
        };
        let watch = Watch::new(dirs, note)?;
        Ok(Changes { watch, pending })
    }

    /// As [`Watch::is_polling`].
    pub(crate) fn is_polling(&self) -> bool {
        self.watch.is_polling()
    }

    /// True when something changed since the last call, at once or within `limit`.
    pub(crate) fn wait(&self, limit: Duration) -> bool {
        self.pending.recv_timeout(limit).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{PATIENCE, until};
    use super::super::{fs as sysfs, lock::DirLock};
    use super::*;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::sync::atomic::{AtomicU32, Ordering};

    fn seen_paths(dir: &Path) -> (Watch, Arc<Mutex<Vec<PathBuf>>>) {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&seen);
        let push = move |path: &Path| {
            sink.lock().expect("no panics in here").push(path.to_owned());
            true
        };
        (Watch::new(&[dir.to_owned()], push).expect("inotify works here"), seen)
    }

    /// The paths reported since the last call. Events arrive in order: once the marker file of this
    /// call is reported, all earlier changes are.
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
    fn changes_are_reported_once_and_then_waited_for() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let changes = Changes::on(&[dir.path().to_owned()]).expect("inotify works here");
        assert!(!changes.wait(Duration::ZERO));
        sysfs::write_atomic(&dir.path().join("inbox.json"), b"[]").expect("writable");
        assert!(changes.wait(PATIENCE));
    }

    /// Whoever looks as soon as it is told, and finds the change before the last, is told once more.
    #[test]
    fn no_change_is_missed_by_who_looks_at_once() {
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
                assert!(changes.wait(PATIENCE), "the last change was not told");
            }
        });
    }

    #[test]
    fn locking_what_one_watches_does_not_wake() {
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
    fn callbacks_carry_the_path_and_late_directories_count() {
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

    #[test]
    fn network_file_systems_are_told_from_local_ones() {
        for remote in [0x6969, 0x517B, 0xFF53_4D42, 0xFE53_4D42, 0x6573_5546, 0x0102_1997] {
            assert!(is_remote_type(remote), "{remote:#x}");
        }
        // Where the type is a signed 32 bit number, CIFS comes with its sign extended.
        assert!(is_remote_type(0xFFFF_FFFF_FF53_4D42));
        for local in [0xEF53, 0x0102_1994, 0x5846_5342, 0x9123_683E, 0x794C_7630, 0] {
            assert!(!is_remote_type(local), "{local:#x}");
        }
        assert!(!is_remote(Path::new("/no/such/directory")));
    }

    /// CR-10: what the system tells is a hint only.
    #[test]
    fn polling_notices_what_the_system_would_have_told() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let file = dir.path().join("inbox.json");
        fs::write(&file, "one").expect("writable");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&seen);
        let push = move |path: &Path| {
            sink.lock().expect("no panics in here").push(path.to_owned());
            true
        };
        let means = Means::Polled(Duration::from_millis(20));
        let watch =
            Watch::by(means, &[dir.path().to_owned()], push).expect("polling works everywhere");
        assert!(watch.is_polling());
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
        let told = Watch::by(Means::Told, &[], |_: &Path| true).expect("inotify works here");
        assert!(!told.is_polling());
    }

    #[test]
    fn a_missing_directory_is_named() {
        let missing = PathBuf::from("/no/such/directory");
        let error = Changes::on(&[missing]).expect_err("nothing to watch");
        assert!(error.to_string().contains("/no/such/directory"), "{error}");
    }

    #[test]
    fn an_overflow_reports_the_directories() {
        let dirs = Mutex::new(vec![PathBuf::from("/a"), PathBuf::from("/b")]);
        let seen = Mutex::new(Vec::new());
        let lost = Event::new(EventKind::Other).set_flag(notify::event::Flag::Rescan);
        let push = |path: &Path| {
            seen.lock().expect("one thread").push(path.to_owned());
            true
        };
        sort_out(Ok(lost), &|change: Option<&Path>| report(change, &dirs, &push));
        assert_eq!(*seen.lock().expect("one thread"), [PathBuf::from("/a"), PathBuf::from("/b")]);
    }
}
