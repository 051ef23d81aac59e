//! `lead` and `adopt`: lead an existing team, in the foreground or in the background.

use clap::{Args, ValueEnum};
use serde_json::json;

use crate::fail::{Exit, VerbResult};
use crate::interrupt;
use crate::members::agent_lead;
use crate::setup::Setup;
use crate::team::background::start_background_lead;
use crate::team::lead_report;
use crate::team::lead_session::{LeadSession, OnExit};
use ops::authority::Action;
use ops::{self, OpsError, TeamStore};
use sys::signal::Signals;

/// Options of leading.
#[derive(Debug, Args)]
pub(crate) struct LeadingArgs {
    /// Lead in the background.
    #[arg(long)]
    pub(crate) detach: bool,
    /// Effect of a signal or a closed terminal on the members.
    #[arg(long, value_enum, default_value = "stop", value_name = "POLICY")]
    pub(crate) on_exit: OnExit,
}

/// Lead an existing team, in this terminal or in the background.
///
/// The lead carries out shutdowns, detects members that die and releases their tasks.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  phalanx lead\n  phalanx lead -- claude\n  phalanx lead --profile claude-acp\n  \
    phalanx lead --profile codex -- npx @openai/codex\n\n\
    Exits with 0 when the team is deleted. With CMD or a profile that program leads in this terminal: \
    mail for the lead is typed into it, and --on-exit applies when it ends."
)]
pub(crate) struct LeadArgs {
    #[command(flatten)]
    pub(crate) how: LeadingArgs,
    /// Profile of CMD [default: the profile of its file name]; alone, its own program leads.
    #[arg(long, value_name = "NAME", conflicts_with = "detach")]
    pub(crate) profile: Option<String>,
    /// Agent program that leads in this terminal.
    #[arg(last = true, value_name = "CMD", conflicts_with = "detach")]
    pub(crate) command: Vec<String>,
}

impl LeadArgs {
    /// Returns whether an agent leads, which has the terminal.
    pub(crate) fn has_agent(&self) -> bool {
        self.profile.is_some() || !self.command.is_empty()
    }
}

/// Take over a team whose lead has died, then lead it.
#[derive(Debug, Args)]
#[command(after_help = "A lead that is on record and alive is never replaced: exit code 4.")]
pub(crate) struct AdoptArgs {
    #[command(flatten)]
    pub(crate) how: LeadingArgs,
    /// Take over without evidence that the lead has ended: it cannot be seen from here, or is not
    /// on record.
    #[arg(long)]
    pub(crate) force: bool,
}

/// Checks for a lead of another program. Returns a warning about what it could not check.
type CheckLead<'a> = &'a dyn Fn(&TeamStore) -> Result<Option<&'static str>, OpsError>;

pub(crate) fn lead(setup: &Setup, args: &LeadArgs) -> VerbResult {
    let how = &args.how;
    if args.has_agent() {
        let profile = args.profile.as_deref();
        return agent_lead::run_agent_lead(setup, profile, &args.command, how.on_exit);
    }
    let team = setup.team(Action::Lead)?;
    lead_again(setup, &team, how, None)
}

/// Leads a team that exists. `rerun` is the command that runs the same team again, for the report.
pub(crate) fn lead_again(
    setup: &Setup,
    team: &TeamStore,
    how: &LeadingArgs,
    rerun: Option<&str>,
) -> VerbResult {
    let check = |team: &TeamStore| ops::team::lease::may_lead(&setup.ctx, team).map(|()| None);
    run_lead(setup, team, &check, &["lead"], how, rerun)
}

pub(crate) fn adopt(setup: &Setup, args: &AdoptArgs) -> VerbResult {
    let team = setup.team(Action::Adopt)?;
    let verb: &[&str] = if args.force { &["adopt", "--force"] } else { &["adopt"] };
    let check = |team: &TeamStore| ops::team::lease::may_adopt(&setup.ctx, team, args.force);
    run_lead(setup, &team, &check, verb, &args.how, None)
}

fn run_lead(
    setup: &Setup,
    team: &TeamStore,
    check: CheckLead<'_>,
    verb: &[&str],
    how: &LeadingArgs,
    rerun: Option<&str>,
) -> VerbResult {
    if how.detach {
        // These errors must reach the caller and not only the background lead's log.
        let warning = check(team)?;
        ops::team::lease::must_be_unheld(team)?;
        warning.iter().for_each(|warning| setup.out.print_message(warning));
        let policy = OnExit::to_possible_value(&how.on_exit).expect("no policy is hidden");
        let words = [verb, &["--on-exit", policy.get_name()]].concat();
        let pid = start_background_lead(setup, team, &words)?;
        let document = json!({ "team_name": team.name().as_str(), "lead_pid": pid });
        setup.out.confirm(&document, || {
            format!("process {pid} leads team {} in the background", team.name())
        })?;
        return Ok(Exit::DONE);
    }
    let runtime = interrupt::runtime()?;
    let result = runtime.block_on(async {
        // Handlers are installed before the lease makes this process visible as the lead: from then
        // on it may be signalled.
        let mut signals = Signals::new()?;
        let warning = check(team)?;
        let lease = ops::team::lease::take(team)?;
        let (session, stop_requests) = LeadSession::new(setup, team, how.on_exit)?;
        session.catch_up()?;
        warning.iter().for_each(|warning| session.print_message(warning));
        session.print_message(&format!(
            "leading team {}; Ctrl-C {}",
            team.name(),
            signal_effect(how.on_exit)
        ));
        session.lead(&mut signals, stop_requests, lease).await
    });
    runtime.shutdown_background();
    lead_report::report_end(setup, team, &result?, rerun)
}

fn signal_effect(policy: OnExit) -> &'static str {
    match policy {
        OnExit::Stop => "ends it",
        OnExit::Detach => "leaves it",
        OnExit::Refuse => "ends it once no member lives",
    }
}
