//! `spawn`: starts one or several members as one batch.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use super::fail::{Class, Exit, Failure, Told, chain};
use super::notice::Notice;
use super::setup::Setup;
use super::up::{how_to_watch, read_text};
use super::{Done, args, interrupt, shutdown};
use crate::backend::choose::Chosen;
use crate::model::id::MemberName;
use crate::model::launch::LaunchSpec;
use crate::model::placement::BackendKind;
use crate::model::role::Tools;
use crate::model::text;
use crate::model::worktree::WorktreeRequest;
use crate::ops::authority::Action;
use crate::ops::spawn::{DryRun, SpawnOptions, SpawnReport, Spawned};
use crate::ops::{self, OpsError, Team};
use crate::sys::env;
use crate::sys::signal::Signals;

/// Maximum size of a text from a file or stdin, in bytes.
const MAX_TEXT: u64 = 16 * 1024 * 1024;

pub(super) fn spawn(setup: &Setup, mut args: args::Spawn) -> Done {
    let (team, names) = setup
        .addressed(&args.names.iter().map(String::as_str).collect::<Vec<_>>(), Action::Spawn)?;
    args.names = names.into_iter().map(str::to_owned).collect();
    check_names(&args)?;
    let options = SpawnOptions {
        backend: args.backend.clone(),
        until: args.until,
        deadline: args.deadline,
        unique: args.unique,
        layout: args.layout,
    };
    let dry_run = args.dry_run;
    let specs = launch_specs(args)?;
    if dry_run {
        return print_dry_runs(setup, &team, &specs, &options);
    }
    let names: Vec<String> = specs.iter().map(|spec| spec.name.clone()).collect();
    let runtime = interrupt::runtime()?;
    let batch = runtime.block_on(start(setup, &team, specs, options));
    runtime.shutdown_background();
    let (batch, interrupted) = batch?;
    batch.fallbacks.iter().for_each(|fallback| setup.out.say(&fallback.to_string()));
    batch
        .warnings
        .iter()
        .for_each(|warning| setup.out.say(&format!("warning: {}", text::line(warning))));
    let started: Vec<&Spawned> = batch.results.iter().flatten().collect();
    if interrupted && !started.is_empty() {
        return Err(end_started(setup, &team, &started));
    }
    let Chosen { backend, why, .. } = &batch.chosen;
    if started.iter().any(|one| one.backend == *backend) {
        setup.out.say(&format!("backend {}: {why}", backend.as_str()));
    }
    report(setup, &team, &names, batch.results)
}

/// Rejects a name that is given twice, and one branch for several worktrees.
fn check_names(args: &args::Spawn) -> Result<(), Failure> {
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
    team: &Team,
    specs: &[LaunchSpec],
    options: &SpawnOptions,
) -> Done {
    let plan = |spec| ops::spawn::dry_run(&setup.ctx, team, spec, options);
    let plans = specs.iter().map(plan).collect::<Result<Vec<DryRun>, _>>()?;
    match plans.as_slice() {
        [plan] => setup.out.give(plan, || dry_run_lines(plan))?,
        plans => {
            let words = || plans.iter().map(dry_run_lines).collect::<Vec<_>>().join("\n\n");
            setup.out.give(&plans, words)?;
        }
    }
    Ok(Exit::DONE)
}

/// Prints the result of each member. A single result is printed as the document or failure itself.
fn report(
    setup: &Setup,
    team: &Team,
    names: &[String],
    mut results: Vec<Result<Spawned, OpsError>>,
) -> Done {
    if let [_] = names
        && let Some(result) = results.pop()
    {
        let one = result?;
        setup.out.confirm(&one, || {
            format!("{}; watch it: {}", location(&one), how_to_watch(team, &one))
        })?;
        return Ok(Exit::DONE);
    }
    let (mut rows, mut lines, mut failures) = (Vec::new(), Vec::new(), Vec::new());
    let mut first = None;
    for (name, result) in names.iter().zip(results) {
        match result {
            Ok(one) => {
                rows.push(json!(one));
                lines.push(location(&one));
                first.get_or_insert(one);
            }
            Err(e) => {
                let failure = Told { class: e.kind().into(), message: chain(&e), hint: e.hint() };
                let mut row = failure.document();
                row["name"] = json!(name);
                rows.push(row);
                failures.push(failure);
            }
        }
    }
    setup.out.confirm(&rows, || lines.join("\n"))?;
    failures.iter().for_each(|failure| setup.out.complain(failure));
    if let Some(one) = first {
        let whom = if one.backend == BackendKind::Tmux { "them" } else { one.name.as_str() };
        setup.out.say(&format!("watch {whom}: {}", how_to_watch(team, &one)));
    }
    Ok(failures.first().map_or(Exit::DONE, |failure| Exit::of(failure.class)))
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
    facts
        .iter()
        .map(|(name, value)| format!("{name:<8} {}", text::line(value)))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Returns one spec for each name; all other fields are equal.
fn launch_specs(args: args::Spawn) -> Result<Vec<LaunchSpec>, Failure> {
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
        prompt,
        cwd: args.cwd,
        worktree: args.worktree,
        tools,
        env: args.env,
        command: args.command,
        ..LaunchSpec::default()
    };
    Ok(args.names.into_iter().map(|name| LaunchSpec { name, ..common.clone() }).collect())
}

