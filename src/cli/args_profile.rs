//! The command line of the profile verbs.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::args::seconds;

/// What can be done with profiles.
#[derive(Debug, Subcommand)]
pub(super) enum ProfileVerb {
    /// List all profiles.
    List,
    /// Show a profile as it is written: a start for one of your own.
    Show {
        /// The profile's name.
        name: String,
    },
    Test(Test),
}

/// Tell what a profile sees: in a recording, or in the program itself.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  phalanx profile test codex\n  \
    phalanx profile test codex --screen fixtures/screens/codex/ready.ansi\n\n\
    Without a recording the program is started on a terminal of its own, in an empty directory, and ended again; \
    nothing is typed.")]
pub(super) struct Test {
    /// The profile's name.
    pub(super) name: String,
    /// What a program has printed, to be judged as it stands at the end.
    #[arg(long, value_name = "FILE")]
    pub(super) screen: Option<PathBuf>,
    /// Rows of the terminal.
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u16).range(2..=500))]
    pub(super) rows: u16,
    /// Columns of the terminal.
    #[arg(long, value_name = "N", default_value_t = 120, value_parser = clap::value_parser!(u16).range(2..=500))]
    pub(super) cols: u16,
    /// How many seconds the program is watched.
    #[arg(long = "for", value_parser = seconds, value_name = "S", default_value = "10", conflicts_with = "screen")]
    pub(super) length: Duration,
    /// For a profile that needs a command line.
    #[arg(last = true, value_name = "CMD", conflicts_with = "screen")]
    pub(super) command: Vec<String>,
}
