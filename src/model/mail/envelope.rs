//! One entry of a mailbox. `protocol` parses its text.

use serde_json::Value;

use crate::digest;
use crate::time::Timestamp;
use crate::wire::{self, Object};

/// Maximum size of a message's text in bytes. Larger content belongs in a file (MSG-04, PF-01).
pub const MAX_TEXT: usize = 1024 * 1024;

#[derive(Debug, Clone, PartialEq)]
pub struct Envelope {
    pub from: String,
    pub text: String,
    pub summary: Option<String>,
    /// ISO 8601, as written by the sender.
    pub timestamp: String,
    pub color: Option<String>,
    pub read: bool,
    /// The sender's id, or one derived from sender, time and text.
    pub msg_id: String,
    /// A phalanx extension: the reader's current turn is interrupted for this message.
    pub urgent: bool,
}

impl Envelope {
    /// Creates an unread message.
    pub fn new(from: &str, text: &str, msg_id: String, now: Timestamp) -> Envelope {
        Envelope {
            from: from.to_owned(),
            text: text.to_owned(),
            summary: None,
            timestamp: now.iso(),
            color: None,
            read: false,
            msg_id,
            urgent: false,
        }
    }

    pub fn with(self, summary: Option<&str>, color: Option<&str>) -> Envelope {
        Envelope { summary: summary.map(str::to_owned), color: color.map(str::to_owned), ..self }
    }

    /// Parses an entry of any release. An entry without `text` keeps its JSON as text, so that it
    /// is shown and not dropped.
    pub fn read(entry: &Value) -> Envelope {
        let none = Object::new();
        let object = entry.as_object().unwrap_or(&none);
        let from = wire::text(object, "from").unwrap_or_default();
        let timestamp = wire::text(object, "timestamp").unwrap_or_default();
        let text = wire::text(object, "text").unwrap_or_else(|| entry.to_string());
        let msg_id = wire::text(object, "msg_id").unwrap_or_else(|| {
            format!(
                "derived-{}",
                digest::hash(&[from.as_bytes(), timestamp.as_bytes(), text.as_bytes()])
            )
        });
        Envelope {
            summary: wire::text(object, "summary"),
            color: wire::text(object, "color"),
            read: wire::flag(object, "read").unwrap_or(false),
            from,
            text,
            timestamp,
            msg_id,
            urgent: wire::flag(object, "urgent").unwrap_or(false),
        }
    }

    /// Returns the entry with keys in the order that Claude Code 2.1.329 writes. Claude Code 2.1.34
    /// ignores keys that it does not know.
    pub fn to_entry(&self) -> Object {
        let mut entry = Object::new();
        wire::put(&mut entry, "from", self.from.as_str());
        wire::put(&mut entry, "text", self.text.as_str());
        wire::put_or_remove(&mut entry, "summary", self.summary.as_deref());
        wire::put(&mut entry, "timestamp", self.timestamp.as_str());
        wire::put_or_remove(&mut entry, "color", self.color.as_deref());
        wire::put(&mut entry, "read", self.read);
        wire::put(&mut entry, "msgV", 1);
        wire::put(&mut entry, "msg_id", self.msg_id.as_str());
        wire::put(&mut entry, "type", "message");
        if self.urgent {
            wire::put(&mut entry, "urgent", true);
        }
        entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn entry_round_trips_in_wire_key_order() {
        let sent = Envelope::new("alice", "hello", "id-1".to_owned(), Timestamp(5))
            .with(Some("hi"), Some("blue"));
        let entry = sent.to_entry();
        let keys: Vec<&str> = entry.keys().map(String::as_str).collect();
        assert_eq!(
            keys,
            ["from", "text", "summary", "timestamp", "color", "read", "msgV", "msg_id", "type"]
        );
        assert_eq!(Envelope::read(&Value::Object(entry)), sent);
        let urgent = Envelope { urgent: true, ..sent };
        assert_eq!(Envelope::read(&Value::Object(urgent.to_entry())), urgent);
    }

    #[test]
    fn entry_without_id_gets_a_stable_one() {
        let entry =
            |text: &str| json!({"from": "a", "text": text, "timestamp": "t", "read": false});
        let first = Envelope::read(&entry("x")).msg_id;
        assert_eq!(first, Envelope::read(&entry("x")).msg_id);
        assert_ne!(first, Envelope::read(&entry("y")).msg_id);
    }

    #[test]
    fn msg_07_malformed_entry_is_shown_not_dropped() {
        assert_eq!(Envelope::read(&json!(17)).text, "17");
        assert_eq!(Envelope::read(&json!({"from": 3})).text, r#"{"from":3}"#);
    }
}
