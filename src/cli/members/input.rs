//! `type` and `keys`: send input to a member's terminal.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};
use serde_json::json;

use crate::fail::{Failure, VerbResult};
use crate::json;
use crate::setup::Setup;
use model::members::input::{Key, Text};
use ops::authority::Action;

/// Type a text into a member's terminal, whatever runs there.
#[derive(Debug, Args, Deserialize, JsonSchema)]
#[command(
    after_help = "Examples:\n  phalanx type server \"reload all\" --enter\n  phalanx type ada -- --help\n\n\
    The text arrives byte for byte. A line break is Enter; a program that asked for bracketed paste gets a text of \
    several lines as one paste. To write to an agent that reads mail, use `phalanx send`."
)]
pub(crate) struct TypeArgs {
    /// The member's name.
    pub(crate) name: String,
    /// The text, without control characters: `phalanx keys` has those.
    pub(crate) text: String,
    /// Press Enter afterwards.
    #[arg(long)]
    #[serde(default)]
    pub(crate) enter: bool,
    /// Type it even if a dialog is open, which it may answer.
    #[arg(long)]
    #[serde(default)]
    pub(crate) at_dialog: bool,
}

/// Press keys in a member's terminal.
#[derive(Debug, Args, Deserialize, JsonSchema)]
#[command(
    after_help = "Examples:\n  phalanx keys server C-c\n  phalanx keys ada Escape Up Up Enter\n\n\
    Keys are named as in tmux: a character, Enter, Escape, Space, Tab, BTab, BSpace, Up, Down, Left, Right, Home, End, \
    PageUp, PageDown, Insert, Delete, F1 to F12; C- is Control, M- is Alt, S- is Shift."
)]
pub(crate) struct KeysArgs {
    /// The member's name.
    pub(crate) name: String,
    /// The keys, in order.
    #[arg(required = true, value_name = "KEY")]
    #[serde(deserialize_with = "keys_from_json")]
    #[schemars(schema_with = "json::texts")]
    pub(crate) keys: Vec<Key>,
    /// Press them even if a dialog is open, which they may answer.
    #[arg(long)]
    #[serde(default)]
    pub(crate) at_dialog: bool,
}

fn keys_from_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Key>, D::Error> {
    let given = Vec::<String>::deserialize(deserializer)?;
    given.iter().map(|key| key.parse().map_err(de::Error::custom)).collect()
}

pub(crate) fn type_text(setup: &Setup, args: &TypeArgs) -> VerbResult {
    let (team, name) = setup.member(&args.name, Action::Type)?;
    let text = Text::parse(&args.text).map_err(|problem| {
        let hint = format!("press keys with `phalanx keys {name} KEY…`: Enter, Tab, Escape, C-c");
        Failure::usage(format!("TEXT {problem}"), &hint)
    })?;
    let TypeArgs { enter, at_dialog, .. } = *args;
    let typed = ops::views::input::type_text(&setup.ctx, &team, &name, text, enter, at_dialog)?;
    let unit = if typed == 1 { "byte" } else { "bytes" };
    let enter = if enter { " and Enter" } else { "" };
    setup.out.confirm(&json!({ "name": name, "typed": typed }), || {
        format!("typed {typed} {unit}{enter} into the terminal of {name}")
    })
}

pub(crate) fn keys(setup: &Setup, args: &KeysArgs) -> VerbResult {
    let (team, name) = setup.member(&args.name, Action::Type)?;
    let count = args.keys.len();
    ops::views::input::press(&setup.ctx, &team, &name, args.keys.clone(), args.at_dialog)?;
    let unit = if count == 1 { "key" } else { "keys" };
    setup.out.confirm(&json!({ "name": name, "keys": count }), || {
        format!("pressed {count} {unit} in the terminal of {name}")
    })
}
