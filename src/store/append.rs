//! A message at the end of a mailbox without taking the mailbox apart: its text goes before the closing bracket of what
//! is there. What is there is looked through once, and then known by its identity (protocol.md, sections 2 and 4).

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use super::document::{self, CONFLICT_TRIES, Held, MAX_FILE, Others, Place};
use super::error::StoreError;
use super::lenient;
use super::turns;
use crate::model::wire::Object;
use crate::sys::failpoint;
use crate::sys::fs::{self, Sync};

/// Puts `entry` at the end of the array in the file, if `allowed` says so under the lock. False: the file would grow
/// beyond [`MAX_FILE`], and is as it was.
///
/// The bytes are on the disk before they are published, or a power cut could leave an empty mailbox. The directory's
/// own fsync is left out: after a power cut the mailbox may be the one before this message.
pub(super) fn append(
    place: &Place,
    entry: &Object,
    allowed: impl Fn() -> Result<(), StoreError>,
) -> Result<bool, StoreError> {
    // Dropped after the lock: see `fs::Open`.
    let mut _old = None;
    // Where there is no team any more, that is the answer, not the lock that cannot be made.
    let held = Held::take(place).or_else(|e| allowed().and(Err(e)))?;
    allowed()?;
    let text = entry_text(entry);
    for nth in 0..CONFLICT_TRIES {
        let early = held.keep_out_early(place, Others::OutBriefly, nth)?;
        let found = whole(place)?;
        let before = found.as_ref().map(|file| file.identity);
        let (mut bytes, open) =
            found.map_or((b"[]".to_vec(), None), |file| (file.bytes, Some(file.open)));
        _old = open;
        splice(&mut bytes, &text);
        if bytes.len() as u64 > MAX_FILE {
            return Ok(false);
        }
        // By its identity, which is from before the reading: whoever else writes mailboxes makes them longer or shorter.
        let unchanged = || fs::identity(&place.path).is_ok_and(|now| now == before);
        if document::publish(place, (&held, early), &bytes, Sync::Bytes, unchanged)? {
            failpoint::hit("unlock.before");
            return Ok(true);
        }
    }
    Err(StoreError::Contended { path: place.path.clone(), tries: CONFLICT_TRIES })
}

/// What is in the file, proven to be an array that readers can read.
fn whole(place: &Place) -> Result<Option<fs::Contents>, StoreError> {
    let Some(file) = fs::read_identified(&place.path, MAX_FILE)? else { return Ok(None) };
    if is_array(&file.bytes) && turns::is_remembered(place, &file.identity) {
        return Ok(Some(file));
    }
    drop(file);
    let Some(found) = document::read_parsed(place, lenient::parse::<Sound>)? else {
        return Ok(None);
    };
    if !is_array(&found.file.bytes) {
        return Err(document::quarantine(place, "it is not an array".to_owned()));
    }
    Ok(Some(found.file))
}

/// Of bytes that are known to be JSON: whether they are an array.
fn is_array(bytes: &[u8]) -> bool {
    bytes.trim_ascii().starts_with(b"[") && bytes.trim_ascii().ends_with(b"]")
}

/// The entry as it stands in the array, indented like everything that Claude Code writes.
fn entry_text(entry: &Object) -> String {
    let text = serde_json::to_string_pretty(entry).expect("an entry has string keys only");
    // No string in JSON holds a raw line break, so each one here is between tokens.
    text.replace('\n', "\n  ")
}

/// `bytes` must be an array.
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

/// Any JSON that `serde_json::Value` would take, within the same depth and with the same care for UTF-8, but kept
/// nowhere.
struct Sound;

impl<'de> Deserialize<'de> for Sound {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Sound, D::Error> {
        deserializer.deserialize_any(Sound)
    }
}

impl<'de> Visitor<'de> for Sound {
    type Value = Sound;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Sound, E> {
        Ok(Sound)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Sound, E> {
        Ok(Sound)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Sound, E> {
        Ok(Sound)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Sound, E> {
        Ok(Sound)
    }

    fn visit_str<E>(self, _: &str) -> Result<Sound, E> {
        Ok(Sound)
    }

    fn visit_unit<E>(self) -> Result<Sound, E> {
        Ok(Sound)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Sound, A::Error> {
        while items.next_element::<Sound>()?.is_some() {}
        Ok(Sound)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Sound, A::Error> {
        while entries.next_entry::<Sound, Sound>()?.is_some() {}
        Ok(Sound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn object(value: Value) -> Object {
        value.as_object().expect("an object").clone()
    }

    #[test]
    fn an_array_grows_as_if_it_were_written_anew() {
        let (mut bytes, mut whole) = (b"[]".to_vec(), Vec::new());
        for n in 0..3 {
            let entry = object(json!({"from": "a", "text": "x\ny]", "deep": {"list": [n, []]}}));
            splice(&mut bytes, &entry_text(&entry));
            whole.push(Value::Object(entry));
            assert_eq!(bytes, serde_json::to_vec_pretty(&whole).expect("json"));
        }
    }

    #[test]
    fn foreign_spacing_does_not_matter() {
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
    fn sound_is_what_a_value_takes() {
        let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n)).into_bytes();
        let cases = [
            br#"[{"a":1.5e3,"b":[null,true,"\u00e9"],"c":-12345678901234567890123}]"#.to_vec(),
            b"[\"\xff\"]".to_vec(),
            b"[1,]".to_vec(),
            b"[]x".to_vec(),
            deep(100),
            deep(200),
        ];
        for case in cases {
            let as_value = serde_json::from_slice::<Value>(&case).is_ok();
            let text = String::from_utf8_lossy(&case);
            assert_eq!(serde_json::from_slice::<Sound>(&case).is_ok(), as_value, "{text}");
        }
        assert!(serde_json::from_slice::<Sound>(&deep(100_000)).is_err());
    }
}
