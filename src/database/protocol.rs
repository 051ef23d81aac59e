//! The messages between the broker, which owns the connection of a host, and its clients.
//!
//! A message is its length as four bytes, big-endian, and JSON.

use std::io::{self, Read};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::error::DatabaseError;
use super::rows::{Actor, Interest, StoreChange};

/// Longest message. A message of another protocol usually has a larger number in place of the
/// length.
const LONGEST: u32 = 512 << 20;

/// An operation. The client picks the handles; they are unique within its connection.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Request {
    /// Returns the reply of the function.
    Call { function: String, arguments: Box<RawValue> },
    /// Returns true if the lock was acquired.
    Lock { handle: u64, actor: Actor, team: String, name: String, deadline_ms: u64 },
    /// Returns the number of the lease; null if another process holds it.
    TakeLease { handle: u64, actor: Actor, team: String },
    /// Returns null.
    Subscribe { handle: u64, team: String, interest: Interest },
    /// Releases a lock or a lease, or ends a subscription. Returns null.
    Release(u64),
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

/// A message of a client: a number for the answer, and the operation.
pub(super) type ClientMessage = (u64, Request);

/// A message of the broker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum BrokerMessage {
    Answer { id: u64, result: Result<Box<RawValue>, DatabaseError> },
    Push(Push),
}

/// Returns a message as it is sent.
pub(super) fn encode(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message)?;
    let length = u32::try_from(bytes.len() - 4).unwrap_or(u32::MAX);
    check_length(length)?;
    bytes[..4].copy_from_slice(&length.to_be_bytes());
    Ok(bytes)
}

/// Reads the next message.
pub(super) fn read_message<M: DeserializeOwned>(stream: &mut impl Read) -> io::Result<M> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = check_length(u32::from_be_bytes(length))?;
    // Grows with what arrives, so that a wrong length does not allocate memory.
    let mut bytes = Vec::new();
    stream.take(length).read_to_end(&mut bytes)?;
    // Cut JSON cannot be parsed, so the length is not compared.
    Ok(serde_json::from_slice(&bytes)?)
}

/// Returns the length of a message, unless it is too large.
pub(super) fn check_length(length: u32) -> io::Result<u64> {
    if length > LONGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the message is too long"));
    }
    Ok(length.into())
}

/// Parses bytes as messages of a client and of a broker, for fuzzing. Returns whether one was read.
///
/// # Panics
/// If a message that is encoded and read again differs.
pub fn parse_messages(bytes: &[u8]) -> bool {
    fn again<M: Serialize + DeserializeOwned>(mut bytes: &[u8]) -> bool {
        let Ok(message) = read_message::<M>(&mut bytes) else { return false };
        let sent = encode(&message).expect("a message that was read can be sent");
        let read: M = read_message(&mut sent.as_slice()).expect("a message that is sent is read");
        assert_eq!(encode(&read).expect("as before"), sent, "it reads as what it was");
        true
    }
    let from_client = again::<ClientMessage>(bytes);
    again::<BrokerMessage>(bytes) || from_client
}
