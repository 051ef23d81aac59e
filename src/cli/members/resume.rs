//! `resume` and `restart`: start members again with their last settings.

use std::time::Duration;

use clap::Args;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::args::seconds;
use crate::ending::stop::{exit_code, stop_or_report};
use crate::fail::{Exit, Failure, VerbResult, chain};
use crate::interrupt;
use crate::members::start::{START, start};
use crate::setup::Setup;
use crate::team::background::start_background_lead;
use model::id::MemberName;
use model::members::launch::LaunchSpec;
use ops::authority::Action;
use ops::ending::shutdown::ShutdownOptions;
use ops::starting::recover::recover_starts;
use ops::starting::resume::RestartSpecs;
use ops::starting::spawn::{SpawnOptions, Spawned};
use ops::{self, Kind, OpsError, TeamStore};
use sys::proc::Liveness;

/// Start members again that failed or vanished.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  phalanx resume\n  phalanx resume --all\n  \
    phalanx resume ada --session 0b9c…\n\n\
    A program continues its last session where that is known. Otherwise it gets its first message again, \
    with the events of its last run.")]
pub(crate) struct ResumeArgs {
    /// Members to start [default: all that failed or vanished].
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// The whole team: all that failed or vanished, and a lead in the background if none leads.
    #[arg(long, conflicts_with_all = ["names", "session"])]
    pub(crate) all: bool,
    /// Session of its program to continue; for one member.
    #[arg(long, value_name = "ID", requires = "names")]
    pub(crate) session: Option<String>,
    /// Seconds to wait for each to start.
    #[arg(long, value_parser = seconds, value_name = "S", default_value = "30")]
    pub(crate) deadline: Duration,
}

/// Stop members and start them again as they were.
///
/// Role, model, directory and command line stay. A running member is asked to stop first, as by
/// `shutdown`, which ends the command of a worker; a stopped one is started as by `resume`.
#[derive(Debug, Args, Deserialize, JsonSchema)]
#[command(after_help = "Examples:\n  phalanx restart ada\n  phalanx restart ada ben --force\n\n\
    Exits with 4 if a member refuses to stop; it keeps running.")]
pub(crate) struct RestartArgs {
    /// Members to restart.
    #[arg(required = true, value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Seconds to wait for a member to stop.
    #[arg(long, value_name = "S", default_value_t = stop_limit())]
    #[serde(default = "stop_limit")]
    pub(crate) deadline: u64,
    /// Kill them without asking.
    #[arg(long)]
    #[serde(default)]
    pub(crate) force: bool,
}

fn stop_limit() -> u64 {
    30
}

pub(crate) fn resume(setup: &Setup, args: &ResumeArgs) -> VerbResult {
    if args.all {
        return resume_team(setup, args.deadline);
    }
    let (team, names) = setup.members(&args.names, Action::Resume)?;
    if names.len() > 1 && args.session.is_some() {
        return Err(Failure::usage(
            "`--session` is for one member",
            "name one member, or omit `--session`",
        ));
    }
    start_again(setup, &team, &names, args.session.as_deref(), args.deadline)
}

/// Starts all members again that failed or vanished, and a lead in the background if none leads.
pub(crate) fn resume_team(setup: &Setup, deadline: Duration) -> VerbResult {
    setup.team(Action::Lead)?;
    let (team, names) = setup.members(&[] as &[&str], Action::Resume)?;
    let started = start_again(setup, &team, &names, None, deadline)?;
    let is_led =
        ops::members::lead::find_lead(&team)?.is_some_and(|lead| lead.alive != Liveness::Dead);
    if !is_led {
        ops::team::lease::may_lead(&setup.ctx, &team)?;
        let pid = start_background_lead(setup, &team, &["lead"])?;
        let words = format!("process {pid} leads team {} in the background", team.name());
        setup.out.print_message(&words);
    }
    Ok(started)
}

/// Stops running members, then starts all of them again.
pub(crate) fn restart(setup: &Setup, args: &RestartArgs) -> VerbResult {
    let (team, names) = setup.members(&args.names, Action::Restart)?;
    // Also of a start that was cut, which may run now.
    recover_starts(&setup.ctx, &team)?;
    ops::starting::resume::check(&setup.ctx, &team, &names)?;
    let (stopped, refused) = stop_for_restart(setup, &team, args, &names)?;
    if stopped.is_empty() {
        setup.out.confirm(&json!([]), String::new)?;
        return Ok(refused.unwrap_or(Exit::DONE));
    }
    let started = start_again(setup, &team, &stopped, None, START)?;
    Ok(refused.unwrap_or(started))
}

