//! Hooks in phalanx's own format: `[[hook]]` in a manifest or in `hooks.toml`.

use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::value::TableList;
use crate::{ConfigError, Document, Faults, Place, parse};
use model::team::hook::{HookCommand, HookEvent, Invocation, LONGEST_S, Matcher, TIMEOUT_S};
use model::value::{Argv, Choice, FIELD, checked, inline_schema, parse_text, text_types};

/// The contents of a user's `hooks.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct OwnHooks {
    pub hooks: Vec<HookCommand>,
    /// Directories of projects whose Claude Code settings may run hooks.
    pub trusted: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct OwnHooksTable {
    trusted: Vec<AbsolutePath>,
    hook: TableList<HookTable>,
}

/// A `[[hook]]`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "hook")]
pub(crate) struct HookTable {
    /// The event at which the command runs.
    event: Choice<HookEvent>,
    /// Roles of the members for which it runs: names separated by `|`, or a regular expression; all
    /// by default. Only for `SubagentStart` and `SubagentStop`. See `phalanx docs events hooks`.
    matcher: Option<MatcherText>,
    /// The command.
    run: Argv,
    /// Seconds after which the command is ended, at most 3600.
    #[schemars(extend("default" = TIMEOUT_S))]
    timeout: Option<Timeout>,
}

text_types! {
    pub(crate) AbsolutePath(String) = |path| checked(parse_text(path), check_absolute);
    pub(crate) MatcherText(Option<Matcher>) =
        |text| Matcher::parse(text).map_err(|problem| format!("{FIELD} {problem}"));
}

fn check_absolute(path: &str) -> Result<(), String> {
    if path.starts_with('/') { Ok(()) } else { Err("is not an absolute path".to_owned()) }
}

/// A timeout in seconds.
#[derive(Debug)]
struct Timeout(u64);

inline_schema!(Timeout, { "type": "integer", "minimum": 1, "maximum": LONGEST_S });

impl<'de> Deserialize<'de> for Timeout {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Timeout, D::Error> {
        match u64::try_from(i64::deserialize(deserializer)?) {
            Ok(seconds @ 1..=LONGEST_S) => Ok(Timeout(seconds)),
            Ok(_) | Err(_) => {
                Err(D::Error::custom(format!("{FIELD} must be from 1 to {LONGEST_S}, in seconds")))
            }
        }
    }
}

/// Parses a `hooks.toml`.
///
/// # Errors
/// The first fault with its position: invalid TOML, an unknown key, or an invalid value.
pub(crate) fn parse_own_hooks(text: &str) -> Result<OwnHooks, ConfigError> {
    let table: OwnHooksTable = parse(Document { title: "hooks.toml", denied: &[] }, text)?;
    let mut faults = Faults::new(text);
    let hooks = hook_commands(table.hook, &mut faults);
    faults.into_result()?;
    Ok(OwnHooks { hooks, trusted: table.trusted.into_iter().map(|path| path.0).collect() })
}

/// Converts the `[[hook]]` tables of a file and adds their faults to `faults`.
pub(crate) fn hook_commands(tables: TableList<HookTable>, faults: &mut Faults) -> Vec<HookCommand> {
    let tables = tables.0.into_iter().enumerate();
    tables.map(|(at, table)| hook_command(at, table, faults)).collect()
}

fn hook_command(at: usize, table: HookTable, faults: &mut Faults) -> HookCommand {
    let event = table.event.0;
    if table.matcher.is_some() && !event.has_matcher() {
        let message = format!(
            "`matcher` in [[hook]] has no meaning for {}: it runs for every one",
            event.as_str()
        );
        faults.add_at(&[Place::Key("hook"), Place::Index(at), Place::Key("matcher")], message);
    }
    HookCommand {
        event,
        matcher: table.matcher.and_then(|matcher| matcher.0),
        run: Invocation::Program(table.run.0),
        timeout_s: table.timeout.map_or(TIMEOUT_S, |timeout| timeout.0),
    }
}
