//! `up`: runs a team from a manifest, from its creation to its end.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::args::backend;
use super::background::start_background_lead;
use super::conclusion;
use super::deletion::delete_team;
use super::fail::{Exit, Failure, VerbResult, chain};
use super::lead_session::{LeadSession, OnExit};
use super::read::{MAX_MANIFEST, prompt_file, read_text};
use super::setup::Setup;
use super::start::{how_to_watch, proof_notice};
use super::{interrupt, stop};
use crate::config::manifest::Manifest;
use crate::lead::LeadEnd;
use crate::model::launch::{LaunchSpec, Template};
use crate::model::placement::BackendKind;
use crate::model::settings::{BackendChoice, PlacementHome, Settings};
use crate::model::text;
use crate::ops::spawn::{SpawnOptions, Spawned};
use crate::ops::{self, Kind, Lease, NewTask, TeamStore};
use crate::sys::signal::Signals;

/// Run a team from a manifest: create it, lead it until its tasks are done, delete it.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  phalanx up fixtures/teams/checks.toml\n\n\
    The first Ctrl-C asks all members to stop, the second kills them. \
    Exits with 0 if every task was completed, with 1 if one failed or never ran.")]
pub(super) struct UpArgs {
    /// TOML file that describes the team, its members and its tasks.
    pub(super) manifest: PathBuf,
    /// Lead the team in the background.
    #[arg(long)]
    pub(super) detach: bool,
    /// Keep the team's files at the end.
    #[arg(long)]
    pub(super) keep: bool,
    /// Backend for the members; overrides the manifest.
    #[arg(long, value_parser = backend, value_name = "BACKEND")]
    pub(super) backend: Option<BackendChoice>,
    /// Socket of the tmux server to use.
    #[arg(long, value_name = "PATH")]
    pub(super) tmux_socket: Option<PathBuf>,
}

/// Time limit for members to prove that they run.
const START: std::time::Duration = std::time::Duration::from_secs(30);
/// Shutdown deadline in seconds for members of a team whose start failed.
const ROLLBACK_S: u64 = 10;

/// The contents of a manifest, checked and resolved.
struct UpPlan {
    name: String,
    description: String,
    /// Address of the shared store for the team.
    store: Option<String>,
    settings: Settings,
    specs: Vec<LaunchSpec>,
    /// No member is permanent: each task is a run of its own.
    tasks_only: bool,
    /// Messages for the user: the reason for the mode, and warnings.
    messages: Vec<String>,
    tasks: Vec<NewTask>,
}

pub(super) fn up(setup: &Setup, args: &UpArgs) -> VerbResult {
    let plan = plan(setup, args)?;
    let runtime = interrupt::runtime()?;
    let done = runtime.block_on(run(setup, args, plan));
    runtime.shutdown_background();
    done
}

/// Reads the manifest and checks everything that can be checked before anything is created.
fn plan(setup: &Setup, args: &UpArgs) -> Result<UpPlan, Failure> {
    let shown = args.manifest.display();
    let text = read_text(&args.manifest, MAX_MANIFEST).map_err(|problem| {
        Failure::new(Kind::Usage, format!("manifest {shown}: {problem}"), None)
    })?;
    let hosts = ops::hosts::user_hosts(&setup.ctx)?;
    let manifest = Manifest::parse_with_hosts(&text, &hosts).map_err(|e| {
        let message = format!("{shown}:{}:{}: {}", e.line, e.column, e.message);
        Failure::new(Kind::Usage, message, e.nearest.map(|word| format!("did you mean `{word}`?")))
    })?;
    let here = &setup.ctx.caller.cwd;
    let settings = ops::manifest::team_settings(&manifest, args.backend.clone(), args.keep);
    let (tasks_only, mode) = ops::manifest::choose_mode(&setup.ctx, &manifest, &settings.backend);
    let members = ops::manifest::member_launches(&manifest, tasks_only, here, |file| {
        prompt_file(here, file)
    })?;
    let messages = mode
        .into_iter()
        .chain(ops::manifest::shared_checkout_warnings(&members.templates))
        .collect();
    let tmux_socket = args.tmux_socket.as_deref().map(|path| setup.absolute(path)).transpose()?;
    let plan = UpPlan {
        name: manifest.name.clone(),
        description: manifest.description.clone().unwrap_or_default(),
        store: manifest.store.clone(),
        tasks: ops::manifest::new_tasks(&manifest, here)?,
        settings: Settings {
            templates: members.templates,
            home: PlacementHome { tmux_socket, chosen: None },
            ..settings
        },
        specs: members.specs,
        tasks_only,
        messages,
    };
    let later = plan.settings.templates.iter().map(Template::sample);
    let all: Vec<LaunchSpec> = plan.specs.iter().cloned().chain(later).collect();
    let checked = ops::spawn::check(&setup.ctx, &plan.settings, &all);
    let fits = if tasks_only { ops::manifest::check_task_mode(&manifest) } else { Ok(()) };
    let checked = fits.and(checked);
    checked.map_err(|e| Failure::new(e.kind(), format!("{shown}: {}", chain(&e)), e.hint()))?;
    Ok(plan)
}

