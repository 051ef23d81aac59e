//! The command line of those who lead: `lead`, `adopt`, `resume`.

use std::time::Duration;

use clap::{Args, ValueEnum};

use super::args::seconds;

/// What a signal to a lead (Ctrl-C, TERM, or HUP when its terminal is closed) does to the members (SD-12).
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum OnExit {
    /// They are asked to end; the second signal ends them by force.
    Stop,
    /// They run on without a lead.
    Detach,
    /// The lead stays for as long as one of them lives.
    Refuse,
}

/// How a team is led.
#[derive(Debug, Args)]
pub(super) struct Leading {
    /// Lead it in the background.
    #[arg(long)]
    pub(super) detach: bool,
    /// What a signal does to the members; also a closed terminal.
    #[arg(long, value_enum, default_value = "stop", value_name = "POLICY")]
    pub(super) on_exit: OnExit,
}

/// Lead a team that exists: carry out shutdowns, notice members that vanish, give their tasks back.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  phalanx lead\n  phalanx lead -- claude\n  phalanx lead --profile codex -- npx @openai/codex\n\n\
    Ends with exit code 0 when the team is deleted. Ctrl-C ends the team's members first, \
    unless --on-exit says otherwise. With CMD that program has the lead's place and this terminal: mail for the lead is \
    typed into it, and its end does what --on-exit says."
)]
pub(super) struct Lead {
    #[command(flatten)]
    pub(super) how: Leading,
    /// How the program is read and fed; else the profile of its name, if there is one.
    #[arg(long, value_name = "NAME", requires = "command")]
    pub(super) profile: Option<String>,
    /// An agent's program that leads in this terminal.
    #[arg(last = true, value_name = "CMD", conflicts_with = "detach")]
    pub(super) command: Vec<String>,
}

/// Take over a team whose lead is gone, then lead it.
#[derive(Debug, Args)]
#[command(
    after_help = "As `lead`, also where another program says that it leads and cannot be seen from here. \
    A lead that lives is never pushed aside: exit code 4."
)]
pub(super) struct Adopt {
    #[command(flatten)]
    pub(super) how: Leading,
}

/// Start members again whose runs ended without being asked to.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  phalanx resume\n  phalanx resume ada --session 0b9c…\n\n\
    Where the session that its program was in is known, the program goes on with it, and with --session with that one. Else \
    it gets its first message again, and what the journal has of its last run.")]
pub(super) struct Resume {
    /// Who; else everybody who failed or vanished.
    #[arg(value_name = "NAME")]
    pub(super) names: Vec<String>,
    /// The session of its program to go on with; for one member.
    #[arg(long, value_name = "ID", requires = "names")]
    pub(super) session: Option<String>,
    /// How many seconds each has to prove that it runs.
    #[arg(long, value_parser = seconds, value_name = "S", default_value = "30")]
    pub(super) deadline: Duration,
}
