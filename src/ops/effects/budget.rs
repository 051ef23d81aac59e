//! Notifies the lead that a share of a budget is used.

use std::collections::BTreeSet;

use crate::{OpsError, Post};
use model::id::MemberName;
use model::members::budget::{BudgetUse, OnExceeded};
use model::team::event::{EventKind, Note};
use model::wire;
use store::TeamStore;
use sys::rand;

/// Returns the marks of the shares that earlier leads have reported.
///
/// # Errors
/// A journal that cannot be read.
pub fn reported(team: &TeamStore) -> Result<BTreeSet<String>, OpsError> {
    let events = team.events()?;
    let reached = events.iter().filter(|event| event.event == EventKind::BudgetReached);
    Ok(reached.filter_map(|event| wire::text(&event.detail, "mark")).collect())
}

/// Journals the share, and sends it to the lead's mailbox.
///
/// # Errors
/// A journal or mailbox that cannot be written.
pub fn report(team: &TeamStore, of: &BudgetUse) -> Result<(), OpsError> {
    let Some(mark) = of.mark() else { return Ok(()) };
    let (event, text) = (rand::uuid(), of.describe());
    let note = Note {
        id: Some(event.clone()),
        member: of.member.clone(),
        ..Note::of(EventKind::BudgetReached)
    };
    team.record(note.with("percent", of.percent).with("text", text.as_str()).with("mark", mark))?;
    let text = format!("{text}. {}", consequence(of));
    Post::notice(&MemberName::lead(), text).because(Some(event)).send(team).map(drop)
}

fn consequence(of: &BudgetUse) -> String {
    let follows = match (of.on_exceeded, of.is_used_up()) {
        (OnExceeded::Warn, _) => "",
        (OnExceeded::StopSpawns, true) => "No member that it covers is started any more. ",
        (OnExceeded::StopSpawns, false) => {
            "Once it is used up, no member that it covers is started any more. "
        }
        (OnExceeded::EndMembers, true) => {
            "The members that it covers are asked to shut down, and none is started any more. "
        }
        (OnExceeded::EndMembers, false) => {
            "Once it is used up, the members that it covers are asked to shut down. "
        }
    };
    format!("{follows}Raise it with `phalanx team set {} N`.", of.key)
}
