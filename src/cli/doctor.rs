//! `doctor`: reports problems; `--fix` repairs those that are safe to repair. `--self-test` checks
//! the operating system instead.

use clap::Args;

use crate::fail::{Exit, VerbResult};
use crate::out::Out;
use crate::setup::Setup;
use ops::authority::Action;
use ops::doctor::{CheckReport, CheckVerdict, Finding};
use ops::{self, Caller, Kind};
use sys::env;

/// Find problems with tmux, directories and dead processes.
#[derive(Debug, Args)]
#[command(after_help = "Without --fix nothing is changed.\n\
    Exits with 1 if a problem is left that needs a person, or if a check of --self-test fails.")]
pub(super) struct DoctorArgs {
    /// Repair what is safe to repair.
    #[arg(long)]
    pub(super) fix: bool,
    /// Check the functions of the operating system that phalanx relies on.
    ///
    /// Needs no team and no config root, and leaves nothing behind. Takes a few seconds.
    #[arg(long, conflicts_with = "fix")]
    pub(super) self_test: bool,
}

/// Runs the checks of the operating system. Must be called before other threads exist.
pub(super) fn self_test(out: &Out) -> VerbResult {
    let caller = Caller { env: env::vars(), cwd: env::current_dir()?, exe: env::current_exe()? };
    let reports = ops::doctor::self_test(&caller)?;
    out.print(&reports, || ui::self_test(&reports, env::os(), out.paint))?;
    Ok(exit_of(&reports))
}

fn exit_of(reports: &[CheckReport]) -> Exit {
    let has_failed = reports.iter().any(|report| report.result == CheckVerdict::Fail);
    if has_failed { Exit::of(Kind::Failed) } else { Exit::DONE }
}

pub(super) fn doctor(setup: &Setup, args: &DoctorArgs) -> VerbResult {
    let action = if args.fix { Action::Repair } else { Action::ListTeams };
    ops::authority::enter_without_team(&setup.ctx, action)?;
    let checked = ops::doctor::doctor(&setup.ctx, args.fix)?;
    setup.out.print(&checked, || ui::doctor(&checked, setup.out.verbose, setup.out.paint))?;
    Ok(if checked.findings.iter().any(Finding::is_open) {
        Exit::of(Kind::Failed)
    } else {
        Exit::DONE
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_check_leads_to_the_failing_exit_code() {
        let report = |result| CheckReport { check: "x", result, detail: String::new(), ms: 0 };
        let (pass, fail, skip) = (CheckVerdict::Pass, CheckVerdict::Fail, CheckVerdict::Skip);
        assert_eq!(exit_of(&[report(pass), report(skip)]), Exit(0));
        assert_eq!(exit_of(&[report(pass), report(fail), report(skip)]), Exit(1));
        assert_eq!(exit_of(&[]), Exit(0));
    }
}
