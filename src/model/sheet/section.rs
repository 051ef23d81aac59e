//! Reads one table of a sheet key by key, and checks types and unknown keys.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fault::{Faults, nearest};
use super::name;

/// Names that other tools use for our keys, for the hint "did you mean". A hint is only given in
/// sections that have our key.
const SYNONYMS: [(&str, &str); 8] = [
    ("cmd", "run"),
    ("command", "run"),
    ("depends_on", "after"),
    ("needs", "after"),
    ("blocked_by", "after"),
    ("id", "key"),
    ("title", "subject"),
    ("agent_type", "role"),
];

/// A value with its byte span in the text.
pub(crate) type At<T> = Spanned<T>;

/// A table and its name in messages.
pub(crate) struct Section<'t> {
    /// As written in a file: `[team]`, `[[member]]`.
    pub(crate) title: &'static str,
    /// Byte span of the header, or of a whole inline table.
    pub(crate) span: Range<usize>,
    table: Option<&'t DeTable<'t>>,
    /// It has an unknown key. A required key that is missing is then probably misspelt, and not
    /// reported.
    strange: bool,
}

impl<'t> Section<'t> {
    /// Opens a table with these allowed keys; adds a fault for each other key.
    pub(crate) fn open(
        title: &'static str,
        value: &'t Spanned<DeValue<'t>>,
        known: &[&'static str],
        faults: &mut Faults,
    ) -> Option<Section<'t>> {
        let span = value.span();
        let DeValue::Table(table) = value.get_ref() else {
            let found = describe(value.get_ref());
            let plain = title.trim_matches(['[', ']']);
            faults.add(&span, format!("`{plain}` must be {}, not {found}", wanted(title)));
            return None;
        };
        let strange = refuse_strange_keys(title, table, known, faults);
        Some(Section { title, span, table: Some(table), strange })
    }

    pub(crate) fn root(
        title: &'static str,
        table: &'t DeTable<'t>,
        known: &[&'static str],
        faults: &mut Faults,
    ) -> Section<'t> {
        let strange = refuse_strange_keys(title, table, known, faults);
        Section { title, span: 0..0, table: Some(table), strange }
    }

    /// Opens a table inside this one; absent if its key is missing.
    pub(crate) fn table(
        &self,
        key: &str,
        title: &'static str,
        known: &[&'static str],
        faults: &mut Faults,
    ) -> Section<'t> {
        let value = self.value(key);
        value
            .and_then(|value| Section::open(title, value, known, faults))
            .unwrap_or(Section::absent(title))
    }

    /// Opens the entries of a list of tables.
    pub(crate) fn tables(
        &self,
        key: &str,
        title: &'static str,
        known: &[&'static str],
        faults: &mut Faults,
    ) -> Vec<Section<'t>> {
        let Some(value) = self.value(key) else { return Vec::new() };
        let DeValue::Array(array) = value.get_ref() else {
            // The likely mistake is `[member]` in place of `[[member]]`.
            let found =
                if matches!(value.get_ref(), DeValue::Table(_)) { "one table" } else { "a value" };
            faults.add(
                &value.span(),
                format!("`{key}` must be a list of tables, {title}, not {found}"),
            );
            return Vec::new();
        };
        array.iter().filter_map(|entry| Section::open(title, entry, known, faults)).collect()
    }

