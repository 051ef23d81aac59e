//! The report of a team that has ended: made before its deletion, kept beside its journal, printed
//! by `down` and `report`.

use std::path::Path;

use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fail::{Exit, Failure, VerbResult};
use crate::setup::Setup;
use crate::team::ended::must_be_person;
use model::id::{MemberName, TeamName};
use model::mail::envelope::Envelope;
use model::mail::protocol::news::is_news;
use model::time::Timestamp;
use ops::authority::Action;
use ops::views::report::{self, Report};
use ops::{Context, Kind, OpsError, TeamStore};
use sys::fs;
use ui::{Paint, ReportFormat};

/// Show how a team ended, or how far it is.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  phalanx report\n  phalanx report checks --json | jq '.tasks[] | select(.state==\"failed\")'\n\n\
    Exits as `up` did: with 0 if every task was completed. It is kept for 7 days after the end."
)]
pub(crate) struct ReportArgs {
    /// Team, also one that has ended.
    #[arg(value_name = "TEAM")]
    name: Option<String>,
}

/// The final report of a team with its exit code.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ClosingReport {
    exit_code: u8,
    pub(crate) text: String,
    report: Value,
    pub(crate) has_tasks: bool,
}

impl ClosingReport {
    /// Makes what is kept of a report. `option` lets `inbox` find the mailbox of its lead.
    pub(crate) fn of(
        team: &TeamStore,
        report: &Report,
        failed: Option<Kind>,
        option: &str,
    ) -> Result<ClosingReport, OpsError> {
        let more = unread(team, option)?;
        let format = ReportFormat { paint: Paint { on: false }, width: None, more };
        Ok(ClosingReport {
            exit_code: failed.map_or(0, Kind::exit_code),
            text: ui::report(report, &format),
            has_tasks: !report.tasks.is_empty(),
            report: serde_json::to_value(report).unwrap_or_default(),
        })
    }

    /// Makes the report of a team as it is now.
    pub(crate) fn now(
        ctx: &Context,
        team: &TeamStore,
        option: &str,
    ) -> Result<ClosingReport, OpsError> {
        let age = ops::now().since(ops::team::created_at(team)?);
        let report = report::report(ctx, team, age)?;
        let report = Report { branches: report::branches(ctx, team), ..report };
        let failed = (!report.success).then_some(Kind::Failed);
        ClosingReport::of(team, &report, failed, option)
    }

    /// Says that the team has not begun.
    pub(crate) fn not_begun(self) -> ClosingReport {
        ClosingReport { exit_code: Kind::Failed.exit_code(), ..self }
    }

    /// Writes it to a new file.
    pub(crate) fn write(&self, setup: &Setup, path: &Path) -> Result<(), Failure> {
        let text = if setup.out.json {
            serde_json::to_string_pretty(&self.report).map_err(std::io::Error::from)?
        } else {
            self.text.clone()
        };
        if !fs::create_new(path, format!("{text}\n").as_bytes()).map_err(OpsError::from)? {
            return Err(file_exists(path));
        }
        setup.out.print_message(&format!("report: {}", path.display()));
        Ok(())
    }

    /// Prints it, and returns its exit code.
    pub(crate) fn print(&self, setup: &Setup) -> VerbResult {
        setup.out.print(&self.report, || self.text.clone())?;
        Ok(Exit(self.exit_code))
    }
}

/// Returns the error for a report whose file exists.
pub(crate) fn file_exists(path: &Path) -> Failure {
    let problem = format!("the report file {} exists", path.display());
    Failure::usage(problem, "remove it, or choose another name")
}

/// Returns the number of messages that nobody has read, with the command that shows them.
fn unread(team: &TeamStore, option: &str) -> Result<Option<String>, OpsError> {
    let is_of_member =
        |envelope: &Envelope| is_news(envelope) && envelope.from != MemberName::system().as_str();
    let unread = team.mailbox(&MemberName::lead()).unread_where(is_of_member)?.len();
    let noun = if unread == 1 { "message" } else { "messages" };
    let show =
        format!("{unread} {noun} that nobody has read: phalanx inbox -t {}{option}", team.name());
    Ok((unread > 0).then_some(show))
}

pub(crate) fn report(setup: &Setup, args: &ReportArgs) -> VerbResult {
    let named = setup.named_team(args.name.as_deref())?;
    let is_gone = named.as_ref().is_some_and(|name| !setup.ctx.store.open(name).exists());
    if let Some(name) = named.filter(|_| is_gone) {
        must_be_person(setup)?;
        return match kept_since(setup, &name, Timestamp(0))? {
            Some(report) => report.print(setup),
            None => {
                let hint = "it is kept for 7 days; `phalanx team list` shows the teams".to_owned();
                let problem = format!("no report of team {name} is kept");
                Err(Failure::new(Kind::NotFound, problem, Some(hint)))
            }
        };
    }
    let team = setup.team_called(args.name.as_deref(), Action::Look)?;
    ClosingReport::now(&setup.ctx, &team, "")?.print(setup)
}

/// Returns the report of a team of this name that has ended since then; `None` if none is kept.
pub(crate) fn kept_since(
    setup: &Setup,
    name: &TeamName,
    since: Timestamp,
) -> Result<Option<ClosingReport>, Failure> {
    let ended = setup.ctx.store.ended_team(name, ops::now()).ok();
    let report = ended.filter(|team| team.ended_at >= since).map(|team| team.report());
    let text = report.transpose().map_err(OpsError::from)?.flatten();
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
}
