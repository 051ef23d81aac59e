//! Deserializes TOML texts that people write. An error names the position, the section and the key.

use std::cell::OnceCell;
use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue, Deserializer};

use model::name::nearest;
use model::value::FIELD;

/// Names that other tools use for our keys, for the hint "did you mean". A hint is only given in
/// sections that have our key.
const SYNONYMS: [(&str, &str); 9] = [
    ("cmd", "run"),
    ("count", "scale"),
    ("command", "run"),
    ("depends_on", "after"),
    ("needs", "after"),
    ("blocked_by", "after"),
    ("id", "key"),
    ("title", "subject"),
    ("agent_type", "role"),
];

/// A fault with its position. The caller prefixes the file's name, as in `team.toml:4:1: unknown
/// key …`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {message}{}", question(.nearest.as_deref()))]
pub struct ConfigError {
    /// From 1.
    pub line: usize,
    /// From 1, in characters; a tab counts as one.
    pub column: usize,
    /// One line, lower case, without a full stop.
    pub message: String,
    /// The word that was probably meant.
    pub nearest: Option<String>,
}

fn question(nearest: Option<&str>) -> String {
    nearest.map(|word| format!("; did you mean `{word}`?")).unwrap_or_default()
}

impl ConfigError {
    /// Returns an error at a byte offset of the text.
    fn at(text: &str, offset: usize, message: String, nearest: Option<String>) -> ConfigError {
        let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
        let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        // Lossy, since a span of the parser could end inside a character; the column is close
        // enough.
        let head = String::from_utf8_lossy(&before[line_start..]);
        let head = head.trim_start_matches('\u{feff}').trim_end_matches('\r');
        ConfigError {
            line: 1 + before.iter().filter(|byte| **byte == b'\n').count(),
            column: 1 + head.chars().count(),
            message,
            nearest,
        }
    }

    /// Converts an error of the TOML parser.
    fn syntax(text: &str, error: &toml::de::Error) -> ConfigError {
        let span = error.span().unwrap_or_default();
        let message = match error.message() {
            "duplicate key" => {
                format!("duplicate key `{}`", text.get(span.clone()).unwrap_or_default())
            }
            // The parser's message for any bare word in place of a value.
            problem if problem.starts_with("invalid boolean") => {
                "not a valid value; strings need quotes".to_owned()
            }
            problem => one_line(problem),
        };
        ConfigError::at(text, span.start, message, None)
    }
}

/// Faults found after a text was deserialized. They are collected rather than returned at once,
/// because a check between entries does not proceed in the order of the file.
#[derive(Debug)]
pub struct Faults<'t> {
    text: &'t str,
    /// The text as a table, once the position of a value is needed.
    root: OnceCell<Spanned<DeValue<'t>>>,
    found: Vec<(usize, String, Option<String>)>,
}

