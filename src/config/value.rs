//! Types of values in configuration files. Each is a new type rather than a conversion, so that the
//! deserializer reports a fault at the value itself, also inside a list.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeOwned, Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::model::name::{check_member_name, check_name, check_pattern, check_variable};
use crate::model::rules::Rule;
use crate::model::worktree::check_inside;

/// Stands for the key and its section at the start of a message: `` `name` in [team] ``.
pub(crate) const FIELD: &str = "{field}";

/// PlainText without NUL bytes, since it is used in a command line or a path.
#[derive(Debug, Deserialize)]
pub(crate) struct PlainText(#[serde(deserialize_with = "text")] pub(crate) String);

/// PlainText that is not blank.
#[derive(Debug, Deserialize)]
pub(crate) struct NonBlank(#[serde(deserialize_with = "word")] pub(crate) String);

/// A name that phalanx may create.
#[derive(Debug, Deserialize)]
pub(crate) struct Name(#[serde(deserialize_with = "name")] pub(crate) String);

/// The name of a new member.
#[derive(Debug, Deserialize)]
pub(crate) struct NewMemberName(#[serde(deserialize_with = "member_name")] pub(crate) String);

/// The name of an environment variable, as a key.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
struct VariableName(#[serde(deserialize_with = "variable_name")] String);

/// The name of an environment variable, or a prefix followed by `*`.
#[derive(Debug, Deserialize)]
pub(crate) struct VariablePattern(
    #[serde(deserialize_with = "variable_pattern")] pub(crate) String,
);

/// The path of a file inside the repository.
#[derive(Debug, Deserialize)]
pub(crate) struct InsidePath(#[serde(deserialize_with = "inside_path")] pub(crate) String);

/// Comma-separated permission patterns.
#[derive(Debug, Deserialize)]
pub(crate) struct Patterns(#[serde(deserialize_with = "patterns")] pub(crate) Vec<Rule>);

/// One of the fixed words of an enum.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "T: DeserializeOwned"))]
pub(crate) struct Choice<T>(#[serde(deserialize_with = "choice")] pub(crate) T);

/// An integer that is not less than `LEAST`.
#[derive(Debug)]
pub(crate) struct AtLeast<const LEAST: usize>(pub(crate) usize);

/// A command line: program and arguments.
#[derive(Debug)]
pub(crate) struct Argv(pub(crate) Vec<String>);

/// Environment variables with their values.
#[derive(Debug, Default)]
pub(crate) struct Variables(pub(crate) BTreeMap<String, String>);

/// Deserializes a string and parses it. The message of an error may begin with [`FIELD`].
pub(crate) fn parsed<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, D::Error> {
    parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}

pub(crate) fn parse_text(text: &str) -> Result<String, String> {
    if text.contains('\0') {
        return Err(format!("{FIELD} must not contain a NUL character"));
    }
    Ok(text.to_owned())
}

pub(crate) fn parse_word(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err(format!("{FIELD} is empty"));
    }
    parse_text(text)
}

/// Parses a word that follows a rule whose message continues a sentence starting with the word.
pub(crate) fn checked(
    text: Result<String, String>,
    rule: fn(&str) -> Result<(), String>,
) -> Result<String, String> {
    let text = text?;
    match rule(&text) {
        Ok(()) => Ok(text),
        Err(said) => Err(format!("{FIELD}: `{}` {said}", text.escape_debug())),
    }
}

fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    parsed(deserializer, parse_text)
}

fn word<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    parsed(deserializer, parse_word)
}

fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    parsed(deserializer, |text| checked(parse_word(text), check_name))
}

fn member_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    parsed(deserializer, |text| checked(parse_word(text), check_member_name))
}

fn variable_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    parsed(deserializer, |text| {
        check_variable(text).map_err(|said| format!("{FIELD} {said}"))?;
        Ok(text.to_owned())
    })
}

fn variable_pattern<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    parsed(deserializer, |text| checked(parse_text(text), check_pattern))
}

fn inside_path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    parsed(deserializer, |text| checked(parse_text(text), check_inside))
}

fn patterns<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Rule>, D::Error> {
    parsed(deserializer, |text| {
        let text = parse_text(text)?;
        Rule::parse_list(&text).map_err(|said| format!("the pattern {}", said.escape_debug()))
    })
}

fn choice<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<T, D::Error> {
    parsed(deserializer, |text| {
        let word = parse_word(text)?;
        let word = StrDeserializer::<serde::de::value::Error>::new(&word);
        T::deserialize(word).map_err(|e| e.to_string())
    })
}

impl<'de, const LEAST: usize> Deserialize<'de> for AtLeast<LEAST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<AtLeast<LEAST>, D::Error> {
        let number = usize::try_from(i64::deserialize(deserializer)?).ok();
        number
            .filter(|number| *number >= LEAST)
            .map(AtLeast)
            .ok_or_else(|| D::Error::custom(format!("{FIELD} must be at least {LEAST}")))
    }
}

impl<'de> Deserialize<'de> for Variables {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Variables, D::Error> {
        let entries = BTreeMap::<VariableName, PlainText>::deserialize(deserializer)?;
        Ok(Variables(entries.into_iter().map(|(name, value)| (name.0, value.0)).collect()))
    }
}

impl<'de> Deserialize<'de> for Argv {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Argv, D::Error> {
        deserializer.deserialize_seq(ArgvVisitor)
    }
}

struct ArgvVisitor;

impl<'de> Visitor<'de> for ArgvVisitor {
    type Value = Argv;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a list of strings")
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Argv, E> {
        Err(E::custom(format!(
            "{FIELD} must be a list of strings (program and arguments); it is not run by a shell"
        )))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Argv, A::Error> {
        let mut argv = Vec::new();
        while let Some(PlainText(word)) = items.next_element()? {
            argv.push(word);
        }
        match argv.first() {
            None => Err(A::Error::custom(format!("{FIELD} is empty"))),
            Some(program) if program.trim().is_empty() => {
                Err(A::Error::custom(format!("{FIELD} does not name a program")))
            }
            Some(_) => Ok(Argv(argv)),
        }
    }
}
