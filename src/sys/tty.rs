//! The terminal that a person uses: raw mode while it is connected to a program elsewhere, and
//! output that does not block. Modes are restored on drop.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::termios::{
    FlowArg, FlushArg, LocalFlags, SetArg, Termios, cfmakeraw, tcflow, tcflush, tcgetattr,
    tcsetattr,
};
use nix::unistd;

use super::clock::Deadline;
use super::ready;
use super::signal::SignalQueue;

/// Maximum bytes of one read from the keyboard.
const CHUNK: usize = 16 * 1024;
/// Timeout of one wait for room in the terminal's output queue.
const GIVE_UP_INTERVAL: Duration = Duration::from_millis(100);
/// Timeout of one wait for input; another wait follows.
const POLL_INTERVAL: Duration = Duration::from_secs(60);

/// Signals whose default action would leave the terminal raw; they are returned as input instead.
/// `TSTP` is among them, because a raw terminal gives no way to type `fg`.
const FORWARDED: [Signal; 6] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGWINCH,
    Signal::SIGTSTP,
];

/// Ends an incomplete escape sequence or string, and asks the terminal for its status.
const STATUS_QUERY: &[u8] = b"\x18\x1b\\\x1b[5n";
/// The reply of a terminal that works.
const STATUS_REPLY: &[u8] = b"\x1b[0n";

/// Waits until no process reads the standard output any more; for a file this does not happen.
///
/// # Errors
/// The output cannot be polled, such as a terminal on macOS.
pub fn await_output_closed() -> io::Result<()> {
    let stdout = io::stdout();
    let mut output = [PollFd::new(stdout.as_fd(), PollFlags::empty())];
    while !ready::any(&mut output, POLL_INTERVAL)? {}
    let closed = PollFlags::POLLERR | PollFlags::POLLHUP;
    let is_closed = output[0].revents().is_some_and(|found| found.intersects(closed));
    if is_closed { Ok(()) } else { Err(Errno::EBADF.into()) }
}

/// The next input of a [`RawTerminal`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalInput {
    /// Bytes from the keyboard.
    Keys(Vec<u8>),
    /// A signal with this number.
    Signal(i32),
    /// The terminal was closed.
    Gone,
    /// The other descriptor is readable, or its peer has closed it.
    Other,
}

/// The terminal at standard input in raw mode, restored on drop.
pub struct RawTerminal {
    before: Termios,
    signals: SignalQueue,
}

impl RawTerminal {
    /// Sets raw mode. Must be called in the first thread before others exist: the signals of
    /// [`TerminalInput::Signal`] are blocked in this thread, until the drop, and in the threads
    /// that it starts.
    pub fn enter() -> io::Result<RawTerminal> {
        let signals = SignalQueue::new(&forwarded_signals())?;
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        cfmakeraw(&mut raw);
        tcsetattr(io::stdin(), SetArg::TCSANOW, &raw)?;
        Ok(RawTerminal { before, signals })
    }

    /// Waits for the keyboard, a signal or `other`, whichever is first.
    pub fn next(&self, other: BorrowedFd) -> io::Result<TerminalInput> {
        let stdin = io::stdin();
        loop {
            let fds = [self.signals.as_fd(), other, stdin.as_fd()];
            let [signal, other, keys] = ready::readable_terminal(fds, POLL_INTERVAL)?;
            if signal && let Some(number) = self.signals.next(Duration::ZERO)? {
                return Ok(TerminalInput::Signal(number));
            }
            if other {
                return Ok(TerminalInput::Other);
            }
            if keys && let Some(input) = typed(&stdin)? {
                return Ok(input);
            }
        }
    }
}

impl RawTerminal {
    /// Waits at most `limit`; returns `None` if nothing has happened. The keyboard takes precedence
    /// over `other`, which may be readable all the time.
    pub fn next_within(
        &self,
        other: BorrowedFd,
        limit: Duration,
    ) -> io::Result<Option<TerminalInput>> {
        let stdin = io::stdin();
        let fds = [self.signals.as_fd(), other, stdin.as_fd()];
        let [signal, other, keys] = ready::readable_terminal(fds, limit)?;
        if signal && let Some(number) = self.signals.next(Duration::ZERO)? {
            return Ok(Some(TerminalInput::Signal(number)));
        }
        if keys && let Some(input) = typed(&stdin)? {
            return Ok(Some(input));
        }
        Ok(other.then_some(TerminalInput::Other))
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        // Discards replies of the terminal to queries of the program, which would end up in the
        // next command line.
        let _ = tcflush(io::stdin(), FlushArg::TCIFLUSH);
        let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, &self.before);
        // Signals may end this process from here on, because its last output may block on a
        // terminal that accepts none.
        let _ = forwarded_signals().thread_unblock();
    }
}

