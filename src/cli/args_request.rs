//! The verbs about what members ask, as they are parsed. Does nothing.

use clap::Args;

use super::args::mode;
use crate::model::mode::Mode;

/// List what members wait for: plans, permissions, hosts, and shutdowns that are under way.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  phalanx requests --all")]
pub(super) struct Requests {
    /// Show what was answered, too.
    #[arg(long)]
    pub(super) all: bool,
}

/// Answer a member's request: a plan, a permission, a host.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  phalanx answer perm-1795214628804-k2j --approve\n  \
    phalanx answer plan_approval-1795214628804@ada@demo --reject --reason \"leave the schema alone\"\n\n\
    Exits with 4 if it was answered before, its time ran out, or the run that asked is gone.")]
pub(super) struct Answer {
    /// The request, as `phalanx requests` shows it.
    pub(super) id: String,
    /// Yes.
    #[arg(long, required_unless_present = "reject", conflicts_with = "reject")]
    pub(super) approve: bool,
    /// No.
    #[arg(long)]
    pub(super) reject: bool,
    /// Why, or what to change, for the member to read.
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: Option<String>,
    /// The permission mode to go on in, with the approval of a plan; else the lead's own.
    #[arg(long, value_parser = mode(), value_name = "MODE")]
    pub(super) mode: Option<Mode>,
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
