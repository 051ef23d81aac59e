//! `spawn`: starts teammates and waits until they are proven to run. Writes in the order record,
//! roster, prompt, spec, placement; a failure is rolled back in reverse and leaves nothing behind
//! (SP-09, SD-03).

mod attempt;
mod batch;
mod checkouts;
mod command;
mod elsewhere;
mod env_file;
mod finish;
mod mailbox;
mod origins;
mod prepare;
mod prove;
mod resolve;
mod rollback;
mod start;
mod starts;

use std::path::Path;
use std::slice;
use std::time::Duration;

use crate::mail::post::Post;
use crate::members::backends;
use crate::members::{budget, depth};
use crate::team::worktree;
use crate::{Context, Kind, OpsError};
use model::id::MemberName;
use model::members::launch::LaunchSpec;
use model::members::spec::OsText;
use model::team::settings::Settings;
use model::text;
use store::TeamStore;
use sys::{env, fs};

use batch::BatchContext;
pub use batch::{DryRun, SpawnOptions, SpawnReport, Spawned, SpawnedBranch, StartedWhen};
pub(crate) use finish::{RecoveredStarts, finish};
pub(crate) use prove::left_until_ready;

/// Validates specs without side effects: names, roles, profiles and command lines.
///
/// # Errors
///
/// The first invalid spec.
pub fn check(ctx: &Context, settings: &Settings, specs: &[LaunchSpec]) -> Result<(), OpsError> {
    specs.iter().try_for_each(|spec| resolve::resolve(ctx, settings, spec).map(drop))
}

/// Checks without effects the starts of members in place of runs that may not have ended yet.
/// Members for another host are checked there, when they start.
///
/// # Errors
///
/// As [`spawn`]; a directory or a program that is not found.
pub(crate) fn check_again(
    ctx: &Context,
    team: &TeamStore,
    specs: &[LaunchSpec],
) -> Result<(), OpsError> {
    let options = SpawnOptions::ready_within(Duration::ZERO);
    let mut batch = BatchContext::read(ctx, team, &options)?;
    budget::must_allow(team, &batch.settings, specs)?;
    batch.roster.members.retain(|other| specs.iter().all(|spec| spec.name != other.name.as_str()));
    let hosts = elsewhere::hosts_of(&batch, specs)?;
    for (spec, _) in specs.iter().zip(hosts).filter(|(_, host)| host.is_none()) {
        let chosen = backends::choose_backend(ctx, &batch.settings, None)?;
        backends::open(ctx, team, &batch.settings, chosen.backend, None)?;
        let launch = resolve::resolve(ctx, &batch.settings, spec)?;
        batch.check_modes(slice::from_ref(&launch))?;
        batch.check_access(slice::from_ref(&launch))?;
        let (start, spec) = prepare::preview(&batch, &launch)?;
        let cwd = Path::new(&start.member.cwd);
        let program = start.record.request.command_line().swap_remove(0);
        let is_path = |(name, _): &(OsText, OsText)| name.clone().into_os() == "PATH";
        let path = spec.env.into_iter().rfind(is_path).map(|(_, path)| path.into_os());
        let is_found = env::find_program(program.as_ref(), path.as_deref(), cwd).is_some();
        // A worktree that is made again or a file of variables can change what is found.
        let changes =
            launch.spec.env_file.is_some() || launch.repository.is_some() && !fs::is_dir(cwd);
        if !(fs::is_dir(cwd) && is_found || changes) {
            let [program, cwd] = [&program, &start.member.cwd].map(|text| text::line(text));
            let problem = format!("{}: `{program}` is not found from {cwd}", start.member.name);
            let hint = "nothing was stopped; put that right, and repeat the command";
            return Err(OpsError::described(Kind::Failed, problem, hint));
        }
    }
    Ok(())
}

