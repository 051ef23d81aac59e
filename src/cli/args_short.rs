//! The command lines of `init`, `rm`, `kill` and `restart`.

use std::path::PathBuf;

use clap::Args;

use super::args::Shutdown;

/// Write a commented manifest that runs as it is.
///
/// Its team is named after the current directory. An existing file is never overwritten: exit
/// code 4.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  phalanx init && phalanx up team.toml")]
pub(super) struct Init {
    /// File to create.
    #[arg(default_value = "team.toml")]
    pub(super) file: PathBuf,
}

/// Delete a team, as `team delete` does.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  phalanx rm demo\n  phalanx rm demo --force\n\n\
    A team with live members is refused; `phalanx down` asks them to stop first.")]
pub(super) struct Rm {
    /// Team to delete.
    #[arg(value_name = "TEAM")]
    pub(super) team: String,
    /// Kill its members first, without asking.
    #[arg(long)]
    pub(super) force: bool,
}

/// Kill members without asking, as `shutdown --force` does.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  phalanx kill ada\n  phalanx kill --all")]
pub(super) struct Kill {
    /// Members to kill.
    #[arg(required_unless_present = "all", conflicts_with = "all", value_name = "NAME")]
    pub(super) names: Vec<String>,
    /// Kill all members.
    #[arg(long)]
    pub(super) all: bool,
}

impl From<Kill> for Shutdown {
    fn from(Kill { names, all }: Kill) -> Shutdown {
        Shutdown { names, all, reason: None, deadline: 30, force: true, no_wait: false }
    }
}

/// Stop members and start them again as they were.
///
/// Role, model, directory and command line stay. A running member is asked to stop first, as by
/// `shutdown`; a stopped one is started as by `resume`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  phalanx restart ada\n  phalanx restart ada ben --force\n\n\
    Exits with 4 if a member refuses to stop; it keeps running.")]
pub(super) struct Restart {
    /// Members to restart.
    #[arg(required = true, value_name = "NAME")]
    pub(super) names: Vec<String>,
    /// Seconds to wait for a member to stop.
    #[arg(long, value_name = "S", default_value_t = 30)]
    pub(super) deadline: u64,
    /// Kill them without asking.
    #[arg(long)]
    pub(super) force: bool,
}
