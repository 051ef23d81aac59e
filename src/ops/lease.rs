//! The right to lead a team: one process at a time, phalanx or another program.

use super::context::{Context, now};
use super::error::OpsError;
use super::foreign_lead;
use crate::model::event::{EventKind, Note};
use crate::model::placement::ProcessId;
use crate::model::team::LeadProcess;
use crate::store::{LeadRecord, Lease, TeamStore};
use crate::sys::env;
use crate::sys::proc::{self, Liveness, Process};

/// A program that is not phalanx and says in the team file that it leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stranger {
    pub(crate) lead: LeadProcess,
    /// Alive, or not to be seen from here: then it may live.
    pub(crate) liveness: Liveness,
}

/// Takes the lease for this process, to bring single requests to their end. A team may be led by another program
/// meanwhile: what phalanx started is still for phalanx to end.
///
/// # Errors
/// [`OpsError::LedByAnother`] names the phalanx that holds it.
pub(crate) fn take(team: &TeamStore) -> Result<Lease, OpsError> {
    take_with(team, None)
}

/// The same for a lead that runs a program in its place, which speaks for it with this token.
pub(super) fn take_with(team: &TeamStore, token: Option<String>) -> Result<Lease, OpsError> {
    let me = Process::current();
    let record = LeadRecord {
        format: 1,
        process: ProcessId { pid: me.pid, start: me.start },
        boot_id: env::boot_id(),
        host: env::hostname(),
        since: now(),
        token,
    };
    match team.take_lease(&record)? {
        Some(lease) => {
            team.record(Note::of(EventKind::LeadStarted).with("pid", me.pid))?;
            Ok(lease)
        }
        None => Err(led_by_another(team, holder(team)?.unwrap_or_default())),
    }
}

/// Whether no phalanx leads the team, without taking the lease.
///
/// # Errors
/// [`OpsError::LedByAnother`] names the one that does.
pub(crate) fn must_be_unheld(team: &TeamStore) -> Result<(), OpsError> {
    holder(team)?.map_or(Ok(()), |pid| Err(led_by_another(team, pid)))
}

fn led_by_another(team: &TeamStore, pid: i32) -> OpsError {
    OpsError::LedByAnother { team: team.name().clone(), pid }
}

/// Whether this process may lead the team, as far as other programs go.
///
/// # Errors
/// [`OpsError::LedByStranger`] if one of them leads, or may.
pub(crate) fn must_be_free(team: &TeamStore) -> Result<(), OpsError> {
    match stranger(team)? {
        None => Ok(()),
        Some(Stranger { lead, liveness }) => {
            let (team, pid) = (team.name().clone(), lead.pid);
            Err(OpsError::LedByStranger { team, pid, unseen: liveness == Liveness::Unknown })
        }
    }
}

/// Checks that no other program can lead the team.
///
/// # Errors
/// [`OpsError::LedByStranger`] for a lead on record that has not ended. [`OpsError::MayBeLed`] for
/// a team that another program made without such a record.
pub(crate) fn may_lead(ctx: &Context, team: &TeamStore) -> Result<(), OpsError> {
    must_be_free(team)?;
    if foreign_lead::is_unnamed(team)? {
        let signs = foreign_lead::signs(ctx, team)?;
        return Err(OpsError::MayBeLed { team: team.name().clone(), signs, adopting: false });
    }
    Ok(())
}

/// Checks that this process may take the team over. Returns a sentence about what the check does
/// not cover, if that can matter. With `force`, only a lead that is on record and alive is
/// respected.
///
/// # Errors
/// [`OpsError::LedByStranger`] for a lead on record, [`OpsError::MayBeLed`] while signs show one.
pub(crate) fn may_adopt(
    ctx: &Context,
    team: &TeamStore,
    force: bool,
) -> Result<Option<&'static str>, OpsError> {
    match must_be_free(team) {
        Err(OpsError::LedByStranger { unseen: true, .. }) if force => {
            return Ok(Some(foreign_lead::UNSEEN));
        }
        free => free?,
    }
    if !foreign_lead::is_unnamed(team)? {
        return Ok(None);
    }
    let signs = foreign_lead::signs(ctx, team)?;
    if force || signs.is_empty() {
        Ok(Some(foreign_lead::UNSEEN))
    } else {
        Err(OpsError::MayBeLed { team: team.name().clone(), signs, adopting: true })
    }
}

