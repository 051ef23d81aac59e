//! The viewer's side of a launcher's socket.

use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::wire::{LauncherMessage, ViewerMessage};
use model::members::input::Input;
use sys::socket;

/// Timeout for a launcher's answer and for writing to it.
const LAUNCHER_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns the last lines of the screen that the launcher at this socket keeps.
pub fn peek(socket: &Path, lines: usize) -> io::Result<String> {
    let mut stream = socket::connect(socket)?;
    stream.set_read_timeout(Some(LAUNCHER_TIMEOUT))?;
    ViewerMessage::Lines(u32::try_from(lines).unwrap_or(u32::MAX)).write(&mut stream)?;
    match LauncherMessage::read(&mut stream)? {
        Some(LauncherMessage::Lines(text)) => Ok(text),
        _ => Err(io::Error::other("it did not answer")),
    }
}

/// Writes input to the terminal that the launcher at this socket holds.
pub fn write_input(socket: &Path, input: &Input) -> io::Result<()> {
    let mut stream = socket::connect(socket)?;
    stream.set_write_timeout(Some(LAUNCHER_TIMEOUT))?;
    stream.set_read_timeout(Some(LAUNCHER_TIMEOUT))?;
    ViewerMessage::Input(input.clone()).write(&mut stream)?;
    match LauncherMessage::read(&mut stream) {
        Ok(Some(LauncherMessage::Typed)) => Ok(()),
        // A launcher of an older build closes the connection without an answer.
        Ok(_) => Err(io::Error::other("its launcher does not take input this way")),
        Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
            let waited = LAUNCHER_TIMEOUT.as_secs();
            let problem = format!("its program has not read all of it for {waited} s");
            Err(io::Error::new(io::ErrorKind::TimedOut, problem))
        }
        Err(e) => Err(e),
    }
}

/// A connection that shows a terminal and types on it.
pub struct Viewer {
    stream: UnixStream,
}

impl Viewer {
    /// Connects as a viewer. The program's terminal takes this size.
    pub fn attach(socket: &Path, (rows, cols): (u16, u16)) -> io::Result<Viewer> {
        let mut stream = socket::connect(socket)?;
        stream.set_write_timeout(Some(LAUNCHER_TIMEOUT))?;
        ViewerMessage::Attach { rows, cols }.write(&mut stream)?;
        Ok(Viewer { stream })
    }

    /// Connects to watch the terminal without any influence on it. A launcher of an older build
    /// closes the connection without a message.
    pub fn follow(socket: &Path) -> io::Result<Viewer> {
        let mut stream = socket::connect(socket)?;
        stream.set_write_timeout(Some(LAUNCHER_TIMEOUT))?;
        ViewerMessage::Follow.write(&mut stream)?;
        Ok(Viewer { stream })
    }

    pub fn try_clone(&self) -> io::Result<Viewer> {
        Ok(Viewer { stream: self.stream.try_clone()? })
    }

    /// Waits for the next message; `None` at the end of the connection.
    pub fn receive(&mut self) -> io::Result<Option<LauncherMessage>> {
        match LauncherMessage::read(&mut self.stream) {
            // A launcher that is killed before it has read what was sent resets the connection.
            Err(e) if e.kind() == io::ErrorKind::ConnectionReset => Ok(None),
            read => read,
        }
    }

    /// Sends keys. Fails if the program has not read its input for the whole timeout.
    pub fn type_in(&mut self, keys: Vec<u8>) -> io::Result<()> {
        ViewerMessage::Keys(keys).write(&mut self.stream)
    }

    pub fn resize(&mut self, (rows, cols): (u16, u16)) -> io::Result<()> {
        ViewerMessage::Size { rows, cols }.write(&mut self.stream)
    }

    /// Closes the connection for all handles.
    pub fn leave(&self) {
        // Fails only if the connection is closed already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

impl AsFd for Viewer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
