//! Change events by inotify, limited to those that mean a change. notify 8.2 also subscribes to the
//! opening of files and has no option against it: every reader of a watched directory then wakes
//! all of its watchers, and sixteen that start together wake each other endlessly. notify 9, a
//! release candidate so far, can leave these events out; it replaces this file once it is stable.

use std::io::{self, PipeReader, PipeWriter, pipe};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags};
use nix::sys::inotify::{
    AddWatchFlags, InitFlags, Inotify as Instance, InotifyEvent, WatchDescriptor,
};

use super::super::ready;
use super::super::transient::is_transient;

/// Pause after a report, to collect further changes. Changes mostly come in bursts, and the first
/// of a burst is reported at once.
const BURST_PAUSE: Duration = Duration::from_millis(1);
/// Longest pause of a watcher that repeatedly finds changes of no use to it.
const MAX_PAUSE: Duration = Duration::from_millis(8);
/// Time without an event after which a burst is over.
const QUIET: Duration = Duration::from_millis(10);
/// Timeout of one wait for the next change; another wait follows.
const WAIT_LIMIT: Duration = Duration::from_secs(3600);

/// Watches directories until dropped.
#[derive(Debug)]
pub(crate) struct Inotify {
    instance: Arc<Instance>,
    dirs: Dirs,
    // Closing it ends the thread.
    _alive: PipeWriter,
}

type Dirs = Arc<Mutex<Vec<(WatchDescriptor, PathBuf)>>>;

impl Inotify {
    /// Starts a thread that calls `on_event` with the path of each changed entry, or with `None` if
    /// events were lost and anything may have changed.
    pub(crate) fn new(
        on_event: impl Fn(Option<&Path>) -> bool + Send + 'static,
    ) -> io::Result<Inotify> {
        let instance = Instance::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK);
        let instance =
            Arc::new(instance.map_err(|e| limit(e, Errno::EMFILE, "max_user_instances"))?);
        let dirs = Dirs::default();
        let (ended, alive) = pipe()?;
        let reader =
            EventReader { instance: Arc::clone(&instance), dirs: Arc::clone(&dirs), ended };
        thread::Builder::new().name("watch".to_owned()).spawn(move || reader.watch(&on_event))?;
        Ok(Inotify { instance, dirs, _alive: alive })
    }

    pub(crate) fn add(&self, dir: &Path) -> io::Result<()> {
        // A written file is reported when its writer closes it and not before, because only then it
        // is complete.
        let changes = AddWatchFlags::IN_CLOSE_WRITE
            | AddWatchFlags::IN_MOVE
            | AddWatchFlags::IN_DELETE
            | AddWatchFlags::IN_DELETE_SELF
            | AddWatchFlags::IN_MOVE_SELF
            | AddWatchFlags::IN_ONLYDIR;
        // Locked before the watch is added: its first event must not be looked up before `dirs` has
        // the entry.
        let mut dirs = self.dirs.lock().unwrap_or_else(PoisonError::into_inner);
        let added = self.instance.add_watch(dir, changes);
        let id = added.map_err(|e| limit(e, Errno::ENOSPC, "max_user_watches"))?;
        dirs.retain(|(known, _)| *known != id);
        dirs.push((id, dir.to_owned()));
        Ok(())
    }
}

/// Returns a descriptor that becomes readable when a program writes to the terminal at this path.
/// Echoed input is not reported. Reads never block and discard the reports.
pub(crate) fn tty_output(tty: &Path) -> io::Result<OwnedFd> {
    let instance = Instance::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)
        .map_err(|e| limit(e, Errno::EMFILE, "max_user_instances"))?;
    instance
        .add_watch(tty, AddWatchFlags::IN_MODIFY)
        .map_err(|e| limit(e, Errno::ENOSPC, "max_user_watches"))?;
    Ok(instance.into())
}

/// Names the limit that is exhausted, which the kernel's error does not.
fn limit(errno: Errno, used_up: Errno, name: &str) -> io::Error {
    if errno == used_up {
        let problem = format!("the limit fs.inotify.{name} is exhausted");
        io::Error::new(io::ErrorKind::QuotaExceeded, problem)
    } else {
        errno.into()
    }
}

/// The part of an [`Inotify`] that its thread owns.
struct EventReader {
    instance: Arc<Instance>,
    dirs: Dirs,
    ended: PipeReader,
}

