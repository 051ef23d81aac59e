//! `requests` and `mode`.

use super::Done;
use super::args_request::{Requests, SetMode};
use super::fail::{Exit, Failure};
use super::setup::{Setup, member};
use crate::model::mode::Mode;
use crate::ops::{self, decide};
use crate::ui;

pub(super) fn requests(setup: &Setup, args: &Requests) -> Done {
    let shown = decide::requests(&setup.ctx, &setup.team()?, args.all)?;
    setup.out.give(&shown, || ui::requests(&shown, setup.out.paint))?;
    Ok(Exit::DONE)
}

pub(super) fn mode(setup: &Setup, args: &SetMode) -> Done {
    let team = setup.team()?;
    // With `--all` the only word is the mode.
    let (name, word) = match (args.all, &args.name, args.mode) {
        (true, Some(word), None) => (None, Mode::parse(word).ok_or(word.clone())),
        (false, Some(name), Some(mode)) => (Some(member(name)?), Ok(mode)),
        (_, given, _) => (None, Err(given.clone().unwrap_or_default())),
    };
    let mode = word.map_err(|word| {
        let known = Mode::ALL.map(Mode::as_str).join(", ");
        let hint = format!("write `phalanx mode NAME MODE` or `phalanx mode --all MODE`; modes: {known}");
        Failure::usage(format!("{word:?} is not a mode for all members"), &hint)
    })?;
    let asked = ops::modes::set(&setup.ctx, &team, name.as_ref(), mode)?;
    setup.out.give(&asked, || {
        let line =
            |one: &ops::modes::Asked| format!("{} was asked to work in mode {}", one.name, one.mode.as_str());
        asked.iter().map(line).collect::<Vec<_>>().join("\n")
    })?;
    Ok(Exit::DONE)
}
