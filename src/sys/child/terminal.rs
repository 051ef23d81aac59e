//! The foreground of our controlling terminal: who has it, and handing it over. Refuses to know what is shown on it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;

use nix::errno::Errno;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, killpg};
use nix::unistd::{self, Pid};

/// Our controlling terminal, whatever our standard streams are.
pub(super) struct Terminal {
    tty: File,
}

impl Terminal {
    /// `None` when we have no controlling terminal.
    pub(super) fn open() -> Option<Terminal> {
        let tty = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NOCTTY)
            .open("/dev/tty")
            .ok()?;
        Some(Terminal { tty })
    }

    pub(super) fn try_clone(&self) -> io::Result<Terminal> {
        Ok(Terminal { tty: self.tty.try_clone()? })
    }

    /// The process group that may read and gets the keyboard's signals.
    pub(super) fn foreground(&self) -> Option<Pid> {
        unistd::tcgetpgrp(&self.tty).ok()
    }

    pub(super) fn is_ours(&self) -> bool {
        self.foreground() == Some(unistd::getpgrp())
    }

    /// True when nobody is left in the foreground: who had it died without giving it back.
    pub(super) fn is_abandoned(&self) -> bool {
        self.foreground().is_some_and(|group| killpg(group, None) == Err(Errno::ESRCH))
    }

    /// Async-signal-safe: called between fork and exec, too.
    pub(super) fn give_to(&self, group: Pid) -> io::Result<()> {
        // From the background this raises SIGTTOU, which would stop us; blocked, the change goes through.
        let mut blocked = SigSet::empty();
        blocked.add(Signal::SIGTTOU);
        let before = blocked.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        let given = unistd::tcsetpgrp(&self.tty, group);
        before.thread_set_mask()?;
        Ok(given?)
    }
}
