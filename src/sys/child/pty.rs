//! A program on a pseudo-terminal of its own.
//!
//! portable-pty opens and resizes the terminal but does not start the program: its own start always
//! sets SHELL, changes to $HOME if the directory is missing, and closes the pipe through which std
//! reports a failed exec.

#![expect(
    unsafe_code,
    reason = "taking a terminal, asking its size, borrowing the master's descriptor"
)]

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::unistd;
use portable_pty::{MasterPty, PtyPair, PtySize, native_pty_system};

use super::super::exec::{ExecError, start_fresh};
use super::super::failpoint;
use super::super::proc::Process;
use super::program::Program;

/// Master side of a pseudo-terminal. Closing it hangs up on the child, so it must be kept while the
/// child runs. A reading, a writing and a resizing thread may share it.
pub struct PtyMaster {
    master: Mutex<Box<dyn MasterPty + Send>>,
    // A duplicate descriptor, because portable-pty's writer types a newline and Ctrl-D into the
    // program when dropped.
    writer: File,
}

impl fmt::Debug for PtyMaster {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("PtyMaster").field("writer", &self.writer).finish_non_exhaustive()
    }
}

impl PtyMaster {
    /// Returns a blocking reader of the program's output. It reaches end of file once no process
    /// has the terminal open any longer. The reader keeps the master side open: drop it as well to
    /// hang up.
    pub fn reader(&self) -> io::Result<Box<dyn Read + Send>> {
        self.master().try_clone_reader().map_err(io::Error::other)
    }

    /// Writes these bytes as keyboard input. Blocks while the terminal's input queue (4 KiB) is
    /// full because the program does not read.
    pub fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        (&self.writer).write_all(bytes)
    }

    /// Resizes the terminal; the program's foreground group receives SIGWINCH.
    pub fn resize(&self, rows: u16, cols: u16) -> io::Result<()> {
        self.master().resize(size(rows, cols)).map_err(io::Error::other)
    }

    /// Returns the terminal's name, as `/dev/pts/7`.
    pub fn tty_name(&self) -> Option<String> {
        self.master().tty_name().and_then(|name| name.into_os_string().into_string().ok())
    }

    fn master(&self) -> MutexGuard<'_, Box<dyn MasterPty + Send>> {
        // No call under this lock leaves inconsistent state, so a poisoned lock is usable.
        self.master.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsFd for PtyMaster {
    /// Readable while there is output of the program, and after its end.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.writer.as_fd()
    }
}

/// Starts the program as the leader of a new session on a new terminal of this size, with default
/// signal handling. The caller must wait for the child.
///
/// # Errors
/// As [`super::spawn_foreground`]; [`ExecError::Io`] also if no terminal can be opened.
pub fn spawn_on_pty(
    program: &Program,
    rows: u16,
    cols: u16,
) -> Result<(Process, PtyMaster), ExecError> {
    let pty = open_pty(rows, cols).map_err(|source| program.failure(source))?;
    spawn_on(program, pty)
}

/// Second half of [`spawn_on_pty`], on a terminal that [`open_pty`] has opened: an error here is
/// caused by the program.
pub fn spawn_on(
    program: &Program,
    (master, slave): (PtyMaster, File),
) -> Result<(Process, PtyMaster), ExecError> {
    let mut command = program.command();
    let streams = slave.try_clone().and_then(|stdin| Ok((stdin, slave.try_clone()?)));
    let (stdin, stdout) = streams.map_err(|source| program.failure(source))?;
    command.stdin(stdin).stdout(stdout).stderr(slave);
    start_fresh(&mut command, lead_session_on_stdin);
    let child = command.spawn().map_err(|source| program.failure(source))?;
    // Closes the parent's copies of the slave; otherwise the reader would never reach end of file.
    drop(command);
    Ok((program.started(&child)?, master))
}

/// Returns rows and columns of the terminal at standard output; `None` if it is not a terminal or
/// reports no size.
pub fn own_size() -> Option<(u16, u16)> {
    // SAFETY: all-zero is a valid winsize, and the call only writes into it.
    let mut size: libc::winsize = unsafe { std::mem::zeroed() };
    // SAFETY: `size` outlives the call.
    let got = unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &raw mut size) };
    (got == 0 && size.ws_row > 0 && size.ws_col > 0).then_some((size.ws_row, size.ws_col))
}

/// Opens a new terminal of this size; returns its master and slave side.
///
/// # Errors
/// The error of the failed call, replaced by advice if all terminals are in use.
pub fn open_pty(rows: u16, cols: u16) -> io::Result<(PtyMaster, File)> {
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

/// Finds the error number of a failed open by opening /dev/ptmx again, because portable-pty reports
/// the error only as text.
fn no_terminal(error: io::Error) -> io::Error {
    let asked =
        OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOCTTY).open("/dev/ptmx");
    asked.err().map_or(error, advised)
}

/// Adds advice to the error that means that all terminals are in use: ENOSPC on Linux, ENXIO
/// ("device not configured") on macOS (PF-03).
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

nix::ioctl_write_int_bad!(
    /// Makes a terminal the controlling terminal of the calling session's leader.
    take_terminal,
    libc::TIOCSCTTY
);

/// Makes the child the leader of a new session with the terminal at its standard input.
fn lead_session_on_stdin() -> io::Result<()> {
    unistd::setsid()?;
    // SAFETY: async-signal-safe, and takes integers only.
    unsafe { take_terminal(libc::STDIN_FILENO, 0) }?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pf_03_exhausted_pseudo_terminals_give_advice() {
        for errno in [libc::ENOSPC, libc::ENXIO] {
            let message = advised(io::Error::from_raw_os_error(errno)).to_string();
            assert!(
                message.contains("no pseudo-terminals are left")
                    && message.contains("kernel.pty.max"),
                "{message}"
            );
        }
        let other = advised(io::Error::from_raw_os_error(libc::EMFILE));
        assert_eq!(other.raw_os_error(), Some(libc::EMFILE), "its own word says enough");
    }
}
