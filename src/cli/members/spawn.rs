//! `spawn`: starts one or several members as one batch.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::json;

use crate::args::{backend, host_name, mode, seconds, word};
use crate::ending::stop;
use crate::fail::{ErrorMessage, Exit, Failure, VerbResult, chain};
use crate::mail::scope::{ChatArg, ScopeArgs};
use crate::members::start::{how_to_watch, start};
use crate::read::text_from;
use crate::setup::Setup;
use crate::team::background::start_background_lead;
use crate::team::compose::team_name;
use crate::team::deletion::delete_team;
use crate::team::make_team;
use crate::{interrupt, json};
use backend::choose::Chosen;
use model::board::policy::Pull;
use model::board::task_ref::TaskRef;
use model::decisions::rules::Rule;
use model::id::{HostName, MemberName};
use model::mail::access::LinkAccess;
use model::mail::scope::ChatName;
use model::members::environ::parse_variable;
use model::members::launch::LaunchSpec;
use model::members::mode::Mode;
use model::members::placement::{BackendKind, Layout};
use model::team::host::HostChoice;
use model::team::role::Tools;
use model::team::settings::BackendChoice;
use model::team::worktree::{Revision, WorktreeKey, WorktreeRequest, check_branch, check_revision};
use model::text;
use model::value::As;
use ops::authority::Action;
use ops::ending::shutdown::ShutdownOptions;
use ops::starting::spawn::{DryRun, SpawnOptions, Spawned, SpawnedBranch, StartedWhen};
use ops::{self, OpsError, TeamStore};

