//! `plan submit` and `ask permission`: questions of a member to the lead.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::args::object;
use crate::fail::{Failure, VerbResult};
use crate::read::text_from;
use crate::setup::Setup;
use ops::authority::Action;
use ops::decisions::ask::{FiledRequest, ToolUse, ask_permission, submit_plan};

/// The subcommands about the caller's plan.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum PlanVerb {
    /// Submit a plan to the lead; its answer arrives as a message.
    #[command(
        after_help = "Examples:\n  phalanx plan submit plan.md\n  phalanx plan submit - < plan.md\n\n\
        Change nothing until the plan is approved. A rejected plan can be revised and submitted again. \
        Outside the member's own program add --as NAME."
    )]
    Submit {
        /// The plan, as Markdown; - reads stdin.
        file: PathBuf,
    },
}

/// The subcommands for questions to the lead.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum AskVerb {
    Permission(PermissionArgs),
}

/// Ask the lead for permission to run a command, or to use another tool.
#[derive(Debug, Args, Deserialize, JsonSchema)]
#[command(
    after_help = "Examples:\n  phalanx ask permission \"make deploy\" --reason \"the release is tested\"\n  \
    phalanx ask permission --tool Edit --input '{\"file_path\": \"/etc/hosts\"}'\n  \
    phalanx ask permission \"make deploy\" && make deploy\n\n\
    The rules of the team decide first, then a person or the agent that leads. A member that reads mail gets the answer \
    as a message. For a plain command this waits: exit 0 if allowed, 4 if denied, 5 if no answer came in time. \
    Outside the member's own program add --as NAME."
)]
pub(crate) struct PermissionArgs {
    /// The shell command to run.
    #[arg(required_unless_present = "input", conflicts_with = "input")]
    pub(crate) command: Option<String>,
    /// Name of another tool.
    #[arg(long, requires = "input")]
    pub(crate) tool: Option<String>,
    /// Input of that tool, a JSON object.
    #[arg(long, value_parser = object, value_name = "JSON", requires = "tool")]
    #[serde(default)]
    #[schemars(schema_with = "crate::json::object")]
    pub(crate) input: Option<Map<String, Value>>,
    /// Reason, for the person or agent who decides.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

/// The tool that runs a command line.
const SHELL_TOOL: &str = "Bash";

pub(crate) fn plan(setup: &Setup, verb: PlanVerb) -> VerbResult {
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

pub(crate) fn ask(setup: &Setup, verb: AskVerb) -> VerbResult {
    let AskVerb::Permission(args) = verb;
    let team = setup.team(Action::Talk)?;
    let sent = ask_permission(&setup.ctx, &team, tool_use(args))?;
    show(setup, &sent)
}

fn tool_use(args: PermissionArgs) -> ToolUse {
    let command =
        args.command.map(|command| Map::from_iter([("command".to_owned(), json!(command))]));
    let input = command.or(args.input).unwrap_or_default();
    let tool = args.tool.unwrap_or_else(|| SHELL_TOOL.to_owned());
    ToolUse { tool, input: Value::Object(input), description: args.reason }
}

fn show(setup: &Setup, sent: &FiledRequest) -> VerbResult {
    setup.out.confirm_new(sent, &sent.request_id, || match &sent.input {
        _ if sent.state == "pending" => {
            format!("sent as {}; the answer arrives as a message", sent.request_id)
        }
        Some(input) => format!("allowed with this input: {input}"),
        None => "allowed".to_owned(),
    })
}
