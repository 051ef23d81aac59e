//! `requests`, `mode` and `rules`.

use super::Done;
use super::args_request::{Requests, RequestsVerb, Rules, SetMode};
use super::fail::{Exit, Failure};

use super::setup::Setup;
use crate::model::id::RequestId;
use crate::model::mode::Mode;
use crate::model::rules::{List, Rule};
use crate::ops::authority::Action;
use crate::ops::modes::ModeChange;
use crate::ops::{self, TeamStore, decide};
use crate::ui;

pub(super) fn requests(setup: &Setup, args: &Requests) -> Done {
    if let Some(RequestsVerb::Show { id }) = &args.verb {
        let shown = decide::request(&setup.ctx, &setup.team(Action::Look)?, &request_id(id)?)?;
        setup.out.give(&shown, || ui::request_page(&shown, setup.out.paint))?;
        return Ok(Exit::DONE);
    }
    let shown = decide::requests(&setup.ctx, &setup.team(Action::Look)?, args.all)?;
    setup.out.give(&shown, || ui::requests(&shown, setup.out.paint))?;
    Ok(Exit::DONE)
}

pub(super) fn request_id(given: &str) -> Result<RequestId, Failure> {
    RequestId::parse(given).map_err(|_| {
        let hint = "see what waits with `phalanx requests`";
        Failure::usage(format!("{given:?} is not the id of a request"), hint)
    })
}

pub(super) fn mode(setup: &Setup, args: &SetMode) -> Done {
    // With `--all` the only positional argument is the mode.
    let (given, word) = match (args.all, &args.name, args.mode) {
        (true, Some(word), None) => (None, Mode::parse(word).ok_or(word.clone())),
        (false, Some(name), Some(mode)) => (Some(name), Ok(mode)),
        (_, given, _) => (None, Err(given.clone().unwrap_or_default())),
    };
    let mode = word.map_err(|word| {
        let known = Mode::ALL.map(Mode::as_str).join(", ");
        let hint =
            format!("write `phalanx mode NAME MODE` or `phalanx mode --all MODE`; modes: {known}");
        Failure::usage(format!("{word:?} is not a mode for all members"), &hint)
    })?;
    let (team, names) = setup.members(given.map_or(&[], std::slice::from_ref), Action::SetMode)?;
    let changes = ops::modes::set(&setup.ctx, &team, names.first(), mode)?;
    setup.out.confirm(&changes, || match changes.is_empty() {
        true => "no member changes its mode while it runs".to_owned(),
        false => changes.iter().map(change_line).collect::<Vec<_>>().join("\n"),
    })?;
    Ok(Exit::DONE)
}

fn change_line(change: &ModeChange) -> String {
    let mode = change.mode.as_str();
    match change.msg_id {
        Some(_) => format!("asked {} to change to mode {mode}", change.name),
        None => format!("{} is in mode {mode}", change.name),
    }
}

pub(super) fn rules(setup: &Setup, args: &Rules) -> Done {
    let team = setup.team(if args.list.is_some() { Action::SetRules } else { Action::Look })?;
    let Some(list) = args.list else {
        let rules = ops::rules::list(&team)?;
        setup.out.give(&rules, || ui::rules(&rules, setup.out.paint))?;
        return Ok(Exit::DONE);
    };
    if args.remove {
        return remove_rules(setup, &team, list, &args.patterns.concat());
    }
    let changed = ops::rules::add(&setup.ctx, &team, list, &args.patterns.concat())?;
    let told = changed.told.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if !changed.kept_back.is_empty() {
        setup.out.say(
            "programs ask on, and phalanx answers them: the same tool is denied or asked elsewhere",
        );
    }
    setup.out.confirm(&changed, || match (changed.added.len(), told.as_str()) {
        (0, _) => "nothing new".to_owned(),
        (n, "") => format!("{n} added to {}", list.as_str()),
        (n, told) => format!("{n} added to {}; told: {told}", list.as_str()),
    })?;
    Ok(Exit::DONE)
}

fn remove_rules(setup: &Setup, team: &TeamStore, list: List, rules: &[Rule]) -> Done {
    let done = ops::rules::remove(&setup.ctx, team, list, rules)?;
    if !done.kept_by.is_empty() {
        let names = done.kept_by.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        setup.out.say(&format!(
            "what their programs were told before they keep until they are started again: {names}"
        ));
    }
    setup
        .out
        .confirm(&done, || format!("{} taken out of {}", done.removed.len(), list.as_str()))?;
    Ok(Exit::DONE)
}