/// Start members.
#[derive(Debug, Args, Deserialize, JsonSchema)]
#[command(
    after_help = "Examples:\n  phalanx spawn ada\n  phalanx spawn ann ben cleo --profile claude --until running\n  \
    phalanx spawn log --cwd /var/log -- tail -f syslog\n\n\
    Without a command line a member is a worker: it claims tasks that have a command, and runs them. \
    Several names are started as one batch with the same options. If one of them does not start, the others stay; \
    the exit code is that of the first failure."
)]
pub(crate) struct SpawnArgs {
    /// Names of the members.
    #[arg(required = true, value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Profile of its program; see `phalanx profile list`.
    #[arg(help_heading = "Program", long, value_name = "PROFILE")]
    pub(crate) profile: Option<String>,
    /// Role: an agent file, or a role of the manifest.
    #[arg(help_heading = "Program", long, value_name = "ROLE")]
    pub(crate) role: Option<String>,
    /// Model for its program.
    #[arg(help_heading = "Program", long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Permission mode.
    #[arg(help_heading = "Program", long, value_parser = mode(), value_name = "MODE")]
    #[serde(default)]
    #[schemars(schema_with = "json::words::<Mode>")]
    pub(crate) mode: Option<Mode>,
    /// Tools that it may use, and no others: names or patterns with commas between them;
    /// repeatable.
    #[arg(help_heading = "Limits", long, value_parser = Rule::parse_list, value_name = "TOOLS")]
    #[serde(default, deserialize_with = "json::rules")]
    #[schemars(schema_with = "json::texts")]
    pub(crate) allowed_tools: Vec<Vec<Rule>>,
    /// Tools that it may not use; repeatable.
    #[arg(help_heading = "Limits", long, value_parser = Rule::parse_list, value_name = "TOOLS")]
    #[serde(default, deserialize_with = "json::rules")]
    #[schemars(schema_with = "json::texts")]
    pub(crate) disallowed_tools: Vec<Vec<Rule>>,
    /// Require an approved plan before it works.
    #[arg(help_heading = "Work", long)]
    #[serde(default)]
    pub(crate) plan: bool,
    /// Do not ask for attention when its command waits at a prompt.
    #[arg(help_heading = "Work", long)]
    #[serde(default)]
    pub(crate) no_attention: bool,
    /// User whose requests it takes, and no others'; repeatable.
    #[arg(help_heading = "Limits", long, value_name = "USER")]
    #[serde(default)]
    pub(crate) allow_user: Vec<String>,
    /// User whose requests it does not take; repeatable.
    #[arg(help_heading = "Limits", long, value_name = "USER")]
    #[serde(default)]
    pub(crate) deny_user: Vec<String>,
    /// Notification of free tasks while it is idle [default: the setting of the team].
    #[arg(help_heading = "Work", long, value_parser = word::<Pull>(), value_name = "WHEN")]
    #[serde(default)]
    #[schemars(schema_with = "json::words::<Pull>")]
    pub(crate) pull: Option<Pull>,
    /// First message.
    #[arg(help_heading = "Work", long, value_name = "TEXT", conflicts_with = "prompt_file")]
    pub(crate) prompt: Option<String>,
    /// Pending task that the prompt is about; it becomes the member's, and is claimed for it.
    #[arg(help_heading = "Work", long, value_name = "ID")]
    #[serde(default)]
    pub(crate) task: Option<TaskRef>,
    /// File with the first message; - reads stdin.
    #[arg(help_heading = "Work", long, value_name = "FILE")]
    #[serde(skip)]
    pub(crate) prompt_file: Option<PathBuf>,
    /// Host to run on; see `phalanx host list`.
    #[arg(help_heading = "Place", long, value_parser = host_name, value_name = "HOST")]
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub(crate) host: Option<HostName>,
    /// Working directory [default: the current one].
    #[arg(help_heading = "Place", long, value_name = "DIR")]
    pub(crate) cwd: Option<String>,
    /// Create a git worktree for it, on a new branch (`true`) or on BRANCH; with `--host`, on that
    /// host.
    #[arg(help_heading = "Place", long, value_parser = worktree_request, value_name = "BRANCH", num_args = 0..=1, require_equals = true,
          default_missing_value = "")]
    #[serde(default, with = "As::<WorktreeKey>")]
    #[schemars(with = "Option<String>")]
    pub(crate) worktree: Option<WorktreeRequest>,
    /// Revision that a new branch starts from [default: what is checked out here].
    #[arg(help_heading = "Place", long, value_parser = revision, value_name = "REV", requires = "worktree")]
    #[serde(default, with = "As::<Option<Revision>>")]
    pub(crate) base: Option<String>,
    /// Backend [default: that of the team's first members].
    #[arg(help_heading = "Place", long, value_parser = backend, value_name = "BACKEND")]
    #[serde(default, deserialize_with = "json::word")]
    #[schemars(with = "Option<String>")]
    pub(crate) backend: Option<BackendChoice>,
    /// Placement: panes of a window, a window each, or beside the lead.
    #[arg(help_heading = "Place", long, value_parser = word::<Layout>(), value_name = "LAYOUT")]
    #[serde(default)]
    #[schemars(schema_with = "json::words::<Layout>")]
    pub(crate) layout: Option<Layout>,
    /// Environment variable; repeatable.
    #[arg(help_heading = "Program", long, value_parser = parse_variable, value_name = "NAME=VALUE")]
    #[serde(default, deserialize_with = "json::variables")]
    #[schemars(schema_with = "json::object")]
    pub(crate) env: Vec<(String, String)>,
    /// File of lines NAME=VALUE with further variables; a relative one is below its own directory.
    #[arg(help_heading = "Program", long, value_name = "FILE")]
    #[serde(skip)]
    pub(crate) env_file: Option<String>,
    /// Command line that starts its program in its own directory, such as "direnv exec .".
    #[arg(help_heading = "Program", long, value_parser = wrap_words, value_name = "CMD")]
    #[serde(skip)]
    pub(crate) wrap: Option<WrapWords>,
    /// Return when its process runs, or when its program is ready as its profile defines it.
    #[arg(long, value_parser = word::<StartedWhen>(), value_name = "WHEN", default_value = "ready")]
    #[serde(default, deserialize_with = "until_from_json")]
    #[schemars(schema_with = "json::words::<StartedWhen>")]
    pub(crate) until: StartedWhen,
    /// Seconds to wait for it to start.
    #[arg(long, value_parser = seconds, value_name = "S", default_value = "30")]
    #[serde(default = "start_limit", deserialize_with = "deadline_from_json")]
    #[schemars(with = "Option<f64>")]
    pub(crate) deadline: Duration,
    /// Append -2, -3 … if the name is taken.
    #[arg(long)]
    #[serde(skip)]
    pub(crate) unique: bool,
    /// Do not start a lead for a team that this command makes, because there is none.
    #[arg(long)]
    #[serde(skip)]
    pub(crate) no_lead: bool,
    /// Print what would be started, and start nothing.
    #[arg(long)]
    #[serde(default)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) scope: ScopeArgs,
    /// Command line to run.
    #[arg(last = true, value_name = "CMD")]
    #[serde(default)]
    pub(crate) command: Vec<String>,
}

/// Time in which a program that has started may ask its first questions, such as whether it may
/// trust the directory.
const FIRST_QUESTIONS: Duration = Duration::from_secs(3);

