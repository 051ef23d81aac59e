//! Reading and changing JSON objects that others write too: every field is optional on read, and a change keeps
//! unknown fields and the order of keys. Knows no particular file.

use serde_json::{Map, Value};

/// A JSON object as it stands on disk.
pub(crate) type Object = Map<String, Value>;

/// The string under `key`, if it is one.
pub(crate) fn text(object: &Object, key: &str) -> Option<String> {
    object.get(key).and_then(Value::as_str).map(str::to_owned)
}

/// The non-negative whole number under `key`, if it is one.
pub(crate) fn number(object: &Object, key: &str) -> Option<u64> {
    object.get(key).and_then(Value::as_u64)
}

/// The truth value under `key`, if it is one.
pub(crate) fn flag(object: &Object, key: &str) -> Option<bool> {
    object.get(key).and_then(Value::as_bool)
}

/// The strings of the array under `key`; what is not a string is passed over.
pub(crate) fn texts(object: &Object, key: &str) -> Vec<String> {
    let list = object.get(key).and_then(Value::as_array);
    list.map(|l| l.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        .unwrap_or_default()
}

/// The object under `key`, if it is one.
pub(crate) fn object<'a>(object: &'a Object, key: &str) -> Option<&'a Object> {
    object.get(key).and_then(Value::as_object)
}

/// Sets `key` in its place (at the end if it is new).
pub(crate) fn put(object: &mut Object, key: &str, value: impl Into<Value>) {
    object.insert(key.to_owned(), value.into());
}

/// Sets `key`, or takes it out where there is no value; the other keys keep their order.
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
    fn changes_keep_place_and_strangers() {
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