/// Reads a text from a file, or from stdin for `-`; `what` names it in errors.
pub(super) fn text_from(what: &str, file: &Path) -> Result<String, Failure> {
    if file == Path::new("-") {
        return stdin();
    }
    read_text(file, MAX_TEXT).map_err(|problem| {
        Failure::new(Class::Usage, format!("{what} file {}: {problem}", file.display()), None)
    })
}

/// Reads all of stdin. Fails on a terminal instead of waiting for a person to type.
pub(super) fn stdin() -> Result<String, Failure> {
    if env::stdin_is_tty() {
        return Err(Failure::usage("there is no text", "give it as an argument, or pipe it in"));
    }
    let mut bytes = Vec::new();
    std::io::stdin().lock().take(MAX_TEXT).read_to_end(&mut bytes)?;
    String::from_utf8(bytes)
        .map_err(|_| Failure::usage("stdin is not UTF-8 text", "convert it first"))
}

/// Starts members. A start cannot be interrupted in the middle, so signals are deferred; the flag
/// returned tells whether there was one.
pub(super) async fn start(
    setup: &Setup,
    team: &Team,
    specs: Vec<LaunchSpec>,
    options: SpawnOptions,
) -> Result<(SpawnReport, bool), Failure> {
    let mut signals = Signals::new()?;
    let _notice = proof_notice(setup, &specs, options.deadline);
    let (ctx, store) = (setup.ctx.clone(), team.clone());
    let work = interrupt::aside(move || Ok(ops::spawn::spawn(&ctx, &store, &specs, &options)?));
    tokio::pin!(work);
    let mut interrupted = false;
    loop {
        tokio::select! {
            batch = &mut work => return Ok((batch?, interrupted)),
            _signal = signals.recv() => {
                interrupted = true;
                setup.out.say("stopping as soon as the start has come to its end");
            }
        }
    }
}

/// Starts a notice about the members that are starting.
pub(super) fn proof_notice(setup: &Setup, specs: &[LaunchSpec], limit: Duration) -> Notice {
    let seconds = limit.as_secs();
    let words = match specs {
        [one] => format!("waiting for {} to start, up to {seconds} s", text::line(&one.name)),
        several => format!("waiting for {} members to start, up to {seconds} s", several.len()),
    };
    Notice::of(&setup.out, words)
}

/// Kills the members of an interrupted start.
fn end_started(setup: &Setup, team: &Team, started: &[&Spawned]) -> Failure {
    let names: Vec<&str> = started.iter().map(|one| one.name.as_str()).collect();
    let hint = Some(format!(
        "end them with `phalanx shutdown {} --force -t {}`",
        names.join(" "),
        team.name()
    ));
    let options = ops::shutdown::ShutdownOptions { reason: None, deadline_s: 10, force: true };
    let members =
        names.iter().map(|name| MemberName::existing(name)).collect::<Result<Vec<_>, _>>();
    let ended = members
        .map_err(Failure::from)
        .and_then(|members| Ok(ops::shutdown::ask(team, &setup.ctx.speaker, &members, &options)?))
        .and_then(|asked| shutdown::settle(setup, team, asked, Duration::from_secs(30)));
    let names = names.join(", ");
    match ended {
        Ok(_) => {
            Failure::interrupted(&format!("interrupted; ended what had started: {names}"), None)
        }
        Err(_) => Failure::interrupted(&format!("interrupted; still running: {names}"), hint),
    }
}

/// Describes where a member runs: `ada runs in %3 (tmux, window phalanx-demo)`.
fn location(one: &Spawned) -> String {
    match (one.backend, &one.tmux_pane_id, &one.tmux_window_name) {
        (BackendKind::Tmux, Some(pane), Some(window)) => {
            format!("{} runs in {pane} (tmux, window {})", one.name, text::line(window))
        }
        (BackendKind::Iterm2 | BackendKind::Exec, _, _) => {
            format!("{} runs ({}, process {})", one.name, one.backend.as_str(), one.pid)
        }
        (BackendKind::Tmux | BackendKind::Pty, _, _) => {
            format!("{} runs in a terminal of its own (pty, process {})", one.name, one.pid)
        }
    }
}
