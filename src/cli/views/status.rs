//! `status`: shows a team once, or with `--watch` again whenever it changes.

use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::Value;

use crate::fail::{Exit, Failure, VerbResult};
use crate::out::{Color, Out};
use crate::setup::Setup;
use crate::{interrupt, locale};
use ops::authority::Action;
use ops::members::status::Status;
use ops::{self, Context, Kind, TeamChanges, TeamStore};
use sys::{clock, env};

/// Show a team: its lead, members, tasks and why they wait.
#[derive(Debug, Default, Args)]
pub(crate) struct StatusArgs {
    /// Include completed tasks, and all former members.
    #[arg(short, long)]
    pub(crate) all: bool,
    /// Keep it up to date until the team is deleted.
    #[arg(short, long)]
    pub(crate) watch: bool,
    /// Output format; tmux is one line for tmux's status line [default: text].
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with = "watch")]
    pub(crate) format: Option<StatusOutput>,
}

/// The formats of a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatusOutput {
    Text,
    Tmux,
}

/// Maximum interval between two reads: a process can exit without writing a file, and idle times
/// grow.
const SWEEP: Duration = Duration::from_secs(1);

pub(crate) fn status(setup: &Setup, args: &StatusArgs) -> VerbResult {
    setup.out.check_format(args.format.is_some())?;
    let team = setup.team(Action::Look)?;
    let all = args.all;
    if args.watch {
        let (ctx, out) = (setup.ctx.clone(), setup.out.clone());
        return interrupt::run_interruptible(Failure::StreamEnded, move || {
            follow(&ctx, &team, &out, all)
        });
    }
    let status = ops::views::ps::status_with_unread(&setup.ctx, &team)?;
    if args.format == Some(StatusOutput::Tmux) {
        let utf8 = locale::uses_utf8(|name| setup.ctx.caller.var(name));
        // Its styles are not those of a terminal, so they are used on request only.
        let format = ui::StatusLineFormat { utf8, styled: setup.out.color == Color::Always };
        setup.out.print_text(&ui::status_line(&status, format))?;
        return Ok(Exit::DONE);
    }
    setup.out.print(&status, || ui::status(&status, status_format(&setup.out, all)))
}

/// Returns the size and style of a page on stdout.
fn status_format(out: &Out, all: bool) -> ui::StatusFormat {
    ui::StatusFormat { width: out.width(), all, paint: out.paint }
}

fn follow(ctx: &Context, team: &TeamStore, out: &Out, all: bool) -> VerbResult {
    // Subscribed before the first read, so that no change is missed. In a team that another program
    // made some directories may be missing; then only the interval applies.
    let changes = team.changes().ok();
    if let Some(reason) = changes.as_ref().and_then(TeamChanges::polling) {
        out.print_message(ops::views::events::polling_notice(reason));
    }
    let mut screen = (!out.json && env::stdout_is_tty()).then(ui::Redraw::new);
    let mut before = Value::Null;
    loop {
        let status = match ops::views::ps::status_with_unread(ctx, team) {
            Ok(status) => status,
            // The team was deleted between two reads.
            Err(_) if !team.exists() => return gone(team, out, screen.as_mut()),
            Err(e) => return Err(e.into()),
        };
        let mut now = serde_json::to_value(&status)
            .map_err(|e| Failure::new(Kind::Internal, e.to_string(), None))?;
        without_time(&mut now);
        match &mut screen {
            Some(screen) => screen.draw(&ui::status(&status, status_format(out, all)))?,
            None if now == before => {}
            None => drop(show(&status, before.is_null(), out, all)?),
        }
        before = now;
        match &changes {
            Some(changes) => drop(changes.wait(SWEEP)),
            None => clock::sleep(SWEEP),
        }
    }
}

/// Prints a status. Text pages are separated by an empty line.
fn show(status: &Status, first: bool, out: &Out, all: bool) -> VerbResult {
    if !first && !out.json {
        out.print_text("\n")?;
    }
    out.print(status, || ui::status(status, status_format(out, all)))
}

/// Replaces the screen at the end, because a deleted team has no members and no lead (LY-12).
fn gone(team: &TeamStore, out: &Out, screen: Option<&mut ui::Redraw>) -> VerbResult {
    let words = format!("team {} is deleted", team.name());
    match screen {
        Some(screen) => screen.draw(&words)?,
        None => out.print_message(&words),
    }
    Ok(Exit::DONE)
}

/// Removes the fields that only grow with time from a status, to compare snapshots.
pub(crate) fn without_time(value: &mut Value) {
    for (list, field) in [
        ("members", "idle_ms"),
        ("members", "state_ms"),
        ("left", "age_ms"),
        ("left", "state_ms"),
        ("task_list", "elapsed_ms"),
    ] {
        for one in value[list].as_array_mut().into_iter().flatten() {
            one[field].take();
        }
    }
    // The reason of a planned restart is the time until then.
    for left in value["left"].as_array_mut().into_iter().flatten() {
        if left["state"] == "restarting" {
            left["reason"].take();
        }
    }
    // The text of a wait reason can include a duration; its kind cannot.
    for task in value["task_list"].as_array_mut().into_iter().flatten() {
        if let Some(text) = task.pointer_mut("/waits_for/text") {
            text.take();
        }
    }
    if let Some(age) = value.pointer_mut("/lead/age_ms") {
        age.take();
    }
}
