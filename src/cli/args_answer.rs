//! The command line of `answer`.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgGroup, Args};
use serde_json::{Map, Value};
use strum::VariantNames;

use super::args::mode;
use crate::model::mode::Mode;
use crate::model::protocol::ShutdownStatus;

/// Answer a request: a member's plan or permission as the lead, a shutdown as a member.
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
    The lead lists open requests with `phalanx requests` and prints one with `phalanx requests show ID`; a member finds the id in the message that asks. \
    Outside the member's own program add --as NAME."
)]
pub(super) struct Answer {
    /// Id of the request.
    #[arg(value_name = "ID")]
    pub(super) id: String,
    /// Approve it.
    #[arg(long)]
    pub(super) approve: bool,
    /// Reject it.
    #[arg(long)]
    pub(super) reject: bool,
    /// Reason, or what to change; required to reject a shutdown.
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: Option<String>,
    /// Permission mode after an approved plan [default: that of the lead].
    #[arg(long, value_parser = mode(), value_name = "MODE", conflicts_with = "reject")]
    pub(super) mode: Option<Mode>,
    /// Approve a permission with this edited tool input, a JSON object.
    #[arg(long, value_parser = object, value_name = "JSON", conflicts_with = "reject")]
    pub(super) input: Option<Map<String, Value>>,
    /// Approve, and add a team rule that allows the same from now on.
    #[arg(long, conflicts_with = "reject")]
    pub(super) always: bool,
    /// State of the work at a shutdown.
    #[arg(long, value_parser = status(), value_name = "STATUS", conflicts_with = "reject")]
    pub(super) status: Option<ShutdownStatus>,
    /// Work that is left to do; repeatable.
    #[arg(long, value_name = "TEXT", conflicts_with = "reject")]
    pub(super) pending: Vec<String>,
    /// All work is committed; git is used to check it.
    #[arg(long, conflicts_with_all = ["reject", "uncommitted"])]
    pub(super) committed: bool,
    /// Some work is not committed.
    #[arg(long, conflicts_with = "reject")]
    pub(super) uncommitted: bool,
}

pub(super) fn object(given: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(given).map_err(|e| format!("not a JSON object: {e}"))
}

fn status() -> impl TypedValueParser<Value = ShutdownStatus> {
    PossibleValuesParser::new(ShutdownStatus::VARIANTS.iter().copied())
        .map(|word| word.parse().unwrap_or(ShutdownStatus::Clean))
}
