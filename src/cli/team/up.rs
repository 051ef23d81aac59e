//! `up`: runs a team from a manifest or a template, from its creation to its end.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::json;

use crate::args::backend;
use crate::ending::stop;
use crate::fail::{Exit, Failure, VerbResult, chain};
use crate::interrupt;
use crate::members::start::{START, how_to_watch, proof_notice};
use crate::read::{MAX_MANIFEST, read_text, stdin};
use crate::setup::Setup;
use crate::team::background::start_background_lead;
use crate::team::closing::{self, ClosingReport};
use crate::team::compose::{choose_agents, fill_template, team_name};
use crate::team::deletion::{ENDED, delete_reported, delete_team};
use crate::team::lead::{self, LeadingArgs};
use crate::team::lead_session::{LeadSession, OnExit};
use crate::team::up_plan::{ManifestText, PlanOptions, UpPlan};
use crate::team::{lead_report, up_again};
use ::lead::LeadEnd;
use model::members::placement::BackendKind;
use model::name::check_name;
use model::team::settings::{BackendChoice, Finish};
use model::text;
use ops::ending::shutdown::ShutdownOptions;
use ops::starting::spawn::{SpawnOptions, Spawned};
use ops::starting::{agents, reconcile, templates};
use ops::team::project;
use ops::{self, Context, Kind, Lease, OpsError, TeamStore};
use sys::clock::{self, Deadline};
use sys::signal::Signals;
use sys::{failpoint, fs};

/// Run a team from a manifest or a template, to its end.
///
/// The name of a template runs a team of agents on a task, without a file. A team that exists is
/// brought to what its manifest says now: the changes are shown and have to be confirmed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  phalanx up\n  phalanx up checks.toml --dry-run\n  \
    phalanx up review --task \"Review the last commit\"\n\n\
    The first Ctrl-C asks all members to stop, the second kills them. \
    Exits with 0 if every task was completed, with 1 if one failed or never ran.")]
pub(crate) struct UpArgs {
    /// TOML file that describes the team, its members and its tasks, or - for stdin; or the name of a
    /// template.
    #[arg(default_value = "team.toml")]
    pub(crate) manifest: PathBuf,
    /// Show what would be done, and do nothing.
    #[arg(long, conflicts_with_all = ["detach", "yes"])]
    pub(crate) dry_run: bool,
    /// Change a team that exists without asking.
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Task for the team of a template.
    #[arg(long, value_name = "TEXT")]
    pub(crate) task: Option<String>,
    /// Profile of an agent for the members of a template [default: the first one on PATH that is
    /// logged in]. Given several times, the members get them in turn.
    #[arg(long = "agent", value_name = "NAME")]
    pub(crate) agents: Vec<String>,
    /// Lead the team in the background.
    #[arg(long)]
    pub(crate) detach: bool,
    /// Seconds after which the team is ended, with exit code 5.
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) timeout: Option<u64>,
    /// End the team when a task has failed.
    #[arg(long)]
    pub(crate) fail_fast: bool,
    /// Keep the team's files at the end.
    #[arg(long)]
    pub(crate) keep: bool,
    /// Backend for the members; overrides the manifest.
    #[arg(long, value_parser = backend, value_name = "BACKEND")]
    pub(crate) backend: Option<BackendChoice>,
    /// Socket of the tmux server to use.
    #[arg(long, value_name = "PATH")]
    pub(crate) tmux_socket: Option<PathBuf>,
}

/// Shutdown deadline in seconds for members of a team whose start failed.
const ROLLBACK_S: u64 = 10;
/// Time in which another process makes the files of a team.
const MADE: Duration = Duration::from_secs(5);
/// Interval of looks whether it has.
const LOOK: Duration = Duration::from_millis(50);
/// Interval of checks whether another lead still runs: it can die without writing anything.
const SWEEP: Duration = Duration::from_millis(500);
/// Time in which a lead removes its team after its end.
const REMOVAL: Duration = Duration::from_secs(3);

