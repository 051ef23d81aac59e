//! The terminal that a person sits at, lent to a program elsewhere: raw while it lasts, as it was afterwards. Refuses to
//! know what is shown on it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::termios::{
    FlushArg, LocalFlags, SetArg, Termios, cfmakeraw, tcflush, tcgetattr, tcsetattr,
};
use nix::unistd;

use super::ready;

/// How much is taken from the keyboard at once.
const CHUNK: usize = 16 * 1024;
/// How long one wait for room on the terminal lasts.
const ROOM: Duration = Duration::from_millis(100);
/// The longest single wait; the next one follows.
const LOOK: Duration = Duration::from_secs(60);

/// Signals that would leave the terminal raw: they are told instead. `TSTP` as well: nobody could type `fg`.
const TOLD: [Signal; 6] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGWINCH,
    Signal::SIGTSTP,
];

/// What came next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Input {
    /// The keyboard.
    Keys(Vec<u8>),
    /// A signal of this number.
    Signal(i32),
    /// The terminal has gone.
    Gone,
    /// The other descriptor has something, or its other end was closed.
    Other,
}

/// The terminal at our standard input in raw mode; dropping this puts it back.
pub(crate) struct RawTerminal {
    before: Termios,
    signals: SignalFd,
}

impl RawTerminal {
    /// Makes it raw. To be called in the first thread before there are others: the signals of [`Input::Signal`] are
    /// blocked in this thread, until the drop, and in those that it starts.
    pub(crate) fn enter() -> io::Result<RawTerminal> {
        told().thread_block()?;
        let signals =
            SignalFd::with_flags(&told(), SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        cfmakeraw(&mut raw);
        tcsetattr(io::stdin(), SetArg::TCSANOW, &raw)?;
        Ok(RawTerminal { before, signals })
    }

    /// Waits for whatever comes first.
    pub(crate) fn next(&self, other: BorrowedFd) -> io::Result<Input> {
        let stdin = io::stdin();
        loop {
            let mut fds = [self.signals.as_fd(), other, stdin.as_fd()]
                .map(|fd| PollFd::new(fd, PollFlags::POLLIN));
            if !ready::any(&mut fds, LOOK)? {
                continue;
            }
            let [signal, other, keys] = fds.map(|fd| fd.any().unwrap_or(false));
            if signal && let Some(info) = self.signals.read_signal()? {
                return Ok(Input::Signal(i32::try_from(info.ssi_signo).unwrap_or(0)));
            }
            if other {
                return Ok(Input::Other);
            }
            if keys && let Some(input) = typed(&stdin)? {
                return Ok(input);
            }
        }
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        // Answers of the terminal to questions of the program must not end up in the next command line.
        let _ = tcflush(io::stdin(), FlushArg::TCIFLUSH);
        let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, &self.before);
        // From here on a signal may end us again: our last words may wait for a terminal that takes none.
        let _ = told().thread_unblock();
    }
}

/// The same for the calling thread, which may be another than the one that had the [`RawTerminal`] at last.
pub(crate) fn let_signals_through() {
    let _ = told().thread_unblock();
}

/// Keys typed while this exists are not echoed to the terminal at standard error; they stay in its
/// input queue for the program that reads next. Dropping this puts the echo back.
#[derive(Debug)]
pub(crate) struct EchoOff {
    before: Termios,
}

impl EchoOff {
    /// Turns the echo off. None if standard error is not our terminal, or if another job has it
    /// now: changing its modes would stop this process.
    pub(crate) fn enter() -> Option<EchoOff> {
        if !has_terminal() {
            return None;
        }
        let before = tcgetattr(io::stderr()).ok()?;
        let mut silent = before.clone();
        silent.local_flags.remove(LocalFlags::ECHO);
        tcsetattr(io::stderr(), SetArg::TCSANOW, &silent).ok()?;
        Some(EchoOff { before })
    }
}

impl Drop for EchoOff {
    fn drop(&mut self) {
        if has_terminal() {
            // A terminal that has gone needs nothing.
            let _ = tcsetattr(io::stderr(), SetArg::TCSANOW, &self.before);
        }
    }
}

/// Returns true if standard error is the controlling terminal and this process is in its foreground
/// job.
fn has_terminal() -> bool {
    unistd::tcgetpgrp(io::stderr()).is_ok_and(|job| job == unistd::getpgrp())
}

/// Returns true if another job has the terminal at standard error, as after `bg`.
pub(crate) fn is_background() -> bool {
    unistd::tcgetpgrp(io::stderr()).is_ok_and(|job| job != unistd::getpgrp())
}

fn told() -> SigSet {
    TOLD.into_iter().collect()
}

fn typed(stdin: &io::Stdin) -> io::Result<Option<Input>> {
    let mut buffer = vec![0; CHUNK];
    match unistd::read(stdin, &mut buffer) {
        Ok(0) | Err(Errno::EIO) => Ok(Some(Input::Gone)),
        Ok(count) => {
            buffer.truncate(count);
            Ok(Some(Input::Keys(buffer)))
        }
        Err(Errno::EINTR | Errno::EAGAIN) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// The terminal at our standard output, to be written to without ever waiting for it unasked.
#[derive(Debug)]
pub(crate) struct Display {
    file: File,
}

impl Display {
    /// Opens it anew: not to wait is a property of the opening, and the one that we inherited belongs to our shell, too.
    pub(crate) fn open() -> io::Result<Display> {
        let path = unistd::ttyname(io::stdout()).unwrap_or_else(|_| PathBuf::from("/dev/tty"));
        let flags = libc::O_NOCTTY | libc::O_NONBLOCK | libc::O_CLOEXEC;
        Ok(Display { file: OpenOptions::new().write(true).custom_flags(flags).open(path)? })
    }

    /// A second handle, for another thread.
    pub(crate) fn try_clone(&self) -> io::Result<Display> {
        Ok(Display { file: self.file.try_clone()? })
    }

    /// Writes all of it. While the terminal takes nothing, `give_up` is asked now and then; its yes is an error.
    pub(crate) fn show(&self, bytes: &[u8], give_up: &dyn Fn() -> bool) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            match (&self.file).write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(e) if e.kind() == io::ErrorKind::Interrupted => (),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    let mut fds = [PollFd::new(self.file.as_fd(), PollFlags::POLLOUT)];
                    if !ready::any(&mut fds, ROOM)? && give_up() {
                        return Err(io::Error::new(
                            io::ErrorKind::TimedOut,
                            "the terminal takes no output",
                        ));
                    }
                }
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}
