//! Unix sockets between processes of one user: bound with mode 0600, and both ends reject a peer of
//! another user (SEC-07).

use std::fs::{self, Permissions};
use std::io::{self, PipeReader, PipeWriter, pipe};
use std::mem::{offset_of, size_of};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags};

use super::fs::{FileVersion, FsError, version};
use super::{env, native, ready};

/// Longest path of a socket, in bytes (PT-05). The kernel's field must also hold a terminating NUL.
pub const LONGEST_PATH: usize =
    size_of::<libc::sockaddr_un>() - offset_of!(libc::sockaddr_un, sun_path) - 1;

/// Timeout of one wait for a connection; another wait follows.
const POLL_INTERVAL: Duration = Duration::from_secs(3600);

/// A socket that accepts connections of this user. Its file is removed on drop.
#[derive(Debug)]
pub struct Listener {
    socket: UnixListener,
    path: PathBuf,
    /// The socket's file as it was created, so that another file of the same name is not removed.
    made: Option<FileVersion>,
    closed: PipeReader,
    /// Dropping it wakes the threads that wait for a connection. A `shutdown` of the socket would
    /// wake them on Linux only.
    open: Mutex<Option<PipeWriter>>,
}

impl Listener {
    /// Binds the socket at `path`, which must not exist. The directory must be private, because the
    /// socket has the mode that the umask leaves until its mode is set.
    ///
    /// # Errors
    /// [`FsError::Io`] if `path` exists or the socket cannot be created.
    pub fn bind(path: &Path) -> Result<Listener, FsError> {
        let fail = |source| FsError::io("create the socket", path, source);
        let (closed, open) = pipe().map_err(fail)?;
        let socket = UnixListener::bind(path).map_err(fail)?;
        // Between a wait and an accept, the client may have gone.
        socket.set_nonblocking(true).map_err(fail)?;
        let open = Mutex::new(Some(open));
        let made = Listener { socket, path: path.to_owned(), made: version(path)?, closed, open };
        fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(fail)?;
        Ok(made)
    }

    /// Returns the path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the next connection of this user; closes connections of other users.
    ///
    /// # Errors
    /// Fails after [`Listener::close`], or if the process has run out of descriptors.
    pub fn accept(&self) -> io::Result<UnixStream> {
        loop {
            let mut fds = [self.socket.as_fd(), self.closed.as_fd()]
                .map(|fd| PollFd::new(fd, PollFlags::POLLIN));
            ready::any(&mut fds, POLL_INTERVAL)?;
            if fds[1].any().unwrap_or(false) {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "the socket was closed"));
            }
            match self.socket.accept() {
                Ok((stream, _)) if is_ours(&stream) => {
                    // Inherited from the listener on macOS.
                    stream.set_nonblocking(false)?;
                    return Ok(stream);
                }
                Ok(_) => (),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => (),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => (),
                Err(e) => return Err(e),
            }
        }
    }

    /// Stops accepting connections, wakes threads that wait in [`Listener::accept`], and removes
    /// the file.
    pub fn close(&self) {
        drop(self.open.lock().unwrap_or_else(PoisonError::into_inner).take());
        let is_same =
            |now: FileVersion, made: FileVersion| (now.dev, now.ino) == (made.dev, made.ino);
        let there = version(&self.path).ok().flatten();
        if there.zip(self.made).is_some_and(|(now, made)| is_same(now, made)) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.close();
    }
}

/// Connects to a socket of this user.
///
/// # Errors
/// `ConnectionRefused` or `NotFound` if its process is gone, `PermissionDenied` if the process
/// belongs to another user.
pub fn connect(path: &Path) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(path)?;
    if is_ours(&stream) {
        Ok(stream)
    } else {
        Err(io::Error::new(io::ErrorKind::PermissionDenied, "it belongs to another user"))
    }
}

fn is_ours(stream: &UnixStream) -> bool {
    native::peer_uid(stream).is_ok_and(|uid| uid == env::effective_uid())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    fn place() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("s");
        (dir, path)
    }

    #[test]
    fn sec_07_socket_is_private_and_removed_with_its_listener() {
        let (_dir, path) = place();
        let listener = Listener::bind(&path).expect("writable");
        assert_eq!(fs::symlink_metadata(&path).expect("made").permissions().mode() & 0o777, 0o600);
        let mut ours = connect(&path).expect("it listens");
        let mut theirs = listener.accept().expect("it is of our user");
        ours.write_all(b"x").expect("open");
        let mut got = [0];
        theirs.read_exact(&mut got).expect("it was written");
        assert_eq!(got, *b"x");
        assert!(Listener::bind(&path).is_err(), "a living socket is not replaced");
        drop(listener);
        assert_eq!(connect(&path).expect_err("gone").kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn another_file_at_the_sockets_path_is_not_removed() {
        let (_dir, path) = place();
        let listener = Listener::bind(&path).expect("writable");
        fs::remove_file(&path).expect("ours");
        fs::write(&path, "another's").expect("writable");
        drop(listener);
        assert_eq!(fs::read(&path).expect("still there"), b"another's");
    }

    #[test]
    fn close_wakes_a_blocked_accept() {
        let (_dir, path) = place();
        let listener = Listener::bind(&path).expect("writable");
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| listener.accept().map(drop));
            listener.close();
            assert!(waiting.join().expect("no panic").is_err());
        });
    }

    #[test]
    fn pt_05_longest_path_is_the_kernels_limit() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let fill = |len: usize| dir.path().join("x".repeat(len - dir.path().as_os_str().len() - 1));
        assert!(Listener::bind(&fill(LONGEST_PATH)).is_ok());
        assert!(Listener::bind(&fill(LONGEST_PATH + 1)).is_err());
    }
}