impl<'t> Faults<'t> {
    /// Starts a list of the faults in a text.
    pub fn new(text: &'t str) -> Faults<'t> {
        Faults { text, root: OnceCell::new(), found: Vec::new() }
    }

    /// Adds a fault at the value to which `path` leads.
    pub fn add_at(&mut self, path: &[Place], message: impl Into<String>) {
        self.add_near(path, message, None);
    }

    /// Adds a fault at the value to which `path` leads, with a word that was probably meant.
    pub(crate) fn add_near(
        &mut self,
        path: &[Place],
        message: impl Into<String>,
        nearest: Option<&str>,
    ) {
        self.add_with(&self.span_of(path), message, nearest);
    }

    /// Adds a fault at the start of this byte span.
    pub fn add(&mut self, span: &Range<usize>, message: impl Into<String>) {
        self.add_with(span, message, None);
    }

    /// Adds a fault with a word that was probably meant.
    pub fn add_with(
        &mut self,
        span: &Range<usize>,
        message: impl Into<String>,
        nearest: Option<&str>,
    ) {
        self.found.push((span.start, message.into(), nearest.map(str::to_owned)));
    }

    /// Returns the byte span of the value to which `path` leads.
    pub(crate) fn span_of(&self, path: &[Place]) -> Range<usize> {
        let root = self.root.get_or_init(|| {
            let table = DeTable::parse(self.text).map(Spanned::into_inner).unwrap_or_default();
            Spanned::new(0..0, DeValue::Table(table))
        });
        let found = path.iter().try_fold(root, |value, place| match place {
            Place::Key(key) => value.get_ref().get(*key),
            Place::Index(index) => value.get_ref().get(*index),
        });
        found.map(Spanned::span).unwrap_or_default()
    }

    /// Returns `Ok` if there are no faults.
    ///
    /// # Errors
    /// The collected fault with the lowest position.
    pub fn into_result(self) -> Result<(), ConfigError> {
        // Of several faults at one position, `min_by_key` returns the one that was added first.
        match self.found.into_iter().min_by_key(|(offset, ..)| *offset) {
            Some((offset, message, nearest)) => {
                Err(ConfigError::at(self.text, offset, message, nearest))
            }
            None => Ok(()),
        }
    }
}

/// Returns the lines of ascending positions. It reads the text once.
pub(crate) struct LineCounter<'t> {
    text: &'t [u8],
    offset: usize,
    line: usize,
}

impl<'t> LineCounter<'t> {
    pub(crate) fn new(text: &'t str) -> LineCounter<'t> {
        LineCounter { text: text.as_bytes(), offset: 0, line: 1 }
    }

    /// Returns the line, from 1, of a byte offset that is not less than that of the last call.
    pub(crate) fn line_at(&mut self, offset: usize) -> usize {
        let passed = self.text.get(self.offset..offset).unwrap_or_default();
        self.line += memchr::memchr_iter(b'\n', passed).count();
        self.offset = self.offset.max(offset);
        self.line
    }
}

/// A step to a value in a text: the key in a table, or the index in a list.
#[derive(Debug, Clone, Copy)]
pub enum Place<'p> {
    Key(&'p str),
    Index(usize),
}

/// The kind of a text.
#[derive(Debug, Clone, Copy)]
pub struct Document {
    /// The name of the text in messages.
    pub title: &'static str,
    /// Dotted keys that the type has but that this kind of text may not have.
    pub denied: &'static [&'static str],
}

/// Deserializes a text.
///
/// # Errors
/// The first fault: invalid TOML, an unknown key, a missing key or an invalid value.
pub fn parse<T: DeserializeOwned>(kind: Document, text: &str) -> Result<T, ConfigError> {
    let parsed = || DeTable::parse(text).map_err(|error| ConfigError::syntax(text, &error));
    let table = parsed()?;
    let denied = kind.denied_key(table.get_ref());
    let (span, problem) = if let Some(key) = denied {
        (key.span(), format!("unknown field `{}`", key.get_ref()))
    } else {
        match T::deserialize(Deserializer::from(table)) {
            Ok(value) => return Ok(value),
            Err(error) => (error.span().unwrap_or_default(), error.message().to_owned()),
        }
    };
    // The deserializer has consumed the first table.
    let table = parsed()?;
    let is_list = problem.starts_with("invalid type: sequence");
    let (message, nearest) = match find(table.get_ref(), &span, is_list) {
        Some((steps, value)) => kind.explain(&steps, value, &problem),
        None => (kind.explain_root(&problem), None),
    };
    Err(ConfigError::at(text, span.start, message, nearest))
}

/// A step from a table or list to what it contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step<'t> {
    Key(&'t str),
    Item,
}

/// Returns the way from a table to the key or value at a byte span, and the value. A list of tables
/// has the span of its first table; `is_list` selects the list.
fn find<'t>(
    table: &'t DeTable<'t>,
    span: &Range<usize>,
    is_list: bool,
) -> Option<(Vec<Step<'t>>, &'t DeValue<'t>)> {
    table.iter().find_map(|(key, value)| {
        let (mut steps, found) = if key.span() == *span {
            (Vec::new(), value.get_ref())
        } else {
            find_in(value, span, is_list)?
        };
        steps.insert(0, Step::Key(key.get_ref()));
        Some((steps, found))
    })
}