fn start_limit() -> Duration {
    Duration::from_secs(30)
}

fn until_from_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<StartedWhen, D::Error> {
    Ok(json::word(deserializer)?.unwrap_or_default())
}

fn deadline_from_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    Ok(json::seconds(deserializer)?.unwrap_or_else(start_limit))
}

/// A command line that is given as one argument.
#[derive(Debug, Clone)]
pub(crate) struct WrapWords(Vec<String>);

/// Splits a command line as a shell does, without expanding anything.
fn wrap_words(given: &str) -> Result<WrapWords, String> {
    shlex::split(given).map(WrapWords).ok_or_else(|| "a quote is not closed".to_owned())
}

/// Parses a branch; an empty value and `true` mean a new branch.
fn worktree_request(given: &str) -> Result<WorktreeRequest, String> {
    match given {
        "" | "true" => Ok(WorktreeRequest::Own),
        branch => check_branch(branch).map(|()| WorktreeRequest::Branch(branch.to_owned())),
    }
}

fn revision(given: &str) -> Result<String, String> {
    check_revision(given).map(|()| given.to_owned())
}

pub(crate) fn spawn(setup: &Setup, mut args: SpawnArgs) -> VerbResult {
    let given: Vec<&str> = args.names.iter().map(String::as_str).collect();
    // A dry run writes nothing: without a team it fails.
    let missing = || match args.dry_run {
        true => setup.selected_team(),
        false => make_team(setup, &team_name(&setup.ctx.caller.cwd, None)),
    };
    let (team, names, is_made) = setup.addressed_or_made(&given, Action::Spawn, missing)?;
    let leads = is_made && !args.no_lead;
    let asks = !args.dry_run && args.until == StartedWhen::Ready;
    args.names = names.into_iter().map(str::to_owned).collect();
    let members: Vec<MemberName> =
        args.names.iter().filter_map(|name| MemberName::existing(name).ok()).collect();
    let started = spawn_in(setup, &team, args);
    let has_members = !is_made || team.team()?.teammates().next().is_some();
    if !has_members {
        delete_team(&setup.ctx, &team, |_| {})?;
        return started;
    }
    if leads {
        let pid = start_background_lead(setup, &team, &["lead"])?;
        setup.out.print_message(&format!(
            "made team {0}, which process {pid} leads in the background; `phalanx down` ends it",
            team.name()
        ));
    }
    if asks && started.is_ok() && ops::members::lead::is_led(&team)? {
        for (name, needs) in
            ops::views::wait::first_needs(&setup.ctx, &team, &members, FIRST_QUESTIONS)?
        {
            setup.out.print_message(&text::line(&format!("{name} {needs}")));
        }
    }
    started
}

fn spawn_in(setup: &Setup, team: &TeamStore, args: SpawnArgs) -> VerbResult {
    check_names(&args)?;
    let options = SpawnOptions {
        backend: args.backend,
        until: args.until,
        deadline: args.deadline,
        unique: args.unique,
        layout: args.layout,
        scope: args.scope.resolve(setup)?,
    };
    let own = Some(ChatArg::default().resolve(setup)?).filter(|own| *own != ChatName::default());
    let chat = options.scope.chat.clone().or(own.map(|own| own.as_str().to_owned()));
    let dry_run = args.dry_run;
    let delegated =
        args.task.as_ref().map(|task| ops::board::task::find(team, task)).transpose()?;
    let has_prompt = args.prompt.is_some() || args.prompt_file.is_some();
    let specs = launch_specs(args, chat)?;
    ops::board::task::may_delegate(&setup.ctx, team, delegated, has_prompt, &specs)?;
    if dry_run {
        return print_dry_runs(setup, team, &specs, &options);
    }
    for line in ops::starting::agents::advice(&setup.ctx, &specs)? {
        setup.out.print_message(&format!("warning: {line}"));
    }
    let names: Vec<String> = specs.iter().map(|spec| spec.name.clone()).collect();
    let runtime = interrupt::runtime()?;
    let batch = runtime.block_on(start(setup, team, specs, options));
    runtime.shutdown_background();
    let (batch, interrupted) = batch?;
    batch.remarks().for_each(|line| setup.out.print_message(&line));
    let started: Vec<&Spawned> = batch.results.iter().flatten().collect();
    if interrupted && !started.is_empty() {
        return Err(end_started(setup, team, &started));
    }
    if let (Some(id), Some(one)) = (delegated, started.first()) {
        let name = MemberName::existing(&one.name).map_err(OpsError::from)?;
        ops::board::task::delegate(&setup.ctx, team, id, &name)?;
    }
    let Chosen { backend, why, .. } = &batch.chosen;
    if started.iter().any(|one| one.backend == *backend) {
        setup.out.print_message(&format!("backend {}: {why}", backend.as_str()));
    }
    report(setup, team, &names, batch.results)
}

