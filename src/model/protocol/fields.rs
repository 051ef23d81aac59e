//! Reads and writes the fields of a protocol object, including alternative spellings and the order
//! of keys.
//!
//! A **required** field that is missing, `null`, empty or of another type makes the message
//! malformed. An **optional** field of another type counts as missing: fields change between
//! releases, and a new form of a remark must not make a whole shutdown ineffective. The few
//! optional fields that would *widen* permissions if ignored are parsed strictly by the messages
//! that have them.

use serde_json::{Map, Value};

/// The reason why an object with a known `type` is malformed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Problem {
    #[error("`{0}` is missing")]
    Missing(&'static str),
    #[error("`{0}` is empty")]
    Empty(&'static str),
    #[error("`{field}` is not {expected}")]
    WrongType { field: &'static str, expected: &'static str },
    #[error("`{field}` is an unknown word: {word:?}")]
    UnknownWord { field: &'static str, word: String },
}

/// The object being read. Each field is looked up by its observed spelling, then by alternatives;
/// the first that is present and not `null` counts.
pub(super) struct Fields<'a>(pub(super) &'a Map<String, Value>);

impl<'a> Fields<'a> {
    /// Returns the field, unless it is missing or `null`, which JavaScript writes for "nothing".
    pub(super) fn get(&self, names: &[&'static str]) -> Option<&'a Value> {
        names.iter().filter_map(|name| self.0.get(*name)).find(|value| !value.is_null())
    }

    /// Returns a required, non-empty string.
    pub(super) fn required_text(&self, names: &[&'static str]) -> Result<String, Problem> {
        let value = self.required(names)?;
        let field = first(names);
        let text = value.as_str().ok_or(Problem::WrongType { field, expected: "a string" })?;
        if text.is_empty() { Err(Problem::Empty(field)) } else { Ok(text.to_owned()) }
    }

    /// Returns a required boolean. Other types such as `"true"` or `1` are refused, since the field
    /// is a decision.
    pub(super) fn required_bool(&self, names: &[&'static str]) -> Result<bool, Problem> {
        let expected = "a boolean";
        self.required(names)?.as_bool().ok_or(Problem::WrongType { field: first(names), expected })
    }

    /// Returns a required object.
    pub(super) fn required_object(
        &self,
        names: &[&'static str],
    ) -> Result<Map<String, Value>, Problem> {
        let expected = "an object";
        let value = self.required(names)?;
        value.as_object().cloned().ok_or(Problem::WrongType { field: first(names), expected })
    }

    /// Returns an optional string.
    pub(super) fn text(&self, names: &[&'static str]) -> Option<String> {
        self.get(names)?.as_str().map(str::to_owned)
    }

    /// Returns an optional array; empty if missing.
    pub(super) fn list(&self, names: &[&'static str]) -> Vec<Value> {
        self.get(names).and_then(Value::as_array).cloned().unwrap_or_default()
    }

    fn required(&self, names: &[&'static str]) -> Result<&'a Value, Problem> {
        self.get(names).ok_or(Problem::Missing(first(names)))
    }
}

/// Returns the observed spelling, which errors refer to.
fn first(names: &[&'static str]) -> &'static str {
    names.first().copied().unwrap_or_default()
}

/// The object being written. Keys keep the order in which they are added.
pub(super) struct Writer(Map<String, Value>);

impl Writer {
    /// Creates an object that starts with its `type`.
    pub(super) fn new(kind: &str) -> Writer {
        let mut map = Map::new();
        map.insert("type".to_owned(), Value::from(kind));
        Writer(map)
    }

    pub(super) fn put(mut self, name: &str, value: impl Into<Value>) -> Writer {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    /// Adds a field unless there is no value, as JavaScript omits `undefined`.
    pub(super) fn put_some(self, name: &str, value: Option<impl Into<Value>>) -> Writer {
        match value {
            Some(value) => self.put(name, value),
            None => self,
        }
    }

    pub(super) fn done(self) -> Map<String, Value> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(text: &str) -> Map<String, Value> {
        serde_json::from_str(text).expect("test input is an object")
    }

    #[test]
    fn null_counts_as_missing_and_the_next_spelling_is_tried() {
        let map = object(r#"{"requestId": null, "request_id": "perm-1"}"#);
        let names = ["requestId", "request_id"];
        assert_eq!(Fields(&map).required_text(&names), Ok("perm-1".to_owned()));
    }

    #[test]
    fn invalid_required_field_is_explained() {
        let map = object(r#"{"empty": "", "number": 3, "yes": "true"}"#);
        let fields = Fields(&map);
        let said = |problem: Problem| problem.to_string();
        assert_eq!(
            fields.required_text(&["absent"]).map_err(said),
            Err("`absent` is missing".to_owned())
        );
        assert_eq!(
            fields.required_text(&["empty"]).map_err(said),
            Err("`empty` is empty".to_owned())
        );
        assert_eq!(
            fields.required_text(&["number"]).map_err(said),
            Err("`number` is not a string".to_owned())
        );
        assert_eq!(
            fields.required_bool(&["yes"]).map_err(said),
            Err("`yes` is not a boolean".to_owned())
        );
    }

    #[test]
    fn optional_field_of_another_type_counts_as_missing() {
        let map = object(r#"{"reason": 5, "list": "x"}"#);
        assert_eq!(Fields(&map).text(&["reason"]), None);
        assert_eq!(Fields(&map).list(&["list"]), Vec::<Value>::new());
    }
}
