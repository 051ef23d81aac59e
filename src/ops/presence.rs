//! What a teammate says of itself: that it is up, that it works, that it rests.

use super::context::now;
use super::error::OpsError;
use crate::model::event::{EventKind, Note};
use crate::model::id::{Incarnation, MemberName};
use crate::model::lifecycle::{Cause, MemberState};
use crate::model::placement::Placement;
use crate::model::record::MemberRecord;
use crate::model::team::Member;
use crate::store::TeamStore;

/// The hello of a program that has found its mailbox (ID-03). False: this run is no longer the latest one.
pub(crate) fn hello(
    team: &TeamStore,
    name: &MemberName,
    incarnation: &Incarnation,
) -> Result<bool, OpsError> {
    let known = team.change_record(name, incarnation, |record| record.ready_at = Some(now()))?;
    Ok(known.is_some())
}

/// A backend has started its launcher. The journal is told by the spawner.
pub(crate) fn placed(
    team: &TeamStore,
    name: &MemberName,
    incarnation: &Incarnation,
    placement: &Placement,
) -> Result<(), OpsError> {
    team.change_record(name, incarnation, |record| {
        record.placement = Some(placement.clone());
        step(record, Cause::Placed, None);
    })?;
    Ok(())
}

/// The spawner has its proof: from here on the member is the team's, and one that was started for a task
/// works on it. The journal is told by the spawner; the roster
/// says already whether it rests.
pub(crate) fn accept(
    team: &TeamStore,
    name: &MemberName,
    incarnation: &Incarnation,
) -> Result<(), OpsError> {
    team.change_record(name, incarnation, |record| {
        // What its wrapper has said of it stays true: it may run and stand before a dialog.
        let reason = record.reason.clone();
        step(record, Cause::Ready, reason.as_deref());
        if let Some(task) = record.wish.task {
            step(record, Cause::Work, Some(&format!("task #{task}")));
        }
    })?;
    Ok(())
}

/// Says why a run is as it is, without a step in its life: a wrapped program that stands before a dialog. None: there is
/// nothing to say any more.
pub(crate) fn remark(
    team: &TeamStore,
    name: &MemberName,
    incarnation: &Incarnation,
    reason: Option<&str>,
) -> Result<(), OpsError> {
    let state = team.change_record(name, incarnation, |record| {
        record.reason = reason.map(str::to_owned);
        record.state
    })?;
    state.map_or(Ok(()), |state| Ok(team.record(news(name, state, reason)).map(drop)?))
}

/// Takes a start back: a launcher that has not written its start record will not run its program. Gives the record as
/// it is then; none if there is none of this run.
pub(crate) fn withdraw(
    team: &TeamStore,
    name: &MemberName,
    incarnation: &Incarnation,
) -> Result<Option<MemberRecord>, OpsError> {
    Ok(team.change_record(name, incarnation, |record| {
        step(record, Cause::Forced, None);
        record.clone()
    })?)
}

/// A run is over; the new state if there was a change. The journal and the roster are told by whoever retires it.
pub(crate) fn end(
    team: &TeamStore,
    name: &MemberName,
    incarnation: &Incarnation,
    cause: Cause,
    reason: &str,
) -> Result<Option<MemberState>, OpsError> {
    Ok(team.change_record(name, incarnation, |record| step(record, cause, Some(reason)))?.flatten())
}

/// Whether a message to this member has somebody to read it: its latest run is up, and reads mail.
pub(super) fn reads(team: &TeamStore, name: &MemberName) -> Result<bool, OpsError> {
    let record = team.member_record(name)?;
    Ok(record.is_some_and(|record| record.state.is_up() && record.reads_mail()))
}

/// What the journal is told of a new state.
pub(crate) fn news(name: &MemberName, state: MemberState, reason: Option<&str>) -> Note {
    let note = Note::of(EventKind::MemberState).member(name).with("state", state.as_str());
    match reason {
        Some(reason) => note.with("reason", reason),
        None => note,
    }
}

/// One step in a record; the new state if there was a change.
fn step(record: &mut MemberRecord, cause: Cause, reason: Option<&str>) -> Option<MemberState> {
    let next = record.state.after(cause)?;
    record.state = next;
    record.state_since = now();
    record.reason = reason.map(str::to_owned);
    Some(next)
}

/// Moves a member on in its life; gives the new state if there was a change. `isActive` in the team file follows.
pub(crate) fn move_on(
    team: &TeamStore,
    name: &MemberName,
    incarnation: &Incarnation,
    cause: Cause,
    reason: Option<&str>,
) -> Result<Option<MemberState>, OpsError> {
    let change = |record: &mut MemberRecord| {
        if cause == Cause::Work && record.state == MemberState::Working {
            // The next task without a rest in between: the state stays, what it works on does not.
            record.reason = reason.map(str::to_owned);
        }
        step(record, cause, reason)
    };
    let Some(Some(next)) = team.change_record(name, incarnation, change)? else { return Ok(None) };
    team.record(news(name, next, reason))?;
    // Whoever waits for an answer has work in hand. A request to end changes nothing of what it does.
    if next.is_up() && next != MemberState::ShutdownRequested {
        team.change_roster(|roster| Ok(roster.set(name, "isActive", next != MemberState::Idle)))?;
    }
    Ok(Some(next))
}

/// Puts a member that runs back on the team: a program that took no lock has written the team file as it was before it
/// joined (ID-07; observed: Claude Code 2.1.34). The run's record is looked at under the roster's lock, under which whoever
/// takes it off has ended it before.
pub(crate) fn put_back(
    team: &TeamStore,
    name: &MemberName,
    incarnation: &Incarnation,
) -> Result<(), OpsError> {
    let was_out = team.change_roster(|roster| {
        let record = team.member_record(name)?.filter(|record| record.is(incarnation));
        let Some(record) = record.filter(|record| record.state.is_up()) else { return Ok(false) };
        let by_record = || {
            let pane_id = record.placement.as_ref().map_or("", Placement::roster_pane).to_owned();
            Member { pane_id, ..record.to_member(team.name()) }.to_entry()
        };
        let entry = team.last_entry(name)?.unwrap_or_else(by_record);
        let was_out = roster.put_back(name, entry);
        if was_out {
            roster.set(name, "isActive", record.state != MemberState::Idle);
        }
        Ok(was_out)
    })?;
    if was_out {
        let text = "another program has written it out of the team file; it is back";
        team.record(Note::of(EventKind::Warning).member(name).with("text", text))?;
    }
    Ok(())
}
