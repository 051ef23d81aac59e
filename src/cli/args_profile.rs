//! The command line of the profile verbs.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::args::seconds;

#[derive(Debug, Subcommand)]
pub(super) enum ProfileVerb {
    /// List all profiles.
    List,
    /// Print the TOML of a profile, as a template for your own.
    Show {
        /// Name of the profile.
        name: String,
    },
    Test(Test),
}

/// Test the rules of a profile on a recording or on the program itself.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  phalanx profile test codex\n  \
    phalanx profile test codex --screen fixtures/screens/codex/ready.ansi\n\n\
    Without a recording the program runs on a terminal of its own in an empty directory; \
    nothing is typed into it.")]
pub(super) struct Test {
    /// Name of the profile.
    pub(super) name: String,
    /// Recorded output of the program; its last screen is judged.
    #[arg(long, value_name = "FILE")]
    pub(super) screen: Option<PathBuf>,
    /// Rows of the terminal.
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u16).range(2..=500))]
    pub(super) rows: u16,
    /// Columns of the terminal.
    #[arg(long, value_name = "N", default_value_t = 120, value_parser = clap::value_parser!(u16).range(2..=500))]
    pub(super) cols: u16,
    /// Seconds to watch the program.
    #[arg(long = "for", value_parser = seconds, value_name = "S", default_value = "10", conflicts_with = "screen")]
    pub(super) length: Duration,
    /// Command line, for a profile that needs one.
    #[arg(last = true, value_name = "CMD", conflicts_with = "screen")]
    pub(super) command: Vec<String>,
}
