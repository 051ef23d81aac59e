//! Recovery, which every lead runs first: completes or rolls back verbs that crashed half-way, so
//! that the loop finds only runs that are alive and runs that are over. Every step is idempotent,
//! so a crash during recovery is recovered from in the same way.

use crate::board::{owners, task};
use crate::effects;
use crate::ending::prune;
use crate::ending::remove::{self, MemberRemoval, RemovedMember};
use crate::ending::stop::{self, MemberStop};
use crate::members::presence;
use crate::review::landing;
use crate::starting::rename;
use crate::starting::spawn::{self, RecoveredStarts};
use crate::team::lease;
use crate::{Context, OpsError};
use model::board::task::{Task, TaskState};
use model::id::{MemberName, TaskId};
use model::members::lifecycle::{Cause, MemberState};
use model::members::record::MemberRecord;
use model::team::event::{Event, EventKind, Note};
use store::TeamStore;
use sys::proc::{self, Liveness};
use sys::rand;

/// The repairs that were made.
#[derive(Debug, Default)]
struct Recovered {
    starts: RecoveredStarts,
    /// Runs that were over, but not completely removed.
    removed: Vec<MemberName>,
    /// Tasks released from members that have ended.
    released: Vec<TaskId>,
    /// Tasks whose end had not been announced.
    ended: Vec<TaskId>,
    /// Tasks whose owners had not been notified.
    assigned: Vec<TaskId>,
}

/// Completes or rolls back the starts and ends that dead processes left unfinished, and journals
/// the repairs.
///
/// # Errors
/// A store that cannot be read or written. Repairs made until then stay.
pub fn recover(ctx: &Context, team: &TeamStore) -> Result<(), OpsError> {
    let id = rand::uuid();
    let mut done =
        Recovered { starts: spawn::finish(ctx, team, &id, true)?, ..Recovered::default() };
    let over = ended(team)?;
    remove_ended(ctx, team, &over, &mut done)?;
    release_tasks(team, &over, &mut done)?;
    let board = team.board()?;
    done.assigned = owners::notify_owners(team, &board)?;
    let mut stale = board.tasks.values().filter(|task| task.state == TaskState::Stale);
    stale.try_for_each(|task| effects::remind::settle_stale(team, task))?;
    journal_repairs(team, id, &done)?;
    sweep(ctx, team)
}

/// Accepts or takes back the starts and the renames that killed commands left unfinished, for a
/// command that starts members again. A lead does so only as it begins.
///
/// # Errors
/// A store that cannot be read or written.
pub fn recover_starts(ctx: &Context, team: &TeamStore) -> Result<(), OpsError> {
    if team.member_records()?.iter().any(presence::is_cut) {
        // No lead begins meanwhile, which would do the same.
        let _lease = lease::hold(team).ok();
        spawn::finish(ctx, team, &rand::uuid(), false)?;
    }
    rename::take_back_cut(team)
}

/// Completes the removal of runs that are over but still on the roster: the process that removed
/// them was killed. Returns whether there were any.
///
/// # Errors
/// A store that cannot be read or written.
pub(crate) fn complete_retirements(ctx: &Context, team: &TeamStore) -> Result<bool, OpsError> {
    let mut done = Recovered::default();
    remove_ended(ctx, team, &ended(team)?, &mut done)?;
    Ok(!done.removed.is_empty())
}

/// Frees locks of killed processes, announces changes of tasks that killed processes did not
/// announce, prunes shutdowns that ended long ago, and finishes landings of killed processes.
pub fn sweep(ctx: &Context, team: &TeamStore) -> Result<(), OpsError> {
    prune::shutdowns(team)?;
    task::say_unsaid(team)?;
    team.sweep_leftovers()?;
    landing::finish(ctx, team)
}

/// Returns the runs whose records say that they have ended and whose spawners no longer run.
fn ended(team: &TeamStore) -> Result<Vec<(MemberRecord, MemberRemoval)>, OpsError> {
    let left = |record: &MemberRecord| {
        record.spawner.is_none_or(|it| proc::liveness(it.pid, it.start) != Liveness::Alive)
    };
    let records = team.member_records()?.into_iter().filter(left);
    Ok(records.filter_map(|record| removal(&record).map(|removal| (record, removal))).collect())
}

/// Returns the way in which a run ended; `None` while it is not over.
fn removal(record: &MemberRecord) -> Option<MemberRemoval> {
    let cause = match record.state {
        MemberState::Completed => Cause::Released,
        MemberState::Failed => {
            Cause::Ended { code: record.exit.as_ref().and_then(|exit| exit.code) }
        }
        MemberState::Killed => Cause::Forced,
        MemberState::Disappeared => Cause::Vanished,
        MemberState::Pending
        | MemberState::Starting
        | MemberState::Working
        | MemberState::Idle
        | MemberState::AwaitingPlan
        | MemberState::AwaitingPermission
        | MemberState::ShutdownRequested => return None,
    };
    let reason = record.reason.clone().unwrap_or_else(|| "its run had ended".to_owned());
    Some(MemberRemoval::of(record, cause, reason))
}

