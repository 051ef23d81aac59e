//! `plan submit` and `ask permission`: questions of a member to the lead.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::Done;
use super::args_ask::{AskVerb, Permission, PlanVerb};
use super::fail::{Exit, Failure};
use super::setup::Setup;
use super::spawn::text_from;
use crate::ops::ask::{Sent, ToolUse, ask_permission, submit_plan};
use crate::ops::authority::Action;

/// The tool that runs a command line.
const SHELL_TOOL: &str = "Bash";

pub(super) fn plan(setup: &Setup, verb: PlanVerb) -> Done {
    let PlanVerb::Submit { file } = verb;
    let team = setup.team(Action::Talk)?;
    let text = text_from("plan", &file)?;
    if text.trim().is_empty() {
        return Err(Failure::usage(
            "the plan is empty",
            "write what will be done, in which order, and how it is checked",
        ));
    }
    let path = (file != Path::new("-")).then(|| setup.ctx.caller.cwd.join(&file));
    let path = path.map(|path| path.to_string_lossy().into_owned());
    show(setup, &submit_plan(&setup.ctx, &team, path, text)?)
}

pub(super) fn ask(setup: &Setup, verb: AskVerb) -> Done {
    let AskVerb::Permission(args) = verb;
    let team = setup.team(Action::Talk)?;
    let sent = ask_permission(&setup.ctx, &team, tool_use(args))?;
    show(setup, &sent)
}

fn tool_use(args: Permission) -> ToolUse {
    let command =
        args.command.map(|command| Map::from_iter([("command".to_owned(), json!(command))]));
    let input = command.or(args.input).unwrap_or_default();
    let tool = args.tool.unwrap_or_else(|| SHELL_TOOL.to_owned());
    ToolUse { tool, input: Value::Object(input), description: args.reason }
}

fn show(setup: &Setup, sent: &Sent) -> Done {
    setup.out.confirm(sent, || match &sent.input {
        _ if sent.state == "pending" => {
            format!("sent as {}; the answer arrives as a message", sent.request_id)
        }
        Some(input) => format!("allowed with this input: {input}"),
        None => "allowed".to_owned(),
    })?;
    Ok(Exit::DONE)
}
