//! The command lines of `plan` and `ask`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Map, Value};

use super::args_answer::object;

/// The subcommands about the caller's plan.
#[derive(Debug, Subcommand)]
pub(super) enum PlanVerb {
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
pub(super) enum AskVerb {
    Permission(Permission),
}

/// Ask the lead for permission to run a command, or to use another tool.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  phalanx ask permission \"make deploy\" --reason \"the release is tested\"\n  \
    phalanx ask permission --tool Edit --input '{\"file_path\": \"/etc/hosts\"}'\n  \
    phalanx ask permission \"make deploy\" && make deploy\n\n\
    The rules of the team decide first, then a person or the agent that leads. A member that reads mail gets the answer \
    as a message. For a plain command this waits: exit 0 if allowed, 4 if denied, 5 if nobody answered in time. \
    Outside the member's own program add --as NAME."
)]
pub(super) struct Permission {
    /// The shell command to run.
    #[arg(required_unless_present = "input", conflicts_with = "input")]
    pub(super) command: Option<String>,
    /// Name of another tool.
    #[arg(long, requires = "input")]
    pub(super) tool: Option<String>,
    /// Input of that tool, a JSON object.
    #[arg(long, value_parser = object, value_name = "JSON", requires = "tool")]
    pub(super) input: Option<Map<String, Value>>,
    /// Reason, for the person or agent who decides.
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: Option<String>,
}