fn find_in<'t>(
    value: &'t Spanned<DeValue<'t>>,
    span: &Range<usize>,
    is_list: bool,
) -> Option<(Vec<Step<'t>>, &'t DeValue<'t>)> {
    let is_here = value.span() == *span;
    let inner = match value.get_ref() {
        DeValue::Array(_) if is_here && is_list => None,
        DeValue::Table(table) => find(table, span, is_list),
        DeValue::Array(array) => array.iter().find_map(|item| {
            let (mut steps, found) = find_in(item, span, is_list)?;
            steps.insert(0, Step::Item);
            Some((steps, found))
        }),
        _ => None,
    };
    inner.or_else(|| is_here.then(|| (Vec::new(), value.get_ref())))
}

impl Document {
    fn denied_key<'t>(&self, root: &'t DeTable<'t>) -> Option<&'t Spanned<DeString<'t>>> {
        self.denied.iter().find_map(|path| {
            let (table, key) = match path.split_once('.') {
                Some((section, key)) => (root.get(section)?.get_ref().as_table()?, key),
                None => (root, *path),
            };
            table.get_key_value(key).map(|(key, _)| key)
        })
    }

    /// Returns the name of a table as it is written in the file: `[team]`, `[[member]]`.
    fn section(&self, steps: &[Step]) -> String {
        let keys = keys(steps);
        // The user names the tables below these.
        let keys = match keys.as_slice() {
            [above @ ("role" | "answers"), _] => vec![*above],
            ["rules", "role", _] => vec!["rules", "role"],
            _ => keys,
        };
        match (keys.as_slice(), steps.last()) {
            ([], _) => self.title.to_owned(),
            ([key], Some(Step::Item)) => format!("[[{key}]]"),
            (keys, _) => format!("[{}]", keys.join(".")),
        }
    }

    /// Returns the message for an error of the root table.
    fn explain_root(&self, problem: &str) -> String {
        match quoted(problem, "missing field ") {
            Some("launch") => format!("{} has no [launch]", self.title),
            Some(key) => format!("{} has no `{key}`", self.title),
            None => one_line(problem),
        }
    }

    /// Returns the message for an error at a key or its value, and the word that was probably
    /// meant.
    fn explain(&self, steps: &[Step], value: &DeValue, problem: &str) -> (String, Option<String>) {
        if let Some(key) = quoted(problem, "missing field ") {
            return (format!("{} has no `{key}`", self.section(steps)), None);
        }
        let last = steps.iter().rposition(|step| *step != Step::Item).unwrap_or_default();
        let (above, Some(Step::Key(key))) = (&steps[..last], steps.get(last)) else {
            return (self.explain_root(problem), None);
        };
        let section = self.section(above);
        let field = format!("`{}` in {section}", key.escape_debug());
        if let Some(rest) = problem.strip_prefix(FIELD) {
            return (format!("{field}{rest}"), None);
        }
        if let Some(rest) = problem.strip_prefix(&format!("unknown field `{key}`")) {
            let path = |word: &str| [keys(above), vec![word]].concat().join(".");
            let mut known = words(rest);
            known.retain(|word| !self.denied.contains(&path(word).as_str()));
            let synonym =
                SYNONYMS.iter().find(|(other, ours)| other == key && known.contains(ours));
            let meant = synonym.map(|(_, ours)| *ours).or_else(|| nearest(key, known));
            let hint = match meant {
                None if section == "[env]" => "; variables are set in [defaults.env]",
                _ => "",
            };
            let message = format!("unknown key `{}` in {section}{hint}", key.escape_debug());
            return (message, meant.map(str::to_owned));
        }
        let word = value.as_str().unwrap_or_default();
        if let Some(rest) = problem.strip_prefix(&format!("unknown variant `{word}`")) {
            let known = words(rest);
            let listed: Vec<String> = known.iter().map(|word| format!("`{word}`")).collect();
            let what = if steps.ends_with(&[Step::Item]) { key.trim_end_matches('s') } else { key };
            let message =
                format!("unknown {what} `{}`; known: {}", word.escape_debug(), listed.join(", "));
            return (message, nearest(word, known).map(str::to_owned));
        }
        match problem.rsplit_once(", expected ") {
            Some((_, wanted)) if problem.starts_with("invalid ") => {
                let path = keys(steps).join(".").escape_debug().to_string();
                (type_error(&field, &path, wanted, value, steps.len() - last - 1), None)
            }
            _ if problem.ends_with("number overflowed") => (format!("{field} is too large"), None),
            _ => (one_line(problem), None),
        }
    }
}

