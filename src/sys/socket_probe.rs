//! Probes whether a process listens at a Unix socket or a port, without sending anything.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
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

/// Connects to a port of the loopback interface, of IPv4 or IPv6, and closes the connection.
///
/// # Errors
/// That of IPv4: usually [`io::ErrorKind::ConnectionRefused`].
pub fn connect_to_port(port: u16) -> io::Result<()> {
    let connect = |address: SocketAddr| TcpStream::connect_timeout(&address, TIMEOUT).map(drop);
    let refused = match connect((Ipv4Addr::LOCALHOST, port).into()) {
        Ok(()) => return Ok(()),
        Err(error) => error,
    };
    connect((Ipv6Addr::LOCALHOST, port).into()).map_err(|_| refused)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

    #[test]
    fn port_of_either_loopback_address_is_found() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let port = listener.local_addr().expect("bound").port();
            connect_to_port(port).expect("it listens");
            drop(listener);
            let refused = connect_to_port(port).expect_err("it is closed");
            assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused, "{address}");
        }
    }

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