async fn run(setup: &Setup, args: &UpArgs, plan: UpPlan) -> VerbResult {
    // From here on signals are handled, so that everything that was started is ended in order.
    let mut signals = Signals::new()?;
    let ctx = setup.ctx_for_store(plan.store.as_deref())?;
    let team = ops::team::create(&ctx, &plan.name, &plan.description, None, &plan.settings, false)?;
    let lease = match ops::lease::take(&team) {
        Ok(lease) => lease,
        Err(e) => {
            return Err(delete_team(&setup.ctx, &team, |words| setup.out.print_message(words))
                .err()
                .unwrap_or(e.into()));
        }
    };
    let (session, stop_requests) = LeadSession::new(setup, &team, OnExit::Stop)?;
    // With line output the lead reads the journal from its start and reports the fallbacks itself.
    let reports_fallbacks = args.detach || session.is_live();
    let starting = start(setup, &team, plan, &session, reports_fallbacks);
    let started = session.run_with_signals(&mut signals, starting).await;
    let spawned = match started {
        Ok(spawned) if session.interrupted() && args.detach => Err((spawned, stopped())),
        Ok(spawned) => Ok(spawned),
        Err((spawned, failure)) => Err((spawned, failure)),
    };
    let spawned = match spawned {
        Ok(spawned) => spawned,
        Err((spawned, failure)) => {
            session.close();
            roll_back(setup, &team, lease, &spawned).await;
            return Err(failure);
        }
    };
    if args.detach {
        session.close();
        drop(lease);
        return detach(setup, &team, &spawned);
    }
    let conclusion = session.lead(&mut signals, stop_requests, lease).await?;
    if conclusion.end == LeadEnd::TeamGone {
        setup.out.print_message(&format!("team {} was deleted while it was led here", team.name()));
    }
    let rerun = format!("phalanx up {}", text::line(&args.manifest.to_string_lossy()));
    conclusion::print_report(&setup.out, &team, &conclusion, Some(&rerun))
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
    reports_fallbacks: bool,
) -> Result<Vec<Spawned>, (Vec<Spawned>, Failure)> {
    let (ctx, store) = (setup.ctx.clone(), team.clone());
    plan.messages.iter().for_each(|line| session.print_message(line));
    // The frame shows the members as they start.
    let _notice = (!session.is_live()).then(|| proof_notice(setup, &plan.specs, START));
    let batch = interrupt::run_on_thread(move || {
        if !plan.tasks.is_empty() {
            ops::task::lay_out(&ctx, &store, &plan.tasks)?;
        }
        if plan.tasks_only {
            return Ok(None);
        }
        let options = SpawnOptions::ready_within(START);
        Ok(Some(ops::spawn::spawn(&ctx, &store, &plan.specs, &options)?))
    });
    let Some(batch) = batch.await.map_err(|failure| (Vec::new(), failure))? else {
        return Ok(Vec::new());
    };
    if reports_fallbacks {
        batch.fallbacks.iter().for_each(|fallback| session.print_message(&fallback.to_string()));
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
    let hint = failed.iter().find_map(ops::OpsError::hint);
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
    if let Err(Failure::Message(error)) =
        ended.and_then(|()| delete_team(&setup.ctx, team, |words| setup.out.print_message(words)))
    {
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
    let live = ops::status::live_members(team)?;
    let names: Vec<_> =
        live.into_iter().filter(|n| spawned.iter().any(|s| n.clashes_with(&s.name))).collect();
    let options = ops::shutdown::ShutdownOptions {
        reason: Some("the team did not start as a whole".to_owned()),
        deadline_s: ROLLBACK_S,
        force: true,
    };
    let requests = ops::shutdown::ask(team, &setup.ctx.speaker, &names, &options)?;
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
    })?;
    Ok(Exit::DONE)
}
