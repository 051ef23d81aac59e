//! A program on a pseudo-terminal of its own. Refuses to interpret what it draws.
//!
//! portable-pty opens and sizes the terminal, but does not start the program: its own start always sets SHELL, goes
//! to $HOME when the directory is missing, and closes the pipe through which std reports a failed exec.

#![expect(
    unsafe_code,
    reason = "taking a terminal, asking its size, borrowing the master's descriptor"
)]

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::unistd;
use portable_pty::{MasterPty, PtyPair, PtySize, native_pty_system};

use super::super::exec::{ExecError, start_fresh};
use super::super::failpoint;
use super::super::proc::Process;
use super::Program;

/// Our end of the terminal. Keep it while the child lives: closing it hangs up on the child. May be shared between a
/// reading, a writing and a resizing thread.
pub(crate) struct PtyMaster {
    master: Mutex<Box<dyn MasterPty + Send>>,
    // A descriptor of our own: portable-pty's writer types a newline and Ctrl-D into the program when dropped.
    writer: File,
}

impl fmt::Debug for PtyMaster {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("PtyMaster").field("writer", &self.writer).finish_non_exhaustive()
    }
}

impl PtyMaster {
    /// A blocking reader of what the program draws; end of file once nobody has the terminal open any more. It keeps
    /// the terminal open by itself: drop it, too, to hang up.
    pub(crate) fn reader(&self) -> io::Result<Box<dyn Read + Send>> {
        self.master().try_clone_reader().map_err(io::Error::other)
    }

    /// Types these bytes. Blocks while the terminal's input queue (4 KiB) is full because the program does not read.
    pub(crate) fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        (&self.writer).write_all(bytes)
    }

    /// Gives the terminal another size; the program's foreground group is told by a WINCH.
    pub(crate) fn resize(&self, rows: u16, cols: u16) -> io::Result<()> {
        self.master().resize(size(rows, cols)).map_err(io::Error::other)
    }

    /// The terminal's name, as `/dev/pts/7`.
    pub(crate) fn tty_name(&self) -> Option<String> {
        self.master().tty_name().and_then(|name| name.into_os_string().into_string().ok())
    }

    fn master(&self) -> MutexGuard<'_, Box<dyn MasterPty + Send>> {
        // No call under this lock leaves anything half done.
        self.master.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts the program as the leader of a new session on a new terminal of this size, with default signal handling.
/// Errors and duties are as in [`super::spawn_foreground`].
pub(crate) fn spawn_on_pty(
    program: &Program,
    rows: u16,
    cols: u16,
) -> Result<(Process, PtyMaster), ExecError> {
    let pty = open_pty(rows, cols).map_err(|source| program.failure(source))?;
    spawn_on(program, pty)
}

/// The second half of [`spawn_on_pty`]: what fails here fails because of the program.
pub(crate) fn spawn_on(
    program: &Program,
    (master, slave): (PtyMaster, File),
) -> Result<(Process, PtyMaster), ExecError> {
    let mut command = program.command();
    let streams = slave.try_clone().and_then(|stdin| Ok((stdin, slave.try_clone()?)));
    let (stdin, stdout) = streams.map_err(|source| program.failure(source))?;
    command.stdin(stdin).stdout(stdout).stderr(slave);
    start_fresh(&mut command, lead_session_on_stdin);
    let child = command.spawn().map_err(|source| program.failure(source))?;
    // Ends the parent's copies of the slave, without which the reader would never see the end.
    drop(command);
    Ok((program.started(&child)?, master))
}

/// Rows and columns of the terminal at our standard output; none if it is no terminal or does not know its size.
pub(crate) fn own_size() -> Option<(u16, u16)> {
    // SAFETY: all-zero is a valid winsize, and the call only writes into it.
    let mut size: libc::winsize = unsafe { std::mem::zeroed() };
    // SAFETY: `size` outlives the call.
    let got = unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &raw mut size) };
    (got == 0 && size.ws_row > 0 && size.ws_col > 0).then_some((size.ws_row, size.ws_col))
}

/// A new terminal of this size: our end, and the program's.
pub(crate) fn open_pty(rows: u16, cols: u16) -> io::Result<(PtyMaster, File)> {
    failpoint::hit("child.open_pty");
    let opened = native_pty_system().openpty(size(rows, cols));
    let PtyPair { master, slave: keeper } = opened.map_err(|e| no_terminal(io::Error::other(e)))?;
    let name = master.tty_name().ok_or_else(|| io::Error::other("the new terminal has no name"))?;
    let mut options = OpenOptions::new();
    let slave = options.read(true).write(true).custom_flags(libc::O_NOCTTY).open(name)?;
    drop(keeper);
    let fd =
        master.as_raw_fd().ok_or_else(|| io::Error::other("the new terminal has no descriptor"))?;
    // SAFETY: `master` owns the descriptor and lives past this statement.
    let writer = unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned()?;
    Ok((PtyMaster { master: Mutex::new(master), writer: File::from(writer) }, slave))
}

/// Why there is no terminal to be had: portable-pty gives the system's word as text only, so the system is asked again.
fn no_terminal(told: io::Error) -> io::Error {
    let asked =
        OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOCTTY).open("/dev/ptmx");
    asked.err().map_or(told, advised)
}

/// Linux says ENOSPC and macOS ENXIO ("device not configured") when all are taken (PF-03).
fn advised(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(libc::ENOSPC | libc::ENXIO | libc::EAGAIN) => io::Error::other(
            "no pseudo-terminals are left: close some programs, or raise kernel.pty.max (macOS: kern.tty.ptmx_max)",
        ),
        _ => error,
    }
}

fn size(rows: u16, cols: u16) -> PtySize {
    PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }
}

/// Runs in the child; standard input is the terminal already.
fn lead_session_on_stdin() -> io::Result<()> {
    unistd::setsid()?;
    // SAFETY: async-signal-safe, and takes integers only.
    if unsafe { libc::ioctl(0, libc::TIOCSCTTY, 0) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pf_03_a_machine_without_terminals_is_told_with_advice() {
        for errno in [libc::ENOSPC, libc::ENXIO] {
            let told = advised(io::Error::from_raw_os_error(errno)).to_string();
            assert!(
                told.contains("no pseudo-terminals are left") && told.contains("kernel.pty.max"),
                "{told}"
            );
        }
        let other = advised(io::Error::from_raw_os_error(libc::EMFILE));
        assert_eq!(other.raw_os_error(), Some(libc::EMFILE), "its own word says enough");
    }
}
