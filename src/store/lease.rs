//! Who leads the team: a gate held for as long as the lead runs, which the kernel takes back when it dies, and a file
//! that says who it is. Whether that process lives is not known here: a held gate is the proof.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::document;
use super::error::StoreError;
use super::teams::TeamStore;
use crate::model::placement::ProcessId;
use crate::model::time::Timestamp;
use crate::sys::fs;
use crate::sys::lock::{Gate, LockError};

/// Somebody who only looks whether there is a lead holds the gate for a moment: it is outwaited.
const GLANCE: Duration = Duration::from_millis(200);

/// Who leads a team (`phalanx/lead.json`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct LeadRecord {
    pub(crate) format: u32,
    pub(crate) process: ProcessId,
    pub(crate) boot_id: String,
    pub(crate) host: String,
    pub(crate) since: Timestamp,
    /// What a program that the lead runs in its place proves with that it speaks for it; none: there is no such program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<String>,
}

/// The right to lead, held until dropped.
pub(crate) struct Lease {
    team: TeamStore,
    _gate: Gate,
}

impl TeamStore {
    /// Takes the lease for `lead`; none if somebody else holds it.
    pub(crate) fn take_lease(&self, lead: &LeadRecord) -> Result<Option<Lease>, StoreError> {
        document::ready_gate(&self.layout.gate("lead"))?;
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

    /// Who leads the team right now; none if nobody does.
    pub(crate) fn current_lead(&self) -> Result<Option<LeadRecord>, StoreError> {
        let gate = self.layout.gate("lead");
        if !fs::exists(&gate) || Gate::try_open(&gate)?.is_some() {
            return Ok(None);
        }
        self.last_lead()
    }

    /// The token of the program in the lead's place; also of one whose lead died, until there is another lead.
    pub(crate) fn lead_token(&self) -> Result<Option<String>, StoreError> {
        Ok(self.last_lead()?.and_then(|lead| lead.token))
    }

    /// Who leads the team, or led it last and did not say that it ended: it died.
    pub(crate) fn last_lead(&self) -> Result<Option<LeadRecord>, StoreError> {
        document::read_typed(&self.lead_place())
    }

    /// Who led the team last and did not say that it ended: it died. None while somebody leads.
    pub(crate) fn dead_lead(&self) -> Result<Option<LeadRecord>, StoreError> {
        let Some(_gate) = self.free_lease()? else { return Ok(None) };
        self.last_lead()
    }

    /// Removes what a lead that died left; whether there was something.
    pub(crate) fn forget_dead_lead(&self) -> Result<bool, StoreError> {
        let Some(_gate) = self.free_lease()? else { return Ok(false) };
        Ok(fs::remove_file(&self.layout.lead())?)
    }

    /// The lease, while nobody has it; none too where nobody ever led.
    fn free_lease(&self) -> Result<Option<Gate>, StoreError> {
        let gate = self.layout.gate("lead");
        if fs::exists(&gate) { Ok(Gate::try_open(&gate)?) } else { Ok(None) }
    }

    fn lead_place(&self) -> document::Place {
        self.of_this_boot("lead-record", self.layout.lead())
    }
}

impl Drop for Lease {
    /// The file goes first, then (with the field) the gate: whoever takes the gate next finds no stale name.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.team.layout.lead());
    }
}
