//! `status`, `wait` and `events`: read-only commands about a team.

use std::time::Duration;

use super::fail::{Class, Exit, Failure};
use super::notice::Notice;
use super::out::Out;
use super::setup::Setup;
use super::{Done, args, interrupt};
use crate::model::event::{Event, EventKind};
use crate::model::id::MemberName;
use crate::ops::authority::Action;
use crate::ops::wait::{Came, Until};
use crate::ops::{self, Context, OpsError, TeamStore};
use crate::sys::env;
use crate::ui;

/// Interval of the full re-read while following: a file notification can be lost.
const SWEEP: Duration = Duration::from_secs(60);

pub(super) fn status(setup: &Setup, all: bool) -> Done {
    let status = ops::status::status(&setup.team(Action::Look)?)?;
    setup.out.give(&status, || ui::status(&status, frame(&setup.out, all)))?;
    Ok(Exit::DONE)
}

/// Returns the size and style of a page on stdout.
pub(super) fn frame(out: &Out, all: bool) -> ui::Frame {
    ui::Frame { width: out.width(), all, paint: out.paint }
}

pub(super) fn wait(setup: &Setup, args: args::Wait) -> Done {
    let (team, named) = setup.members(&args.names, Action::Look)?;
    let names = names(&team, &args, named)?;
    let until = args.until.clone();
    let interrupted = Failure::interrupted("interrupted while waiting", None);
    let _notice = Notice::of(&setup.out, ops::wait::words(&names, args.any, &until, args.timeout));
    let ctx = setup.ctx.clone();
    let came = interrupt::breakable(interrupted, move || wait_for(&ctx, &team, &names, &args))?;
    let words =
        || came.iter().map(|c| format!("{} {}", c.name, c.state)).collect::<Vec<_>>().join("\n");
    let good = came.iter().all(|c| ops::wait::is_good(c, &until));
    setup.out.outcome(&came, good, words)?;
    Ok(if good { Exit::DONE } else { Exit::of(Class::Failed) })
}

/// Returns the members to wait for: the named ones, or all.
fn names(
    team: &TeamStore,
    args: &args::Wait,
    named: Vec<MemberName>,
) -> Result<Vec<MemberName>, Failure> {
    match args.until {
        Until::Task(_) if !args.names.is_empty() => Err(Failure::usage(
            "`--until task=ID` takes no names of members",
            "leave out the names",
        )),
        Until::Ready | Until::Idle | Until::Gone if args.names.is_empty() => {
            Ok(team.team()?.teammates().map(|m| m.name.clone()).collect())
        }
        Until::Ready | Until::Idle | Until::Gone | Until::Task(_) => Ok(named),
    }
}

fn wait_for(
    ctx: &Context,
    team: &TeamStore,
    names: &[MemberName],
    args: &args::Wait,
) -> Result<Vec<Came>, Failure> {
    match ops::wait::wait(ctx, team, names, args.any, &args.until, args.timeout) {
        Ok(came) => Ok(came),
        // A team is only deleted after its members have ended.
        Err(_) if args.until == Until::Gone && !team.exists() => Ok(names
            .iter()
            .map(|name| Came { name: name.to_string(), state: "gone".to_owned() })
            .collect()),
        Err(e) => Err(e.into()),
    }
}

pub(super) fn events(setup: &Setup, args: &args::Events) -> Done {
    let (team, out) = (setup.team(Action::Look)?, setup.out.clone());
    if !args.follow {
        show(&out, &team.events()?)?;
        return Ok(Exit::DONE);
    }
    interrupt::breakable(Failure::StreamEnded, move || follow(&team, &out))
}

fn follow(team: &TeamStore, out: &Out) -> Done {
    let changes = team.changes().map_err(OpsError::from)?;
    if changes.is_polling() {
        out.say(ops::events::POLLING);
    }
    let mut journal = team.journal();
    loop {
        let events = journal.read()?;
        show(out, &events)?;
        if events.iter().any(|e| e.event == EventKind::TeamDeleted) || !team.exists() {
            return Ok(Exit::DONE);
        }
        changes.wait(SWEEP);
    }
}

fn show(out: &Out, events: &[Event]) -> Result<(), Failure> {
    if out.json {
        return events.iter().try_for_each(|event| out.document(event));
    }
    let width = (env::stdout_is_tty() && !out.verbose).then(|| out.width());
    let frame = ui::EventFrame { now: ops::now(), absolute: out.verbose, width, paint: out.paint };
    out.data(&ui::event_lines(events, frame))
}
