//! The lease of a team's lead: a gate that is held while the lead runs, and a file that identifies
//! the process. The kernel releases the gate when the process dies, so a held gate proves a running
//! lead and the process need not be checked.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::StoreError;
use crate::files::dirs;
use crate::files::documents::{self, DocumentPlace};
use crate::team::TeamStore;
use database::{DatabaseError, DocumentKind, HeldLease};
use model::members::placement::ProcessId;
use model::time::Timestamp;
use sys::lock::{Gate, LockError, gate_holder};
use sys::proc::{self, Liveness, Process};
use sys::{clock, env, fs};

/// Format version of the lead's record.
pub(crate) const FORMAT: u32 = 1;

/// Time to wait for a held gate, since a process that checks for a lead holds it for a moment.
const GLANCE: Duration = Duration::from_millis(200);

/// The lead of a team (`phalanx/lead.json`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LeadRecord {
    /// Version of the file's format.
    pub format: u32,
    pub process: ProcessId,
    /// Kernel boot id; `process` is valid only in that boot.
    pub boot_id: String,
    /// Name of the host that the lead runs on.
    pub host: String,
    pub since: Timestamp,
    /// Secret by which the agent lead, a program that the lead runs, proves that it acts for the
    /// lead. `None` if there is no agent lead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

/// The right to lead the team, held until dropped.
#[derive(Debug)]
pub struct Lease {
    team: TeamStore,
    held: Held,
    /// The record stays, as that of a lead that died.
    keeps_record: bool,
}

/// The lead of a team, as one check of the lease shows it.
#[derive(Debug, Default)]
pub struct LeadPresence {
    /// The running lead.
    pub current: Option<LeadRecord>,
    /// A lead that died without removing its record; never beside a running one.
    pub dead: Option<LeadRecord>,
}

/// What proves the right.
#[derive(Debug)]
enum Held {
    /// The gate of a team of files, which the kernel releases when the process dies.
    Gate(#[expect(dead_code, reason = "held until dropped")] Gate),
    /// The lease of the shared store, which ends with the connection to it.
    Shared(HeldLease),
}

impl Lease {
    /// Checks that no other process can lead the team.
    ///
    /// # Errors
    /// [`DatabaseError::LeaseLost`] after the connection to the shared store was lost for so long
    /// that another process has led the team.
    pub fn must_be_held(&self) -> Result<(), StoreError> {
        if !self.is_lost() {
            return Ok(());
        }
        Err(StoreError::Database(DatabaseError::LeaseLost { team: self.team.name().to_string() }))
    }

    /// Gives up the right and leaves the record, so that the team has a dead lead.
    pub fn leave_record(mut self) {
        self.keeps_record = true;
    }

    fn is_lost(&self) -> bool {
        match &self.held {
            Held::Gate(_) => false,
            Held::Shared(lease) => lease.is_lost(),
        }
    }
}

impl TeamStore {
    /// Acquires the lease for `lead`; `None` if another process holds it.
    pub fn take_lease(&self, lead: &LeadRecord) -> Result<Option<Lease>, StoreError> {
        let Some(held) = self.take_free_lease()? else { return Ok(None) };
        documents::change_typed(&self.lead_place(), FORMAT, |found: &mut Option<LeadRecord>| {
            *found = Some(lead.clone());
            Ok(())
        })?;
        Ok(Some(Lease { team: self.clone(), held, keeps_record: false }))
    }

