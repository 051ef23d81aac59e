//! The command line of `send`.

use clap::Args;

/// Send a message to a member.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  phalanx send ada \"please look at #3\"\n  git diff | phalanx send ada --summary \"my changes\"\n  \
    phalanx send ada --urgent \"stop: the branch is wrong\""
)]
pub(super) struct Send {
    /// Recipient.
    pub(super) to: String,
    /// The message; read from stdin if it is - or missing.
    pub(super) text: Option<String>,
    /// Short summary.
    #[arg(long, value_name = "TEXT")]
    pub(super) summary: Option<String>,
    /// Interrupt its program so that it reads this at once; wrapped programs only.
    #[arg(long)]
    pub(super) urgent: bool,
}
