//! Completes starts whose spawner died: accepts the members that run and rolls back the others
//! (SD-03).

use std::slice;
use std::time::Duration;

use super::attempt::{store_choice, write_pane_ids};
use super::prepare::MemberStart;
use super::prove::{self, FailureCause, RecordWatcher, StartProof};
use super::rollback::{self, FailedStart};
use crate::members::{presence, profiles};
use crate::{Context, OpsError};
use backend::choose::Chosen;
use model::id::MemberName;
use model::mail::envelope::Envelope;
use model::mail::protocol::Message;
use model::members::placement::{Placement, PtyHold};
use model::members::record::MemberRecord;
use model::team::event::{EventKind, Note};
use model::team::settings::Settings;
use profile::Ready;
use store::TeamStore;

/// Time limit for interrupted starts to become ready.
const DEADLINE: Duration = Duration::from_secs(5);

/// The outcome of interrupted starts.
#[derive(Debug, Default)]
pub(crate) struct RecoveredStarts {
    /// Members that run and are now on the team.
    pub(crate) accepted: Vec<MemberName>,
    /// Members whose start was rolled back.
    pub(crate) rolled_back: Vec<MemberName>,
}

/// Accepts or rolls back all interrupted starts, or those on this host: a spawner on another one
/// may live. `cause` is the journal event id they are attributed to.
///
/// # Errors
///
/// The store cannot be read or written, or changes to records cannot be watched.
pub(crate) fn finish(
    ctx: &Context,
    team: &TeamStore,
    cause: &str,
    elsewhere: bool,
) -> Result<RecoveredStarts, OpsError> {
    let watcher = RecordWatcher::subscribe(team)?;
    let records = team.member_records()?.into_iter().filter(|one| elsewhere || !one.is_elsewhere);
    let interrupted: Vec<MemberRecord> = records.filter(presence::is_cut).collect();
    let mut recovered = RecoveredStarts::default();
    if interrupted.is_empty() {
        return Ok(recovered);
    }
    let settings = team.settings()?.unwrap_or_else(|| Settings::by_hand(usize::MAX));
    let (mut placed, mut failed) = (Vec::new(), Vec::new());
    for mut record in interrupted {
        restore_placement(team, &mut record)?;
        let (start, problem) = rebuild(ctx, team, record, cause)?;
        match (start.record.placement.is_some(), problem) {
            (_, Some(problem)) => failed.push((start, problem)),
            (true, None) if !start.record.state.is_over() => placed.push(start),
            (_, None) => {
                let problem = "the process that started it was killed";
                let problem = prove::failure(&start.record, problem, FailureCause::Program, "");
                failed.push((start, problem));
            }
        }
    }
    let proofs = prove::prove(team, &placed, &watcher, DEADLINE);
    // Before the members are accepted: a later recovery only sees starts that are not.
    store_backend(team, &settings, &placed, &proofs)?;
    for (start, proof) in placed.into_iter().zip(proofs) {
        match accept(team, &start, proof) {
            Ok(()) => recovered.accepted.push(start.record.name),
            Err(problem) => failed.push((start, problem)),
        }
    }
    for (start, _) in &mut failed {
        start.new_mailbox = remove_first_messages(team, &start.record)?;
    }
    let all: Vec<FailedStart> = failed.iter().map(|(start, problem)| (start, problem)).collect();
    rollback::roll_back(ctx, team, &all);
    recovered.rolled_back.extend(failed.into_iter().map(|(start, _)| start.record.name));
    Ok(recovered)
}

/// Restores the placement of a run for one task from its launcher's start record. Its spawner may
/// have died before writing the placement, and without one the start would be rolled back and the
/// task done twice.
fn restore_placement(team: &TeamStore, record: &mut MemberRecord) -> Result<(), OpsError> {
    let (Some(task), Some(start)) = (record.request.task, &record.start) else { return Ok(()) };
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
fn rebuild(
    ctx: &Context,
    team: &TeamStore,
    record: MemberRecord,
    cause: &str,
) -> Result<(MemberStart, Option<OpsError>), OpsError> {
    let (ready, problem) = match profiles::find(ctx, &record.request.profile) {
        // A run for one task may end quickly, so its start record is sufficient.
        _ if record.request.task.is_some() => (Ready::Begun, None),
        Ok(profile) => (profile.ready, None),
        Err(e) => (Ready::Hello, Some(e)),
    };
    let on_roster = team.team()?.member(&record.name).cloned();
    let member = on_roster.unwrap_or_else(|| record.to_member(team.name()));
    Ok((MemberStart::new(member, record, ready, cause.to_owned()), problem))
}

/// Stores the backend of the standing members that run for later ones. A run for one task has a
/// backend of its own.
fn store_backend(
    team: &TeamStore,
    settings: &Settings,
    placed: &[MemberStart],
    proofs: &[StartProof],
) -> Result<(), OpsError> {
    let running = placed.iter().zip(proofs).filter(|(start, proof)| {
        matches!(proof, StartProof::Runs { .. }) && start.record.request.task.is_none()
    });
    let records: Vec<&MemberRecord> = running.map(|(start, _)| &start.record).collect();
    let Some(backend) = records.first().map(|record| record.backend) else { return Ok(()) };
    let same = records.iter().filter(|record| record.backend == backend);
    let placements: Vec<&Placement> = same.filter_map(|record| record.placement.as_ref()).collect();
    let chosen = Chosen { backend, why: String::new(), auto: false };
    store_choice(team, settings, &placements, &chosen)
}

/// Accepts a start that is proven to run.
fn accept(team: &TeamStore, start: &MemberStart, proof: StartProof) -> Result<(), OpsError> {
    let record = &start.record;
    let pid = match proof {
        StartProof::Runs { pid, .. } => pid,
        StartProof::Fails { reason, cause } => {
            return Err(prove::failure(record, &reason, cause, ""));
        }
    };
    write_pane_ids(team, slice::from_ref(start))?;
    team.sync_mailboxes(&[&record.name])?;
    presence::accept(team, &record.name, &record.incarnation)?;
    let note = Note::of(EventKind::MemberReady).because(&start.asked).member(&record.name);
    team.record(note.with("pid", pid))?;
    Ok(())
}

/// Removes the prompt and task assignments from the mailbox, read or not, so that a later start
/// does not deliver them twice. Returns true if the mailbox is now empty.
fn remove_first_messages(team: &TeamStore, record: &MemberRecord) -> Result<bool, OpsError> {
    let (mailbox, lead, asked_at) =
        (team.mailbox(&record.name), MemberName::lead(), record.asked_at.iso());
    let is_first = |e: &&Envelope| {
        let is_ours = e.from == lead.as_str() && e.timestamp >= asked_at;
        let is_prompt = Some(&e.text) == record.request.prompt.as_ref();
        is_ours && (is_prompt || matches!(Message::parse(&e.text), Message::TaskAssignment(_)))
    };
    let first: Vec<String> =
        mailbox.entries()?.iter().filter(is_first).map(|e| e.msg_id.clone()).collect();
    mailbox.remove(&first)?;
    Ok(mailbox.all()?.is_empty())
}
