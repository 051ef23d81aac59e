//! Rolls back failed spawns in reverse order: placement, spec, mailbox, roster entry, record. Every
//! step is attempted even if others fail.

use super::super::context::Context;
use super::super::error::OpsError;
use super::super::terminate::{self, Termination, TerminationMode};
use super::super::{presence, task, worktree};
use super::Prepared;
use crate::model::event::{EventKind, Note};
use crate::model::record::MemberRecord;
use crate::store::TeamStore;

/// A spawn to roll back, and the reason.
pub(super) type Failed<'a> = (&'a Prepared, &'a OpsError);

/// Rolls back the failed spawns, and journals the reason and the steps that failed.
pub(super) fn undo(ctx: &Context, team: &TeamStore, failed: &[Failed]) {
    if failed.is_empty() {
        return;
    }
    let endings: Vec<Termination> = failed
        .iter()
        .map(|(one, _)| Termination { record: latest(team, one), mode: TerminationMode::Told })
        .collect();
    let ended = terminate::terminate_all(ctx, team, &endings);
    let mut left: Vec<Vec<String>> = failed.iter().map(|_| Vec::new()).collect();
    for (((one, _), ended), left) in failed.iter().zip(ended).zip(&mut left) {
        let run = &one.record.incarnation;
        note(left, "placement", ended.map(drop));
        if let Some(made) = &one.new_checkout {
            note(left, "worktree", worktree::abandon(ctx, team, &one.record.name, made));
        }
        note(left, "spec", team.drop_spec(run).map_err(OpsError::from));
        if one.new_mailbox {
            note(left, "mailbox", team.mailbox(&one.record.name).delete().map_err(OpsError::from));
        }
    }
    let names: Vec<_> = failed.iter().map(|(one, _)| &one.record.name).collect();
    let off =
        team.change_roster(|roster| Ok(names.iter().filter(|name| roster.leave(name)).count()));
    if let Err(e) = off {
        left.iter_mut().for_each(|left| left.push(format!("roster: {e}")));
    }
    for ((one, _), left) in failed.iter().zip(&mut left) {
        note(left, "tasks", release(team, one));
        let forgotten = team.forget_record(&one.record.name, &one.record.incarnation);
        note(left, "record", forgotten.map_err(OpsError::from));
    }
    let notes = failed.iter().zip(left).map(|((one, failure), left)| told(one, failure, left));
    // Best effort: the caller gets the failures themselves.
    let _ = team.record_all(notes.collect());
}

/// Withdraws the record and returns its latest version, which may hold the launcher's start record.
/// After this the launcher no longer starts a program, so a run without a placement either has a
/// start record or exits by itself.
fn latest(team: &TeamStore, one: &Prepared) -> MemberRecord {
    let latest = presence::withdraw(team, &one.record.name, &one.record.incarnation).ok().flatten();
    latest.unwrap_or_else(|| one.record.clone())
}

/// Returns a task in progress to the board, since a worker claims one as soon as it is up. Tasks
/// that only wait for this owner stay assigned.
fn release(team: &TeamStore, one: &Prepared) -> Result<(), OpsError> {
    match task::board(team)?.work_of(&one.record.name) {
        Some(_) => task::release(team, &one.record.name).map(drop),
        None => Ok(()),
    }
}

fn note(left: &mut Vec<String>, what: &str, result: Result<(), OpsError>) {
    if let Err(e) = result {
        left.push(format!("{what}: {e}"));
    }
}

fn told(one: &Prepared, failure: &OpsError, left: Vec<String>) -> Note {
    Note::of(EventKind::MemberStartFailed)
        .because(&one.asked)
        .member(&one.record.name)
        .with("incarnation", one.record.incarnation.as_str())
        .with("reason", failure.to_string())
        .with("left", left)
}
