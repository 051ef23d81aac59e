//! The identity of machines. A host name of a team in the shared store belongs to one machine,
//! since pids, panes and files on record mean nothing on another one.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::StoreError;
use crate::files::format::refuse_newer;
use crate::files::layout::TeamLayout;
use crate::team::TeamStore;
use crate::team::journal::now;
use database::DocumentKind;
use model::digest;
use model::id::HostName;
use model::time::Timestamp;
use sys::{env, fs, rand};

/// Format version of the claim of a host name.
const FORMAT: u32 = 1;
/// Largest file with the id of a machine, in bytes.
const MAX_ID: u64 = 1024;

/// The machine that has a host name in a team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct HostClaim {
    /// Version of the document's format.
    format: u32,
    host: HostName,
    machine: String,
    since: Timestamp,
}

impl TeamStore {
    /// Returns the id of this machine: a digest of that of the system, which must stay
    /// confidential, or else a random one in the config root. `None` in a team of files, and on a
    /// machine that has not joined a team yet and has no id of the system.
    pub fn machine(&self) -> Option<String> {
        self.shared.as_ref()?;
        if let Some(id) = env::machine_id() {
            return Some(digest::hash(&[b"phalanx host", id.as_bytes()]));
        }
        let bytes = fs::read(&TeamLayout::machine(&self.root), MAX_ID).ok()??;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned()).filter(|id| !id.is_empty())
    }

    /// Claims the name of this host for this machine.
    ///
    /// # Errors
    /// [`StoreError::HostTaken`] if another machine has the name; [`StoreError::NewerFormat`].
    pub(crate) fn claim_host_name(&self) -> Result<(), StoreError> {
        let Some(shared) = &self.shared else { return Ok(()) };
        if self.machine().is_none() {
            // Another process may create it at the same time; the first one counts.
            let id = rand::uuid().to_string();
            let _ = fs::create_new(&TeamLayout::machine(&self.root), id.as_bytes());
        }
        let Some(machine) = self.machine() else { return Ok(()) };
        let host = shared.host.clone();
        let place = shared.document(DocumentKind::Host, &key(&host));
        place.change(|found| {
            if let Some(value) = &found {
                refuse_newer(value, FORMAT, || place.label().into())?;
            }
            match found.map(serde_json::from_value::<HostClaim>) {
                Some(Ok(claim)) if claim.machine == machine => Ok((None, ())),
                Some(Ok(_)) => {
                    Err(StoreError::HostTaken { team: self.name.clone(), host: host.clone() })
                }
                None | Some(Err(_)) => {
                    let (host, machine) = (host.clone(), machine.clone());
                    let claim = HostClaim { format: FORMAT, host, machine, since: now() };
                    let claim = serde_json::to_value(claim).expect("a claim has string keys");
                    Ok((Some(claim), ()))
                }
            }
        })
    }

    /// Returns true if another machine than this one has the name of a host.
    pub fn is_host_elsewhere(&self, host: &HostName) -> Result<bool, StoreError> {
        let Some(shared) = &self.shared else { return Ok(false) };
        let found = shared.document(DocumentKind::Host, &key(host)).read()?;
        let claim = found.and_then(|found| serde_json::from_value::<HostClaim>(found).ok());
        Ok(claim.is_some_and(|claim| Some(claim.machine) != self.machine()))
    }

    /// Makes the name of a host free for another machine.
    pub fn forget_host(&self, host: &HostName) -> Result<(), StoreError> {
        let Some(shared) = &self.shared else { return Ok(()) };
        shared.document(DocumentKind::Host, &key(host)).remove_if(|_: Value| Ok(true))
    }
}

fn key(host: &HostName) -> String {
    host.as_str().to_ascii_lowercase()
}
