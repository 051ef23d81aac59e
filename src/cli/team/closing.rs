//! The report of a team that has ended: made before its deletion, kept beside its journal, printed
//! by `down` and `report`.

use std::time::Duration;

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
use sys::clock::{self, Deadline};
use ui::{Paint, ReportFormat};

/// Time in which a report is kept.
const KEPT: Duration = Duration::from_secs(1);
/// Interval of looks for it.
const LOOK: Duration = Duration::from_millis(20);

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
    /// Makes the report of a team that is about to be deleted. It ends for this reason, if not by
    /// itself.
    pub(crate) fn of(
        ctx: &Context,
        team: &TeamStore,
        end: Option<Kind>,
    ) -> Result<ClosingReport, OpsError> {
        ClosingReport::with_hint(ctx, team, end, " --ended")
    }

    fn with_hint(
        ctx: &Context,
        team: &TeamStore,
        end: Option<Kind>,
        option: &str,
    ) -> Result<ClosingReport, OpsError> {
        let age = ops::now().since(ops::team::created_at(team)?);
        let report =
            Report { branches: report::branches(ctx, team), ..report::report(ctx, team, age)? };
        let kind = end.or((!report.success).then_some(Kind::Failed));
        let format =
            ReportFormat { paint: Paint { on: false }, width: None, more: unread(team, option)? };
        Ok(ClosingReport {
            exit_code: kind.map_or(0, Kind::exit_code),
            text: ui::report(&report, &format),
            has_tasks: !report.tasks.is_empty(),
            report: serde_json::to_value(&report).unwrap_or_default(),
        })
    }

    /// Returns what is kept of it.
    pub(crate) fn to_text(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }

    /// Prints it, and returns its exit code.
    pub(crate) fn print(&self, setup: &Setup) -> VerbResult {
        setup.out.print(&self.report, || self.text.clone())?;
        Ok(Exit(self.exit_code))
    }
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
                Err(Failure::new(Kind::Failed, format!("no report of team {name} is kept"), None))
            }
        };
    }
    let team = setup.team_called(args.name.as_deref(), Action::Look)?;
    ClosingReport::with_hint(&setup.ctx, &team, None, "")?.print(setup)
}

/// Returns the report of a team of this name that has ended since then; `None` if none is kept. It
/// is kept a moment after the team has vanished.
pub(crate) fn kept_since(
    setup: &Setup,
    name: &TeamName,
    since: Timestamp,
) -> Result<Option<ClosingReport>, Failure> {
    let deadline = Deadline::after(KEPT);
    loop {
        let ended = setup.ctx.store.ended_team(name, ops::now());
        let text =
            ended.map(|team| team.report().map(|text| text.filter(|_| team.ended_at >= since)));
        match text {
            Ok(Ok(Some(text))) => return Ok(serde_json::from_str(&text).ok()),
            Ok(Err(e)) => return Err(OpsError::from(e).into()),
            Ok(Ok(None)) | Err(_) if deadline.expired() => return Ok(None),
            Ok(Ok(None)) | Err(_) => clock::sleep(LOOK),
        }
    }
}
