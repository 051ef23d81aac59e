//! What is said of a member that owes an answer for too long, and of one that answers again. Does nothing to it.

use super::context::Context;
use super::error::OpsError;
use super::{output, send};
use crate::model::event::{EventKind, Note};
use crate::model::id::{Incarnation, MemberName, TaskId};
use crate::model::protocol::Message;
use crate::model::text;
use crate::model::time;
use crate::store::TeamStore;
use crate::sys::rand;

/// How much of the last line of a screen is repeated.
const LONGEST: usize = 160;

/// An answer that is owed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Debt {
    /// The task that was given to the member, which has not begun it.
    pub(crate) task: TaskId,
    pub(crate) for_ms: u64,
}

/// Writes it into the run's record and the journal; a debt is told to the lead. A later run is left alone.
///
/// # Errors
/// What cannot be written.
pub(crate) fn note(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
    incarnation: &Incarnation,
    debt: Option<Debt>,
) -> Result<(), OpsError> {
    let reason = debt.map(|debt| describe(debt, &screen(ctx, team, name)));
    let written = team.change_record(name, incarnation, |record| {
        record.unresponsive.clone_from(&reason);
        record.state
    })?;
    let Some(state) = written else { return Ok(()) };
    let event = rand::uuid();
    let (now, before) = match debt {
        Some(_) => ("unresponsive", state.as_str()),
        None => (state.as_str(), "unresponsive"),
    };
    let note = Note { id: Some(event.clone()), ..Note::of(EventKind::MemberHealth) }.member(name);
    let note = note.with("state", now).with("prev_state", before).with("timeout_triggered", debt.is_some());
    let note = Note { task: debt.map(|debt| debt.task), ..note };
    team.record(match &reason {
        Some(reason) => note.with("reason", reason.as_str()),
        None => note,
    })?;
    if let Some(reason) = reason {
        let system = MemberName::existing("system")?;
        let message = Message::Text(words(name, &reason));
        send::say(team, &system, &MemberName::lead(), &message, Some(event))?;
    }
    Ok(())
}

fn describe(debt: Debt, screen: &str) -> String {
    format!(
        "task #{} was assigned to it {} ago and has not been started; {screen}",
        debt.task,
        time::human(debt.for_ms)
    )
}

fn words(name: &MemberName, reason: &str) -> String {
    format!(
        "{name} is unresponsive: {reason}. It is still running, and phalanx has not touched it. Check its screen with `phalanx peek {name}`, \
         send it a message, reassign the task, or end it with `phalanx shutdown {name}`."
    )
}

/// The last line that it shows, as far as that is to be had: a server that does not answer says nothing about the member.
fn screen(ctx: &Context, team: &TeamStore, name: &MemberName) -> String {
    match output::peek(ctx, team, name, 5) {
        Ok(screen) => match screen.lines().rev().find(|line| !line.trim().is_empty()) {
            Some(line) => format!("its screen ends with: {}", text::short(line.trim(), LONGEST)),
            None => "its screen is empty".to_owned(),
        },
        Err(e) => format!("its screen cannot be read: {}", text::short(&e.to_string(), LONGEST)),
    }
}