/// Rejects a name that is given twice, and one branch for several worktrees.
fn check_names(args: &SpawnArgs) -> Result<(), Failure> {
    let twice = |nth: usize| {
        args.names[..nth].iter().any(|name| name.eq_ignore_ascii_case(&args.names[nth]))
    };
    if let Some(nth) = (0..args.names.len()).find(|nth| !args.unique && twice(*nth)) {
        let name = text::line(&args.names[nth]);
        let problem = format!("`{name}` is given twice");
        return Err(Failure::usage(
            problem,
            "name each member once, or number them with `--unique`",
        ));
    }
    if let (Some(task), 2..) = (&args.task, args.names.len()) {
        let problem = format!("task {task} cannot be delegated to several members");
        return Err(Failure::usage(problem, "start them one by one, each with its own task"));
    }
    if let (Some(WorktreeRequest::Branch(branch)), 2..) = (&args.worktree, args.names.len()) {
        let problem =
            format!("branch `{}` cannot be checked out in several worktrees", text::line(branch));
        return Err(Failure::usage(
            problem,
            "use `--worktree` without a branch, or start them one by one",
        ));
    }
    Ok(())
}

fn print_dry_runs(
    setup: &Setup,
    team: &TeamStore,
    specs: &[LaunchSpec],
    options: &SpawnOptions,
) -> VerbResult {
    let plan = |spec| ops::starting::spawn::dry_run(&setup.ctx, team, spec, options);
    let plans = specs.iter().map(plan).collect::<Result<Vec<DryRun>, _>>()?;
    match plans.as_slice() {
        [plan] => setup.out.print(plan, || dry_run_lines(plan)),
        plans => {
            let words = || plans.iter().map(dry_run_lines).collect::<Vec<_>>().join("\n\n");
            setup.out.print(&plans, words)
        }
    }
}

/// Prints the result of each member. A single result is printed as the document or failure itself.
fn report(
    setup: &Setup,
    team: &TeamStore,
    names: &[String],
    mut results: Vec<Result<Spawned, OpsError>>,
) -> VerbResult {
    if let [_] = names
        && let Some(result) = results.pop()
    {
        let one = result?;
        setup.out.confirm_new(&one, &one.name, || {
            format!("{}; watch it: {}", location(&one), how_to_watch(team, &one))
        })?;
        return Ok(Exit::DONE);
    }
    let (mut rows, mut lines, mut failures) = (Vec::new(), Vec::new(), Vec::new());
    let mut started: Vec<String> = Vec::new();
    let mut first = None;
    for (name, result) in names.iter().zip(results) {
        match result {
            Ok(one) => {
                rows.push(json!(one));
                lines.push(location(&one));
                started.push(one.name.to_string());
                first.get_or_insert(one);
            }
            Err(e) => {
                let error = ErrorMessage { kind: e.kind(), message: chain(&e), hint: e.hint() };
                let mut row = error.document();
                row["name"] = json!(name);
                rows.push(row);
                failures.push(error);
            }
        }
    }
    setup.out.confirm_new(&rows, started.join("\n"), || lines.join("\n"))?;
    failures.iter().for_each(|error| setup.out.report_error(error));
    if let Some(one) = first {
        let watched = if one.backend == BackendKind::Tmux { "them" } else { one.name.as_str() };
        setup.out.print_message(&format!("watch {watched}: {}", how_to_watch(team, &one)));
    }
    Ok(failures.first().map_or(Exit::DONE, |error| Exit::of(error.kind)))
}

