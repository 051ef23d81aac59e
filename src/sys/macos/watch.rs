//! Reports by kqueue that a watched directory has changed, without saying how.

use std::fs::{File, OpenOptions};
use std::io::{self, PipeWriter, pipe};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::event::{EvFlags, EventFilter, FilterFlag, KEvent, Kqueue};

use super::super::clock;

/// Pause after an event, to collect the others of a burst, such as the lock around a write.
const BURST_PAUSE: Duration = Duration::from_millis(2);
/// Maximum events of one call.
const BATCH: usize = 16;

/// Watches directories until dropped. Each takes one descriptor. A write to a file that is already
/// there is no event, but the lock around it is.
#[derive(Debug)]
pub(crate) struct DirWatcher {
    queue: Arc<Kqueue>,
    /// Open as long as they are watched.
    dirs: Mutex<Vec<(PathBuf, File)>>,
    // Closing it ends the thread.
    _alive: PipeWriter,
}

impl DirWatcher {
    /// Starts a thread that calls `on_change` after a change in any of the directories.
    pub fn new(mut on_change: impl FnMut() + Send + 'static) -> io::Result<DirWatcher> {
        let queue = Arc::new(Kqueue::new()?);
        let (ended, alive) = pipe()?;
        register(&queue, &ended, EventFilter::EVFILT_READ, FilterFlag::empty())?;
        let waiting = Arc::clone(&queue);
        thread::Builder::new().name("watch".to_owned()).spawn(move || {
            // Moved here so that it stays open.
            let _ended = ended;
            while is_changed(&waiting) {
                clock::sleep(BURST_PAUSE);
                on_change();
            }
        })?;
        Ok(DirWatcher { queue, dirs: Mutex::default(), _alive: alive })
    }

    /// Watches one more directory. Adding it again watches the directory that is there now.
    pub fn add(&self, dir: &Path) -> io::Result<()> {
        let flags = libc::O_EVTONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(dir)?;
        let changes = FilterFlag::NOTE_WRITE
            | FilterFlag::NOTE_EXTEND
            | FilterFlag::NOTE_LINK
            | FilterFlag::NOTE_RENAME
            | FilterFlag::NOTE_DELETE;
        register(&self.queue, &file, EventFilter::EVFILT_VNODE, changes)?;
        let mut dirs = self.dirs.lock().unwrap_or_else(PoisonError::into_inner);
        // Closing the earlier descriptor ends its watch.
        dirs.retain(|(known, _)| known != dir);
        dirs.push((dir.to_owned(), file));
        Ok(())
    }
}

fn register(
    queue: &Kqueue,
    file: &impl AsRawFd,
    filter: EventFilter,
    changes: FilterFlag,
) -> io::Result<()> {
    let ident = usize::try_from(file.as_raw_fd()).expect("an open descriptor is not negative");
    // CLEAR: reported once for each change, not as long as it is not undone.
    let event = KEvent::new(ident, filter, EvFlags::EV_ADD | EvFlags::EV_CLEAR, changes, 0, 0);
    let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    queue.kevent(&[event], &mut [], Some(at_once))?;
    Ok(())
}

/// Waits for the next change; returns false once the watcher is dropped.
fn is_changed(queue: &Kqueue) -> bool {
    let empty =
        KEvent::new(0, EventFilter::EVFILT_READ, EvFlags::empty(), FilterFlag::empty(), 0, 0);
    let mut events = [empty; BATCH];
    loop {
        match queue.kevent(&[], &mut events, None) {
            Ok(count) => {
                let is_end = |event: &KEvent| event.filter() == Ok(EventFilter::EVFILT_READ);
                return !events[..count].iter().any(is_end);
            }
            Err(Errno::EINTR) => (),
            // Callers sweep anyway.
            Err(_) => return false,
        }
    }
}