impl EventReader {
    fn watch(&self, on_event: &impl Fn(Option<&Path>) -> bool) {
        let mut pace = Pace::default();
        loop {
            let began = Instant::now();
            if !self.wait() {
                return;
            }
            let waited = began.elapsed();
            if !self.pause(pace.pause(waited, self.report_all(on_event))) {
                return;
            }
        }
    }

    /// Waits for the next event; returns false once the [`Inotify`] is dropped.
    fn wait(&self) -> bool {
        let mut fds = [self.instance.as_fd(), self.ended.as_fd()]
            .map(|fd| PollFd::new(fd, PollFlags::POLLIN));
        // A failed poll ends the thread as well, because callers sweep anyway.
        ready::any(&mut fds, WAIT_LIMIT).is_ok() && !is_closed(&fds[1])
    }

    fn pause(&self, pause: Duration) -> bool {
        let mut fds = [PollFd::new(self.ended.as_fd(), PollFlags::POLLIN)];
        pause.is_zero() || ready::any(&mut fds, pause).is_ok() && !is_closed(&fds[0])
    }

    /// Reports all pending events; returns true if any of them was of use.
    fn report_all(&self, on_event: &impl Fn(Option<&Path>) -> bool) -> bool {
        let mut useful = false;
        while let Ok(events) = self.instance.read_events() {
            // Reports each path once per read, because all changes of one read precede its first
            // report. A change of the next read may have happened after the callback read the file,
            // so its path is reported again.
            let mut seen: Vec<Option<PathBuf>> = Vec::new();
            for change in events.iter().filter_map(|event| self.change(event)) {
                if !seen.contains(&change) {
                    useful |= on_event(change.as_deref());
                    seen.push(change);
                }
            }
        }
        useful
    }

    /// Returns the changed path: `None` for an event to skip, `Some(None)` if events were lost.
    fn change(&self, event: &InotifyEvent) -> Option<Option<PathBuf>> {
        if event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW) {
            return Some(None);
        }
        if event.name.as_deref().is_some_and(is_transient) {
            return None;
        }
        let mut dirs = self.dirs.lock().unwrap_or_else(PoisonError::into_inner);
        let nth = dirs.iter().position(|(id, _)| *id == event.wd)?;
        if event.mask.contains(AddWatchFlags::IN_IGNORED) {
            // The last event of a removed directory, whose removal has been reported already.
            dirs.swap_remove(nth);
            return None;
        }
        let dir = &dirs[nth].1;
        Some(Some(event.name.as_ref().map_or_else(|| dir.clone(), |name| dir.join(name))))
    }
}

/// Computes the pause before the next read. In a directory with many watchers, most changes of a
/// burst concern other watchers. If each watcher woke for each change, they would slow down the
/// processes that the changes are for.
#[derive(Debug, Default)]
struct Pace {
    /// Consecutive reads in this burst without a change of use.
    useless_reads: u32,
}

impl Pace {
    /// Returns the pause after a read that was preceded by `waited` without events. The first read
    /// without a change of use costs no pause: the lock that precedes a change must not delay the
    /// report of the change.
    fn pause(&mut self, waited: Duration, useful: bool) -> Duration {
        if useful {
            self.useless_reads = 0;
            return BURST_PAUSE;
        }
        if waited > QUIET {
            self.useless_reads = 0;
        }
        let pause = BURST_PAUSE.saturating_mul(self.useless_reads).min(MAX_PAUSE);
        self.useless_reads = self.useless_reads.saturating_add(1);
        pause
    }
}

fn is_closed(fd: &PollFd) -> bool {
    fd.revents().is_some_and(|ready| !ready.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Members that start together must not wake each other for every step.
    #[test]
    fn pause_grows_with_useless_wakeups_until_a_report_or_a_quiet_time() {
        let (burst, quiet) = (Duration::from_millis(1), Duration::from_millis(11));
        let mut pace = Pace::default();
        let mut pauses = |steps: &[(Duration, bool)]| -> Vec<u128> {
            steps.iter().map(|(waited, useful)| pace.pause(*waited, *useful).as_millis()).collect()
        };
        assert_eq!(pauses(&[(quiet, false), (burst, false), (burst, false)]), [0, 1, 2]);
        assert_eq!(pauses(&[(burst, true), (burst, false), (burst, false)]), [1, 0, 1]);
        assert_eq!(pauses(&[(burst, false); 8]), [2, 3, 4, 5, 6, 7, 8, 8]);
        assert_eq!(pauses(&[(quiet, false), (burst, false)]), [0, 1]);
    }
}