    fn take_free_lease(&self) -> Result<Option<Held>, StoreError> {
        if let Some(shared) = &self.shared {
            return Ok(shared.database.take_lease(shared.name())?.map(Held::Shared));
        }
        dirs::make_dirs_of(&self.layout.gate("lead"))?;
        match Gate::open(&self.layout.gate("lead"), GLANCE) {
            Ok(gate) => Ok(Some(Held::Gate(gate))),
            Err(LockError::Timeout { .. }) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// Returns the team for calls on behalf of its lead. The shared store refuses them once another
    /// process leads the team.
    pub fn led_with(&self, lease: &Lease) -> TeamStore {
        let mut team = self.clone();
        if let (Some(shared), Held::Shared(held)) = (&mut team.shared, &lease.held) {
            shared.database = shared.database.led_with(held.number());
        }
        team
    }

    /// Returns the running lead; `None` if the lease is free.
    pub fn current_lead(&self) -> Result<Option<LeadRecord>, StoreError> {
        if self.is_lease_held()? { self.holder_of_lease() } else { Ok(None) }
    }

    /// Returns the lead, whose lease is held. The lease proves it: a record that is missing, cannot
    /// be read or names a process that has ended is replaced by what the system shows.
    fn holder_of_lease(&self) -> Result<Option<LeadRecord>, StoreError> {
        if self.is_shared() {
            return self.last_lead();
        }
        let is_gone = |lead: &LeadRecord| {
            let ProcessId { pid, start } = lead.process;
            lead.host == env::hostname() && proc::liveness(pid, start) == Liveness::Dead
        };
        let recorded = self.recorded_lead().ok().flatten();
        if let Some(lead) = recorded.as_ref().filter(|lead| !is_gone(lead)) {
            return Ok(Some(lead.clone()));
        }
        // A process that checks for a lead holds the lease for a moment as well.
        match Gate::open(&self.layout.gate("lead"), GLANCE) {
            Ok(_) => Ok(None),
            Err(LockError::Timeout { .. }) => {
                Ok(self.lead_by_system().or(recorded).or_else(|| Some(unknown_lead())))
            }
            Err(e) => Err(e.into()),
        }
    }

    /// Returns whether a process has the file of the lease open, as a lead has it all along, also
    /// after the file was removed; `None` where the system does not show it.
    pub fn has_lease_open(&self, process: Process) -> Option<bool> {
        proc::has_open(process, &self.layout.gate("lead"))
    }

    /// Returns the process that holds the lease of a team of files, where the system shows it.
    fn lease_holder(&self) -> Option<Process> {
        gate_holder(&self.layout.gate("lead"))
    }

    /// Describes the lead by the process that holds the lease, or by the team file where the system
    /// does not show that process.
    fn lead_by_system(&self) -> Option<LeadRecord> {
        let claim = self.team().ok().and_then(|team| team.lead_process);
        let claim = claim.filter(|claim| claim.pid_space == env::pid_space());
        let claimed = || Process::of(claim.as_ref()?.pid);
        let Process { pid, start } = self.lease_holder().or_else(claimed)?;
        let lead = LeadRecord { process: ProcessId { pid, start }, ..unknown_lead() };
        Some(match claim.filter(|claim| claim.pid == pid) {
            Some(claim) => LeadRecord { since: claim.claimed_at, ..lead },
            None => lead,
        })
    }

    /// Returns the running lead, or the one that died. In the shared store this is one call.
    pub fn read_lead(&self) -> Result<LeadPresence, StoreError> {
        let none = LeadPresence::default();
        Ok(match (self.is_lease_held()?, self.is_shared()) {
            (true, _) => LeadPresence { current: self.holder_of_lease()?, ..none },
            (false, true) => LeadPresence { dead: self.last_lead()?, ..none },
            (false, false) => LeadPresence { dead: self.dead_lead()?, ..none },
        })
    }

    /// Returns the token of the agent lead, which is valid while its lead runs.
    pub fn lead_token(&self) -> Result<Option<String>, StoreError> {
        Ok(self.current_lead()?.and_then(|lead| lead.token))
    }

    /// Returns the record of the running lead, or of a lead that died without removing its record.
    pub(crate) fn last_lead(&self) -> Result<Option<LeadRecord>, StoreError> {
        let lead = self.recorded_lead()?;
        Ok(lead.map(|mut lead| {
            if self.is_shared() && lead.host != env::hostname() {
                // Its pid means nothing here.
                lead.process = lead.process.of_another_boot();
            }
            lead
        }))
    }

    /// As [`TeamStore::last_lead`], with the process as its own host knows it.
    pub fn recorded_lead(&self) -> Result<Option<LeadRecord>, StoreError> {
        documents::read_typed(&self.lead_place(), FORMAT)
    }

    /// Returns the record of a lead that died without removing it; `None` while a lead is running.
    pub fn dead_lead(&self) -> Result<Option<LeadRecord>, StoreError> {
        if self.shared.is_some() {
            return if self.is_lease_held()? { Ok(None) } else { self.last_lead() };
        }
        let Some(_gate) = self.free_lease()? else { return Ok(None) };
        self.last_lead()
    }

    /// Removes the record of a lead that died. Returns true if there was one.
    pub fn forget_dead_lead(&self) -> Result<bool, StoreError> {
        if self.shared.is_some() {
            let dead = self.dead_lead()?;
            self.remove_lead_record()?;
            return Ok(dead.is_some());
        }
        let Some(_gate) = self.free_lease()? else { return Ok(false) };
        Ok(fs::remove_file(&self.layout.lead())?)
    }

    fn is_lease_held(&self) -> Result<bool, StoreError> {
        if let Some(shared) = &self.shared {
            return Ok(shared.database.is_led(shared.name())?);
        }
        let gate = self.layout.gate("lead");
        Ok(fs::exists(&gate) && Gate::try_open(&gate)?.is_none())
    }

    /// Acquires the gate if it is free; `None` also if the team never had a lead.
    fn free_lease(&self) -> Result<Option<Gate>, StoreError> {
        let gate = self.layout.gate("lead");
        if fs::exists(&gate) { Ok(Gate::try_open(&gate)?) } else { Ok(None) }
    }

    fn remove_lead_record(&self) -> Result<(), StoreError> {
        match self.lead_place() {
            DocumentPlace::File(place) => Ok(fs::remove_file(&place.path).map(drop)?),
            DocumentPlace::Shared(place) => place.remove_if(|_| Ok(true)),
        }
    }

    fn lead_place(&self) -> DocumentPlace {
        self.document(DocumentKind::Lead, "", || self.boot_place("lead-record", self.layout.lead()))
    }
}

/// Describes a lead of which only the held lease is known.
fn unknown_lead() -> LeadRecord {
    LeadRecord {
        format: FORMAT,
        process: ProcessId { pid: 0, start: 0 },
        boot_id: env::boot_id(),
        host: env::hostname(),
        since: Timestamp(clock::now_ms()),
        token: None,
    }
}

impl Drop for Lease {
    /// Removes the record before the right is given up with its field, so that the next holder
    /// finds no stale record. If the right was lost, the record is that of its next holder.
    fn drop(&mut self) {
        if !self.is_lost() && !self.keeps_record {
            let _ = self.team.remove_lead_record();
        }
    }
}