pub(crate) fn up(setup: &Setup, args: &UpArgs) -> VerbResult {
    let options = PlanOptions {
        backend: args.backend,
        keep: args.keep,
        timeout_s: args.timeout,
        fail_fast: args.fail_fast,
        tmux_socket: args.tmux_socket.as_deref(),
    };
    let mut plan = UpPlan::new(setup, &manifest(setup, args)?, options)?;
    let ctx = setup.ctx_for_store(plan.store.as_deref())?;
    let mut made_by = Deadline::after(MADE);
    loop {
        match reconcile::existing(&ctx, &plan.name)? {
            Some(team) if args.dry_run => {
                let difference = reconcile::compare(&ctx, &team, &plan.wanted)?;
                return up_again::print_difference(setup, &plan.name, false, &difference);
            }
            None if args.dry_run => {
                let all = plan.wanted.of_nothing();
                return up_again::print_difference(setup, &plan.name, true, &all);
            }
            Some(team) => match bring(setup, args, &team, &plan) {
                // It has ended meanwhile.
                Err(_) if !team.exists() => made_by = Deadline::after(MADE),
                done => return done,
            },
            None => {
                let runtime = interrupt::runtime()?;
                let done = runtime.block_on(run(setup, args, &ctx, plan, made_by));
                runtime.shutdown_background();
                match done {
                    Ok(done) => return done,
                    // Another process has made it meanwhile.
                    Err(back) => plan = *back,
                }
                clock::sleep(LOOK);
            }
        }
    }
}

/// Reads the manifest, or fills the template.
fn manifest(setup: &Setup, args: &UpArgs) -> Result<ManifestText, Failure> {
    let shown = args.manifest.display().to_string();
    let is_file = fs::exists(&args.manifest) && !fs::is_dir(&args.manifest);
    let name = args.manifest.to_str().filter(|name| check_name(name).is_ok() && !is_file);
    if let Some(name) = name {
        return template(setup, args, name);
    }
    if args.task.is_some() || !args.agents.is_empty() {
        let problem = format!("{shown} is a file, and `--task` and `--agent` are for a template");
        let hint = "write them into the file, or choose a template: `phalanx template list`";
        return Err(Failure::usage(problem, hint));
    }
    if shown == "-" {
        return Ok(ManifestText { shown: "the manifest on stdin".to_owned(), text: stdin()? });
    }
    let is_missing = !fs::exists(&args.manifest);
    let hint = "`phalanx init` writes a manifest; `phalanx template list` shows teams without one";
    let text = read_text(&args.manifest, MAX_MANIFEST).map_err(|problem| {
        let hint = is_missing.then(|| hint.to_owned());
        Failure::new(Kind::Usage, format!("manifest {shown}: {problem}"), hint)
    })?;
    Ok(ManifestText { shown, text })
}

fn template(setup: &Setup, args: &UpArgs, name: &str) -> Result<ManifestText, Failure> {
    let template = templates::listed(&setup.ctx, name).map_err(|e| {
        Failure::new(e.kind(), format!("there is no file and no template `{name}`"), e.hint())
    })?;
    let template = template.template?;
    let Some(task) = &args.task else {
        let hint = format!("phalanx up {name} --task \"what the team is to do\"");
        return Err(Failure::usage(format!("the template `{name}` needs a task"), &hint));
    };
    let found = agents::on_path(&setup.ctx)?;
    let agents = choose_agents(setup, &template, &args.agents, &found)?;
    let here = &setup.ctx.caller.cwd;
    let team = team_name(here, Some(name));
    let project = project::look_at(here);
    let text = fill_template(setup, &template, (&team, task), &agents, &project)?;
    Ok(ManifestText { shown: format!("template {name}"), text })
}

/// Brings a team that exists to its manifest, and leads it unless another process does.
fn bring(setup: &Setup, args: &UpArgs, team: &TeamStore, plan: &UpPlan) -> VerbResult {
    plan.messages.iter().for_each(|line| setup.out.print_message(line));
    let began_at = ops::now();
    let failed = up_again::bring(setup, team, &plan.wanted, args.yes)?;
    if let Some(exit) = failed {
        return Ok(exit);
    }
    let ends = plan.wanted.settings.finish == Finish::TasksDone;
    loop {
        let led_by = ops::members::lead::holder(team)?;
        if let Some(pid) = led_by.filter(|_| ends && !args.detach) {
            setup.out.print_message(&format!(
                "process {pid} leads team {0}: waiting for its end; watch it: `phalanx watch {0}`",
                team.name()
            ));
            await_end(team)?;
            if !team.exists() {
                let report = closing::kept_since(setup, team.name(), began_at)?;
                return report.map_or(Ok(Exit::DONE), |report| report.print(setup));
            }
        } else if let Some(pid) = led_by {
            let document = json!({ "team_name": team.name().as_str(), "lead_pid": pid });
            setup.out.confirm(&document, || {
                format!("process {pid} leads team {0}; watch it: `phalanx watch {0}`", team.name())
            })?;
            return Ok(Exit::DONE);
        }
        let how = LeadingArgs { detach: args.detach, on_exit: OnExit::Stop };
        match lead::lead_again(setup, team, &how, Some(&rerun(args))) {
            // Another process leads it meanwhile.
            Err(Failure::Message(error))
                if error.kind == Kind::Refused && ops::members::lead::is_led(team)? => {}
            done => return done,
        }
    }
}

