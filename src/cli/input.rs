//! `type` and `keys`: send input to a member's terminal.

use serde_json::json;

use super::Done;
use super::args_input::{Keys, Type};
use super::fail::{Exit, Failure};
use super::setup::Setup;
use crate::model::input::Text;
use crate::ops;
use crate::ops::authority::Action;

pub(super) fn type_text(setup: &Setup, args: &Type) -> Done {
    let (team, name) = setup.member(&args.name, Action::Type)?;
    let text = Text::parse(&args.text).map_err(|problem| {
        let hint = format!("press keys with `phalanx keys {name} KEY…`: Enter, Tab, Escape, C-c");
        Failure::usage(format!("TEXT {problem}"), &hint)
    })?;
    let typed = ops::input::type_text(&setup.ctx, &team, &name, text, args.enter)?;
    let unit = if typed == 1 { "byte" } else { "bytes" };
    let enter = if args.enter { " and Enter" } else { "" };
    setup.out.confirm(&json!({ "name": name, "typed": typed }), || {
        format!("typed {typed} {unit}{enter} into the terminal of {name}")
    })?;
    Ok(Exit::DONE)
}

pub(super) fn keys(setup: &Setup, args: &Keys) -> Done {
    let (team, name) = setup.member(&args.name, Action::Type)?;
    let count = args.keys.len();
    ops::input::press(&setup.ctx, &team, &name, args.keys.clone())?;
    let unit = if count == 1 { "key" } else { "keys" };
    setup.out.confirm(&json!({ "name": name, "keys": count }), || {
        format!("pressed {count} {unit} in the terminal of {name}")
    })?;
    Ok(Exit::DONE)
}
