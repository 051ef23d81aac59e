//! `requests` and `mode`, as they are parsed. Does nothing.

use clap::{Args, Subcommand};

use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::args::mode;
use crate::model::mode::Mode;
use crate::model::rules::{List, Rule};

/// List what members wait for: plans, permissions, hosts, and shutdowns that are under way.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  phalanx requests --all\n  phalanx requests show perm-1795214628804-k2j",
    args_conflicts_with_subcommands = true
)]
pub(super) struct Requests {
    /// Show what was answered, too.
    #[arg(long)]
    pub(super) all: bool,
    #[command(subcommand)]
    pub(super) verb: Option<RequestsVerb>,
}

/// Verbs about one request.
#[derive(Debug, Subcommand)]
pub(super) enum RequestsVerb {
    /// Show one request in full: the plan, the command, the edit as a diff, the question.
    Show {
        /// The request's id.
        #[arg(value_name = "ID")]
        id: String,
    },
}

/// Ask members to work in another permission mode from now on.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  phalanx mode ada acceptEdits\n  phalanx mode --all plan")]
pub(super) struct SetMode {
    /// Whose.
    #[arg(required_unless_present = "all", value_name = "NAME")]
    pub(super) name: Option<String>,
    /// Of all members that read mail.
    #[arg(long)]
    pub(super) all: bool,
    #[arg(value_parser = mode(), required_unless_present = "all", value_name = "MODE")]
    pub(super) mode: Option<Mode>,
}

/// Show what members may do unasked, must not do and must ask for; or add a rule, or take one away.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  phalanx rules\n  phalanx rules deny \"Bash(git push:*)\"\n  phalanx rules deny --remove \"Bash(git push:*)\"\n\n\
    It holds at once. Programs that know such rules are told of new ones; what they were told before they keep."
)]
pub(super) struct Rules {
    /// Which list is changed.
    #[arg(value_parser = list(), value_name = "deny|ask|allow", requires = "patterns")]
    pub(super) list: Option<List>,
    /// What is added, or taken away: `Bash(git:*)`, `Edit(src/**)`; several with commas between them.
    #[arg(value_parser = Rule::parse_list, value_name = "PATTERN")]
    pub(super) patterns: Vec<Vec<Rule>>,
    /// Take these out of the team's list.
    #[arg(long, requires = "list")]
    pub(super) remove: bool,
}

fn list() -> impl TypedValueParser<Value = List> {
    PossibleValuesParser::new(List::ALL.map(List::as_str))
        .map(|word| List::ALL.into_iter().find(|list| list.as_str() == word).unwrap_or(List::Ask))
}
