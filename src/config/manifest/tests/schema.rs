//! Tests of the JSON Schema: it accepts what the parser accepts, and refuses wrong keys and types.

use jsonschema::Validator;
use proptest::prelude::*;
use regex::Regex;
use toml::{Table, Value};

use crate::manifest::{Manifest, ManifestTemplate, TemplateValues};
use crate::manifest::{builtin_template, builtin_templates};
use model::name::{check_name, check_variable};
use model::value::{NAME_PATTERN, VARIABLE_PATTERN};
use std::path::{Path, PathBuf};
use sys::fs;

const EVERY_KEY: &str = include_str!("../../../../fixtures/manifests/every_key.toml");

fn validator() -> Validator {
    jsonschema::draft202012::new(&Manifest::schema()).expect("a valid schema")
}

/// Returns the first problem that the schema has with a TOML text.
fn problem(validator: &Validator, text: &str) -> Option<String> {
    let table: Table = toml::from_str(text).expect("TOML");
    let json = serde_json::to_value(table).expect("JSON");
    validator.validate(&json).err().map(|e| format!("{}: {e}", e.instance_path()))
}

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Returns the name and the text of each file in a folder with this extension.
fn files(folder: &str, extension: &str) -> Vec<(String, String)> {
    let names = fs::list(&root().join(folder)).expect("a folder");
    let wanted = names
        .into_iter()
        .filter(|name| Path::new(name).extension().is_some_and(|e| e == extension));
    wanted
        .map(|name| {
            let bytes =
                fs::read(&root().join(folder).join(&name), 1 << 24).expect("read").expect("a file");
            (format!("{folder}/{name}"), String::from_utf8(bytes).expect("UTF-8"))
        })
        .collect()
}

#[test]
fn schema_is_valid_and_has_a_description_for_each_key() {
    let schema = Manifest::schema();
    jsonschema::draft202012::meta::validate(&schema).expect("valid against the meta-schema");
    let tables = schema["$defs"].as_object().expect("definitions");
    let mut keys = 0;
    for (name, table) in tables.iter().chain([(&"root".to_owned(), &schema)]) {
        for (key, about) in table["properties"].as_object().into_iter().flatten() {
            let text = about["description"].as_str().unwrap_or_default();
            assert!(text.ends_with('.'), "{name}.{key}: {text:?}");
            keys += 1;
        }
        assert!(table["properties"].is_null() || table["additionalProperties"] == false, "{name}");
    }
    assert!(keys > 120, "{keys} keys");
}

/// Adds the keys of the value to `seen`, each with the table of the schema that it belongs to.
fn note_keys(whole: &serde_json::Value, at: &str, value: &serde_json::Value, seen: &mut KeySet) {
    let Some(node) = whole.pointer(at) else { return };
    if let Some(target) = node["$ref"].as_str().and_then(|target| target.strip_prefix('#')) {
        note_keys(whole, target, value, seen);
    }
    for word in ["anyOf", "allOf", "oneOf"] {
        let count = node[word].as_array().map_or(0, Vec::len);
        (0..count).for_each(|nth| note_keys(whole, &format!("{at}/{word}/{nth}"), value, seen));
    }
    for item in value.as_array().into_iter().flatten() {
        note_keys(whole, &format!("{at}/items"), item, seen);
    }
    for (key, inner) in value.as_object().into_iter().flatten() {
        if node["properties"][key].is_null() {
            note_keys(whole, &format!("{at}/additionalProperties"), inner, seen);
        } else {
            seen.insert((at.to_owned(), key.clone()));
            note_keys(whole, &format!("{at}/properties/{key}"), inner, seen);
        }
    }
}

type KeySet = std::collections::BTreeSet<(String, String)>;

#[test]
fn fixture_has_every_key_of_the_schema() {
    let schema = serde_json::to_value(Manifest::schema()).expect("JSON");
    let table: Table = toml::from_str(EVERY_KEY).expect("TOML");
    let mut seen = KeySet::new();
    note_keys(&schema, "", &serde_json::to_value(table).expect("JSON"), &mut seen);
    let tables = schema["$defs"].as_object().into_iter().flatten();
    let tables = tables.map(|(name, table)| (format!("/$defs/{name}"), table));
    let mut missing = KeySet::new();
    for (at, table) in tables.chain([(String::new(), &schema)]) {
        let keys = table["properties"].as_object().into_iter().flatten().map(|(key, _)| key);
        missing.extend(keys.map(|key| (at.clone(), key.clone())).filter(|key| !seen.contains(key)));
    }
    assert_eq!(missing, KeySet::new());
}

