//! Arguments of verbs as JSON, which the tools of `phalanx mcp` receive: the values that clap
//! parses from text, and their schemas.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};
use strum::VariantNames;

use model::decisions::rules::Rule;

/// Parses a text with the parser of the command line.
pub(super) fn text<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<T, D::Error> {
    parse(&String::deserialize(deserializer)?).map_err(de::Error::custom)
}

/// Parses a text that may be missing, with the parser of the command line.
pub(super) fn optional<'de, D: Deserializer<'de>, T, E: Display>(
    deserializer: D,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<Option<T>, D::Error> {
    let given = Option::<String>::deserialize(deserializer)?;
    given.map(|text| parse(&text).map_err(de::Error::custom)).transpose()
}

/// Parses one of the words of an enum; it may be missing.
pub(super) fn word<'de, D: Deserializer<'de>, T: VariantNames + FromStr>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let known = || format!("possible: {}", T::VARIANTS.join(", "));
    optional(deserializer, |word| word.parse().map_err(|_| known()))
}

/// Parses lists of patterns of tools.
pub(super) fn rules<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<Vec<Rule>>, D::Error> {
    let given = Vec::<String>::deserialize(deserializer)?;
    given.iter().map(|list| Rule::parse_list(list).map_err(de::Error::custom)).collect()
}

/// Parses an object of variables of the environment.
pub(super) fn variables<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<(String, String)>, D::Error> {
    Ok(BTreeMap::<String, String>::deserialize(deserializer)?.into_iter().collect())
}

/// Parses a number of seconds.
pub(super) fn seconds<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    let Some(seconds) = Option::<f64>::deserialize(deserializer)? else { return Ok(None) };
    Duration::try_from_secs_f64(seconds).map(Some).map_err(de::Error::custom)
}

/// The schema of a word of a fixed list.
pub(super) fn words<T: VariantNames>(_generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": T::VARIANTS })
}

/// The schema of a list of texts.
pub(super) fn texts(_generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": { "type": "string" } })
}

/// The schema of any JSON object.
pub(super) fn object(_generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object" })
}