    pub(crate) fn absent(title: &'static str) -> Section<'t> {
        Section { title, span: 0..0, table: None, strange: false }
    }

    pub(crate) fn value(&self, key: &str) -> Option<&'t Spanned<DeValue<'t>>> {
        self.table?.get(key)
    }

    /// Reads a string that must not be blank or contain a NUL byte, since it is used in a command
    /// line or a path.
    pub(crate) fn word(&self, key: &str, faults: &mut Faults) -> Option<At<String>> {
        let word = self.text(key, faults)?;
        let said = if word.get_ref().trim().is_empty() {
            "is empty"
        } else if word.get_ref().contains('\0') {
            "must not contain a NUL character"
        } else {
            return Some(word);
        };
        faults.add(&word.span(), format!("`{key}` in {} {said}", self.title));
        None
    }

    /// Reads a required [`Section::word`].
    pub(crate) fn required(&self, key: &str, faults: &mut Faults) -> Option<At<String>> {
        self.demand(key, &format!("`{key}`"), faults);
        self.word(key, faults)
    }

    /// Reads a required [`Section::name`].
    pub(crate) fn required_name(
        &self,
        key: &str,
        rule: fn(&str) -> Result<(), String>,
        faults: &mut Faults,
    ) -> Option<At<String>> {
        self.demand(key, &format!("`{key}`"), faults);
        self.name(key, rule, faults)
    }

    /// Adds a fault at the table's header if a required key is missing. `called` is the key's name
    /// in messages.
    pub(crate) fn demand(&self, key: &str, called: &str, faults: &mut Faults) {
        if self.value(key).is_none() && !self.strange {
            faults.add(&self.span, format!("{} has no {called}", self.title));
        }
    }

    pub(crate) fn text(&self, key: &str, faults: &mut Faults) -> Option<At<String>> {
        let value = self.value(key)?;
        match value.get_ref() {
            DeValue::String(text) => Some(Spanned::new(value.span(), text.clone().into_owned())),
            other => self.refuse(key, value, "a string", other, faults),
        }
    }

    /// Reads a name that follows a rule of [`name`].
    pub(crate) fn name(
        &self,
        key: &str,
        rule: fn(&str) -> Result<(), String>,
        faults: &mut Faults,
    ) -> Option<At<String>> {
        let word = self.word(key, faults)?;
        self.judge(key, &word, rule, faults).then_some(word)
    }

    fn judge(
        &self,
        key: &str,
        word: &At<String>,
        rule: fn(&str) -> Result<(), String>,
        faults: &mut Faults,
    ) -> bool {
        let Err(said) = rule(word.get_ref()) else { return true };
        faults.add(
            &word.span(),
            format!("`{key}` in {}: `{}` {said}", self.title, word.get_ref().escape_debug()),
        );
        false
    }

    /// Reads one of a fixed set of words.
    pub(crate) fn choice<T: Copy>(
        &self,
        key: &str,
        choices: &[(&'static str, T)],
        faults: &mut Faults,
    ) -> Option<At<T>> {
        let word = self.word(key, faults)?;
        if let Some((_, choice)) =
            choices.iter().find(|(known, _)| *known == word.get_ref().as_str())
        {
            return Some(Spanned::new(word.span(), *choice));
        }
        let known: Vec<&str> = choices.iter().map(|(known, _)| *known).collect();
        unknown(key, &word, &known, faults);
        None
    }

    pub(crate) fn flag(&self, key: &str, faults: &mut Faults) -> Option<bool> {
        let value = self.value(key)?;
        match value.get_ref() {
            DeValue::Boolean(flag) => Some(*flag),
            other => self.refuse(key, value, "true or false", other, faults),
        }
    }

    /// Reads an integer, in any of TOML's notations.
    pub(crate) fn integer(&self, key: &str, faults: &mut Faults) -> Option<At<i64>> {
        let value = self.value(key)?;
        let DeValue::Integer(integer) = value.get_ref() else {
            return self.refuse(key, value, "a whole number", value.get_ref(), faults);
        };
        match i64::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(number) => Some(Spanned::new(value.span(), number)),
            Err(_) => {
                faults.add(&value.span(), format!("`{key}` in {} is too large", self.title));
                None
            }
        }
    }

    /// Reads a list of strings with their positions; empty if the key is missing.
    pub(crate) fn list(&self, key: &str, faults: &mut Faults) -> Vec<At<String>> {
        let Some(value) = self.value(key) else { return Vec::new() };
        let DeValue::Array(array) = value.get_ref() else {
            self.refuse::<()>(key, value, "a list of strings", value.get_ref(), faults);
            return Vec::new();
        };
        let mut list = Vec::with_capacity(array.len());
        for item in array {
            match item.get_ref() {
                DeValue::String(text) if text.contains('\0') => {
                    let said =
                        format!("`{key}` in {} must not contain a NUL character", self.title);
                    faults.add(&item.span(), said);
                }
                DeValue::String(text) => {
                    list.push(Spanned::new(item.span(), text.clone().into_owned()))
                }
                other => {
                    self.refuse::<()>(key, item, "a list of strings", other, faults);
                }
            }
        }
        list
    }

    /// Reads a list of strings that each follow a rule of [`name`].
    pub(crate) fn names(
        &self,
        key: &str,
        rule: fn(&str) -> Result<(), String>,
        faults: &mut Faults,
    ) -> Vec<At<String>> {
        let mut list = self.list(key, faults);
        list.retain(|word| self.judge(key, word, rule, faults));
        list
    }

    /// Reads a command line: program and arguments.
    pub(crate) fn command(&self, key: &str, faults: &mut Faults) -> Option<Vec<String>> {
        let value = self.value(key)?;
        if let DeValue::String(_) = value.get_ref() {
            let said =
                "must be a list of strings (program and arguments); it is not run by a shell";
            faults.add(&value.span(), format!("`{key}` in {} {said}", self.title));
            return None;
        }
        let list: Vec<String> =
            self.list(key, faults).into_iter().map(Spanned::into_inner).collect();
        let DeValue::Array(array) = value.get_ref() else { return None };
        if array.is_empty() {
            faults.add(&value.span(), format!("`{key}` in {} is empty", self.title));
        } else if list.first().is_some_and(|program| program.trim().is_empty()) {
            faults.add(&value.span(), format!("`{key}` in {} does not name a program", self.title));
        }
        Some(list)
    }

    /// Reads a table of environment variables. `title` is the table's name in messages.
    pub(crate) fn variables(
        &self,
        title: &'static str,
        faults: &mut Faults,
    ) -> BTreeMap<String, String> {
        self.entries("env", title, name::check_variable, faults)
    }

    /// Reads a table of strings whose keys follow a rule of [`name`]. `title` is the table's name
    /// in messages.
    pub(crate) fn entries(
        &self,
        key: &str,
        title: &'static str,
        rule: fn(&str) -> Result<(), String>,
        faults: &mut Faults,
    ) -> BTreeMap<String, String> {
        let Some(value) = self.value(key) else { return BTreeMap::new() };
        let DeValue::Table(table) = value.get_ref() else {
            self.refuse::<()>(key, value, "a table of strings", value.get_ref(), faults);
            return BTreeMap::new();
        };
        let inner = Section { title, span: value.span(), table: Some(table), strange: false };
        let mut variables = BTreeMap::new();
        for key in table.keys() {
            if let Err(said) = rule(key.get_ref()) {
                faults.add(
                    &key.span(),
                    format!("`{}` in {title} {said}", key.get_ref().escape_debug()),
                );
            }
            let Some(text) = inner.text(key.get_ref(), faults) else { continue };
            if text.get_ref().contains('\0') {
                let said =
                    format!("`{}` in {title} must not contain a NUL character", key.get_ref());
                faults.add(&text.span(), said);
            }
            variables.insert(key.get_ref().to_string(), text.into_inner());
        }
        variables
    }

    /// Adds a fault for a value of the wrong type, with the expected and the actual type.
    pub(crate) fn refuse<T>(
        &self,
        key: &str,
        value: &Spanned<DeValue>,
        wanted: &str,
        found: &DeValue,
        faults: &mut Faults,
    ) -> Option<T> {
        let found = describe(found);
        faults
            .add(&value.span(), format!("`{key}` in {} must be {wanted}, not {found}", self.title));
        None
    }
}

/// Adds a fault for an unknown word, with the known ones and the nearest.
pub(crate) fn unknown(key: &str, word: &At<String>, known: &[&'static str], faults: &mut Faults) {
    let all: Vec<String> = known.iter().map(|known| format!("`{known}`")).collect();
    let said =
        format!("unknown {key} `{}`; known: {}", word.get_ref().escape_debug(), all.join(", "));
    faults.add_with(&word.span(), said, nearest(word.get_ref(), known.iter().copied()));
}

/// Adds a fault for each unknown key. Returns true if there was one.
fn refuse_strange_keys(
    title: &'static str,
    table: &DeTable,
    known: &[&'static str],
    faults: &mut Faults,
) -> bool {
    let mut strange = false;
    for key in table.keys() {
        let word: &str = key.get_ref();
        if !known.contains(&word) {
            strange = true;
            let synonym =
                SYNONYMS.iter().find(|(other, ours)| *other == word && known.contains(ours));
            let meant =
                synonym.map(|(_, ours)| *ours).or_else(|| nearest(word, known.iter().copied()));
            let hint = match meant {
                None if title == "[env]" => "; variables are set in [defaults.env]",
                _ => "",
            };
            let said = format!("unknown key `{}` in {title}{hint}", word.escape_debug());
            faults.add_with(&key.span(), said, meant);
        }
    }
    strange
}

/// Describes how a section is written, from the brackets of its title.
fn wanted(title: &str) -> String {
    if title.starts_with("[[") {
        format!("a list of tables, {title}")
    } else {
        format!("a table, {title}")
    }
}

/// Returns the type of a value, with its article.
fn describe(value: &DeValue) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a float",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