/// Formats a plan with one fact per line. The command line is quoted as for a shell, for reading
/// only; no shell runs it.
fn dry_run_lines(plan: &DryRun) -> String {
    let words: Vec<_> = plan.argv.iter().map(String::as_str).collect();
    let argv = shlex::try_join(words.iter().copied()).unwrap_or_else(|_| words.join(" "));
    let mut facts = vec![
        ("member", format!("{} ({})", plan.name, plan.agent_id)),
        ("profile", format!("{}, {}", plan.profile, plan.runs)),
        ("command", argv),
        ("cwd", plan.cwd.clone()),
    ];
    let optional = [
        ("model", plan.model.clone()),
        ("mode", plan.mode.map(|mode| mode.as_str().to_owned())),
        ("role", plan.role.clone()),
        ("prompt", plan.prompt.map(|how| format!("by {how}"))),
    ];
    facts.extend(optional.into_iter().filter_map(|(name, value)| Some((name, value?))));
    facts.push(("env", plan.env.join(" ")));
    facts.extend(plan.warnings.iter().map(|warning| ("warning", warning.clone())));
    let lines = facts.iter().map(|(name, value)| format!("{name:<8} {}", text::line(value)));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns one spec for each name; all other fields are equal.
fn launch_specs(args: SpawnArgs, chat: Option<String>) -> Result<Vec<LaunchSpec>, Failure> {
    let prompt = match args.prompt_file {
        Some(file) => Some(text_from("prompt", &file)?),
        None => args.prompt,
    };
    let tools = Tools {
        allowed: (!args.allowed_tools.is_empty()).then(|| args.allowed_tools.concat()),
        disallowed: args.disallowed_tools.concat(),
    };
    let common = LaunchSpec {
        profile: args.profile,
        role: args.role,
        model: args.model,
        mode: args.mode,
        plan: args.plan,
        is_unattended: args.no_attention,
        pull: args.pull,
        access: LinkAccess { allow_users: args.allow_user, deny_users: args.deny_user },
        prompt,
        host: args.host.map(HostChoice::Name),
        cwd: args.cwd,
        worktree: args.worktree,
        base: args.base,
        tools,
        env: args.env,
        env_file: args.env_file,
        wrap: args.wrap.map(|wrap| wrap.0),
        command: args.command,
        chat,
        ..LaunchSpec::default()
    };
    Ok(args.names.into_iter().map(|name| LaunchSpec { name, ..common.clone() }).collect())
}

/// Kills the members of an interrupted start.
fn end_started(setup: &Setup, team: &TeamStore, started: &[&Spawned]) -> Failure {
    let names: Vec<&str> = started.iter().map(|one| one.name.as_str()).collect();
    let hint = Some(format!(
        "end them with `phalanx shutdown {} --force -t {}`",
        names.join(" "),
        team.name()
    ));
    let options = ShutdownOptions { deadline_s: 10, force: true, ..Default::default() };
    let members =
        names.iter().map(|name| MemberName::existing(name)).collect::<Result<Vec<_>, _>>();
    let ended = members
        .map_err(Failure::from)
        .and_then(|members| {
            Ok(ops::ending::shutdown::ask(team, &setup.ctx.speaker, &members, &options)?)
        })
        .and_then(|requests| stop::await_requests(setup, team, requests, Duration::from_secs(30)));
    let names = names.join(", ");
    match ended {
        Ok(_) => {
            Failure::interrupted(&format!("interrupted; ended what had started: {names}"), None)
        }
        Err(_) => Failure::interrupted(&format!("interrupted; still running: {names}"), hint),
    }
}

/// Describes the branch of a new worktree: ` on new branch t-ann from dev (1a2b3c4)`.
fn branch_words(branch: &SpawnedBranch) -> String {
    let commit: String = branch.commit.chars().take(7).collect();
    let name = text::line(&branch.name);
    match branch.from.as_deref().filter(|from| !branch.commit.starts_with(from)) {
        _ if branch.from.is_none() => format!(" on branch {name} ({commit})"),
        Some(from) => format!(" on new branch {name} from {} ({commit})", text::line(from)),
        None => format!(" on new branch {name} from {commit}"),
    }
}

/// Describes where a member runs: `ada runs in %3 (tmux, window phalanx-demo)`.
fn location(one: &Spawned) -> String {
    let Spawned { name, pid, .. } = one;
    let on_host = one.host.as_ref().map(|host| format!(" on host {host}")).unwrap_or_default();
    let branch = one.branch.as_ref().map(branch_words).unwrap_or_default();
    match (one.backend, &one.tmux_pane_id, &one.tmux_window_name) {
        (BackendKind::Tmux, Some(pane), Some(window)) => {
            let window = text::line(window);
            format!("{name} runs in {pane}{on_host} (tmux, window {window}){branch}")
        }
        (BackendKind::Iterm2, _, _) => {
            format!("{name} runs{on_host} ({}, process {pid}){branch}", one.backend.as_str())
        }
        (BackendKind::Tmux | BackendKind::Pty, _, _) => {
            format!("{name} runs in a terminal of its own{on_host} (pty, process {pid}){branch}")
        }
    }
}
