//! Appends an entry to a mailbox by inserting its text before the closing bracket of the array, so
//! that the entries of other programs keep their bytes.

use serde::de::{Error, IgnoredAny};

use crate::error::StoreError;
use crate::files::document::{self, CONFLICT_TRIES, HeldGate, MAX_FILE, ParsedFile, PeerExclusion};
use crate::mail::mailbox::{Mailbox, check_length};
use model::mail::envelope::Envelope;
use model::wire::Object;
use sys::failpoint;
use sys::fs::{self, Sync};

impl Mailbox<'_> {
    /// Appends a message if its owner is on the roster at that moment, so that no mailbox is
    /// created for an unknown name (MSG-05).
    ///
    /// The bytes are synced before the rename, or a power cut could leave an empty mailbox. The
    /// directory is not synced: after a power cut the mailbox may be the one before this message.
    ///
    /// # Errors
    /// [`StoreError::NoSuchMember`] if the owner is not on the roster, even if the lock cannot be
    /// created, as in a deleted team; [`StoreError::MessageTooLong`] if the text exceeds
    /// [`MAX_TEXT`](model::mail::envelope::MAX_TEXT); [`StoreError::BoxFull`] if the file would
    /// exceed [`MAX_FILE`]; [`StoreError::Corrupt`] if the file is not a JSON array;
    /// [`StoreError::Contended`] if another program rewrites it during every attempt.
    pub fn append(&self, envelope: &Envelope) -> Result<(), StoreError> {
        check_length(envelope)?;
        if let Some(shared) = self.shared() {
            return self.append_shared(&shared, std::slice::from_ref(envelope), &[]);
        }
        let place = &self.place();
        let held = HeldGate::take(place).or_else(|e| self.on_roster().and(Err(e)))?;
        self.on_roster()?;
        self.make_dir()?;
        let text = entry_text(&envelope.to_entry());
        for nth in 0..CONFLICT_TRIES {
            let early = held.exclude_peers_early(place, PeerExclusion::WhilePublishing, nth)?;
            let (before, mut bytes) = match document::read_parsed(place, check_json)? {
                None => (None, b"[]".to_vec()),
                Some(ParsedFile { file, .. }) if is_array(&file.bytes) => {
                    (Some(file.version), file.bytes)
                }
                Some(_) => {
                    return Err(document::quarantine(place, "it is not an array".to_owned()));
                }
            };
            splice(&mut bytes, &text);
            if bytes.len() as u64 > MAX_FILE {
                return Err(StoreError::BoxFull { owner: self.owner.clone(), limit: MAX_FILE });
            }
            // The version is older than the content that was read, so a write in between is
            // detected.
            let unchanged = || fs::version(&place.path).is_ok_and(|now| now == before);
            if document::publish(place, (&held, early), &bytes, Sync::Bytes, unchanged)? {
                failpoint::hit("unlock.before");
                return Ok(());
            }
        }
        Err(StoreError::Contended { path: place.path.clone(), tries: CONFLICT_TRIES })
    }
}

/// Checks that the bytes are JSON. Building the values would take most of the time of an append
/// (measured: 5 ms for 1000 entries against 0.7 ms).
fn check_json(bytes: &[u8]) -> serde_json::Result<()> {
    // serde_json does not check the encoding of strings that it skips.
    let text = str::from_utf8(bytes).map_err(serde_json::Error::custom)?;
    serde_json::from_str::<IgnoredAny>(text).map(drop)
}

/// Returns true if the bytes, which must be JSON, are the text of an array.
fn is_array(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().starts_with(b"[")
}

/// Serializes the entry with the indentation that Claude Code uses inside the array.
fn entry_text(entry: &Object) -> String {
    let text = serde_json::to_string_pretty(entry).expect("an entry has string keys only");
    // A JSON string contains no raw line break, so each one here is between tokens.
    text.replace('\n', "\n  ")
}

/// Inserts the entry before the closing bracket; `bytes` must be the text of an array.
fn splice(bytes: &mut Vec<u8>, entry: &str) {
    bytes.truncate(bytes.trim_ascii_end().len());
    // The closing bracket.
    bytes.pop();
    bytes.truncate(bytes.trim_ascii_end().len());
    let first = bytes.ends_with(b"[");
    bytes.extend_from_slice(if first { b"\n  " } else { b",\n  " });
    bytes.extend_from_slice(entry.as_bytes());
    bytes.extend_from_slice(b"\n]");
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn object(value: Value) -> Object {
        value.as_object().expect("an object").clone()
    }

    #[test]
    fn spliced_array_equals_one_serialized_as_a_whole() {
        let (mut bytes, mut whole) = (b"[]".to_vec(), Vec::new());
        for n in 0..3 {
            let entry = object(json!({"from": "a", "text": "x\ny]", "deep": {"list": [n, []]}}));
            splice(&mut bytes, &entry_text(&entry));
            whole.push(Value::Object(entry));
            assert_eq!(bytes, serde_json::to_vec_pretty(&whole).expect("json"));
        }
    }

    #[test]
    fn splice_accepts_arrays_with_any_spacing() {
        for (old, count) in [(" [ ] \n", 1), ("[{}\n]\n\n", 2), ("[1,2]", 3)] {
            let mut bytes = old.as_bytes().to_vec();
            assert!(is_array(&bytes));
            splice(&mut bytes, &entry_text(&object(json!({"a": 1}))));
            assert_eq!(
                serde_json::from_slice::<Vec<Value>>(&bytes).expect("json").len(),
                count,
                "{old:?}"
            );
        }
    }

    #[test]
    fn check_accepts_the_json_that_readers_accept() {
        let cases = [
            br#"[{"a":1.5e3,"b":[null,true,"\u00e9"],"c":-12345678901234567890123}]"#.to_vec(),
            b"[\"\xff\"]".to_vec(),
            b"[1,]".to_vec(),
            b"[]x".to_vec(),
            b"{}".to_vec(),
        ];
        for case in cases {
            let as_value = serde_json::from_slice::<Value>(&case).is_ok();
            let text = String::from_utf8_lossy(&case);
            assert_eq!(check_json(&case).is_ok(), as_value, "{text}");
        }
    }
}