#[test]
fn schema_accepts_the_manifests_of_fixtures_and_templates() {
    let validator = validator();
    let mut texts = [files("fixtures/manifests", "toml"), files("fixtures/teams", "toml")].concat();
    for name in builtin_templates() {
        let template = ManifestTemplate::parse(builtin_template(name).expect("built in"));
        let values = TemplateValues {
            team: "demo",
            task: "Do it",
            agents: &["claude".to_owned()],
            test: Some(&["cargo", "test"]),
            worktrees: true,
        };
        texts.push((name.to_owned(), template.expect("valid").render(&values)));
    }
    assert!(texts.len() >= 12, "{} manifests", texts.len());
    for (name, text) in texts {
        assert_eq!(problem(&validator, &text), None, "{name}");
    }
}

/// Blocks that are only a part of a manifest get a team.
#[test]
fn schema_accepts_the_manifests_of_the_documentation() {
    let validator = validator();
    let block = Regex::new(r"(?ms)^```toml[^\n]*\n(.*?)^```").expect("a pattern");
    let mut count = 0;
    for (name, page) in [files("docs", "md"), files("", "md")].concat() {
        for found in block.captures_iter(&page) {
            let mut text = found[1].to_owned();
            if Manifest::parse(&text).is_err() {
                text = format!("team.name = \"x\"\n{text}");
            }
            // Blocks of other files, and parts that name members of another block.
            if Manifest::parse(&text).is_ok() {
                assert_eq!(problem(&validator, &text), None, "{name}:\n{text}");
                count += 1;
            }
        }
    }
    assert!(count >= 5, "{count} manifests in the pages");
}

/// Replaces each value of a manifest with every other type, and each key with an unknown one.
#[test]
fn schema_and_parser_agree_on_wrong_keys_and_types() {
    let validator = validator();
    let manifest: Table = toml::from_str(EVERY_KEY).expect("TOML");
    let mut variants = Vec::new();
    push_variants(&Value::Table(manifest), &mut |variant| {
        variants.extend(variant.as_table().cloned());
    });
    let (mut refused, mut accepted) = (0, 0);
    for variant in variants {
        let text = toml::to_string(&variant).expect("TOML");
        let problem = problem(&validator, &text);
        match (Manifest::parse(&text), problem) {
            (Ok(_), problem) => {
                assert_eq!(problem, None, "the parser accepts\n{text}");
                accepted += 1;
            }
            (Err(e), None) => {
                let message = e.to_string();
                let is_of_schema = message.contains("unknown key")
                    || message.contains(" must be a ")
                    || message.contains("must be true or false");
                assert!(!is_of_schema, "the schema accepts: {message}\n{text}");
            }
            (Err(_), Some(_)) => refused += 1,
        }
    }
    assert!(refused > 500 && accepted > 50, "{refused} refused, {accepted} accepted");
}

/// Calls `each` with copies of a value in which one key or value has changed.
fn push_variants(value: &Value, each: &mut dyn FnMut(Value)) {
    let others = [
        Value::Integer(7),
        Value::Float(0.5),
        Value::String("x".to_owned()),
        Value::Boolean(true),
        Value::Array(Vec::new()),
        Value::Array(vec![Value::Integer(1)]),
        Value::Table(Table::new()),
    ];
    others.into_iter().for_each(&mut *each);
    match value {
        Value::Table(table) => {
            for (key, inner) in table {
                let mut renamed = table.clone();
                renamed.remove(key);
                each(Value::Table(renamed.clone()));
                renamed.insert(format!("{key}_x"), inner.clone());
                each(Value::Table(renamed));
                push_variants(inner, &mut |variant| {
                    let mut changed = table.clone();
                    changed.insert(key.clone(), variant);
                    each(Value::Table(changed));
                });
            }
        }
        Value::Array(items) => {
            for at in 0..items.len() {
                push_variants(&items[at], &mut |variant| {
                    let mut changed = items.clone();
                    changed[at] = variant;
                    each(Value::Array(changed));
                });
            }
        }
        _ => {}
    }
}

proptest! {
    #[test]
    fn patterns_of_the_schema_are_the_rules_of_the_parser(name in "[a-zA-Z0-9_. äé-]{0,66}") {
        let matches = |pattern: &str| Regex::new(pattern).expect("a pattern").is_match(&name);
        prop_assert_eq!(matches(NAME_PATTERN), check_name(&name).is_ok());
        prop_assert_eq!(matches(VARIABLE_PATTERN), check_variable(&name).is_ok());
    }
}
