//! The command line of `answer`. Does nothing.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgGroup, Args};
use serde_json::{Map, Value};

use super::args::mode;
use crate::model::mode::Mode;
use crate::model::protocol::ShutdownStatus;

/// Answer a request: as the lead a member's plan, permission or host, as a member the wish that it shut down.
#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("verdict").required(true).args(["approve", "reject"])),
    after_help = "Examples:\n  phalanx answer perm-1795214628804-k2j --approve\n  \
    phalanx answer perm-1795214628804-k2j --approve --always\n  \
    phalanx answer perm-1795214628804-k2j --approve --input '{\"command\": \"make test\"}'\n  \
    phalanx answer plan_approval-1795214628804@ada@demo --reject --reason \"leave the schema alone\"\n  \
    phalanx answer shutdown-1771364400000@ada --approve --committed\n  \
    phalanx answer shutdown-1771364400000@ada --approve --status in_progress --pending \"the tests\"\n  \
    phalanx answer shutdown-1771364400000@ada --reject --reason \"in the middle of #3\"\n\n\
    The lead sees what waits with `phalanx requests`, and one of them in full with `phalanx requests show ID`; a member finds the id in the message that asks. A program that runs in a member's place speaks for that member; \
    elsewhere say who speaks with --as."
)]
pub(super) struct Answer {
    /// The request's id.
    #[arg(value_name = "ID")]
    pub(super) id: String,
    /// Say yes.
    #[arg(long)]
    pub(super) approve: bool,
    /// Say no.
    #[arg(long)]
    pub(super) reject: bool,
    /// Why, or what to change; a member that refuses to end needs one.
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: Option<String>,
    /// With the approval of a plan: the permission mode to go on in; else the lead's own.
    #[arg(long, value_parser = mode(), value_name = "MODE", conflicts_with = "reject")]
    pub(super) mode: Option<Mode>,
    /// With the approval of a permission: call the tool with this input instead, a JSON object.
    #[arg(long, value_parser = object, value_name = "JSON", conflicts_with = "reject")]
    pub(super) input: Option<Map<String, Value>>,
    /// With the approval of a permission or a host: add a rule to the team that allows the same
    /// from now on.
    #[arg(long, conflicts_with = "reject")]
    pub(super) always: bool,
    /// How the work is left: clean, in_progress or error.
    #[arg(long, value_parser = status(), value_name = "STATUS", conflicts_with = "reject")]
    pub(super) status: Option<ShutdownStatus>,
    /// What is left to do; may be given several times.
    #[arg(long, value_name = "TEXT", conflicts_with = "reject")]
    pub(super) pending: Vec<String>,
    /// What was made is committed; it will be checked with git.
    #[arg(long, conflicts_with_all = ["reject", "uncommitted"])]
    pub(super) committed: bool,
    /// What was made is not committed.
    #[arg(long, conflicts_with = "reject")]
    pub(super) uncommitted: bool,
}

fn object(given: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(given).map_err(|e| format!("not a JSON object: {e}"))
}

fn status() -> impl TypedValueParser<Value = ShutdownStatus> {
    PossibleValuesParser::new(ShutdownStatus::ALL.map(ShutdownStatus::as_str))
        .map(|word| ShutdownStatus::parse(&word).unwrap_or(ShutdownStatus::Clean))
}
