//! `events`: prints the journal of a team.

use std::time::Duration;

use clap::Args;

use super::fail::{Exit, Failure, VerbResult};
use super::interrupt;
use super::out::Out;
use super::setup::Setup;
use crate::model::event::{Event, EventKind};
use crate::ops::authority::Action;
use crate::ops::{self, OpsError, TeamStore};
use crate::sys::env;
use crate::ui;

/// Show the events of a team.
#[derive(Debug, Args)]
pub(super) struct EventsArgs {
    /// Keep printing new events until the team is deleted.
    #[arg(short, long)]
    pub(super) follow: bool,
}

/// Interval of the full re-read while following: a file notification can be lost.
const SWEEP: Duration = Duration::from_secs(60);

pub(super) fn events(setup: &Setup, args: &EventsArgs) -> VerbResult {
    let (team, out) = (setup.team(Action::Look)?, setup.out.clone());
    if !args.follow {
        show(&out, &team.events()?)?;
        return Ok(Exit::DONE);
    }
    interrupt::run_interruptible(Failure::StreamEnded, move || follow(&team, &out))
}

fn follow(team: &TeamStore, out: &Out) -> VerbResult {
    let changes = team.changes().map_err(OpsError::from)?;
    if changes.is_polling() {
        out.print_message(ops::events::POLLING);
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
        return events.iter().try_for_each(|event| out.print_document(event));
    }
    let width = (env::stdout_is_tty() && !out.verbose).then(|| out.width());
    let format =
        ui::EventFormat { now: ops::now(), absolute: out.verbose, width, paint: out.paint };
    out.print_text(&ui::event_lines(events, format))
}
