//! The command line of `lead`, `adopt` and `resume`.

use std::time::Duration;

use clap::{Args, ValueEnum};

use super::args::seconds;

/// The effect of a signal to the lead (Ctrl-C, TERM, or HUP when its terminal is closed) on the
/// members (SD-12).
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum OnExit {
    /// Ask them to stop; the second signal kills them.
    Stop,
    /// Leave them running without a lead.
    Detach,
    /// Keep leading while one of them lives.
    Refuse,
}

/// Options of leading.
#[derive(Debug, Args)]
pub(super) struct Leading {
    /// Lead in the background.
    #[arg(long)]
    pub(super) detach: bool,
    /// Effect of a signal or a closed terminal on the members.
    #[arg(long, value_enum, default_value = "stop", value_name = "POLICY")]
    pub(super) on_exit: OnExit,
}

/// Lead an existing team, in this terminal or in the background.
///
/// The lead carries out shutdowns, detects members that die and releases their tasks.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  phalanx lead\n  phalanx lead -- claude\n  phalanx lead --profile codex -- npx @openai/codex\n\n\
    Exits with 0 when the team is deleted. With CMD that program leads in this terminal: \
    mail for the lead is typed into it, and --on-exit applies when it ends."
)]
pub(super) struct Lead {
    #[command(flatten)]
    pub(super) how: Leading,
    /// Profile of CMD [default: the profile of its file name].
    #[arg(long, value_name = "NAME", requires = "command")]
    pub(super) profile: Option<String>,
    /// Agent program that leads in this terminal.
    #[arg(last = true, value_name = "CMD", conflicts_with = "detach")]
    pub(super) command: Vec<String>,
}

/// Take over a team whose lead has died, then lead it.
#[derive(Debug, Args)]
#[command(after_help = "A lead that is on record and alive is never replaced: exit code 4.")]
pub(super) struct Adopt {
    #[command(flatten)]
    pub(super) how: Leading,
    /// Take over without evidence that the lead has ended: it cannot be seen from here, or is not
    /// on record.
    #[arg(long)]
    pub(super) force: bool,
}

/// Start members again that failed or vanished.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  phalanx resume\n  phalanx resume ada --session 0b9c…\n\n\
    A program continues its last session where that is known. Otherwise it gets its first message again, \
    with the events of its last run.")]
pub(super) struct Resume {
    /// Members to start [default: all that failed or vanished].
    #[arg(value_name = "NAME")]
    pub(super) names: Vec<String>,
    /// Session of its program to continue; for one member.
    #[arg(long, value_name = "ID", requires = "names")]
    pub(super) session: Option<String>,
    /// Seconds to wait for each to start.
    #[arg(long, value_parser = seconds, value_name = "S", default_value = "30")]
    pub(super) deadline: Duration,
}