/// Unblocks these signals in the calling thread, which need not be the one that dropped the
/// [`RawTerminal`].
pub fn let_signals_through() {
    let _ = forwarded_signals().thread_unblock();
}

/// Turns off the echo of the terminal at standard error until dropped. Keys typed meanwhile stay in
/// its input queue for the program that reads next.
#[derive(Debug)]
pub struct EchoOff {
    before: Termios,
}

impl EchoOff {
    /// Turns the echo off. Returns `None` if standard error is not the controlling terminal, or if
    /// another job is in its foreground: changing the modes would stop this process.
    pub fn enter() -> Option<EchoOff> {
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
            // Fails if the terminal was closed, which then needs no echo.
            let _ = tcsetattr(io::stderr(), SetArg::TCSANOW, &self.before);
        }
    }
}

/// Returns true if standard error is the controlling terminal and this process is in its foreground
/// job.
fn has_terminal() -> bool {
    unistd::tcgetpgrp(io::stderr()).is_ok_and(|job| job == unistd::getpgrp())
}

/// Returns true if another job is in the foreground of the terminal at standard error, as after
/// `bg`.
pub fn is_background() -> bool {
    unistd::tcgetpgrp(io::stderr()).is_ok_and(|job| job != unistd::getpgrp())
}

/// Waits until the terminal has processed all that was written to it, at most `limit`: it answers
/// a query only after the output before that. Discards what was typed. Returns false if the
/// terminal does not answer. One that cannot be asked, because another job is in its foreground,
/// counts as having processed the output.
pub fn wait_processed(limit: Duration) -> bool {
    let deadline = Deadline::after(limit);
    let stdin = io::stdin();
    if !unistd::tcgetpgrp(&stdin).is_ok_and(|job| job == unistd::getpgrp()) {
        return true;
    }
    let Ok(before) = tcgetattr(&stdin) else { return true };
    let mut raw = before.clone();
    cfmakeraw(&mut raw);
    let answered = tcsetattr(&stdin, SetArg::TCSANOW, &raw).is_ok()
        // Ctrl-S may have stopped the output.
        && tcflow(&stdin, FlowArg::TCOON).is_ok()
        && answers_status_query(&stdin, deadline).unwrap_or(false);
    let _ = tcflush(&stdin, FlushArg::TCIFLUSH);
    let _ = tcsetattr(&stdin, SetArg::TCSANOW, &before);
    answered
}

fn answers_status_query(stdin: &io::Stdin, deadline: Deadline) -> io::Result<bool> {
    Display::open()?.show(STATUS_QUERY, &|| deadline.expired())?;
    let mut reply = Vec::new();
    while !deadline.expired() {
        if ready::readable_terminal([stdin.as_fd()], deadline.remaining())? == [false] {
            continue;
        }
        match typed(stdin)? {
            Some(TerminalInput::Keys(keys)) => reply.extend(keys),
            Some(_) => return Ok(false),
            None => (),
        }
        if reply.windows(STATUS_REPLY.len()).any(|part| part == STATUS_REPLY) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn forwarded_signals() -> SigSet {
    FORWARDED.into_iter().collect()
}

fn typed(stdin: &io::Stdin) -> io::Result<Option<TerminalInput>> {
    let mut buffer = vec![0; CHUNK];
    match unistd::read(stdin, &mut buffer) {
        Ok(0) | Err(Errno::EIO) => Ok(Some(TerminalInput::Gone)),
        Ok(count) => {
            buffer.truncate(count);
            Ok(Some(TerminalInput::Keys(buffer)))
        }
        Err(Errno::EINTR | Errno::EAGAIN) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// The terminal at standard output, opened so that no write blocks.
#[derive(Debug)]
pub struct Display {
    file: File,
}

impl Display {
    /// Opens the terminal again: O_NONBLOCK is a property of the open file description, and the
    /// inherited one is shared with the shell.
    pub fn open() -> io::Result<Display> {
        let path = unistd::ttyname(io::stdout()).unwrap_or_else(|_| PathBuf::from("/dev/tty"));
        let flags = libc::O_NOCTTY | libc::O_NONBLOCK | libc::O_CLOEXEC;
        Ok(Display { file: OpenOptions::new().write(true).custom_flags(flags).open(path)? })
    }

    /// Returns a second handle, for another thread.
    pub fn try_clone(&self) -> io::Result<Display> {
        Ok(Display { file: self.file.try_clone()? })
    }

    /// Writes all of `bytes`. While the terminal accepts no output, calls `give_up` every 100 ms.
    ///
    /// # Errors
    /// `TimedOut` if `give_up` returns true, otherwise the error of the write.
    pub fn show(&self, bytes: &[u8], give_up: &dyn Fn() -> bool) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            match (&self.file).write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(e) if e.kind() == io::ErrorKind::Interrupted => (),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    if !ready::writable_terminal(self.file.as_fd(), GIVE_UP_INTERVAL)? && give_up()
                    {
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
