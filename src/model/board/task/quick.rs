//! A fast path that parses a task directly from bytes, without an intermediate tree of values, so
//! that a board of 10,000 files loads quickly. It handles only the plain form; [`Task::read`]
//! handles every other file.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;

use super::{Extra, Task, state_of};
use crate::id::TaskId;
use crate::wire::Object;

#[derive(Deserialize)]
struct Plain {
    #[serde(default)]
    subject: String,
    #[serde(default)]
    description: String,
    #[serde(default, rename = "activeForm")]
    active_form: Option<String>,
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    blocks: Vec<String>,
    #[serde(default, rename = "blockedBy")]
    blocked_by: Vec<String>,
    #[serde(default)]
    owner: Option<String>,
    #[serde(default)]
    metadata: Metadata,
}

/// Deserialized by hand, because serde's `flatten` does not preserve the spelling of numbers.
#[derive(Default)]
struct Metadata {
    ours: Extra,
    others: Object,
}

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Metadata, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Metadata;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Metadata, M::Error> {
                let mut found = Metadata::default();
                while let Some(key) = map.next_key::<String>()? {
                    if key == "phalanx" {
                        found.ours = map.next_value()?;
                    } else {
                        let value: Value = map.next_value()?;
                        found.others.insert(key, value);
                    }
                }
                Ok(found)
            }
        }
        from.deserialize_map(Members)
    }
}

impl Task {
    /// Parses a plain task file; `None` if the file is truncated or unusual in any way.
    pub fn quick(id: TaskId, bytes: &[u8]) -> Option<Task> {
        // serde also accepts an array for a struct, field by field.
        if bytes.iter().find(|b| !b.is_ascii_whitespace()) != Some(&b'{') {
            return None;
        }
        let plain: Plain = serde_json::from_slice(bytes).ok()?;
        let extra = plain.metadata.ours;
        Some(Task {
            id,
            subject: plain.subject,
            description: plain.description,
            active_form: plain.active_form,
            state: state_of(plain.status.as_deref(), extra.state),
            blocks: ids(&plain.blocks),
            blocked_by: ids(&plain.blocked_by),
            owner: plain.owner.filter(|o| !o.is_empty()),
            extra,
            metadata: plain.metadata.others,
        })
    }
}

fn ids(texts: &[String]) -> Vec<TaskId> {
    texts.iter().filter_map(|id| TaskId::parse(id).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fast path either agrees with [`Task::read`] or declines.
    #[test]
    fn fast_path_agrees_with_full_parser_or_declines() {
        let files = [
            (
                true,
                r#"{"id":"1","subject":"s","description":"d","status":"pending","blocks":[],"blockedBy":[]}"#,
            ),
            (
                true,
                r#"{"subject":"\u00e4\n","activeForm":null,"owner":"","zeta":{"n":1.50},"blocks":["7","x"]}"#,
            ),
            (
                true,
                r#"{"status":"completed","metadata":{"t":[1.50,123456789012345678901],"phalanx":{"state":"cancelled","newer":1,"priority":-2,"created_at":1795214628804,"outcome":{"exit_code":3,"elapsed_ms":5}},"u":null}}"#,
            ),
            (true, "{}"),
            (false, r#"{"subject":3,"metadata":null,"blocks":[5,"6"]}"#),
            (false, r#"{"metadata":{"phalanx":{"run":"not a list"},"k":1}}"#),
            (false, r#"{"subject":"a","subject":"b"}"#),
            (false, "[]"),
        ];
        for (is_plain, text) in files {
            let quick = Task::quick(TaskId(4), text.as_bytes());
            assert_eq!(quick.is_some(), is_plain, "{text}");
            let object: Object = serde_json::from_str(text).unwrap_or_default();
            if let Some(task) = quick {
                assert_eq!(task, Task::read(TaskId(4), &object), "{text}");
            }
        }
    }
}
