//! The blocks of docs/manifest.md: a table of keys for each table of a manifest, from its schema.

use std::collections::BTreeMap;

use regex::{Captures, Regex};
use serde_json::{Map, Value};

use super::page::PageBlock;
use config::manifest::Manifest;

/// Returns the list of sections, then a block for each table in the order of the schema. A table
/// that several keys have is described at the first of them.
pub(super) fn blocks() -> Vec<PageBlock> {
    let schema = Manifest::schema();
    let mut tables = Tables { schema: &schema, found: Vec::new() };
    tables.find(&schema, "");
    let titles: BTreeMap<&str, &str> = (tables.found.iter())
        .map(|(definition, title)| (definition.as_str(), title.as_str()))
        .collect();
    let list = properties(&schema).map(|(key, about)| {
        let title = title_of(about, &titles).unwrap_or(key);
        format!("| [`{title}`](#{}) | {} |\n", anchor(title), description(about, &titles))
    });
    let mut blocks = vec![PageBlock {
        name: "sections".to_owned(),
        text: format!("| section | meaning |\n|---|---|\n{}", list.collect::<String>()),
    }];
    for (definition, title) in &tables.found {
        let level = if title.contains('.') && title != "[role.NAME]" { "###" } else { "##" };
        let rows = rows(&schema["$defs"][definition], &schema, &titles);
        blocks.push(PageBlock {
            name: title.clone(),
            text: format!(
                "{level} `{title}`\n\n| key | type | default | meaning |\n|---|---|---|---|\n{rows}"
            ),
        });
    }
    blocks
}

/// The definitions of tables, each with its title, such as `[team.budget]`.
struct Tables<'s> {
    schema: &'s Value,
    found: Vec<(String, String)>,
}

impl Tables<'_> {
    fn find(&mut self, table: &Value, path: &str) {
        for (key, about) in properties(table) {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            let (form, definition) = reference(about);
            let Some(definition) = definition.filter(|name| self.is_table(name)) else { continue };
            if self.found.iter().any(|(known, _)| known == definition) {
                continue;
            }
            let (title, path) = match form {
                TableForm::Single => (format!("[{path}]"), path),
                TableForm::List => (format!("[[{path}]]"), path),
                TableForm::Named => (format!("[{path}.NAME]"), format!("{path}.NAME")),
            };
            self.found.push((definition.to_owned(), title));
            let definition = &self.schema["$defs"][definition];
            self.find(definition, &path);
        }
    }

    fn is_table(&self, definition: &str) -> bool {
        self.schema["$defs"][definition]["properties"].is_object()
    }
}

/// The way in which a key has a table.
#[derive(Clone, Copy)]
enum TableForm {
    Single,
    List,
    Named,
}

/// Returns the definition that a key refers to.
fn reference(about: &Value) -> (TableForm, Option<&str>) {
    let name = |at: &str| about.pointer(at)?.as_str()?.strip_prefix("#/$defs/");
    let forms = [
        (TableForm::Single, "/$ref"),
        (TableForm::List, "/items/$ref"),
        (TableForm::Named, "/additionalProperties/$ref"),
    ];
    let found = forms.into_iter().find_map(|(form, at)| Some((form, Some(name(at)?))));
    found.unwrap_or((TableForm::Single, None))
}

fn properties(table: &Value) -> impl Iterator<Item = (&String, &Value)> {
    table["properties"].as_object().into_iter().flatten()
}

fn title_of<'t>(about: &Value, titles: &BTreeMap<&str, &'t str>) -> Option<&'t str> {
    titles.get(reference(about).1?).copied()
}

fn rows(table: &Value, schema: &Value, titles: &BTreeMap<&str, &str>) -> String {
    let required = |key: &str| {
        table["required"].as_array().is_some_and(|keys| keys.iter().any(|known| known == key))
    };
    let row = |(key, about): (&String, &Value)| {
        let default = match &about["default"] {
            _ if required(key) => "required".to_owned(),
            Value::Null => "–".to_owned(),
            Value::Object(table) if table.is_empty() => "–".to_owned(),
            Value::String(word) => format!("`\"{word}\"`"),
            value => format!("`{value}`"),
        };
        let words = reference(about).1.map_or(about, |name| &schema["$defs"][name]);
        let meaning = format!("{}{}", description(about, titles), word_list(words));
        format!("| `{key}` | {} | {default} | {meaning} |\n", kind(about, titles))
    };
    properties(table).map(row).collect()
}

/// The type of a value.
fn kind(about: &Value, titles: &BTreeMap<&str, &str>) -> String {
    if let Some(title) = title_of(about, titles) {
        let name = match reference(about).0 {
            TableForm::Single => "table",
            TableForm::List => "list of tables",
            TableForm::Named => "table of tables",
        };
        return format!("[{name}](#{})", anchor(title));
    }
    let limits = match (about["minimum"].as_u64(), about["maximum"].as_u64()) {
        (Some(least), Some(most)) => format!(", {least} to {most}"),
        (Some(least @ 1..), None) => format!(", at least {least}"),
        _ => String::new(),
    };
    match &about["type"] {
        Value::String(kind) if kind == "array" => "list of strings".to_owned(),
        Value::String(kind) if kind == "object" => "table of strings".to_owned(),
        Value::String(kind) => format!("{kind}{limits}"),
        Value::Array(kinds) => {
            kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ")
        }
        _ => match &about["enum"] {
            Value::Array(numbers) => {
                numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ")
            }
            _ => "string".to_owned(),
        },
    }
}

/// The values of an enum, with their meanings if it has them.
fn word_list(about: &Value) -> String {
    let words: Vec<String> = match (&about["oneOf"], &about["enum"]) {
        (Value::Array(words), _) => words.iter().filter_map(Value::as_object).map(word).collect(),
        (_, Value::Array(words)) if about["type"] == "string" => {
            vec![words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ") + "."]
        }
        _ => return String::new(),
    };
    format!(" {}", words.join(" "))
}

fn word(about: &Map<String, Value>) -> String {
    let text = |key: &str| about.get(key).and_then(Value::as_str).unwrap_or_default();
    let meaning = text("description");
    let mut letters = meaning.chars();
    let meaning: String = match letters.next() {
        Some(first) => first.to_lowercase().chain(letters).collect(),
        None => String::new(),
    };
    format!("`\"{}\"`: {meaning}", text("const"))
}

/// The description of a key, with links to the pages that it names.
fn description(about: &Value, titles: &BTreeMap<&str, &str>) -> String {
    let text = about["description"].as_str().unwrap_or_default().replace('|', "\\|");
    let page =
        Regex::new(r"`phalanx docs ((?:cli/)?[a-z]+)(?: ([a-z0-9-]+))?`").expect("a pattern");
    let link = |found: &Captures| {
        let page = format!("{}.md", &found[1]);
        let heading = found.get(2).map_or("", |section| section.as_str());
        let anchor = if heading.is_empty() { String::new() } else { format!("#{heading}") };
        if page != "manifest.md" {
            return format!("[{page}]({page}{anchor})");
        }
        match titles.values().find(|title| self::anchor(title) == heading) {
            Some(title) => format!("[`{title}`]({anchor})"),
            None => format!("[{}]({anchor})", heading.replace('-', " ")),
        }
    };
    page.replace_all(&text, link).into_owned()
}

/// The anchor of a title.
fn anchor(title: &str) -> String {
    title.to_lowercase().chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect()
}
