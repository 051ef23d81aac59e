//! `doctor`: reports problems; `--fix` repairs those that are safe to repair.

use clap::Args;

use super::fail::{Exit, VerbResult};
use super::setup::Setup;
use crate::ops::doctor::Finding;
use crate::ops::{self, Kind};
use crate::ui;

/// Find problems with tmux, directories and the remains of dead processes.
#[derive(Debug, Args)]
#[command(after_help = "Without --fix nothing is changed.\n\
    Exits with 1 if a problem is left that needs a person.")]
pub(super) struct DoctorArgs {
    /// Repair what is safe to repair.
    #[arg(long)]
    pub(super) fix: bool,
}

pub(super) fn doctor(setup: &Setup, args: &DoctorArgs) -> VerbResult {
    if args.fix {
        ops::authority::enter_repair(&setup.ctx)?;
    }
    let checked = ops::doctor::doctor(&setup.ctx, args.fix)?;
    setup.out.print(&checked, || ui::doctor(&checked, setup.out.verbose, setup.out.paint))?;
    Ok(if checked.findings.iter().any(Finding::is_open) {
        Exit::of(Kind::Failed)
    } else {
        Exit::DONE
    })
}
