//! The messages between a client and the part that owns the connection, which a broker runs for all
//! processes of a host.
//!
//! On a socket, a message is its length as four bytes, big-endian, and JSON.

use std::io::{self, Read};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::error::DatabaseError;
use super::rows::{Actor, Interest, StoreChange};

/// Longest message. A message of another protocol usually has a larger number in place of the
/// length.
pub(super) const LONGEST: u32 = 512 << 20;

/// An operation. The client picks the handles; they are unique within its connection.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Request {
    Call {
        function: String,
        arguments: Box<RawValue>,
    },
    Lock {
        handle: u64,
        actor: Actor,
        team: String,
        name: String,
        deadline_ms: u64,
    },
    TakeLease {
        handle: u64,
        actor: Actor,
        team: String,
    },
    Subscribe {
        handle: u64,
        team: String,
        interest: Interest,
    },
    /// Releases a lock or a lease, or ends a subscription.
    Release(u64),
}

impl Request {
    /// Returns the handle that the operation creates.
    pub(super) fn handle(&self) -> Option<u64> {
        match self {
            Request::Lock { handle, .. }
            | Request::TakeLease { handle, .. }
            | Request::Subscribe { handle, .. } => Some(*handle),
            Request::Call { .. } | Request::Release(_) => None,
        }
    }
}

/// The result of an operation.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum HubAnswer {
    Reply(Box<RawValue>),
    /// Whether the lock was acquired.
    Locked(bool),
    /// The number of the lease; `None` if another process holds it.
    Lease(Option<i64>),
    Done,
}

/// A message without a request.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Push {
    /// A subscription has news.
    Changed { handle: u64, change: StoreChange },
    /// A lock or a lease is no longer held.
    Lost(u64),
    /// The clock of the server minus the clock of this machine, in milliseconds.
    Clock { offset_ms: i64 },
}

/// A message of a client.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ClientMessage {
    pub(super) id: u64,
    pub(super) request: Request,
}

/// A message of the broker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum BrokerMessage {
    Answer { id: u64, result: Result<HubAnswer, DatabaseError> },
    Push(Push),
}

/// Returns a message as it is sent.
pub(super) fn encode(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message)?;
    let length = u32::try_from(bytes.len() - 4).ok().filter(|length| *length <= LONGEST);
    let length = length.ok_or_else(|| invalid("the message is too long"))?;
    bytes[..4].copy_from_slice(&length.to_be_bytes());
    Ok(bytes)
}

/// Reads the next message; `None` at the end.
pub(super) fn read_message<M: DeserializeOwned>(stream: &mut impl Read) -> io::Result<Option<M>> {
    let mut length = [0; 4];
    match stream.read_exact(&mut length) {
        Ok(()) => (),
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(e) => return Err(e),
    }
    let length = u32::from_be_bytes(length);
    if length > LONGEST {
        return Err(invalid("the message is too long"));
    }
    // Grows with what arrives, so that a wrong length does not allocate memory.
    let mut bytes = Vec::new();
    stream.take(length.into()).read_to_end(&mut bytes)?;
    if bytes.len() < length as usize {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(serde_json::from_slice(&bytes)?))
}

/// Parses bytes as messages of a client and of a broker, for fuzzing. Returns whether one was read.
///
/// # Panics
/// If a message that is encoded and read again differs.
#[cfg(feature = "testing")]
pub(crate) fn parse_messages(bytes: &[u8]) -> bool {
    fn again<M: Serialize + DeserializeOwned>(mut bytes: &[u8]) -> bool {
        let Ok(Some(message)) = read_message::<M>(&mut bytes) else { return false };
        let sent = encode(&message).expect("a message that was read can be sent");
        let read: M = read_message(&mut sent.as_slice())
            .expect("a message that is sent can be read")
            .expect("a message");
        assert_eq!(encode(&read).expect("as before"), sent, "it reads as what it was");
        true
    }
    let from_client = again::<ClientMessage>(bytes);
    again::<BrokerMessage>(bytes) || from_client
}

pub(super) fn invalid(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}
