//! Reports the end of leading a team.

use serde_json::json;

use super::fail::{Done, Exit, Failure};
use super::lead_session::Conclusion;
use super::out::Out;
use super::setup::Setup;
use crate::lead::LeadEnd;
use crate::model::report::Report;
use crate::model::task::TaskState;
use crate::ops::{Kind, Team};
use crate::sys::env;
use crate::ui;

/// Reports the end of the lead and returns the exit code.
pub(super) fn told(setup: &Setup, team: &Team, conclusion: &Conclusion) -> Done {
    match conclusion.end {
        LeadEnd::TeamGone => {
            setup.out.say(&format!("team {} was deleted: nothing is left to lead", team.name()));
            if setup.out.json {
                setup
                    .out
                    .document(&json!({ "team_name": team.name().as_str(), "lead_pid": null }))?;
            }
            Ok(Exit::DONE)
        }
        LeadEnd::Left => {
            let document = json!({ "team_name": team.name().as_str(), "lead_pid": null });
            let again = format!("lead it again with `phalanx adopt -t {}`", team.name());
            setup.out.confirm(&document, || {
                format!("team {} runs on without a lead; {again}", team.name())
            })?;
            Ok(Exit::DONE)
        }
        LeadEnd::TasksOver | LeadEnd::Stopped | LeadEnd::Carried => {
            tell(&setup.out, team, conclusion, None)
        }
    }
}

/// Prints the final report of a team and returns the exit code. `rerun` is the command that runs
/// the same team again.
pub(super) fn tell(out: &Out, team: &Team, conclusion: &Conclusion, rerun: Option<&str>) -> Done {
    let success = conclusion.report.as_ref().is_some_and(|report| report.success);
    if let Some(report) = &conclusion.report {
        let more = more(team, report, rerun);
        let width = env::stdout_is_tty().then(|| usize::from(ui::size().0));
        out.outcome(report, success, || {
            ui::report(report, &ui::Page { paint: out.paint, width, more })
        })?;
    }
    if let Some(Failure::Told(told)) = &conclusion.left {
        out.complain(told);
    }
    if team.exists() && conclusion.left.is_none() {
        out.say(&format!(
            "team {0} stays on disk; remove it with `phalanx team delete -t {0}`",
            team.name()
        ));
    }
    Ok(match (conclusion.interrupted, &conclusion.left) {
        (true, _) => Exit::of(Kind::Interrupted),
        (false, Some(left)) => left.exit(),
        (false, None) if success => Exit::DONE,
        (false, None) => Exit::of(Kind::Failed),
    })
}

/// Returns the command that shows more than the report: one for the board if the team stays, else a
/// run that keeps the team.
fn more(team: &Team, report: &Report, rerun: Option<&str>) -> Option<String> {
    let failed = report.tasks.iter().find(|task| task.state == TaskState::Failed);
    match (failed, rerun) {
        (Some(task), _) if team.exists() => {
            Some(format!("see more: phalanx task get {} -t {}", task.id, team.name()))
        }
        (None, _) if team.exists() && !report.tasks.is_empty() => {
            Some(format!("see more: phalanx task list --all -t {}", team.name()))
        }
        (Some(_), Some(rerun)) => Some(format!("to keep the team and its output: {rerun} --keep")),
        (_, _) => None,
    }
}