/// Says in the team file, where other programs look, that this process leads.
pub(crate) fn announce(team: &TeamStore) -> Result<(), OpsError> {
    if foreign_lead::is_unnamed(team)? {
        // Later leads need not rule the other program out again.
        team.record(Note::of(EventKind::LeadAdopted).with("pid", Process::current().pid))?;
    }
    if let Some(Stranger { lead, .. }) = stranger(team)? {
        let text = format!("taken over from process {}, which claims to lead", lead.pid);
        team.record(Note::of(EventKind::Warning).with("text", text))?;
    }
    let me = this_process();
    team.change_roster(|roster| {
        roster.set_lead(&me);
        Ok(())
    })?;
    Ok(())
}

/// Takes back what [`announce`] said.
pub(crate) fn withdraw(team: &TeamStore) -> Result<(), OpsError> {
    team.change_roster(|roster| {
        if roster.team().lead_process.as_ref().is_some_and(is_this_process) {
            roster.drop_lead();
        }
        Ok(())
    })?;
    Ok(())
}

/// The program that leads the team without being phalanx; none if it is proven gone, or never was.
pub(crate) fn stranger(team: &TeamStore) -> Result<Option<Stranger>, OpsError> {
    // Before the team file, out of which a lead that ends takes itself first. One that was killed is not gone as soon as
    // it leads no more.
    let ours = team.last_lead()?;
    let is_ours = |lead: &LeadProcess| ours.as_ref().is_some_and(|ours| is_of(lead, ours.process));
    let said = team.team()?.lead_process.filter(|lead| !is_this_process(lead));
    let Some(lead) = said.filter(|lead| !is_ours(lead)) else { return Ok(None) };
    let liveness = liveness(&lead);
    Ok((liveness != Liveness::Dead).then_some(Stranger { lead, liveness }))
}

/// Returns whether the process on record as the lead is alive.
pub(super) fn liveness(lead: &LeadProcess) -> Liveness {
    match process(lead) {
        Some(process) => proc::liveness(process.pid, process.start),
        None if lead.pid_space != env::pid_space() => Liveness::Unknown,
        None => Liveness::Dead,
    }
}

/// The process on record as the lead; none if it runs on another host or in another container. A
/// record without a start time means the process that has the pid now; none if there is none.
pub(super) fn process(lead: &LeadProcess) -> Option<Process> {
    if lead.pid_space != env::pid_space() {
        return None;
    }
    let start = lead.proc_start.as_deref().and_then(|start| start.parse().ok());
    start.map(|start| Process { pid: lead.pid, start }).or_else(|| Process::of(lead.pid))
}

fn this_process() -> LeadProcess {
    let me = Process::current();
    let (pid_space, claimed_at) = (env::pid_space(), now());
    LeadProcess { pid: me.pid, pid_space, claimed_at, proc_start: Some(me.start.to_string()) }
}

fn is_this_process(lead: &LeadProcess) -> bool {
    let me = Process::current();
    is_of(lead, ProcessId { pid: me.pid, start: me.start })
}

fn is_of(lead: &LeadProcess, process: ProcessId) -> bool {
    let same =
        lead.pid == process.pid && lead.proc_start.as_deref() == Some(&process.start.to_string());
    same && lead.pid_space == env::pid_space()
}

/// Returns the process of the phalanx that leads the team if it is stopped (`SIGSTOP`, Ctrl-Z). It
/// holds the lease, and carries out nothing until it is continued.
pub(crate) fn stopped(team: &TeamStore) -> Result<Option<i32>, OpsError> {
    Ok(stopped_process(team)?.map(|process| process.pid))
}

/// As [`stopped`], with the start time.
pub(super) fn stopped_process(team: &TeamStore) -> Result<Option<ProcessId>, OpsError> {
    let lead = team.current_lead()?.map(|lead| lead.process);
    Ok(lead.filter(|process| proc::is_stopped(process.pid, process.start)))
}

/// Whether some phalanx leads the team.
pub(crate) fn is_led(team: &TeamStore) -> Result<bool, OpsError> {
    Ok(team.current_lead()?.is_some())
}

/// The phalanx that leads the team; none if none does.
pub(crate) fn holder(team: &TeamStore) -> Result<Option<i32>, OpsError> {
    Ok(team.current_lead()?.map(|lead| lead.process.pid))
}
