//! Who leads a team: phalanx, which holds the lease, or another program that the team file names.

use serde::Serialize;

use crate::members::launchers;
use crate::{OpsError, now};
use model::members::placement::ProcessId;
use model::team::LeadProcess;
use model::time::Timestamp;
use store::{LeadPresence, LeadRecord, TeamStore};
use sys::env;
use sys::proc::{self, Liveness, Process};

/// The program of a lead that is phalanx.
pub(crate) const PHALANX: &str = "phalanx";

/// The lead of a team, or its last lead if that died.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeadSeen {
    pub pid: i32,
    pub alive: Liveness,
    /// [`PHALANX`], or `claude` for any other.
    pub program: &'static str,
    /// Time since which it leads, ISO 8601.
    pub since: String,
}

/// A lead that is not phalanx, as recorded in the team file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stranger {
    pub lead: LeadProcess,
    /// Alive, or unknown: a process that is not visible from here may be running.
    pub liveness: Liveness,
}

/// Returns the lead on record that is not phalanx; `None` without one, or if it is proven dead.
pub fn stranger(team: &TeamStore) -> Result<Option<Stranger>, OpsError> {
    // Read before the team file, which an exiting lead clears before its own record. The last lead,
    // not the current one: a killed lead loses the lease before its process is gone. A record that
    // cannot be read proves nothing; the process does.
    let ours = team.recorded_lead().ok().flatten().map(|ours| ours.process);
    let is_ours = |lead: &LeadProcess| {
        let process = |ours: ProcessId| Process { pid: ours.pid, start: ours.start };
        // The lease excludes phalanx on other hosts, too, whose processes are not visible here; and
        // in other containers of this host, such as the last run of a container.
        let is_near = team.is_shared() || host_of(lead) == env::hostname();
        is_near && ours.is_some_and(|ours| has_id_of(lead, process(ours)))
    };
    let said = team.team()?.lead_process.filter(|lead| !is_this_process(lead));
    let runs_phalanx = |lead: &LeadProcess| process(lead).is_some_and(launchers::runs_phalanx);
    let stranger = said.filter(|lead| !is_ours(lead) && !runs_phalanx(lead));
    let Some(lead) = stranger else { return Ok(None) };
    let liveness = liveness(&lead);
    Ok((liveness != Liveness::Dead).then_some(Stranger { lead, liveness }))
}

/// Returns the liveness of the process on record as the lead.
pub fn liveness(lead: &LeadProcess) -> Liveness {
    match process(lead) {
        Some(process) => proc::liveness(process.pid, process.start),
        None if lead.pid_space != env::pid_space() => Liveness::Unknown,
        None => Liveness::Dead,
    }
}

/// Returns the name of the host on which the process claimed to lead.
pub(crate) fn host_of(lead: &LeadProcess) -> &str {
    lead.pid_space.split('#').next().unwrap_or_default()
}

/// Returns the process on record as the lead; `None` if it runs on another host or in another
/// container. Without a recorded start time, it is the process that has the pid now.
pub fn process(lead: &LeadProcess) -> Option<Process> {
    if lead.pid_space != env::pid_space() {
        return None;
    }
    let recorded = lead.proc_start.as_deref();
    recorded.and_then(|start| Process::recorded(lead.pid, start)).or_else(|| Process::of(lead.pid))
}

pub(crate) fn this_process() -> LeadProcess {
    let me = Process::current();
    let (pid_space, claimed_at) = (env::pid_space(), now());
    LeadProcess { pid: me.pid, pid_space, claimed_at, proc_start: Some(me.start_text()) }
}

pub(crate) fn is_this_process(lead: &LeadProcess) -> bool {
    is_of(lead, Process::current())
}

fn has_id_of(lead: &LeadProcess, process: Process) -> bool {
    lead.pid == process.pid && lead.proc_start == Some(process.start_text())
}

fn is_of(lead: &LeadProcess, process: Process) -> bool {
    has_id_of(lead, process) && lead.pid_space == env::pid_space()
}

/// Returns the pid of the phalanx that leads the team, if it is stopped (`SIGSTOP`, Ctrl-Z). It
/// holds the lease and carries out nothing until it is continued.
pub fn stopped(team: &TeamStore) -> Result<Option<i32>, OpsError> {
    Ok(stopped_process(team)?.map(|process| process.pid))
}

/// As [`stopped`], with the start time.
pub(crate) fn stopped_process(team: &TeamStore) -> Result<Option<ProcessId>, OpsError> {
    let lead = team.current_lead()?.map(|lead| lead.process);
    Ok(lead.filter(|process| proc::is_stopped(process.pid, process.start)))
}

/// Returns true if a phalanx leads the team.
pub fn is_led(team: &TeamStore) -> Result<bool, OpsError> {
    Ok(team.current_lead()?.is_some())
}

/// Returns the pid of the phalanx that leads the team, if there is one.
pub fn holder(team: &TeamStore) -> Result<Option<i32>, OpsError> {
    Ok(team.current_lead()?.map(|lead| lead.process.pid))
}

/// Returns the phalanx on this machine that leads the team, with proof that it is this team: a file
/// that names it is not enough, since another program can write that.
pub(crate) fn proven_lead(team: &TeamStore) -> Option<Process> {
    let of_record = |lead: LeadRecord| {
        let ProcessId { pid, start } = lead.process;
        (lead.host == env::hostname()).then_some(Process { pid, start })
    };
    let is_it = |lead: &Process| *lead != Process::current() && launchers::runs_phalanx(*lead);
    let leased = team.current_lead().ok().flatten().and_then(of_record);
    let leased = leased.filter(|lead| is_it(lead) && team.has_lease_open(*lead) != Some(false));
    // The directory of the lease may have been removed.
    let unleased = || {
        let recorded = team.recorded_lead().ok().flatten().and_then(of_record);
        let claimed = team.team().ok().and_then(|team| process(team.lead_process.as_ref()?));
        let named = recorded.into_iter().chain(claimed);
        named.into_iter().find(|lead| is_it(lead) && team.has_lease_open(*lead) == Some(true))
    };
    leased.or_else(unleased)
}

/// Returns the lead: the holder of the lease of phalanx, else the program named in the team file.
pub fn find_lead(team: &TeamStore) -> Result<Option<LeadSeen>, OpsError> {
    find_lead_in(team, team.read_lead()?)
}

/// As [`find_lead`], from what was read before.
pub(crate) fn find_lead_in(
    team: &TeamStore,
    lead: LeadPresence,
) -> Result<Option<LeadSeen>, OpsError> {
    let ours = |pid, alive, since: Timestamp| LeadSeen {
        pid,
        alive,
        program: PHALANX,
        since: since.iso(),
    };
    let LeadPresence { current, dead } = lead;
    if let Some(lead) = current {
        return Ok(Some(ours(lead.process.pid, Liveness::Alive, lead.since)));
    }
    // An entry that a killed phalanx left in the team file is not that of another program.
    let said = team.team()?.lead_process;
    let stranger =
        said.filter(|lead| dead.as_ref().is_none_or(|dead| dead.process.pid != lead.pid));
    if let Some(lead) = stranger {
        let (alive, since) = (liveness(&lead), lead.claimed_at.iso());
        let is_ours = process(&lead).is_some_and(launchers::runs_phalanx);
        let program = if is_ours { PHALANX } else { "claude" };
        return Ok(Some(LeadSeen { pid: lead.pid, alive, program, since }));
    }
    Ok(dead.map(|lead| ours(lead.process.pid, Liveness::Dead, lead.since)))
}
