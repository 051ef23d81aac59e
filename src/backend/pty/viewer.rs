//! The viewer's end of a launcher's socket. Knows nothing of the terminal that it is shown on.

use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::wire::{Ask, Tell};
use crate::model::input::Input;
use crate::sys::socket;

/// How long a launcher may take to answer, or to take a key.
const PATIENCE: Duration = Duration::from_secs(5);

/// The last lines of a screen, as its launcher has it.
pub(crate) fn peek(socket: &Path, lines: usize) -> io::Result<String> {
    let mut stream = socket::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ask::Lines(u32::try_from(lines).unwrap_or(u32::MAX)).write(&mut stream)?;
    match Tell::read(&mut stream)? {
        Some(Tell::Lines(text)) => Ok(text),
        Some(Tell::Output(_) | Tell::Typed | Tell::Ended(_)) | None => {
            Err(io::Error::other("it did not answer"))
        }
    }
}

/// Types on the terminal that the launcher at this socket holds.
pub(crate) fn write_input(socket: &Path, input: &Input) -> io::Result<()> {
    let mut stream = socket::connect(socket)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ask::Input(input.clone()).write(&mut stream)?;
    match Tell::read(&mut stream) {
        Ok(Some(Tell::Typed)) => Ok(()),
        // A launcher of an older build ends the conversation without a word.
        Ok(_) => Err(io::Error::other("its launcher does not take input this way")),
        Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
            let waited = PATIENCE.as_secs();
            let problem = format!("its program has not read all of it for {waited} s");
            Err(io::Error::new(io::ErrorKind::TimedOut, problem))
        }
        Err(e) => Err(e),
    }
}

/// A connection that shows a terminal and types on it.
pub(crate) struct Viewer {
    stream: UnixStream,
}

impl Viewer {
    /// Joins those who look already. The terminal takes the size of ours.
    pub(crate) fn attach(socket: &Path, (rows, cols): (u16, u16)) -> io::Result<Viewer> {
        let mut stream = socket::connect(socket)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ask::Attach { rows, cols }.write(&mut stream)?;
        Ok(Viewer { stream })
    }

    /// A second handle on the connection, for another thread.
    pub(crate) fn try_clone(&self) -> io::Result<Viewer> {
        Ok(Viewer { stream: self.stream.try_clone()? })
    }

    /// What is to be seen next, waited for; none when the connection has ended.
    pub(crate) fn next(&mut self) -> io::Result<Option<Tell>> {
        Tell::read(&mut self.stream)
    }

    /// Types. An error when the program has not read its keyboard for long.
    pub(crate) fn type_in(&mut self, keys: Vec<u8>) -> io::Result<()> {
        Ask::Keys(keys).write(&mut self.stream)
    }

    /// Our terminal has another size.
    pub(crate) fn resize(&mut self, (rows, cols): (u16, u16)) -> io::Result<()> {
        Ask::Size { rows, cols }.write(&mut self.stream)
    }

    /// Ends the connection for all handles.
    pub(crate) fn leave(&self) {
        // It has ended already if this fails.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

impl AsFd for Viewer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