/// Returns the start that `spawn` would perform, without writing or starting anything.
///
/// # Errors
///
/// The spec is invalid, the name is taken, the mode is not allowed, or the store cannot be read.
pub fn dry_run(
    ctx: &Context,
    team: &TeamStore,
    spec: &LaunchSpec,
    options: &SpawnOptions,
) -> Result<DryRun, OpsError> {
    let batch = BatchContext::read(ctx, team, options)?;
    let launch = resolve::resolve(ctx, &batch.settings, spec)?;
    batch.check_modes(slice::from_ref(&launch))?;
    batch.check_access(slice::from_ref(&launch))?;
    let (start, spec) = prepare::preview(&batch, &launch)?;
    let env = spec.env.into_iter().map(|(name, _)| name.into_os());
    let (member, profile) = (start.member, &launch.profile);
    Ok(DryRun {
        name: member.name.to_string(),
        agent_id: member.agent_id,
        profile: profile.name.clone(),
        runs: profile.runs.as_str(),
        argv: start.record.request.command_line(),
        cwd: member.cwd,
        env: env.map(|name| name.to_string_lossy().into_owned()).collect(),
        model: member.model,
        mode: member.mode,
        role: launch.spec.role,
        prompt: member.prompt.map(|_| profile.launch.prompt.as_str()),
        brief: profile.launch.brief().way(),
        warnings: launch.warnings,
    })
}

/// Starts all of `specs` as one batch.
///
/// # Errors
///
/// Failures of the whole batch, for example no usable backend or a taken name, are returned before
/// anything is started. Failures of one teammate are in its own result.
pub fn spawn(
    ctx: &Context,
    team: &TeamStore,
    specs: &[LaunchSpec],
    options: &SpawnOptions,
) -> Result<SpawnReport, OpsError> {
    depth::must_allow(ctx)?;
    if specs.iter().any(|spec| spec.worktree.is_some()) {
        // Before the settings are read, because a record follows its worktree.
        worktree::checkouts(ctx, team)?;
    }
    let batch = BatchContext::read(ctx, team, options)?;
    budget::must_allow(team, &batch.settings, specs)?;
    let hosts = elsewhere::hosts_of(&batch, specs)?;
    if hosts.iter().all(Option::is_none) {
        return start_here(&batch, specs);
    }
    elsewhere::start_everywhere(ctx, team, specs, options, &hosts, |specs| {
        start_here(&batch, specs)
    })
}

/// Starts all of `specs` on this host.
fn start_here(batch: &BatchContext, specs: &[LaunchSpec]) -> Result<SpawnReport, OpsError> {
    let (ctx, options) = (batch.ctx, batch.options);
    batch.team.join_host()?;
    let resolved = specs.iter().map(|spec| resolve::resolve(ctx, &batch.settings, spec));
    let launches = resolved.collect::<Result<Vec<_>, _>>()?;
    batch.check_modes(&launches)?;
    batch.check_access(&launches)?;
    let chosen = backends::choose_backend(ctx, &batch.settings, options.backend)?;
    start::start_batch(batch, launches, chosen)
}

/// Starts members on behalf of a lead: standing members, or runs for one task each. If phalanx was
/// removed meanwhile, the mailbox of the lead gets one message about it.
///
/// # Errors
///
/// Failures that concern all specs; others are in the results.
pub fn for_lead(
    ctx: &Context,
    team: &TeamStore,
    specs: &[LaunchSpec],
    deadline: Duration,
) -> Result<Vec<Result<Spawned, OpsError>>, OpsError> {
    if let Err(e) = ctx.caller.program() {
        let words = format!("{e}; {}", e.hint().unwrap_or_default());
        Post::notice(&MemberName::lead(), words).with_id_of_text().send_once(team)?;
        return Err(e);
    }
    let options = SpawnOptions::ready_within(deadline);
    if specs.iter().any(|spec| spec.task.is_none()) {
        return Ok(spawn(ctx, team, specs, &options)?.results);
    }
    depth::must_allow(ctx)?;
    let batch = BatchContext::read(ctx, team, &options)?;
    budget::must_allow(team, &batch.settings, specs)?;
    Ok(specs.iter().map(|spec| start_for_task(&batch, spec)).collect())
}

/// Starts the one-shot form of a program, with its task claimed in its name before it starts. Its
/// launcher reports the outcome. A task that another member claimed fails only this start.
fn start_for_task(batch: &BatchContext, spec: &LaunchSpec) -> Result<Spawned, OpsError> {
    let launch = resolve::resolve(batch.ctx, &batch.settings, spec)?;
    batch.check_modes(slice::from_ref(&launch))?;
    let backend = backends::open_one_shot(batch.ctx, batch.team, spec.task);
    let attempts = attempt::attempt(batch, &[&launch], backend.as_ref(), None)?;
    let (start, result) = attempts.into_iter().next().expect("each launch has its attempt");
    let mut warnings = start::warnings_of(slice::from_ref(&launch));
    warnings.extend(start.warnings.into_iter().map(|text| (start.member.name.clone(), text)));
    start::journal_warnings(batch.team, &warnings);
    result
}
