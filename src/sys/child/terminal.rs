//! The foreground process group of the controlling terminal: reads and sets it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;

use nix::errno::Errno;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, killpg};
use nix::unistd::{self, Pid};

/// The controlling terminal, independent of the standard streams.
pub(super) struct ControllingTerminal {
    tty: File,
}

impl ControllingTerminal {
    /// Opens the controlling terminal; `None` if this process has none.
    pub(super) fn open() -> Option<ControllingTerminal> {
        let tty = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NOCTTY)
            .open("/dev/tty")
            .ok()?;
        Some(ControllingTerminal { tty })
    }

    pub(super) fn try_clone(&self) -> io::Result<ControllingTerminal> {
        Ok(ControllingTerminal { tty: self.tty.try_clone()? })
    }

    /// Returns the process group that may read and receives the keyboard's signals.
    pub(super) fn foreground(&self) -> Option<Pid> {
        unistd::tcgetpgrp(&self.tty).ok()
    }

    pub(super) fn is_ours(&self) -> bool {
        self.foreground() == Some(unistd::getpgrp())
    }

    /// Returns true if no process is left in the foreground group, because it died without handing
    /// the terminal back.
    pub(super) fn is_abandoned(&self) -> bool {
        self.foreground().is_some_and(|group| killpg(group, None) == Err(Errno::ESRCH))
    }

    /// Puts `group` into the foreground. Async-signal-safe, because it also runs between fork and
    /// exec.
    pub(super) fn give_to(&self, group: Pid) -> io::Result<()> {
        // A call from the background raises SIGTTOU, which would stop this process. While the
        // signal is blocked, the call succeeds.
        let mut blocked = SigSet::empty();
        blocked.add(Signal::SIGTTOU);
        let before = blocked.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        let given = unistd::tcsetpgrp(&self.tty, group);
        before.thread_set_mask()?;
        Ok(given?)
    }
}
