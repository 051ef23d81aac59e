//! Readers of the fields of protocol messages, for serde's `deserialize_with`.
//!
//! A **required** field that is missing, `null`, empty or of another type makes the message
//! malformed. An **optional** field of another type counts as missing: fields change between
//! releases, and a new form of a remark must not make a whole shutdown ineffective. The few
//! optional fields that would *widen* permissions if ignored are parsed strictly by the messages
//! that have them.

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error};
use serde_json::Value;

use crate::wire::Object;

/// Fields that releases spell differently, in snake and in camel case.
const SPELLINGS: [[&str; 2]; 3] = [
    ["request_id", "requestId"],
    ["updated_input", "updatedInput"],
    ["permission_updates", "permissionUpdates"],
];

/// The case in which a message is written. The other case is read as well, as an alias.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyCase {
    Snake,
    Camel,
}

/// Leaves one value for each field: removes `null`, which JavaScript writes for "nothing", and the
/// alias of a field that also has its written spelling.
pub(super) fn normalize(object: &mut Object, case: KeyCase) {
    object.retain(|_, value| !value.is_null());
    for [snake, camel] in SPELLINGS {
        let (written, alias) = match case {
            KeyCase::Snake => (snake, camel),
            KeyCase::Camel => (camel, snake),
        };
        if object.contains_key(written) {
            object.shift_remove(alias);
        }
    }
}

/// Reads a message from its normalized object. The error describes the defect: lower case, no full
/// stop.
pub(super) fn read<T: DeserializeOwned>(object: Object) -> Result<T, String> {
    serde_path_to_error::deserialize(Value::Object(object)).map_err(|e| {
        let (path, problem) = (e.path().to_string(), e.inner().to_string());
        match problem.strip_prefix("missing field ") {
            Some(field) => format!("{field} is missing"),
            None if path == "." => problem,
            None => format!("`{path}` {problem}"),
        }
    })
}

/// Reads a required, non-empty string.
pub(crate) fn text<'de, D: Deserializer<'de>>(field: D) -> Result<String, D::Error> {
    match Value::deserialize(field)? {
        Value::String(text) if text.is_empty() => Err(D::Error::custom("is empty")),
        Value::String(text) => Ok(text),
        _ => Err(D::Error::custom("is not a string")),
    }
}

/// Reads a required word of a known set.
pub(super) fn word<'de, D, T>(field: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let word = text(field)?;
    serde_json::from_value(Value::from(word.as_str()))
        .map_err(|_| D::Error::custom(format_args!("is an unknown word: {word:?}")))
}

/// Reads a required boolean. Other types such as `"true"` or `1` are refused, since the field is a
/// decision.
pub(super) fn boolean<'de, D: Deserializer<'de>>(field: D) -> Result<bool, D::Error> {
    let value = Value::deserialize(field)?;
    value.as_bool().ok_or_else(|| D::Error::custom("is not a boolean"))
}

/// Reads a required object.
pub(crate) fn object<'de, D: Deserializer<'de>>(field: D) -> Result<Object, D::Error> {
    match Value::deserialize(field)? {
        Value::Object(object) => Ok(object),
        _ => Err(D::Error::custom("is not an object")),
    }
}

/// Reads an optional field; `None` if it has another type.
pub(super) fn lenient<'de, D, T>(field: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    Ok(serde_json::from_value(Value::deserialize(field)?).ok())
}

/// Reads an optional array, skipping elements of other types; empty if it is no array.
pub(super) fn lenient_list<'de, D, T>(field: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let items = lenient::<D, Vec<Value>>(field)?.unwrap_or_default();
    Ok(items.into_iter().filter_map(|item| serde_json::from_value(item).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Sample {
        #[serde(rename = "requestId", alias = "request_id", deserialize_with = "text")]
        request_id: String,
        #[serde(deserialize_with = "boolean")]
        yes: bool,
        #[serde(default, deserialize_with = "lenient")]
        reason: Option<String>,
        #[serde(default, deserialize_with = "lenient_list")]
        list: Vec<String>,
    }

    fn sample(text: &str) -> Result<Sample, String> {
        let mut object = serde_json::from_str(text).expect("test input is an object");
        normalize(&mut object, KeyCase::Camel);
        read(object)
    }

    #[test]
    fn null_counts_as_missing_and_the_next_spelling_is_tried() {
        let found = sample(r#"{"requestId": null, "request_id": "perm-1", "yes": true}"#);
        assert_eq!(found.map(|sample| sample.request_id), Ok("perm-1".to_owned()));
        let both = sample(r#"{"request_id": "other", "requestId": "perm-1", "yes": true}"#);
        assert_eq!(both.map(|sample| sample.request_id), Ok("perm-1".to_owned()));
    }

    #[test]
    fn invalid_required_field_is_explained() {
        for (text, problem) in [
            (r#"{"yes": true}"#, "`requestId` is missing"),
            (r#"{"yes": true, "requestId": null}"#, "`requestId` is missing"),
            (r#"{"requestId": ""}"#, "`requestId` is empty"),
            (r#"{"requestId": 3}"#, "`requestId` is not a string"),
            (r#"{"requestId": "a", "yes": "true"}"#, "`yes` is not a boolean"),
        ] {
            assert_eq!(sample(text), Err(problem.to_owned()));
        }
    }

    #[test]
    fn optional_field_of_another_type_counts_as_missing() {
        let found = sample(r#"{"requestId": "a", "yes": true, "reason": 5, "list": "x"}"#);
        let found = found.expect("a message");
        assert_eq!((found.reason, found.list), (None, Vec::new()));
    }
}
