//! Rolls back failed spawns in reverse order: placement, spec, mailbox, roster entry, record. Every
//! step is attempted even if others fail.

use super::super::context::Context;
use super::super::error::OpsError;
use super::super::terminate::{self, Termination, TerminationMode};
use super::super::{presence, task, worktree};
use super::prepare::MemberStart;
use crate::model::event::{EventKind, Note};
use crate::model::record::MemberRecord;
use crate::store::TeamStore;

/// A spawn to roll back, and the reason.
pub(super) type FailedStart<'a> = (&'a MemberStart, &'a OpsError);

/// Rolls back the failed spawns, and journals the reason and the steps that failed.
pub(super) fn roll_back(ctx: &Context, team: &TeamStore, failed: &[FailedStart]) {
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
        add_failure(left, "placement", ended.map(drop));
        if let Some(made) = &one.new_checkout {
            add_failure(left, "worktree", worktree::abandon(ctx, team, &one.record.name, made));
        }
        add_failure(left, "spec", team.drop_spec(run).map_err(OpsError::from));
        if one.new_mailbox {
            let removed = team.mailbox(&one.record.name).delete();
            add_failure(left, "mailbox", removed.map_err(OpsError::from));
        }
    }
    let names: Vec<_> = failed.iter().map(|(one, _)| &one.record.name).collect();
    let off =
        team.change_roster(|roster| Ok(names.iter().filter(|name| roster.leave(name)).count()));
    if let Err(e) = off {
        left.iter_mut().for_each(|left| left.push(format!("roster: {e}")));
    }
    for ((one, _), left) in failed.iter().zip(&mut left) {
        add_failure(left, "tasks", release(team, one));
        let forgotten = team.forget_record(&one.record.name, &one.record.incarnation);
        add_failure(left, "record", forgotten.map_err(OpsError::from));
    }
    let notes =
        failed.iter().zip(left).map(|((one, failure), left)| failure_note(one, failure, left));
    // Best effort: the caller gets the failures themselves.
    let _ = team.record_all(notes.collect());
}

/// Withdraws the record and returns its latest version, which may hold the launcher's start record.
/// After this the launcher no longer starts a program, so a run without a placement either has a
/// start record or exits by itself.
fn latest(team: &TeamStore, one: &MemberStart) -> MemberRecord {
    let latest = presence::withdraw(team, &one.record.name, &one.record.incarnation).ok().flatten();
    latest.unwrap_or_else(|| one.record.clone())
}

/// Returns a task in progress to the board, since a worker claims one as soon as it is up. Tasks
/// that only wait for this owner stay assigned.
fn release(team: &TeamStore, one: &MemberStart) -> Result<(), OpsError> {
    match task::board(team)?.work_of(&one.record.name) {
        Some(_) => task::release(team, &one.record.name).map(drop),
        None => Ok(()),
    }
}

fn add_failure(left: &mut Vec<String>, what: &str, result: Result<(), OpsError>) {
    if let Err(e) = result {
        left.push(format!("{what}: {e}"));
    }
}

fn failure_note(one: &MemberStart, failure: &OpsError, left: Vec<String>) -> Note {
    Note::of(EventKind::MemberStartFailed)
        .because(&one.asked)
        .member(&one.record.name)
        .with("incarnation", one.record.incarnation.as_str())
        .with("reason", failure.to_string())
        .with("left", left)
}