/// Removes the runs that are over but still on the roster. A placement is closed only if it is
/// proven ours.
fn remove_ended(
    ctx: &Context,
    team: &TeamStore,
    over: &[(MemberRecord, MemberRemoval)],
    done: &mut Recovered,
) -> Result<(), OpsError> {
    let roster = team.team()?;
    let on_roster: Vec<_> =
        over.iter().filter(|(record, _)| roster.member(&record.name).is_some()).collect();
    let endings = on_roster.iter().map(|(record, _)| MemberStop::at_once(record.clone()));
    let endings: Vec<MemberStop> = endings.collect();
    let mut gone = Vec::new();
    for ((_, removal), ended) in on_roster.iter().zip(stop::stop_all(ctx, team, &endings)) {
        match ended {
            Ok(()) => gone.push(removal.clone()),
            Err(e) => {
                let text = format!("could not be stopped: {e}");
                let note = Note::of(EventKind::Warning).member(&removal.name).with("text", text);
                team.record(note)?;
            }
        }
    }
    if !gone.is_empty() {
        remove::remove(ctx, team, &gone)?;
    }
    done.removed.extend(gone.into_iter().map(|one| one.name));
    Ok(())
}

/// Releases the tasks of members that have left the roster, and notifies the lead that they left.
fn release_tasks(
    team: &TeamStore,
    over: &[(MemberRecord, MemberRemoval)],
    done: &mut Recovered,
) -> Result<(), OpsError> {
    let roster = team.team()?;
    let left: Vec<_> =
        over.iter().filter(|(record, _)| roster.member(&record.name).is_none()).collect();
    let Some(first) = left.iter().map(|(record, _)| record.asked_at).min() else { return Ok(()) };
    let (board, journal) = (team.board()?, team.events_since(first)?);
    let (mut unannounced, mut ended) = (Vec::new(), Vec::new());
    for (record, removal) in left {
        let works = board.work_of(&record.name).is_some();
        let released = if works { release_tasks_of(team, record)? } else { Vec::new() };
        done.released.extend(released.iter().map(|task| task.id));
        ended.extend(task::ended_by(&board, &record.name, record.asked_at));
        if !is_announced(&journal, record) {
            done.removed.push(record.name.clone());
            let is_task_run = record.request.task.is_some();
            unannounced.push(RemovedMember { run: removal, released, is_task_run });
        }
    }
    done.ended = task::journal_ends(team, &ended, &journal)?;
    // The lead may have the notice already: the process that sent it may have crashed before it
    // wrote the journal.
    let (mailbox, mut unnotified) = (team.mailbox(&MemberName::lead()), Vec::new());
    for one in &unannounced {
        if mailbox.find(one.run.incarnation.as_str())?.is_none() {
            unnotified.push(one.clone());
        }
    }
    remove::notify(team, &unnotified)?;
    remove::journal_removed(team, &unannounced)
}

/// Releases the tasks of a run, unless a newer run has its name. Returns the tasks.
fn release_tasks_of(team: &TeamStore, record: &MemberRecord) -> Result<Vec<Task>, OpsError> {
    // Set once, because the roster's lock may have to be taken several times.
    let mut released = None;
    team.change_roster(|_| {
        // Under this lock: a newer run of the name joins under it before it claims a task (TK-02).
        if remove::is_latest(team, &record.name, &record.incarnation)? {
            released.get_or_insert_with(|| task::release(team, &record.name));
        }
        Ok(())
    })?;
    Ok(released.transpose()?.map_or_else(Vec::new, |(tasks, _)| tasks))
}

/// Returns true if the journal has the end of this run, or if the run was never ready: then there
/// is nothing to announce.
fn is_announced(journal: &[Event], record: &MemberRecord) -> bool {
    let about = |kind| {
        move |event: &&Event| event.event == kind && event.member.as_ref() == Some(&record.name)
    };
    let ready =
        journal.iter().filter(about(EventKind::MemberReady)).any(|e| e.at >= record.asked_at);
    let left =
        journal.iter().filter(about(EventKind::MemberLeft)).any(|e| e.at >= record.state_since);
    left || !ready
}

fn journal_repairs(team: &TeamStore, id: String, done: &Recovered) -> Result<(), OpsError> {
    let names = |names: &[MemberName]| names.iter().map(MemberName::to_string).collect::<Vec<_>>();
    let parts = [
        ("taken_in", names(&done.starts.accepted)),
        ("taken_back", names(&done.starts.rolled_back)),
        ("removed", names(&done.removed)),
        ("released", done.released.iter().map(TaskId::to_string).collect()),
        ("ended", done.ended.iter().map(TaskId::to_string).collect()),
        ("assigned", done.assigned.iter().map(TaskId::to_string).collect()),
    ];
    let parts = parts.into_iter().filter(|(_, what)| !what.is_empty());
    let note = Note { id: Some(id), ..Note::of(EventKind::Recovered) };
    let note = parts.fold(note, |note, (key, what)| note.with(key, what));
    if !note.detail.is_empty() {
        team.record(note)?;
    }
    Ok(())
}
