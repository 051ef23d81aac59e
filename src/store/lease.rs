//! The lease of a team's lead: a gate that is held while the lead runs, and a file that identifies
//! the process. The kernel releases the gate when the process dies, so a held gate proves a running
//! lead and the process need not be checked.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::dirs;
use super::document;
use super::error::StoreError;
use super::teams::TeamStore;
use crate::model::placement::ProcessId;
use crate::model::time::Timestamp;
use crate::sys::fs;
use crate::sys::lock::{Gate, LockError};

/// Time to wait for a held gate, since a process that checks for a lead holds it for a moment.
const GLANCE: Duration = Duration::from_millis(200);

/// The lead of a team (`phalanx/lead.json`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct LeadRecord {
    /// Version of the file's format.
    pub(crate) format: u32,
    pub(crate) process: ProcessId,
    /// Kernel boot id; `process` is valid only in that boot.
    pub(crate) boot_id: String,
    /// Name of the host that the lead runs on.
    pub(crate) host: String,
    pub(crate) since: Timestamp,
    /// Secret by which the agent lead, a program that the lead runs, proves that it acts for the
    /// lead. `None` if there is no agent lead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<String>,
}

/// The right to lead the team, held until dropped.
pub(crate) struct Lease {
    team: TeamStore,
    _gate: Gate,
}

impl TeamStore {
    /// Acquires the lease for `lead`; `None` if another process holds it.
    pub(crate) fn take_lease(&self, lead: &LeadRecord) -> Result<Option<Lease>, StoreError> {
        dirs::make_dirs_of(&self.layout.gate("lead"))?;
        let gate = match Gate::open(&self.layout.gate("lead"), GLANCE) {
            Ok(gate) => gate,
            Err(LockError::Timeout { .. }) => return Ok(None),
            Err(e) => return Err(e.into()),
        };
        document::change_typed(&self.lead_place(), 1, |found: &mut Option<LeadRecord>| {
            *found = Some(lead.clone());
            Ok(())
        })?;
        Ok(Some(Lease { team: self.clone(), _gate: gate }))
    }

    /// Returns the running lead; `None` if the lease is free.
    pub(crate) fn current_lead(&self) -> Result<Option<LeadRecord>, StoreError> {
        let gate = self.layout.gate("lead");
        if !fs::exists(&gate) || Gate::try_open(&gate)?.is_some() {
            return Ok(None);
        }
        self.last_lead()
    }

    /// Returns the token of the agent lead. It stays valid after the lead has died, until another
    /// process leads.
    pub(crate) fn lead_token(&self) -> Result<Option<String>, StoreError> {
        Ok(self.last_lead()?.and_then(|lead| lead.token))
    }

    /// Returns the record of the running lead, or of a lead that died without removing its record.
    pub(crate) fn last_lead(&self) -> Result<Option<LeadRecord>, StoreError> {
        document::read_typed(&self.lead_place())
    }

    /// Returns the record of a lead that died without removing it; `None` while a lead is running.
    pub(crate) fn dead_lead(&self) -> Result<Option<LeadRecord>, StoreError> {
        let Some(_gate) = self.free_lease()? else { return Ok(None) };
        self.last_lead()
    }

    /// Removes the record of a lead that died. Returns true if there was one.
    pub(crate) fn forget_dead_lead(&self) -> Result<bool, StoreError> {
        let Some(_gate) = self.free_lease()? else { return Ok(false) };
        Ok(fs::remove_file(&self.layout.lead())?)
    }

    /// Acquires the gate if it is free; `None` also if the team never had a lead.
    fn free_lease(&self) -> Result<Option<Gate>, StoreError> {
        let gate = self.layout.gate("lead");
        if fs::exists(&gate) { Ok(Gate::try_open(&gate)?) } else { Ok(None) }
    }

    fn lead_place(&self) -> document::FilePlace {
        self.boot_place("lead-record", self.layout.lead())
    }
}

impl Drop for Lease {
    /// Removes the file before the gate is dropped with its field, so that the next holder finds no
    /// stale record.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.team.layout.lead());
    }
}
