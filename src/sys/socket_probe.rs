//! Probes whether a process listens at a Unix socket, without sending anything.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// A listener accepts at once, unless its queue is full.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The state of a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SocketState {
    Listening,
    Missing,
    /// A socket without a listener.
    Refused,
    /// Connecting is not permitted: the mode, another user's directory, or a sandbox.
    Denied,
    /// The error, or that no answer came in time.
    Unknown(String),
}

/// Connects to the socket and closes the connection.
pub fn probe(path: &Path) -> SocketState {
    let (sender, answer) = channel();
    let path = path.to_owned();
    // On a thread: connecting to a socket whose queue is full blocks without a limit.
    thread::spawn(move || sender.send(UnixStream::connect(path).map(drop)));
    match answer.recv_timeout(TIMEOUT) {
        Ok(Ok(())) => SocketState::Listening,
        Ok(Err(error)) => match error.kind() {
            io::ErrorKind::NotFound => SocketState::Missing,
            io::ErrorKind::ConnectionRefused => SocketState::Refused,
            io::ErrorKind::PermissionDenied => SocketState::Denied,
            _ => SocketState::Unknown(error.to_string()),
        },
        Err(_) => SocketState::Unknown(format!("no answer within {} s", TIMEOUT.as_secs())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn socket_is_listening_refused_or_missing() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("socket");
        assert_eq!(probe(&path), SocketState::Missing);
        let listener = UnixListener::bind(&path).expect("writable");
        assert_eq!(probe(&path), SocketState::Listening);
        drop(listener);
        assert_eq!(probe(&path), SocketState::Refused);
        let long = dir.path().join("x".repeat(200));
        assert!(matches!(probe(&long), SocketState::Unknown(_)));
    }
}
