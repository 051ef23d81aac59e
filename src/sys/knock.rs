//! Whether anybody listens at a unix socket. Says nothing to whoever does, and refuses to know what it is for.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// A listener takes a connection at once, unless too many others wait already.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// What came of knocking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Knock {
    /// Somebody listens.
    Answered,
    /// There is nothing at the path.
    Missing,
    /// A socket that nobody listens at any more.
    Refused,
    /// We may not connect: the mode, another user's directory, or a sandbox.
    Denied,
    /// It cannot be told; the system's words, or that no answer came.
    Unknown(String),
}

/// Connects, and lets go at once.
pub(crate) fn knock(path: &Path) -> Knock {
    let (sender, answer) = channel();
    let path = path.to_owned();
    // On a thread: connecting to a socket whose queue is full waits without end.
    thread::spawn(move || sender.send(UnixStream::connect(path).map(drop)));
    match answer.recv_timeout(ANSWER_WITHIN) {
        Ok(Ok(())) => Knock::Answered,
        Ok(Err(error)) => match error.kind() {
            io::ErrorKind::NotFound => Knock::Missing,
            io::ErrorKind::ConnectionRefused => Knock::Refused,
            io::ErrorKind::PermissionDenied => Knock::Denied,
            _ => Knock::Unknown(error.to_string()),
        },
        Err(_) => Knock::Unknown(format!("no answer within {} s", ANSWER_WITHIN.as_secs())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_socket_is_alive_dead_or_missing() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("socket");
        assert_eq!(knock(&path), Knock::Missing);
        let listener = UnixListener::bind(&path).expect("writable");
        assert_eq!(knock(&path), Knock::Answered);
        drop(listener);
        assert_eq!(knock(&path), Knock::Refused);
        let long = dir.path().join("x".repeat(200));
        assert!(matches!(knock(&long), Knock::Unknown(_)));
    }
}