/// Returns the keys of a way, without the lists in between.
fn keys<'t>(steps: &[Step<'t>]) -> Vec<&'t str> {
    steps
        .iter()
        .filter_map(|step| match step {
            Step::Key(key) => Some(*key),
            Step::Item => None,
        })
        .collect()
}

/// Returns the message for a value of the wrong type. `path` is the dotted key, and `depth` the
/// number of lists around the value.
fn type_error(field: &str, path: &str, wanted: &str, value: &DeValue, depth: usize) -> String {
    let tables = match (wanted, depth) {
        ("a table", 0) => Some(format!("a table, [{path}]")),
        ("a table" | "a list of tables", _) => Some(format!("a list of tables, [[{path}]]")),
        ("a map", 0) if ["launch.modes", "team.routing.escalate"].contains(&path) => {
            Some(format!("a table, [{path}]"))
        }
        ("a map", _) if path == "answers" => Some("a table of tables, [answers.RULE]".to_owned()),
        ("a map", _) => Some(format!("a table of tables, [{path}.NAME]")),
        _ => None,
    };
    let found = match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a float",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) if wanted == "a table" && depth > 0 => "a list of lists",
        DeValue::Array(_) => "a list",
        // The likely mistake is `[member]` in place of `[[member]]`.
        DeValue::Table(_) if wanted == "a list of tables" => "one table",
        DeValue::Table(_) => "a table",
    };
    if let Some(tables) = tables {
        return format!("`{path}` must be {tables}, not {found}");
    }
    let wanted = match (wanted, depth) {
        ("i64", _) if matches!(value, DeValue::Integer(_)) => {
            return format!("{field} is too large");
        }
        ("i64", _) => "a whole number",
        ("a boolean", _) => "true or false",
        ("a string", 1) | ("a sequence", 0) => "a list of strings",
        ("a string", 2) | ("a sequence", 1) => "a list of lists of strings",
        (other, _) => other,
    };
    format!("{field} must be {wanted}, not {found}")
}

/// Returns the first word in backticks after `prefix`.
fn quoted<'s>(problem: &'s str, prefix: &str) -> Option<&'s str> {
    words(problem.strip_prefix(prefix)?).first().copied()
}

/// Returns the words in backticks.
fn words(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

fn one_line(text: &str) -> String {
    text.lines().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_from_one_in_characters() {
        let place = |text: &str, at: usize| {
            let error = ConfigError::at(text, at, String::new(), None);
            (error.line, error.column)
        };
        assert_eq!(place("", 0), (1, 1));
        assert_eq!(place("\u{feff}a", 3), (1, 1));
        assert_eq!(place("äö = 1", "äö".len()), (1, 3));
        assert_eq!(place("a\r\nb", 3), (2, 1));
        assert_eq!(place("a\n", 99), (2, 1));
        assert_eq!(place("ä", 1), (1, 2));
    }

    #[test]
    fn lines_count_from_one() {
        let mut lines = LineCounter::new("a\nb\r\nc");
        assert_eq!([0, 2, 3, 5, 99].map(|offset| lines.line_at(offset)), [1, 2, 2, 3, 3]);
    }
}
