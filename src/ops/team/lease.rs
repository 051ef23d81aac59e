//! The right to lead a team: one process at a time, of phalanx or of another program.

use crate::error::adopt_hint;
use crate::members::launchers;
use crate::members::lead::{Stranger, is_this_process, process, stranger, this_process};
use crate::team::foreign_lead;
use crate::team::foreign_members::{self, ForeignMember};
use crate::{Context, OpsError, now};
use model::members::placement::ProcessId;
use model::team::event::{EventKind, Note};
use store::{LeadRecord, Lease, TeamStore};
use sys::env;
use sys::proc::{Liveness, Process};

/// Takes the lease for this process. Does not check whether another program leads the team
/// ([`may_lead`] does), because phalanx must always be able to end what it started.
///
/// # Errors
/// [`OpsError::LedByAnother`] if another phalanx holds the lease.
pub fn take(team: &TeamStore) -> Result<Lease, OpsError> {
    take_with(team, None)
}

/// As [`take`], for a lead that runs an agent program, which authenticates by this token.
pub(crate) fn take_with(team: &TeamStore, token: Option<String>) -> Result<Lease, OpsError> {
    let lease = hold_with(team, token)?;
    team.record(Note::of(EventKind::LeadStarted).with("pid", Process::current().pid))?;
    Ok(lease)
}

/// Takes the lease without leading, so that no other process leads meanwhile.
///
/// # Errors
/// [`OpsError::LedByAnother`] if another phalanx holds the lease.
pub fn hold(team: &TeamStore) -> Result<Lease, OpsError> {
    hold_with(team, None)
}

fn hold_with(team: &TeamStore, token: Option<String>) -> Result<Lease, OpsError> {
    // A lead judges and ends processes of its host: no other machine may have the name of that.
    team.join_host()?;
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
        Some(lease) => Ok(lease),
        None => Err(led_by_another(team, team.current_lead()?)),
    }
}

/// Checks that no phalanx leads the team, without taking the lease.
///
/// # Errors
/// [`OpsError::LedByAnother`] if one does.
pub fn must_be_unheld(team: &TeamStore) -> Result<(), OpsError> {
    team.current_lead()?.map_or(Ok(()), |lead| Err(led_by_another(team, Some(lead))))
}

/// Returns the error for a held lease, whose holder may have left since.
fn led_by_another(team: &TeamStore, lead: Option<LeadRecord>) -> OpsError {
    let pid = lead.as_ref().map(|lead| lead.process.pid).unwrap_or_default();
    let host = lead.map(|lead| lead.host).filter(|host| *host != env::hostname());
    OpsError::LedByAnother { team: team.name().clone(), pid, host }
}

/// Checks that the team file names no other program as the lead, and no phalanx that has lost the
/// file of its lease.
///
/// # Errors
/// [`OpsError::LedByStranger`] if another program leads the team, or may;
/// [`OpsError::LedByAnother`] for a phalanx without the lease.
pub fn must_be_free(team: &TeamStore) -> Result<(), OpsError> {
    if let Some(Stranger { lead, liveness }) = stranger(team)? {
        let (team, pid) = (team.name().clone(), lead.pid);
        return Err(OpsError::LedByStranger { team, pid, unseen: liveness == Liveness::Unknown });
    }
    match unleased(team)? {
        None => Ok(()),
        Some(lead) => {
            let (team, pid) = (team.name().clone(), lead.pid);
            Err(OpsError::LedByAnother { team, pid, host: None })
        }
    }
}

/// Returns the running phalanx that the team file names as the lead, if it neither holds the lease
/// nor has left the record of a killed lead: the directory of its lease was removed.
fn unleased(team: &TeamStore) -> Result<Option<Process>, OpsError> {
    let known = team.recorded_lead().ok().flatten().into_iter().chain(team.current_lead()?);
    let known: Vec<i32> = known.map(|lead| lead.process.pid).collect();
    let said = team.team()?.lead_process.filter(|lead| !is_this_process(lead));
    let said = said.filter(|lead| !known.contains(&lead.pid)).as_ref().and_then(process);
    Ok(said.filter(|process| launchers::runs_phalanx(*process)))
}

/// Checks that no other program can lead the team.
///
/// # Errors
/// [`OpsError::LedByStranger`] for a lead on record that has not ended. [`OpsError::MayBeLed`] for
/// a team that another program made without such a record.
pub fn may_lead(ctx: &Context, team: &TeamStore) -> Result<(), OpsError> {
    must_be_free(team)?;
    if foreign_lead::is_unnamed(team)? {
        let signs = foreign_lead::signs(ctx, team)?;
        return Err(OpsError::MayBeLed { team: team.name().clone(), signs, adopting: false });
    }
    Ok(())
}

/// Returns true if another program made the team, and phalanx has not adopted it; false also if
/// that cannot be read.
pub fn is_foreign(team: &TeamStore) -> bool {
    foreign_lead::is_foreign(team).unwrap_or(false)
}

/// Checks that no program lives that made the team and may lead it: its files are not removed under
/// it. Of a team file that cannot be read nothing is known.
///
/// # Errors
/// [`OpsError::MayBeLed`] while a process or a pane shows one; a refusal
/// while members that it has started run.
pub fn must_be_left(ctx: &Context, team: &TeamStore) -> Result<(), OpsError> {
    if is_foreign(team) && team.exists() {
        let members = foreign_members::running(team)?;
        if !members.is_empty() {
            let members: Vec<String> = members.iter().map(ForeignMember::describe).collect();
            return Err(OpsError::refused(
                format!(
                    "{} of team `{}`, which another program made",
                    members.join(", "),
                    team.name()
                ),
                adopt_hint(team.name(), false),
            ));
        }
    }
    if !foreign_lead::is_unnamed(team).unwrap_or(false) {
        return Ok(());
    }
    let signs = foreign_lead::signs_of_life(ctx, team)?;
    if signs.is_empty() {
        return Ok(());
    }
    Err(OpsError::MayBeLed { team: team.name().clone(), signs, adopting: true })
}

/// Checks that this process may take the team over. Returns a sentence about what the check does
/// not cover, if that can matter. With `force`, only a lead that is on record and alive is
/// respected.
///
/// # Errors
/// [`OpsError::LedByStranger`] for a lead on record, [`OpsError::MayBeLed`] while signs show one.
pub fn may_adopt(
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
        return Ok(Some(foreign_lead::UNSEEN));
    }
    Err(OpsError::MayBeLed { team: team.name().clone(), signs, adopting: true })
}

/// Records this process in the team file as the lead, for other programs to see.
pub fn announce(team: &TeamStore) -> Result<(), OpsError> {
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

/// Removes the record of [`announce`].
pub fn withdraw(team: &TeamStore) -> Result<(), OpsError> {
    team.change_roster(|roster| {
        if roster.team().lead_process.as_ref().is_some_and(is_this_process) {
            roster.drop_lead();
        }
        Ok(())
    })?;
    Ok(())
}
