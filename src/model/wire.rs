//! Access to JSON objects that other programs also write: every field is optional, and changes
//! preserve unknown fields and the order of keys.

use serde_json::{Map, Value};

/// A JSON object as stored on disk.
pub type Object = Map<String, Value>;

/// Returns the string under `key`; `None` if missing or of another type.
pub fn text(object: &Object, key: &str) -> Option<String> {
    object.get(key).and_then(Value::as_str).map(str::to_owned)
}

/// Returns the non-negative integer under `key`; `None` if missing or of another type.
pub fn number(object: &Object, key: &str) -> Option<u64> {
    object.get(key).and_then(Value::as_u64)
}

/// Returns the boolean under `key`; `None` if missing or of another type.
pub fn flag(object: &Object, key: &str) -> Option<bool> {
    object.get(key).and_then(Value::as_bool)
}

/// Returns the strings of the array under `key`, skipping elements of other types.
pub fn texts(object: &Object, key: &str) -> Vec<String> {
    let list = object.get(key).and_then(Value::as_array);
    list.map(|l| l.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        .unwrap_or_default()
}

/// Returns the object under `key`; `None` if missing or of another type.
pub fn object<'a>(object: &'a Object, key: &str) -> Option<&'a Object> {
    object.get(key).and_then(Value::as_object)
}

/// Sets `key`, keeping its position; a new key goes to the end.
pub fn put(object: &mut Object, key: &str, value: impl Into<Value>) {
    object.insert(key.to_owned(), value.into());
}

/// Sets `key`, or removes it if there is no value. The other keys keep their order.
pub(crate) fn put_or_remove(object: &mut Object, key: &str, value: Option<impl Into<Value>>) {
    match value {
        Some(value) => put(object, key, value),
        None => drop(object.shift_remove(key)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_keep_key_order_and_unknown_fields() {
        let mut o: Object =
            serde_json::from_str(r#"{"a":1,"x":{"big":12345678901234567890123},"b":2,"c":3}"#)
                .expect("json");
        put(&mut o, "a", "new");
        put_or_remove(&mut o, "b", None::<Value>);
        assert_eq!(
            serde_json::to_string(&o).expect("json"),
            r#"{"a":"new","x":{"big":12345678901234567890123},"c":3}"#
        );
    }
}
