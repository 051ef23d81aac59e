//! Waits for output on a terminal that another program holds. Another thread can end the wait.

use std::io::{self, PipeReader, PipeWriter, Read, Write, pipe};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags};
use nix::unistd;

use super::clock::Deadline;
use super::{native, portable, ready};

/// Size of a read of reports, in bytes. Equal reports that follow each other are one.
const REPORTS: usize = 1024;

/// Ends the waits of an [`OutputWatch`] when it is dropped.
#[derive(Debug)]
pub struct Stopper {
    open: PipeWriter,
}

impl Stopper {
    /// Ends the current wait or pause, or the next one.
    pub fn wake(&self) {
        // Fails only if the other end is gone.
        let _ = (&self.open).write_all(&[1]);
    }
}

/// Waits for output on a terminal. Without a terminal it waits for time to pass.
#[derive(Debug)]
pub struct OutputWatch {
    stopped: PipeReader,
    /// Readable after output; never blocks.
    events: Option<OwnedFd>,
}

/// The reason why a wait has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wakeup {
    /// A program has written to the terminal since [`OutputWatch::clear`].
    Output,
    /// [`Stopper::wake`] was called.
    Asked,
    Timeout,
    /// The [`Stopper`] was dropped.
    Stopped,
}

impl OutputWatch {
    /// Creates a watch without a terminal.
    ///
    /// # Errors
    /// Fails if the process has run out of descriptors.
    pub fn new() -> io::Result<(OutputWatch, Stopper)> {
        let (stopped, open) = pipe()?;
        Ok((OutputWatch { stopped, events: None }, Stopper { open }))
    }

    /// Watches the terminal at this path, instead of the one before. Returns false if the system
    /// does not report its output.
    pub fn watch(&mut self, tty: &Path) -> bool {
        self.events = if portable::is_forced() { None } else { native::tty_output(tty).ok() };
        self.events.is_some()
    }

    /// Waits for output, for the end of `limit`, or for the end of the [`Stopper`]. Output is
    /// reported until it is cleared.
    pub fn wait(&self, limit: Duration) -> Wakeup {
        self.wait_with(self.events.as_ref(), limit)
    }

    /// Waits for `length`, whatever is written meanwhile, or for [`Stopper::wake`]. Returns false
    /// if the [`Stopper`] was dropped.
    pub fn pause(&self, length: Duration) -> bool {
        self.wait_with(None, length) != Wakeup::Stopped
    }

    /// Discards the reports of earlier output.
    pub fn clear(&self) {
        let mut reports = [0; REPORTS];
        if let Some(events) = &self.events {
            while unistd::read(events, &mut reports).is_ok_and(|count| count > 0) {}
        }
    }

    fn wait_with(&self, events: Option<&OwnedFd>, limit: Duration) -> Wakeup {
        let deadline = Deadline::after(limit);
        loop {
            let mut fds = vec![PollFd::new(self.stopped.as_fd(), PollFlags::POLLIN)];
            fds.extend(events.map(|events| PollFd::new(events.as_fd(), PollFlags::POLLIN)));
            // A system that cannot wait must not make its callers busy.
            if ready::any(&mut fds, deadline.remaining()).is_err() {
                return Wakeup::Stopped;
            }
            let is_ready = |nth: usize| fds.get(nth).and_then(PollFd::any).unwrap_or(false);
            if is_ready(0) {
                match (&self.stopped).read(&mut [0; REPORTS]) {
                    Ok(0) | Err(_) => return Wakeup::Stopped,
                    Ok(_) => return Wakeup::Asked,
                }
            }
            if is_ready(1) {
                return Wakeup::Output;
            }
            if deadline.expired() {
                return Wakeup::Timeout;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::PATIENCE;
    use super::*;

    #[test]
    fn dropped_stopper_ends_a_blocked_wait() {
        let (watch, stopper) = OutputWatch::new().expect("descriptors are left");
        assert_eq!(watch.wait(Duration::ZERO), Wakeup::Timeout);
        assert!(watch.pause(Duration::ZERO));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| watch.wait(PATIENCE));
            drop(stopper);
            assert_eq!(waiting.join().expect("no panic"), Wakeup::Stopped);
        });
        assert!(!watch.pause(PATIENCE));
    }

    #[test]
    fn missing_terminal_is_not_watched() {
        let (mut watch, _stopper) = OutputWatch::new().expect("descriptors are left");
        assert!(!watch.watch(Path::new("/no/such/terminal")));
        assert_eq!(watch.wait(Duration::ZERO), Wakeup::Timeout);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn output_on_a_terminal_is_reported_until_it_is_cleared() {
        let (master, mut terminal) = super::super::child::open_pty(24, 80).expect("a pty");
        let name = master.tty_name().expect("it has a name");
        let (mut watch, stopper) = OutputWatch::new().expect("descriptors are left");
        // Not by `watch`, which fails in the portable gear.
        watch.events = Some(native::tty_output(Path::new(&name)).expect("inotify works here"));
        assert_eq!(watch.wait(Duration::ZERO), Wakeup::Timeout, "nothing was written");
        terminal.write_all(b"hello").expect("open");
        assert_eq!(watch.wait(PATIENCE), Wakeup::Output);
        assert_eq!(watch.wait(PATIENCE), Wakeup::Output, "reported until it is cleared");
        watch.clear();
        assert_eq!(watch.wait(Duration::ZERO), Wakeup::Timeout);
        stopper.wake();
        assert_eq!(watch.wait(PATIENCE), Wakeup::Asked);
        stopper.wake();
        assert!(watch.pause(PATIENCE), "the pause ends early");
        assert_eq!(watch.wait(Duration::ZERO), Wakeup::Timeout);
        drop(stopper);
        assert_eq!(watch.wait(PATIENCE), Wakeup::Stopped);
    }
}
