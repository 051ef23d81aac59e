//! Linux's own notices of changes, only those that mean one. notify (8.2) asks for each opening of a file too: there
//! every reader of a watched directory wakes all its watchers, and sixteen that start together wake each other without
//! end. Refuses to know what the files are.

use std::io::{self, PipeReader, PipeWriter, pipe};
use std::os::fd::AsFd;
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
use super::is_passing;

/// After something was told the rest is collected for so long: changes mostly come in bursts, and the first of one is
/// told at once.
const REST: Duration = Duration::from_millis(1);
/// The longest rest of who finds again and again what is none of its business.
const LONGEST_REST: Duration = Duration::from_millis(8);
/// A burst is over when nothing came for so long.
const LULL: Duration = Duration::from_millis(10);
/// One wait for the next change; another one follows.
const LONG: Duration = Duration::from_secs(3600);

/// Watches directories until dropped.
#[derive(Debug)]
pub(super) struct Inotify {
    instance: Arc<Instance>,
    dirs: Dirs,
    // Its end is what the thread ends by.
    _alive: PipeWriter,
}

type Dirs = Arc<Mutex<Vec<(WatchDescriptor, PathBuf)>>>;

impl Inotify {
    /// `tell` gets the path of each changed entry on a thread of its own; none: notices were lost, and anything may
    /// have changed.
    pub(super) fn new(
        tell: impl Fn(Option<&Path>) -> bool + Send + 'static,
    ) -> io::Result<Inotify> {
        let instance = Instance::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK);
        let instance =
            Arc::new(instance.map_err(|e| limit(e, Errno::EMFILE, "max_user_instances"))?);
        let dirs = Dirs::default();
        let (ended, alive) = pipe()?;
        let eye = Eye { instance: Arc::clone(&instance), dirs: Arc::clone(&dirs), ended };
        thread::Builder::new().name("watch".to_owned()).spawn(move || eye.watch(&tell))?;
        Ok(Inotify { instance, dirs, _alive: alive })
    }

    pub(super) fn add(&self, dir: &Path) -> io::Result<()> {
        // A file that was written is told when its writer closes it, and not before: then it is whole.
        let changes = AddWatchFlags::IN_CLOSE_WRITE
            | AddWatchFlags::IN_MOVE
            | AddWatchFlags::IN_DELETE
            | AddWatchFlags::IN_DELETE_SELF
            | AddWatchFlags::IN_MOVE_SELF
            | AddWatchFlags::IN_ONLYDIR;
        // Before the first notice of it can be looked at.
        let mut dirs = self.dirs.lock().unwrap_or_else(PoisonError::into_inner);
        let added = self.instance.add_watch(dir, changes);
        let id = added.map_err(|e| limit(e, Errno::ENOSPC, "max_user_watches"))?;
        dirs.retain(|(known, _)| *known != id);
        dirs.push((id, dir.to_owned()));
        Ok(())
    }
}

/// The kernel's word for a used-up limit leads nowhere.
fn limit(errno: Errno, used_up: Errno, name: &str) -> io::Error {
    match errno == used_up {
        true => io::Error::other(format!("the limit fs.inotify.{name} is exhausted")),
        false => errno.into(),
    }
}

/// The thread's half.
struct Eye {
    instance: Arc<Instance>,
    dirs: Dirs,
    ended: PipeReader,
}

impl Eye {
    fn watch(&self, tell: &impl Fn(Option<&Path>) -> bool) {
        let mut pace = Pace::default();
        loop {
            let began = Instant::now();
            if !self.wait() {
                return;
            }
            let waited = began.elapsed();
            if !self.rest(pace.rest(waited, self.tell_all(tell))) {
                return;
            }
        }
    }

    /// False: nobody wants to know any more.
    fn wait(&self) -> bool {
        let mut fds = [self.instance.as_fd(), self.ended.as_fd()]
            .map(|fd| PollFd::new(fd, PollFlags::POLLIN));
        // What cannot be waited for is over, too; whoever watches has a sweep beside it.
        ready::any(&mut fds, LONG).is_ok() && !is_over(&fds[1])
    }

    fn rest(&self, rest: Duration) -> bool {
        let mut fds = [PollFd::new(self.ended.as_fd(), PollFlags::POLLIN)];
        rest.is_zero() || ready::any(&mut fds, rest).is_ok() && !is_over(&fds[0])
    }

    /// Whether any of it was worth telling.
    fn tell_all(&self, tell: &impl Fn(Option<&Path>) -> bool) -> bool {
        let mut told = false;
        while let Ok(events) = self.instance.read_events() {
            // Told once of what one reading brings, since all of that was there before the first word of it. What the
            // next reading brings may have come after whoever was told had looked: it is told again.
            let mut seen: Vec<Option<PathBuf>> = Vec::new();
            for change in events.iter().filter_map(|event| self.change(event)) {
                if !seen.contains(&change) {
                    told |= tell(change.as_deref());
                    seen.push(change);
                }
            }
        }
        told
    }

    /// What an event is about.
    fn change(&self, event: &InotifyEvent) -> Option<Option<PathBuf>> {
        if event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW) {
            return Some(None);
        }
        if event.name.as_deref().is_some_and(is_passing) {
            return None;
        }
        let mut dirs = self.dirs.lock().unwrap_or_else(PoisonError::into_inner);
        let nth = dirs.iter().position(|(id, _)| *id == event.wd)?;
        if event.mask.contains(AddWatchFlags::IN_IGNORED) {
            // The last one of a directory that is gone; that was told before.
            dirs.swap_remove(nth);
            return None;
        }
        let dir = &dirs[nth].1;
        Some(Some(event.name.as_ref().map_or_else(|| dir.clone(), |name| dir.join(name))))
    }
}

/// How long to collect before the next look. Of a burst in a directory that many watch, most is about others: each would
/// wake for each of it, and keep those from work whom it is about.
#[derive(Debug, Default)]
struct Pace {
    /// Looks of this burst, one after the other, that brought nothing to tell.
    vain: u32,
}

impl Pace {
    /// After a look that came when nothing had happened for `waited`. A first vain look costs no rest: the lock that is
    /// taken before a change must not put off the change.
    fn rest(&mut self, waited: Duration, told: bool) -> Duration {
        if told {
            self.vain = 0;
            return REST;
        }
        if waited > LULL {
            self.vain = 0;
        }
        let rest = REST.saturating_mul(self.vain).min(LONGEST_REST);
        self.vain = self.vain.saturating_add(1);
        rest
    }
}

fn is_over(fd: &PollFd) -> bool {
    fd.revents().is_some_and(|ready| !ready.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Many members that start together do not wake each other for each step of each other.
    #[test]
    fn who_is_woken_in_vain_looks_less_often_until_it_is_told_or_the_burst_is_over() {
        let (burst, lull) = (Duration::from_millis(1), Duration::from_millis(11));
        let mut pace = Pace::default();
        let mut rests = |steps: &[(Duration, bool)]| -> Vec<u128> {
            steps.iter().map(|(waited, told)| pace.rest(*waited, *told).as_millis()).collect()
        };
        assert_eq!(rests(&[(lull, false), (burst, false), (burst, false)]), [0, 1, 2]);
        assert_eq!(rests(&[(burst, true), (burst, false), (burst, false)]), [1, 0, 1]);
        assert_eq!(rests(&[(burst, false); 8]), [2, 3, 4, 5, 6, 7, 8, 8]);
        assert_eq!(rests(&[(lull, false), (burst, false)]), [0, 1]);
    }
}
