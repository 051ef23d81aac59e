//! `requests` and `mode`, as they are parsed. Does nothing.

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
