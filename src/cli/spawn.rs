//! `spawn`: one teammate.

use std::io::Read;
use std::path::Path;

use super::fail::{Class, Exit, Failure};
use super::setup::Setup;
use super::up::{how_to_watch, read_text};
use super::{Done, args, interrupt, shutdown};
use crate::model::id::MemberName;
use crate::model::order::Order;
use crate::model::placement::BackendKind;
use crate::model::text;
use crate::ops::spawn::{Batch, Plan, Spawned, Terms};
use crate::ops::{self, Team};
use crate::sys::env;
use crate::sys::signal::Signals;

/// A text larger than this is not read.
const MAX_TEXT: u64 = 16 * 1024 * 1024;

pub(super) fn spawn(setup: &Setup, args: args::Spawn) -> Done {
    let team = setup.team()?;
    let terms = Terms {
        backend: args.backend.clone(),
        deadline: args.deadline,
        unique: args.unique,
        layout: args.layout,
    };
    let (dry_run, unique) = (args.dry_run, args.unique);
    let order = order(args)?;
    if dry_run {
        let plan = ops::spawn::dry_run(&setup.ctx, &team, &order, unique)?;
        setup.out.give(&plan, || plan_lines(&plan))?;
        return Ok(Exit::DONE);
    }
    ops::spawn::check(&setup.ctx, &ops::roles::of(&team)?, std::slice::from_ref(&order))?;
    let runtime = interrupt::runtime()?;
    let batch = runtime.block_on(start(setup, &team, vec![order], terms));
    runtime.shutdown_background();
    let (batch, interrupted) = batch?;
    batch.fallbacks.iter().for_each(|fallback| setup.out.say(&fallback.to_string()));
    let why = batch.chosen;
    batch.warnings.iter().for_each(|warning| setup.out.say(&format!("warning: {}", text::line(warning))));
    for result in batch.results {
        let one = result?;
        if interrupted {
            return Err(end_again(setup, &team, &one));
        }
        if one.backend == why.backend {
            setup.out.say(&format!("backend {}: {}", why.backend.as_str(), why.why));
        }
        setup.out.give(&one, || line(&team, &one))?;
    }
    Ok(Exit::DONE)
}

/// One fact a line. The command line is quoted as for a shell, to be read; none is ever used.
fn plan_lines(plan: &Plan) -> String {
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

fn order(args: args::Spawn) -> Result<Order, Failure> {
    let prompt = match args.prompt_file {
        Some(file) => Some(prompt_from(&file)?),
        None => args.prompt,
    };
    Ok(Order {
        name: args.name,
        profile: args.profile,
        role: args.role,
        model: args.model,
        mode: args.mode,
        plan: args.plan,
        prompt,
        session: None,
        cwd: args.cwd,
        worktree: args.worktree,
        tools: Default::default(),
        env: args.env,
        command: args.command,
        task: None,
    })
}

fn prompt_from(file: &Path) -> Result<String, Failure> {
    if file == Path::new("-") {
        return stdin();
    }
    read_text(file, MAX_TEXT).map_err(|problem| {
        Failure::new(Class::Usage, format!("prompt file {}: {problem}", file.display()), None)
    })
}

/// All of stdin; never waits for a person to type.
pub(super) fn stdin() -> Result<String, Failure> {
    if env::stdin_is_tty() {
        return Err(Failure::usage("there is no text", "give it as an argument, or pipe it in"));
    }
    let mut bytes = Vec::new();
    std::io::stdin().lock().take(MAX_TEXT).read_to_end(&mut bytes)?;
    String::from_utf8(bytes).map_err(|_| Failure::usage("stdin is not UTF-8 text", "convert it first"))
}

/// A start can take its time and cannot be broken off in the middle: a signal is kept until it has ended.
pub(super) async fn start(
    setup: &Setup,
    team: &Team,
    orders: Vec<Order>,
    terms: Terms,
) -> Result<(Batch, bool), Failure> {
    let mut signals = Signals::new()?;
    let (ctx, store) = (setup.ctx.clone(), team.clone());
    let work = interrupt::aside(move || Ok(ops::spawn::spawn(&ctx, &store, &orders, &terms)?));
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

fn end_again(setup: &Setup, team: &Team, one: &Spawned) -> Failure {
    let hint = Some(format!("end it with `phalanx shutdown {} --force -t {}`", one.name, team.name()));
    let wish = ops::shutdown::Wish { reason: None, deadline_s: 10, force: true };
    let ended = MemberName::existing(&one.name)
        .map_err(Failure::from)
        .and_then(|name| Ok(ops::shutdown::ask(team, &[name], &wish)?))
        .and_then(|asked| shutdown::settle(setup, team, asked, std::time::Duration::from_secs(30)));
    match ended {
        Ok(_) => Failure::interrupted(&format!("interrupted; `{}` was ended again", one.name), None),
        Err(_) => Failure::interrupted(&format!("interrupted; `{}` still runs", one.name), hint),
    }
}

fn line(team: &Team, one: &Spawned) -> String {
    let watch = how_to_watch(team, one);
    match (one.backend, &one.tmux_pane_id, &one.tmux_window_name) {
        (BackendKind::Tmux, Some(pane), Some(window)) => {
            let window = crate::model::text::line(window);
            format!("{} runs in {pane} (tmux, window {window}); watch it: {watch}", one.name)
        }
        (BackendKind::Iterm2 | BackendKind::Exec, _, _) => {
            format!("{} runs ({}, process {}); watch it: {watch}", one.name, one.backend.as_str(), one.pid)
        }
        (BackendKind::Tmux | BackendKind::Pty, _, _) => {
            format!(
                "{} runs in a terminal of its own (pty, process {}); watch it: {watch}",
                one.name, one.pid
            )
        }
    }
}
