//! Completes starts whose spawner died: accepts the members that run and rolls back the others
//! (SD-03).

use std::time::Duration;

use super::super::context::Context;
use super::super::error::OpsError;
use super::super::{label, presence, profiles};
use super::{Placed, Prepared, note_panes, prove, rollback};
use crate::backend::PlacementRequest;
use crate::backend::choose::Chosen;
use crate::model::envelope::Envelope;
use crate::model::event::{EventKind, Note};
use crate::model::id::MemberName;
use crate::model::lifecycle::MemberState;
use crate::model::placement::{Placement, PtyHold};
use crate::model::protocol::Message;
use crate::model::record::MemberRecord;
use crate::profile::Ready;
use crate::store::TeamStore;
use crate::sys::proc::{self, Liveness};

/// Time limit for interrupted starts to become ready.
const PROOF: Duration = Duration::from_secs(5);

/// The outcome of interrupted starts.
#[derive(Debug, Default)]
pub(in crate::ops) struct Finished {
    /// Members that run and are now on the team.
    pub(in crate::ops) taken_in: Vec<MemberName>,
    /// Members whose start was rolled back.
    pub(in crate::ops) taken_back: Vec<MemberName>,
}

/// Accepts or rolls back all interrupted starts. `cause` is the journal event id they are
/// attributed to.
///
/// # Errors
///
/// The store cannot be read or written, or changes to records cannot be watched.
pub(in crate::ops) fn finish(
    ctx: &Context,
    team: &TeamStore,
    cause: &str,
) -> Result<Finished, OpsError> {
    let news = prove::RecordWatcher::of(team)?;
    let half: Vec<MemberRecord> = team.member_records()?.into_iter().filter(is_left).collect();
    if half.is_empty() {
        return Ok(Finished::default());
    }
    let (mut placed, mut failed) = (Vec::new(), Vec::new());
    for mut record in half {
        seat(team, &mut record)?;
        let place = record.placement.clone();
        let (prepared, problem) = prepared(ctx, team, record, cause)?;
        match (place, problem) {
            (Some(place), None) => placed.push(Placed { prepared, place: Ok(place) }),
            (None, None) => {
                let problem = "whoever started it died before it was placed";
                let problem = prove::failure(&prepared.record, problem, prove::Why::Program, "");
                failed.push((prepared, problem));
            }
            (_, Some(problem)) => failed.push((prepared, problem)),
        }
    }
    let mut finished = Finished::default();
    let proofs = prove::prove(team, &placed, &news, PROOF);
    for (one, proof) in placed.into_iter().zip(proofs) {
        match take_in(team, &one, proof) {
            Ok(()) => finished.taken_in.push(one.prepared.record.name),
            Err(problem) => failed.push((one.prepared, problem)),
        }
    }
    for (one, _) in &mut failed {
        one.new_mailbox = take_prompt_back(team, &one.record)?;
    }
    let all: Vec<rollback::Failed> = failed.iter().map(|(one, problem)| (one, problem)).collect();
    rollback::undo(ctx, team, &all);
    finished.taken_back.extend(failed.into_iter().map(|(one, _)| one.record.name));
    Ok(finished)
}

/// Returns whether the start was interrupted: its spawner is proven dead. A live spawner continues
/// by itself, and old records do not name theirs.
fn is_left(record: &MemberRecord) -> bool {
    let starts = matches!(record.state, MemberState::Pending | MemberState::Starting);
    starts && record.spawner.is_some_and(|it| proc::liveness(it.pid, it.start) == Liveness::Dead)
}

/// Restores the placement of a run for one task from its launcher's start record. Its spawner may
/// have died before writing the placement, and without one the start would be rolled back and the
/// task done twice.
fn seat(team: &TeamStore, record: &mut MemberRecord) -> Result<(), OpsError> {
    let (Some(task), Some(start)) = (record.wish.task, &record.start) else { return Ok(()) };
    if record.placement.is_none() {
        let log = team.task_log(task).to_string_lossy().into_owned();
        let place = Placement::Pty(PtyHold { launcher: start.launcher, log });
        presence::placed(team, &record.name, &record.incarnation, &place)?;
        record.placement = Some(place);
    }
    Ok(())
}

/// Rebuilds the spawner's state from the record. Also returns an error if the profile is missing,
/// since readiness is then undefined.
fn prepared(
    ctx: &Context,
    team: &TeamStore,
    record: MemberRecord,
    cause: &str,
) -> Result<(Prepared, Option<OpsError>), OpsError> {
    let (ready, problem) = match profiles::find(ctx, &record.wish.profile) {
        // A run for one task may end quickly, so its start record is sufficient.
        _ if record.wish.task.is_some() => (Ready::Begun, None),
        Ok(profile) => (profile.ready, None),
        Err(e) => (Ready::Hello, Some(e)),
    };
    let on_roster = team.team()?.member(&record.name).cloned();
    let member = on_roster.unwrap_or_else(|| record.to_member(team.name()));
    // The launch is not executed again; it only completes the structure.
    let (token, label) = (record.mark().to_owned(), label::of(&record));
    let launch = PlacementRequest { member: record.name.clone(), token, argv: Vec::new(), label };
    let one = Prepared {
        member,
        record,
        ready,
        launch,
        asked: cause.to_owned(),
        first: None,
        new_mailbox: false,
        new_checkout: None,
    };
    Ok((one, problem))
}

fn take_in(team: &TeamStore, one: &Placed, proof: prove::Proof) -> Result<(), OpsError> {
    let record = &one.prepared.record;
    let pid = match proof {
        prove::Proof::Runs { pid, .. } => pid,
        prove::Proof::Fails { reason, why } => {
            return Err(prove::failure(record, &reason, why, ""));
        }
    };
    let chosen = Chosen { backend: record.backend, why: String::new(), auto: false };
    let chosen = record.wish.task.is_none().then_some(&chosen);
    note_panes(team, std::slice::from_ref(one), chosen)?;
    team.sync_mailboxes(&[&record.name])?;
    presence::accept(team, &record.name, &record.incarnation)?;
    let note = Note::of(EventKind::MemberReady).because(&one.prepared.asked).member(&record.name);
    team.record(note.with("pid", pid))?;
    Ok(())
}

/// Removes the prompt and task assignments from the mailbox, read or not, so that a later start
/// does not deliver them twice. Returns true if the mailbox is now empty.
fn take_prompt_back(team: &TeamStore, record: &MemberRecord) -> Result<bool, OpsError> {
    let (mailbox, lead, asked_at) =
        (team.mailbox(&record.name), MemberName::lead(), record.asked_at.iso());
    let is_first = |e: &&Envelope| {
        let is_ours = e.from == lead.as_str() && e.timestamp >= asked_at;
        let is_prompt = Some(&e.text) == record.wish.prompt.as_ref();
        is_ours && (is_prompt || matches!(Message::parse(&e.text), Message::TaskAssignment(_)))
    };
    let first: Vec<String> =
        mailbox.entries()?.iter().filter(is_first).map(|e| e.msg_id.clone()).collect();
    mailbox.remove(&first)?;
    Ok(mailbox.all()?.is_empty())
}
