//! The processes of a file, and how parts of files are read.

use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use model::members::readiness::ReadyCheck;

/// The processes of a file. Keys without a counterpart in a manifest are in the notes.
#[derive(Debug, Default)]
pub struct ProcessList {
    /// Name of the session, if the file has one.
    pub name: Option<String>,
    pub(super) processes: Vec<ProcessEntry>,
    pub(super) notes: Vec<String>,
}

/// A process.
#[derive(Debug, Default)]
pub(super) struct ProcessEntry {
    /// As the file has it; not necessarily a valid name.
    pub(super) name: String,
    pub(super) run: Vec<String>,
    pub(super) cwd: Option<String>,
    pub(super) env: Vec<(String, String)>,
    /// The value of `restart`, if it is not the default.
    pub(super) restart: Option<&'static str>,
    pub(super) ready: Option<ReadyCheck>,
    /// The name of the process in the file, which several entries may have.
    pub(super) source: String,
    /// The processes that must be ready first, by their names in the file.
    pub(super) after: Vec<String>,
    /// The file does not start it by itself.
    pub(super) is_off: bool,
    pub(super) notes: Vec<String>,
}

/// The environment variables and the home directory, for paths that begin with `~`.
#[derive(Debug, Clone, Copy)]
pub struct ProcessHome<'a>(pub Option<&'a Path>);

impl ProcessHome<'_> {
    /// Returns a directory as a manifest has it.
    pub(super) fn expand(self, dir: &str) -> String {
        match (dir.strip_prefix('~'), self.0) {
            (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
                format!("{}{rest}", home.display())
            }
            _ => dir.to_owned(),
        }
    }
}

/// Reads a part of a file. `place` names it in errors.
pub(super) fn read<T: DeserializeOwned>(place: &str, value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|e| format!("{place}: {e}"))
}

/// Returns the keys that have no counterpart, as notes.
pub(super) fn rest(rest: Map<String, Value>) -> impl Iterator<Item = String> {
    rest.into_iter().map(|(key, value)| without_counterpart(&key, &value))
}

pub(super) fn without_counterpart(key: &str, value: &Value) -> String {
    match value {
        Value::String(text) => format!("`{key}: {text}` has no counterpart"),
        value => format!("`{key}: {value}` has no counterpart"),
    }
}

/// Returns the words of a command that is meant for a shell: without a shell, if it is only words.
pub(super) fn shell_words(command: &str) -> Vec<String> {
    let command = command.trim();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " _./:@,+-=".contains(c);
    let words: Vec<&str> = command.split(' ').filter(|word| !word.is_empty()).collect();
    let builtin = ["cd", "source", ".", "export", "exec", "eval", "ulimit", "set", "alias"];
    let is_program = |word: &&str| !builtin.contains(word) && !word.contains('=');
    if command.chars().all(is_plain) && words.first().is_some_and(is_program) {
        return words.into_iter().map(str::to_owned).collect();
    }
    in_shell(command)
}

/// Returns the words that run commands in a shell, as the user's file asks for.
pub(super) fn in_shell(commands: &str) -> Vec<String> {
    ["sh", "-c", commands].map(str::to_owned).to_vec()
}

/// Returns the text of a scalar; `None` for null, a list or a mapping.
pub(super) fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Reads variables: a mapping, or a list of `NAME=VALUE`. Adds a note for each that is none.
pub(super) fn variables(value: Value, notes: &mut Vec<String>) -> Vec<(String, String)> {
    let mut note = |text: String| notes.push(format!("the variable {text} has no value; left out"));
    match value {
        Value::Object(map) => map
            .into_iter()
            .filter_map(|(name, value)| match scalar(&value) {
                Some(value) => Some((name, value)),
                None => {
                    note(name);
                    None
                }
            })
            .collect(),
        Value::Array(list) => list
            .iter()
            .filter_map(|one| {
                let text = scalar(one).unwrap_or_default();
                match text.split_once('=') {
                    Some((name, value)) => Some((name.to_owned(), value.to_owned())),
                    None => {
                        note(text);
                        None
                    }
                }
            })
            .collect(),
        _ => Vec::new(),
    }
}
