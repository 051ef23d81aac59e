//! Reports the end of leading a team.

use serde_json::json;

use crate::fail::{Exit, Failure, VerbResult};
use crate::out::Out;
use crate::setup::Setup;
use crate::team::lead_session::LeadResult;
use lead::LeadEnd;
use model::board::task::TaskState;
use ops::views::report::Report;
use ops::{Kind, TeamStore};
use sys::env;

/// Reports the end of the lead and returns the exit code.
pub(crate) fn report_end(
    setup: &Setup,
    team: &TeamStore,
    result: &LeadResult,
    rerun: Option<&str>,
) -> VerbResult {
    let document = json!({ "team_name": team.name().as_str(), "lead_pid": null });
    match result.end {
        LeadEnd::TeamGone => {
            let name = team.name();
            setup.out.print_message(&format!("team {name} was deleted: nothing is left to lead"));
            if setup.out.json {
                setup.out.print_document(&document)?;
            }
            Ok(Exit::DONE)
        }
        LeadEnd::Left => {
            let again = format!("lead it again with `phalanx adopt -t {}`", team.name());
            setup.out.confirm(&document, || {
                format!("team {} runs on without a lead; {again}", team.name())
            })
        }
        _ => print_report(&setup.out, team, result, rerun),
    }
}

/// Prints the final report of a team and returns the exit code. `rerun` is the command that runs
/// the same team again.
pub(crate) fn print_report(
    out: &Out,
    team: &TeamStore,
    result: &LeadResult,
    rerun: Option<&str>,
) -> VerbResult {
    if result.end == LeadEnd::Interrupted {
        let document = json!({ "team_name": team.name().as_str(), "lead_pid": null });
        out.confirm(&document, || {
            let again = format!("go on with `phalanx resume --all -t {}`", team.name());
            format!("a signal has ended the members of team {} and its lead; {again}", team.name())
        })?;
        return Ok(Exit::of(Kind::Interrupted));
    }
    if result.end == LeadEnd::TimedOut {
        out.print_message(&format!("the time limit of team {} has passed", team.name()));
    }
    let success = result.report.as_ref().is_some_and(|report| report.success);
    if let Some(report) = &result.report {
        let more = next_command(team, report, rerun);
        let width = env::stdout_is_tty().then(|| usize::from(ui::size().0));
        out.print_outcome(report, success, || {
            ui::report(report, &ui::ReportFormat { paint: out.paint, width, more })
        })?;
    }
    if let Some(Failure::Message(error)) = &result.deletion_failure {
        out.report_error(error);
    }
    if team.exists() && result.deletion_failure.is_none() {
        out.print_message(&format!(
            "team {0} stays on disk; remove it with `phalanx team delete -t {0}`",
            team.name()
        ));
    }
    Ok(match (&result.deletion_failure, result.failed) {
        (Some(left), failed) if failed != Some(Kind::Interrupted) => left.exit(),
        (_, failed) => failed.map_or(Exit::DONE, Exit::of),
    })
}

/// Returns the command that shows more than the report: one for the board or for a failed member if
/// the team stays, else a run that keeps the team.
fn next_command(team: &TeamStore, report: &Report, rerun: Option<&str>) -> Option<String> {
    let failed_task = report.tasks.iter().find(|task| task.state == TaskState::Failed);
    let failed_member = report.members.iter().find(|member| member.has_failed());
    let command = match (failed_task, failed_member) {
        (Some(task), _) => format!("task get {}", task.id),
        (None, Some(member)) => format!("logs {}", member.name),
        (None, None) if !report.tasks.is_empty() => "task list --all".to_owned(),
        (None, None) => return None,
    };
    if team.exists() {
        return Some(format!("see more: phalanx {command} -t {}", team.name()));
    }
    let has_failed = failed_task.is_some() || failed_member.is_some();
    rerun
        .filter(|_| has_failed)
        .map(|rerun| format!("to keep the team and its output: {rerun} --keep"))
}
