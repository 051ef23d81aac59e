//! The command line of `requests`, `mode` and `rules`.

use clap::{Args, Subcommand};

use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::args::mode;
use crate::model::mode::Mode;
use crate::model::rules::{List, Rule};

/// List open requests: plans, permissions, hosts and shutdowns.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  phalanx requests --all\n  phalanx requests show perm-1795214628804-k2j",
    args_conflicts_with_subcommands = true
)]
pub(super) struct Requests {
    /// Include requests that were answered.
    #[arg(long)]
    pub(super) all: bool,
    #[command(subcommand)]
    pub(super) verb: Option<RequestsVerb>,
}

/// The subcommands about one request.
#[derive(Debug, Subcommand)]
pub(super) enum RequestsVerb {
    /// Show one request in full: the plan, the command, the edit as a diff, the question.
    Show {
        /// The request's id.
        #[arg(value_name = "ID")]
        id: String,
    },
}

/// Change the permission mode of members.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  phalanx mode ada acceptEdits\n  phalanx mode --all plan")]
pub(super) struct SetMode {
    /// Member to change.
    #[arg(required_unless_present = "all", value_name = "NAME")]
    pub(super) name: Option<String>,
    /// Change all members that read mail.
    #[arg(long)]
    pub(super) all: bool,
    /// The new mode.
    #[arg(value_parser = mode(), required_unless_present = "all", value_name = "MODE")]
    pub(super) mode: Option<Mode>,
}

/// Show, add or remove rules for what members may do.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  phalanx rules\n  phalanx rules deny \"Bash(git push:*)\"\n  phalanx rules deny --remove \"Bash(git push:*)\"\n\n\
    A change applies at once. A program that already has its own copy of a removed rule keeps it until it restarts."
)]
pub(super) struct Rules {
    /// List to change.
    #[arg(value_parser = list(), value_name = "deny|ask|allow", requires = "patterns")]
    pub(super) list: Option<List>,
    /// Patterns such as `Bash(git:*)` or `Edit(src/**)`, separated by commas.
    #[arg(value_parser = Rule::parse_list, value_name = "PATTERN")]
    pub(super) patterns: Vec<Vec<Rule>>,
    /// Remove the patterns from the list.
    #[arg(long, requires = "list")]
    pub(super) remove: bool,
}

fn list() -> impl TypedValueParser<Value = List> {
    PossibleValuesParser::new(List::ALL.map(List::as_str))
        .map(|word| List::ALL.into_iter().find(|list| list.as_str() == word).unwrap_or(List::Ask))
}
