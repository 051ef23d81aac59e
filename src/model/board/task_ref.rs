//! A task as a person or a program names it: by its id, or by the key that its file or manifest
//! gives it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, de};

use crate::id::TaskId;
use crate::text;
use crate::value::inline_schema;

/// Names one task. [`Board::find`](crate::board::Board::find) returns the id of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskRef {
    Id(TaskId),
    /// See [`Extra::key`](crate::board::task::Extra::key). Not checked: that of a manifest may be
    /// any text.
    Key(String),
}

impl TaskRef {
    /// Parses an id, with or without the `#` that output puts before it. Any text that is not a
    /// number is a key.
    ///
    /// # Errors
    /// A message for an empty text, and for a number outside the range of ids.
    pub fn parse(given: &str) -> Result<TaskRef, String> {
        if given.is_empty() {
            return Err("a task is named by its id or its key".to_owned());
        }
        let number = given.strip_prefix('#').unwrap_or(given);
        if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) {
            return TaskId::parse(number).map(TaskRef::Id).map_err(|e| e.to_string());
        }
        Ok(TaskRef::Key(given.to_owned()))
    }
}

impl FromStr for TaskRef {
    type Err = String;

    fn from_str(given: &str) -> Result<TaskRef, String> {
        TaskRef::parse(given)
    }
}

impl fmt::Display for TaskRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TaskRef::Id(id) => id.fmt(f),
            TaskRef::Key(key) => text::line(key).fmt(f),
        }
    }
}

impl<'de> Deserialize<'de> for TaskRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

inline_schema!(TaskRef, { "type": "string" });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_is_an_id_and_any_other_text_a_key() {
        for (given, id) in [("3", 3), ("#3", 3), ("9007199254740991", TaskId::MAX.0)] {
            assert_eq!(TaskRef::parse(given), Ok(TaskRef::Id(TaskId(id))), "{given}");
        }
        for key in ["01-01/T2", "fmt", "#fmt", "#", "a b", "1.0", "-1", "\u{1b}"] {
            assert_eq!(TaskRef::parse(key), Ok(TaskRef::Key(key.to_owned())), "{key}");
        }
        for bad in ["", "0", "01", "#0", "9007199254740992"] {
            assert!(TaskRef::parse(bad).is_err(), "{bad}");
        }
    }
}
