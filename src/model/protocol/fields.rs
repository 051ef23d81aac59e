//! Reading and writing the fields of one protocol object: which spellings are taken, what counts as absent,
//! in which order keys are written. Knows no kind of message.
//!
//! A **required** field that is missing, `null`, empty or of another type makes the message malformed. An
//! **optional** field of another type counts as absent, since fields change between releases and a new form
//! of a remark must not take the effect of a whole shutdown away; the few optional fields that would *widen*
//! what is allowed if they were overlooked are read strictly by their owners.

use serde_json::{Map, Value};

/// Why an object with a known `type` is not a message of that kind.
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

/// The object being read. A field is asked for by its observed spelling, followed by those that are read as
/// well; the first one that is there and not `null` counts.
pub(super) struct Fields<'a>(pub(super) &'a Map<String, Value>);

impl<'a> Fields<'a> {
    /// The field, unless it is missing or `null` (what JavaScript writes for "nothing").
    pub(super) fn get(&self, names: &[&'static str]) -> Option<&'a Value> {
        names.iter().filter_map(|name| self.0.get(*name)).find(|value| !value.is_null())
    }

    /// A word without which the message means nothing.
    pub(super) fn required_text(&self, names: &[&'static str]) -> Result<String, Problem> {
        let value = self.required(names)?;
        let field = first(names);
        let text = value.as_str().ok_or(Problem::WrongType { field, expected: "a string" })?;
        if text.is_empty() { Err(Problem::Empty(field)) } else { Ok(text.to_owned()) }
    }

    /// A decision. Nothing but a JSON boolean is taken: `"true"` and `1` decide nothing.
    pub(super) fn required_bool(&self, names: &[&'static str]) -> Result<bool, Problem> {
        let expected = "a boolean";
        self.required(names)?.as_bool().ok_or(Problem::WrongType { field: first(names), expected })
    }

    /// An object that is the point of the message.
    pub(super) fn required_object(
        &self,
        names: &[&'static str],
    ) -> Result<Map<String, Value>, Problem> {
        let expected = "an object";
        let value = self.required(names)?;
        value.as_object().cloned().ok_or(Problem::WrongType { field: first(names), expected })
    }

    /// A remark, or nothing.
    pub(super) fn text(&self, names: &[&'static str]) -> Option<String> {
        self.get(names)?.as_str().map(str::to_owned)
    }

    /// A list of anything; empty when it is not there.
    pub(super) fn list(&self, names: &[&'static str]) -> Vec<Value> {
        self.get(names).and_then(Value::as_array).cloned().unwrap_or_default()
    }

    fn required(&self, names: &[&'static str]) -> Result<&'a Value, Problem> {
        self.get(names).ok_or(Problem::Missing(first(names)))
    }
}

/// The observed spelling, the one that problems name.
fn first(names: &[&'static str]) -> &'static str {
    names.first().copied().unwrap_or_default()
}

/// The object being written: keys stand in the order in which they are put.
pub(super) struct Writer(Map<String, Value>);

impl Writer {
    /// An object that starts with its `type`.
    pub(super) fn new(kind: &str) -> Writer {
        let mut map = Map::new();
        map.insert("type".to_owned(), Value::from(kind));
        Writer(map)
    }

    /// A field that is always written.
    pub(super) fn put(mut self, name: &str, value: impl Into<Value>) -> Writer {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    /// A field that is left out when there is nothing to say, as JavaScript leaves out `undefined`.
    pub(super) fn put_some(self, name: &str, value: Option<impl Into<Value>>) -> Writer {
        match value {
            Some(value) => self.put(name, value),
            None => self,
        }
    }

    /// The object.
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
    fn null_counts_as_absent_and_the_next_spelling_is_tried() {
        let map = object(r#"{"requestId": null, "request_id": "perm-1"}"#);
        let names = ["requestId", "request_id"];
        assert_eq!(Fields(&map).required_text(&names), Ok("perm-1".to_owned()));
    }

    #[test]
    fn a_required_field_says_what_is_wrong_with_it() {
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
    fn an_optional_field_of_another_type_counts_as_absent() {
        let map = object(r#"{"reason": 5, "list": "x"}"#);
        assert_eq!(Fields(&map).text(&["reason"]), None);
        assert_eq!(Fields(&map).list(&["list"]), Vec::<Value>::new());
    }
}