/// Waits until the team is gone, or no process leads it or is about to remove it.
fn await_end(team: &TeamStore) -> Result<(), Failure> {
    let left = Failure::interrupted("interrupted while waiting; the team runs on", None);
    let team = team.clone();
    interrupt::run_interruptible(left, move || {
        let changes = match team.changes() {
            Ok(changes) => changes,
            Err(_) if !team.exists() => return Ok(()),
            Err(e) => return Err(OpsError::from(e).into()),
        };
        let mut removed_by = Deadline::after(REMOVAL);
        while team.exists() {
            match ops::members::lead::is_led(&team) {
                Ok(true) => removed_by = Deadline::after(REMOVAL),
                Ok(false) if removed_by.expired() => break,
                Err(e) if team.exists() => return Err(e.into()),
                // It is being removed.
                Ok(false) | Err(_) => {}
            }
            changes.wait(SWEEP.min(removed_by.remaining()));
        }
        Ok(())
    })
}

/// Returns the command that runs the same team again.
fn rerun(args: &UpArgs) -> String {
    let manifest = args.manifest.to_string_lossy();
    let mut words = vec!["phalanx", "up", &manifest];
    words.extend(args.agents.iter().flat_map(|agent| ["--agent", agent]));
    words.extend(args.task.iter().flat_map(|task| ["--task", task]));
    text::line(&shlex::try_join(words).unwrap_or_else(|_| format!("phalanx up {manifest}")))
}

/// Makes the team and leads it. Gives the plan back if another process leads the team, or makes it,
/// which has until `made_by` for it.
async fn run(
    setup: &Setup,
    args: &UpArgs,
    ctx: &Context,
    plan: UpPlan,
    made_by: Deadline,
) -> Result<VerbResult, Box<UpPlan>> {
    // From here on signals are handled, so that everything that was started is ended in order.
    let mut signals = match Signals::new() {
        Ok(signals) => signals,
        Err(e) => return Ok(Err(e.into())),
    };
    let settings = plan.wanted.settings_of_new();
    match ops::team::create(ctx, &plan.name, &plan.description, None, &settings, false) {
        Ok(team) => match ops::team::lease::take(&team) {
            Ok(lease) => Ok(run_to_end(setup, args, &mut signals, &team, lease, plan).await),
            Err(OpsError::LedByAnother { .. }) => Err(Box::new(plan)),
            Err(e) => {
                let print = |words: &str| setup.out.print_message(words);
                let undone = delete_team(&setup.ctx, &team, print);
                Ok(Err(undone.err().unwrap_or(e).into()))
            }
        },
        Err(OpsError::TeamTaken { .. }) if !made_by.expired() => Err(Box::new(plan)),
        Err(e) => Ok(Err(e.into())),
    }
}

async fn run_to_end(
    setup: &Setup,
    args: &UpArgs,
    signals: &mut Signals,
    team: &TeamStore,
    lease: Lease,
    plan: UpPlan,
) -> VerbResult {
    let (session, stop_requests) = LeadSession::new(setup, team, OnExit::Stop)?;
    // With line output the lead reads the journal from its start and reports them itself.
    let reports_remarks = args.detach || session.is_live();
    let starting = start(setup, team, plan, &session, reports_remarks);
    let started = session.run_with_signals(signals, starting).await;
    let started = match started {
        Ok(spawned) if session.interrupted() && args.detach => Err((spawned, stopped())),
        started => started,
    };
    let spawned = match started {
        Ok(spawned) => spawned,
        Err((spawned, failure)) => {
            session.close();
            roll_back(setup, team, lease, &spawned).await;
            return Err(failure);
        }
    };
    if args.detach {
        session.close();
        drop(lease);
        return detach(setup, team, &spawned);
    }
    let result = session.lead(signals, stop_requests, lease).await?;
    if result.end == LeadEnd::TeamGone {
        setup.out.print_message(&format!("team {} was deleted while it was led here", team.name()));
    }
    lead_report::print_report(&setup.out, team, &result, Some(&rerun(args)))
}

fn stopped() -> Failure {
    Failure::interrupted("interrupted while the team was started", None)
}

