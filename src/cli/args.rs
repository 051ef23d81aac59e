//! Options and values that several verbs take.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use strum::{IntoEnumIterator, VariantNames};

use crate::fail::Failure;
use crate::out::Color;
use model::id::{HostName, RequestId};
use model::members::mode::Mode;
use model::team::settings::BackendChoice;

/// Options of every verb.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub(super) struct Global {
    /// Team to use [default: $PHALANX_TEAM, else the only one that phalanx made, else the only one,
    /// or the only one that is led from this directory].
    #[arg(short, long, global = true, value_name = "NAME")]
    pub(super) team: Option<String>,
    /// Directory that holds the teams [default: $PHALANX_CONFIG_DIR, $CLAUDE_CONFIG_DIR,
    /// ~/.claude].
    #[arg(long, global = true, value_name = "DIR")]
    pub(super) config_dir: Option<PathBuf>,
    /// Member to act as [default: $PHALANX_AGENT_NAME, else team-lead].
    #[arg(long = "as", global = true, value_name = "NAME")]
    pub(super) speaker: Option<String>,
    /// Print JSON: one document, or one per line for streams.
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// Print only requested data and failures.
    #[arg(short, long, global = true)]
    pub(super) quiet: bool,
    /// Print more details.
    #[arg(short, long, global = true, conflicts_with = "quiet")]
    pub(super) verbose: bool,
    /// When to use colours.
    #[arg(long, global = true, value_enum, default_value = "auto", value_name = "WHEN")]
    pub(super) color: Color,
}

// A member. Not a doc comment: clap would show it as the description of the verbs.
#[derive(Debug, Args, Deserialize, JsonSchema)]
pub(super) struct MemberArg {
    /// Name of the member.
    pub(super) name: String,
}

pub(super) fn host_name(given: &str) -> Result<HostName, String> {
    HostName::new(given).map_err(|e| e.to_string())
}

pub(super) fn backend(given: &str) -> Result<BackendChoice, String> {
    given.parse().map_err(|_| format!("possible: {}", BackendChoice::VARIANTS.join(", ")))
}

/// Parses one of the words of an enum.
pub(super) fn word<T>() -> impl TypedValueParser<Value = T>
where
    T: VariantNames + FromStr<Err = strum::ParseError> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(T::VARIANTS).try_map(|word| word.parse::<T>())
}

pub(super) fn mode() -> impl TypedValueParser<Value = Mode> {
    let values = Mode::iter().map(|mode| {
        let value = PossibleValue::new(mode.as_str());
        // As later releases of Claude Code call it.
        if mode == Mode::Default { value.alias("manual") } else { value }
    });
    PossibleValuesParser::new(values).map(|word| Mode::parse(&word).unwrap_or(Mode::Default))
}

/// Parses a number of seconds, with optional decimals.
pub(super) fn seconds(given: &str) -> Result<Duration, String> {
    let number: f64 = given.parse().map_err(|_| "not a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(number).map_err(|_| "not a number of seconds".to_owned())
}

pub(super) fn object(given: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(given).map_err(|e| format!("not a JSON object: {e}"))
}

pub(super) fn request_id(given: &str) -> Result<RequestId, Failure> {
    RequestId::parse(given).map_err(|_| {
        let hint = "see what waits with `phalanx requests`";
        Failure::usage(format!("{given:?} is not the id of a request"), hint)
    })
}
