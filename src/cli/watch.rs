//! `status --watch`: how a team stands, again whenever that changes, until the team is deleted.

use std::time::Duration;

use serde_json::Value;

use super::fail::{Class, Exit, Failure};
use super::out::Out;
use super::setup::Setup;
use super::status::frame;
use super::{Done, interrupt};
use crate::ops::authority::Action;
use crate::ops::status::Status;
use crate::ops::{self, Team};
use crate::sys::watch::Changes;
use crate::sys::{clock, env};
use crate::ui;

/// Looked at again at least this often: a process can end without writing anything, and what is idle grows older.
const SWEEP: Duration = Duration::from_secs(1);

pub(super) fn watch(setup: &Setup, all: bool) -> Done {
    let (team, out) = (setup.team(Action::Look)?, setup.out.clone());
    interrupt::breakable(Failure::StreamEnded, move || follow(&team, &out, all))
}

fn follow(team: &Team, out: &Out, all: bool) -> Done {
    // Subscribed before the first look, then nothing is missed.
    // A team that another program made may lack directories of ours: then there is the sweep.
    let changes = team.changes().ok();
    if changes.as_ref().is_some_and(Changes::is_polling) {
        out.say(ops::events::POLLING);
    }
    let mut screen = (!out.json && env::stdout_is_tty()).then(ui::Redraw::new);
    let mut before = Value::Null;
    loop {
        let status = match ops::status::status(team) {
            Ok(status) => status,
            // It went between two looks.
            Err(_) if !team.exists() => return gone(team, out, screen.as_mut()),
            Err(e) => return Err(e.into()),
        };
        let now = without_time(&status)?;
        match &mut screen {
            Some(screen) => screen.draw(&ui::status(&status, frame(out, all)))?,
            None if now == before => {}
            None => show(&status, before.is_null(), out, all)?,
        }
        before = now;
        match &changes {
            Some(changes) => drop(changes.wait(SWEEP)),
            None => clock::sleep(SWEEP),
        }
    }
}

/// Pictures are told apart by an empty line, documents by their own.
fn show(status: &Status, first: bool, out: &Out, all: bool) -> Result<(), Failure> {
    if !first && !out.json {
        out.data("\n")?;
    }
    out.give(status, || ui::status(status, frame(out, all)))
}

/// After its end a team has no members and no lead: nobody is left standing on the screen (LY-12).
fn gone(team: &Team, out: &Out, screen: Option<&mut ui::Redraw>) -> Done {
    let words = format!("team {} is deleted", team.name());
    match screen {
        Some(screen) => screen.draw(&words)?,
        None => out.say(&words),
    }
    Ok(Exit::DONE)
}

/// What counts as a change: everything but the time that passes.
fn without_time(status: &Status) -> Result<Value, Failure> {
    let mut value = serde_json::to_value(status)
        .map_err(|e| Failure::new(Class::Internal, e.to_string(), None))?;
    for (list, field) in [("members", "idle_ms"), ("left", "age_ms"), ("task_list", "elapsed_ms")] {
        for one in value[list].as_array_mut().into_iter().flatten() {
            one[field].take();
        }
    }
    // The reason why a task waits can say for how long; its kind does not.
    for task in value["task_list"].as_array_mut().into_iter().flatten() {
        if let Some(text) = task.pointer_mut("/waits_for/text") {
            text.take();
        }
    }
    if let Some(age) = value.pointer_mut("/lead/age_ms") {
        age.take();
    }
    Ok(value)
}
