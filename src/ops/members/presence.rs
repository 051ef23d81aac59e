//! Reports of a teammate about itself (ready, working, idle) and the state changes that follow.

use crate::{OpsError, now};
use model::decisions::question::{Question, QuestionKind};
use model::id::{Incarnation, MemberName};
use model::members::lifecycle::{Cause, MemberState};
use model::members::placement::Placement;
use model::members::record::MemberRecord;
use model::team::Member;
use model::team::event::{EventKind, Note};
use store::TeamStore;
use sys::proc::{self, Liveness};

/// Returns the liveness of the run's launcher; unknown if it was never placed.
pub fn liveness(record: &MemberRecord) -> Liveness {
    match record.launcher() {
        Some(launcher) => proc::liveness(launcher.pid, launcher.start),
        None => Liveness::Unknown,
    }
}

/// Returns true for a start that was cut: its spawner is proven dead, and has neither accepted it
/// nor gone back to the run before. A live spawner continues by itself, and old records do not name
/// theirs.
pub(crate) fn is_cut(record: &MemberRecord) -> bool {
    let starts = matches!(record.state, MemberState::Pending | MemberState::Starting);
    let is_open = starts || record.state == MemberState::Killed && record.before.is_some();
    is_open && record.spawner.is_some_and(|it| proc::liveness(it.pid, it.start) == Liveness::Dead)
}

/// Records that the program has found its mailbox (ID-03). Returns false if this is not the latest
/// run.
pub fn hello(
    team: &TeamStore,
    name: &MemberName,
    incarnation: &Incarnation,
) -> Result<bool, OpsError> {
    let known = team.change_record(name, incarnation, |record| record.ready_at = Some(now()))?;
    Ok(known.is_some())
}

/// Records that a backend has started the launcher. The spawner journals it.
pub fn placed(
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

/// Records that the spawner has verified the start: the member is now on the team, and one that was
/// started for a task works on it. The spawner journals it; `isActive` on the roster is set
/// already. Returns false if the program has not reported that it is ready.
pub fn accept(
    team: &TeamStore,
    name: &MemberName,
    incarnation: &Incarnation,
) -> Result<bool, OpsError> {
    let is_ready = team.change_record(name, incarnation, |record| {
        record.before = None;
        // The wrapper's reason stays: the program may be up and show a dialog.
        let reason = record.reason.clone();
        step(record, Cause::Ready, reason.as_deref());
        if let Some(task) = record.request.task {
            step(record, Cause::Work, Some(&format!("task #{task}")));
        }
        record.ready_at.is_some()
    })?;
    Ok(is_ready == Some(true))
}

/// Sets the reason for a run's state without a transition, such as a dialog of a wrapped program.
/// `None` clears it.
pub fn remark(
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

/// Rolls a start back: a launcher without a start record will then not run its program. Returns the
/// record after the change; `None` if it is not of this run.
pub fn withdraw(
    team: &TeamStore,
    name: &MemberName,
    incarnation: &Incarnation,
) -> Result<Option<MemberRecord>, OpsError> {
    Ok(team.change_record(name, incarnation, |record| {
        step(record, Cause::Forced, None);
        record.clone()
    })?)
}

/// Records that a run is over. Returns the new state if it changed. The caller journals it and
/// updates the roster.
pub fn end(
    team: &TeamStore,
    name: &MemberName,
    incarnation: &Incarnation,
    cause: Cause,
    reason: &str,
) -> Result<Option<MemberState>, OpsError> {
    Ok(team.change_record(name, incarnation, |record| step(record, cause, Some(reason)))?.flatten())
}

/// Returns true if a message to this member has a reader: its latest run is up, and reads mail.
pub fn reads(team: &TeamStore, name: &MemberName) -> Result<bool, OpsError> {
    let record = team.member_record(name)?;
    Ok(record.is_some_and(|record| record.state.is_up() && record.reads_mail()))
}

/// Returns the journal entry of a new state.
pub fn news(name: &MemberName, state: MemberState, reason: Option<&str>) -> Note {
    let note = Note::of(EventKind::MemberState).member(name).with("state", state.as_str());
    note.with_some("reason", reason)
}

/// Applies a transition to a record. Returns the new state if it changed.
fn step(record: &mut MemberRecord, cause: Cause, reason: Option<&str>) -> Option<MemberState> {
    record.restart.take_if(|_| cause == Cause::Refused);
    let next = record.state.after(cause)?;
    record.before.take_if(|_| next.is_up());
    record.state = next;
    record.state_since = now();
    record.reason = reason.map(str::to_owned);
    if let Some(limit) = record.rate_limit.as_mut().filter(|_| cause == Cause::Work) {
        limit.is_over = true;
    }
    Some(next)
}

/// Applies a transition to a member, in its record, the journal and `isActive` in the team file.
/// Returns the new state if it changed.
pub fn move_on(
    team: &TeamStore,
    name: &MemberName,
    incarnation: &Incarnation,
    cause: Cause,
    reason: Option<&str>,
) -> Result<Option<MemberState>, OpsError> {
    // A member that refuses to end continues to wait for its answer.
    let awaited = match cause {
        Cause::Refused => awaited_answer(team, name, incarnation)?,
        _ => None,
    };
    let change = |record: &mut MemberRecord| {
        if cause == Cause::Work && record.state == MemberState::Working {
            // The next task began without an idle phase: the state stays, the reason changes.
            record.reason = reason.map(str::to_owned);
        }
        let next = step(record, cause, reason)?;
        Some(awaited.and_then(|awaited| step(record, awaited, reason)).unwrap_or(next))
    };
    let mut is_native = false;
    let change = |record: &mut MemberRecord| {
        is_native = record.is_native();
        change(record)
    };
    let Some(Some(next)) = team.change_record(name, incarnation, change)? else { return Ok(None) };
    team.record(news(name, next, reason))?;
    // A member that waits for an answer is active. A shutdown request does not change its activity.
    // A native program reports idle in the team file by itself, and may have begun its next turn.
    let is_active = next != MemberState::Idle;
    if next.is_up() && next != MemberState::ShutdownRequested && (is_active || !is_native) {
        set_active(team, name, is_active)?;
    }
    Ok(Some(next))
}

/// Returns the transition into the state of a run that waits for an answer, if it does.
fn awaited_answer(
    team: &TeamStore,
    name: &MemberName,
    incarnation: &Incarnation,
) -> Result<Option<Cause>, OpsError> {
    let questions = team.questions()?;
    let of_run = |question: &&Question| {
        question.is_open()
            && question.from == *name
            && question.incarnation.as_ref() == Some(incarnation)
    };
    Ok(questions.iter().find(of_run).map(|question| match question.kind {
        QuestionKind::Plan => Cause::PlanSent,
        QuestionKind::Permission | QuestionKind::Sandbox | QuestionKind::Dialog => {
            Cause::PermissionAsked
        }
    }))
}

/// Writes `isActive` of a member to the team file.
pub fn set_active(team: &TeamStore, name: &MemberName, is_active: bool) -> Result<(), OpsError> {
    team.change_roster(|roster| Ok(roster.set(name, "isActive", is_active)))?;
    Ok(())
}

/// Puts a running member back on the roster: a program that took no lock wrote the team file as it
/// was before the member joined (ID-07; observed: Claude Code 2.1.34). The record is read under the
/// roster's lock; a process that removes a member ends its record before it takes that lock.
pub fn put_back(
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