/// Stops members before a restart. Returns the stopped ones, and an exit code if others refused or
/// could not be stopped; those are reported on stderr.
fn stop_for_restart(
    setup: &Setup,
    team: &TeamStore,
    args: &RestartArgs,
    names: &[MemberName],
) -> Result<(Vec<MemberName>, Option<Exit>), Failure> {
    let reason = "the member is restarted".to_owned();
    let options = ShutdownOptions::for_restart(reason, args.deadline, args.force);
    let hint =
        |name: &MemberName| format!("kill it and start it again: `phalanx restart --force {name}`");
    let (stopped, running) = stop_or_report(setup, team, names, &options, hint)?;
    Ok((stopped, (!running.is_empty()).then(|| exit_code(&running))))
}

fn start_again(
    setup: &Setup,
    team: &TeamStore,
    names: &[MemberName],
    session: Option<&str>,
    deadline: Duration,
) -> VerbResult {
    recover_starts(&setup.ctx, team)?;
    let all = ops::starting::resume::specs(&setup.ctx, team, names, session)?;
    if all.is_empty() {
        setup.out.confirm(&json!([]), || "no member failed or vanished".to_owned())?;
        return Ok(Exit::DONE);
    }
    let options = SpawnOptions::ready_within(deadline);
    let runtime = interrupt::runtime()?;
    let started = runtime.block_on(start_members(setup, team, all, &options));
    runtime.shutdown_background();
    let (starts, interrupted) = started?;
    let (mut rows, mut lines, mut worst) = (Vec::new(), Vec::new(), None);
    for RestartResult { name, session, lost, result } in starts {
        let problem = result.as_ref().err().map(|e| chain(e));
        lines.extend(lost.iter().map(|lost| format!("{name}: {lost}")));
        lines.push(match (&result, &session) {
            (Ok(one), Some(session)) => {
                format!("{name} runs again (process {}) and continues session {session}", one.pid)
            }
            (Ok(one), None) => format!("{name} runs again (process {})", one.pid),
            (Err(e), _) => {
                worst.get_or_insert(e.kind());
                format!("{name}: {}", chain(e))
            }
        });
        rows.push(
            json!({ "name": name, "started": result.ok(), "problem": problem, "session": session }),
        );
    }
    setup.out.print_outcome(&rows, worst.is_none(), || lines.join("\n"))?;
    let interrupted = interrupted.then_some(Kind::Interrupted);
    Ok(interrupted.or(worst).map_or(Exit::DONE, Exit::of))
}

/// The result of starting one member again.
pub(super) struct RestartResult {
    pub(super) name: String,
    /// The session that its program continues.
    pub(super) session: Option<String>,
    /// That an agent begins a new conversation, and why.
    pub(super) lost: Option<String>,
    pub(super) result: Result<Spawned, OpsError>,
}

/// Starts all members, with a new session if the known one cannot be resumed. Also returns whether
/// a signal interrupted the start.
pub(super) async fn start_members(
    setup: &Setup,
    team: &TeamStore,
    all: Vec<RestartSpecs>,
    options: &SpawnOptions,
) -> Result<(Vec<RestartResult>, bool), Failure> {
    let specs: Vec<LaunchSpec> = all.iter().map(|restart| restart.spec.clone()).collect();
    let (batch, mut interrupted) = start(setup, team, specs, options.clone()).await?;
    batch.remarks().for_each(|line| setup.out.print_message(&line));
    let mut starts = Vec::new();
    for (restart, result) in all.into_iter().zip(batch.results) {
        let RestartSpecs { spec, without_session, begins_anew } = restart;
        let LaunchSpec { name, session, .. } = spec;
        let (spec, lost) = match (without_session, &result) {
            (Some(spec), Err(e)) if !interrupted => {
                (spec, format!("its session cannot be resumed, a new one begins: {}", chain(e)))
            }
            (_, _) => {
                let is_new = begins_anew && result.is_ok();
                let lost = is_new.then(|| "a new conversation begins: none is known".to_owned());
                starts.push(RestartResult { name, session, lost, result });
                continue;
            }
        };
        let (mut second, was_interrupted) = start(setup, team, vec![spec], options.clone()).await?;
        interrupted |= was_interrupted;
        let result = second.results.pop().unwrap_or(result);
        starts.push(RestartResult { name, session: None, lost: Some(lost), result });
    }
    Ok((starts, interrupted))
}