/// Creates the tasks and starts the members in one batch. On failure it also returns the members
/// that run nevertheless.
async fn start(
    setup: &Setup,
    team: &TeamStore,
    plan: UpPlan,
    session: &LeadSession<'_>,
    reports_remarks: bool,
) -> Result<Vec<Spawned>, (Vec<Spawned>, Failure)> {
    let (ctx, store) = (setup.ctx.clone(), team.clone());
    plan.messages.iter().for_each(|line| session.print_message(line));
    // The frame shows the members as they start.
    let _notice = (!session.is_live()).then(|| proof_notice(setup, &plan.wanted.specs, START));
    let batch = interrupt::run_on_thread(move || {
        failpoint::hit("up.created");
        reconcile::lay_out(&ctx, &store, &plan.wanted)?;
        failpoint::hit("up.settled");
        if plan.tasks_only {
            return Ok(None);
        }
        let options = SpawnOptions::ready_within(START);
        Ok(Some(ops::starting::spawn::spawn(&ctx, &store, &plan.wanted.specs, &options)?))
    });
    let Some(batch) = batch.await.map_err(|failure| (Vec::new(), failure))? else {
        return Ok(Vec::new());
    };
    if reports_remarks {
        batch.remarks().for_each(|line| session.print_message(&line));
    }
    let (mut spawned, mut failed) = (Vec::new(), Vec::new());
    for result in batch.results {
        match result {
            Ok(one) => spawned.push(one),
            Err(e) => failed.push(e),
        }
    }
    if failed.is_empty() {
        announce(session, team, &spawned, &batch.chosen.why);
        return Ok(spawned);
    }
    let message = failed.iter().map(|e| chain(e)).collect::<Vec<_>>().join("\n");
    let hint = failed.iter().find_map(OpsError::hint);
    let is_backend = failed.iter().any(|e| e.kind() == Kind::Backend);
    let kind = if is_backend { Kind::Backend } else { Kind::Failed };
    Err((spawned, Failure::new(kind, message, hint)))
}

/// Prints how to watch the team, where it runs and why.
fn announce(session: &LeadSession<'_>, team: &TeamStore, spawned: &[Spawned], why: &str) {
    let Some(first) = spawned.first() else { return };
    let how = how_to_watch(team, first);
    if session.is_live() {
        // Short enough for the frame, and it also leads to a window of this session.
        let is_tmux = first.backend == BackendKind::Tmux;
        session.set_watch_command(if is_tmux {
            format!("phalanx attach -t {}", team.name())
        } else {
            how
        });
        return;
    }
    session.print_message(&format!("watch it: {how}"));
    session.print_message(&format!("backend {}: {why}", first.backend.as_str()));
}

/// Kills the members of a team that did not start completely, and removes the team.
async fn roll_back(setup: &Setup, team: &TeamStore, lease: Lease, spawned: &[Spawned]) {
    let ended = end_started(setup, team, lease, spawned).await;
    let deleted = ended.and_then(|()| {
        let report = ClosingReport::now(&setup.ctx, team, ENDED).ok();
        let report = report.map(ClosingReport::not_begun);
        let print = |words: &str| setup.out.print_message(words);
        Ok(delete_reported(&setup.ctx, team, report, print)?)
    });
    if let Err(Failure::Message(error)) = deleted {
        setup.out.report_error(&error);
        setup.out.print_message(&format!(
            "team {0} is left; end it with `phalanx down -t {0} --force`",
            team.name()
        ));
    }
}

async fn end_started(
    setup: &Setup,
    team: &TeamStore,
    lease: Lease,
    spawned: &[Spawned],
) -> Result<(), Failure> {
    let live = ops::members::status::live_members(team)?;
    let names: Vec<_> =
        live.into_iter().filter(|n| spawned.iter().any(|s| n.clashes_with(&s.name))).collect();
    let reason = Some("the team did not start as a whole".to_owned());
    let options =
        ShutdownOptions { reason, deadline_s: ROLLBACK_S, force: true, ..Default::default() };
    let requests = ops::ending::shutdown::ask(team, &setup.ctx.speaker, &names, &options)?;
    let _notice = stop::start_notice(setup, team, &requests);
    let ids: BTreeSet<_> = requests.into_iter().map(|r| r.id).collect();
    stop::carry_out(&setup.ctx, team, lease, ids).await?;
    Ok(())
}

fn detach(setup: &Setup, team: &TeamStore, spawned: &[Spawned]) -> VerbResult {
    let pid = start_background_lead(setup, team, &["lead"])?;
    let document =
        json!({ "team_name": team.name().as_str(), "lead_pid": pid, "members": spawned });
    setup.out.confirm(&document, || {
        format!(
            "team {0} runs in the background, led by process {pid}; end it with `phalanx down -t {0}`",
            team.name()
        )
    })
}
