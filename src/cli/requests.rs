//! `requests`, `answer` and `mode`.

use super::Done;
use super::args_request::{Answer, Requests, SetMode};
use super::fail::{Exit, Failure};
use super::setup::{Setup, member};
use crate::model::id::RequestId;
use crate::model::mode::Mode;
use crate::ops::{self, decide};
use crate::ui;

pub(super) fn requests(setup: &Setup, args: &Requests) -> Done {
    let shown = decide::requests(&setup.ctx, &setup.team()?, args.all)?;
    setup.out.give(&shown, || ui::requests(&shown, setup.out.paint))?;
    Ok(Exit::DONE)
}

pub(super) fn answer(setup: &Setup, args: Answer) -> Done {
    let team = setup.team()?;
    let id = RequestId::parse(&args.id).map_err(|_| {
        let hint = "see what waits with `phalanx requests`";
        Failure::usage(format!("{:?} is not the id of a request", args.id), hint)
    })?;
    let answer = decide::Answer { approve: args.approve, reason: args.reason, mode: args.mode };
    let question = decide::answer(&setup.ctx, &team, &id, &answer)?;
    let told = serde_json::json!({
        "request_id": question.id, "kind": question.kind, "from": question.from, "state": question.state(),
    });
    setup.out.give(&told, || format!("{} was told: {}", question.from, question.state()))?;
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
