//! The JSON Schema of a manifest, for editors. It is derived from the types that deserialize it.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use serde_json::{Value, json};

use super::Manifest;
use super::tables::ManifestTable;
use crate::config::settings::document;

impl Manifest {
    /// Returns the JSON Schema (draft 2020-12) of a manifest. A manifest that it accepts can still
    /// be refused: the schema has no relations between entries.
    pub(crate) fn schema() -> Value {
        let generator = SchemaSettings::draft2020_12().into_generator();
        let mut schema = generator.into_root_schema_for::<ManifestTable>();
        RecursiveTransform(tidy).transform(&mut schema);
        if let Ok(smallest) = Manifest::parse_with_hosts("team.name = \"x\"", &[]) {
            let defaults = serde_json::to_value(document(&smallest.settings)).unwrap_or_default();
            set_defaults(&mut schema, "", &defaults);
        }
        schema.to_value()
    }
}

/// Removes what comes of optional fields, since TOML has no null, and the names of Rust's integer
/// types. Joins the lines of doc comments.
fn tidy(schema: &mut Schema) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [kind] = types.as_slice() {
            let kind = kind.clone();
            schema.insert("type".to_owned(), kind);
        }
    }
    if let Some(Value::Array(words)) = schema.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    if let Some(Value::Array(choices)) = schema.get_mut("anyOf") {
        choices.retain(|choice| *choice != json!({ "type": "null" }));
        if let [Value::Object(only)] = choices.as_slice() {
            let only = only.clone();
            schema.remove("anyOf");
            schema.ensure_object().extend(only);
        }
    }
    if schema.get("default").is_some_and(Value::is_null) {
        schema.remove("default");
    }
    schema.remove("format");
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.split('\n').collect::<Vec<_>>().join(" ");
    }
}

/// Sets the defaults of the keys of the table at `pointer`, and of the tables in it.
fn set_defaults(schema: &mut Schema, pointer: &str, defaults: &Value) {
    for (key, value) in defaults.as_object().into_iter().flatten() {
        let key = format!("{pointer}/properties/{key}");
        let table = schema.pointer(&format!("{key}/$ref")).and_then(Value::as_str);
        let table = table.map(|table| table.trim_start_matches('#').to_owned());
        match (table, schema.pointer_mut(&key)) {
            (Some(table), _) if value.is_object() => set_defaults(schema, &table, value),
            (_, Some(Value::Object(key))) => drop(key.insert("default".to_owned(), value.clone())),
            _ => {}
        }
    }
}
