//! The command line of `send`. Does nothing.

use clap::Args;

/// Put a message into a member's mailbox.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  phalanx send ada \"please look at #3\"\n  git diff | phalanx send ada --summary \"my changes\"\n  \
    phalanx send ada --urgent \"stop: the branch is wrong\""
)]
pub(super) struct Send {
    /// The member's name.
    pub(super) to: String,
    /// The message; - or nothing reads it from stdin.
    pub(super) text: Option<String>,
    /// What it is about, in a few words.
    #[arg(long, value_name = "TEXT")]
    pub(super) summary: Option<String>,
    /// Break off what its program is doing, so that it reads this at once; wrapped programs only.
    #[arg(long)]
    pub(super) urgent: bool,
}
