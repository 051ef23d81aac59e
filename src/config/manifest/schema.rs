//! The JSON Schema of a manifest, for editors. It is derived from the types that deserialize it.

use std::sync::LazyLock;

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use serde_json::{Value, json};

use super::Manifest;
use super::tables::ManifestTable;
use crate::settings::document;

impl Manifest {
    /// Returns the JSON Schema (draft 2020-12) of a manifest. A manifest that it accepts can still
    /// be refused: the schema has no relations between entries.
    pub fn schema() -> Value {
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

/// A key of `[team]` that can be set later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamKey {
    /// The key with those of its tables, such as `budget.tokens`.
    pub key: String,
    /// The first sentence about it, with the words that it takes.
    pub meaning: String,
}

/// The keys of `[team]` that are stored elsewhere, or matter only when the team is created.
const FIXED: [&str; 4] = ["name", "description", "store", "mode"];

/// The keys of `[team]` that can be set, in the order of the manifest.
pub static TEAM_KEYS: LazyLock<Vec<TeamKey>> = LazyLock::new(|| {
    let schema = Manifest::schema();
    let mut keys = Vec::new();
    add_keys(&schema, "", &schema["$defs"]["team"], &mut keys);
    keys
});

fn add_keys(schema: &Value, above: &str, table: &Value, keys: &mut Vec<TeamKey>) {
    for (name, about) in table["properties"].as_object().into_iter().flatten() {
        let key = format!("{above}{name}");
        let kind = about["$ref"].as_str().map(|path| path.trim_start_matches('#'));
        let kind = kind.and_then(|path| schema.pointer(path)).unwrap_or(about);
        if FIXED.contains(&key.as_str()) {
            continue;
        }
        if kind["properties"].is_object() {
            add_keys(schema, &format!("{key}."), kind, keys);
            continue;
        }
        let sentences = about["description"].as_str().unwrap_or_default();
        let first = sentences.split_once(". ").map_or(sentences, |(first, _)| first);
        let words = kind["oneOf"].as_array().into_iter().flatten();
        let words: Vec<&str> = words.filter_map(|word| word["const"].as_str()).collect();
        let meaning = match words.as_slice() {
            [words @ .., last] if !words.is_empty() => {
                format!("{}: {} or {last}", first.trim_end_matches('.'), words.join(", "))
            }
            _ => first.trim_end_matches('.').to_owned(),
        };
        keys.push(TeamKey { key, meaning });
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
