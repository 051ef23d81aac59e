//! Access to shared stores, and the file that says which of them has a team.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{StoreError, without_text};
use crate::files::format::refuse_newer;
use crate::files::layout::TeamLayout;
use crate::shared::SharedTeam;
use crate::team::TeamStore;
use database::{Actor, BrokerCommand, Database, StoreUrl};
use model::id::{HostName, TeamName};
use sys::fs;
use sys::socket::LONGEST_PATH;

/// Length of the name of a broker's socket, with the separator.
const LONGEST_SOCKET_NAME: usize = 24;
/// Largest file with the address of a store, in bytes.
const MAX_ADDRESS: u64 = 64 * 1024;

/// What a process needs to use shared stores.
#[derive(Debug, Clone)]
pub struct StoreAccess {
    /// Starts the broker of this host.
    pub broker: BrokerCommand,
    /// Directories for the sockets of brokers, private to the user, where a path below the config
    /// root is too long. The last one is short enough.
    pub short_dirs: Vec<PathBuf>,
    /// The password for addresses without one (`PGPASSWORD`).
    pub password: Option<String>,
    /// The file of passwords (`~/.pgpass`).
    pub passfile: Option<PathBuf>,
    /// The run that this process belongs to, whose calls the store refuses once it was declared
    /// lost; `None` outside of members.
    pub incarnation: Option<String>,
    /// The name of this host for teams that it has not joined yet.
    pub host: HostName,
}

/// A shared store, as one host uses it.
#[derive(Debug, Clone)]
pub(crate) struct SharedStore {
    pub(crate) database: Database,
    pub(crate) url: Arc<StoreUrl>,
    pub(crate) host: HostName,
}

/// Format version of the file with a store's address.
const FORMAT: u32 = 1;

/// The shared store of a team (`phalanx/store`), on each host that has joined the team.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StoreAddress {
    /// Version of the file's format.
    pub(crate) format: u32,
    pub(crate) url: String,
    /// The name of this host.
    pub(crate) host: HostName,
}

impl StoreAccess {
    /// Returns the shared store at an address, without any I/O but to look a password up. All
    /// processes of a config root use one broker, also those that look at the root from another
    /// one.
    ///
    /// # Errors
    /// [`StoreError::Database`] for an invalid address.
    pub(crate) fn open(
        &self,
        url: &str,
        password: Option<&str>,
        host: Option<&HostName>,
        root: &Path,
    ) -> Result<SharedStore, StoreError> {
        let password = password.or(self.password.as_deref());
        let url = StoreUrl::parse(url)?.with_password(password, self.passfile.as_deref());
        Ok(SharedStore {
            database: Database::connect(&url, &self.socket_dir(root), &self.broker)
                .acting_as(Actor { incarnation: self.incarnation.clone(), fence: None }),
            url: Arc::new(url),
            host: host.unwrap_or(&self.host).clone(),
        })
    }

    fn socket_dir(&self, root: &Path) -> PathBuf {
        let fits = |dir: &PathBuf| dir.as_os_str().len() + LONGEST_SOCKET_NAME <= LONGEST_PATH;
        let mut dir = TeamLayout::broker_dir(root);
        for short in &self.short_dirs {
            if fits(&dir) {
                break;
            }
            dir.clone_from(short);
        }
        dir
    }
}

impl SharedStore {
    pub(crate) fn team(self, name: &TeamName) -> SharedTeam {
        let SharedStore { database, url, host } = self;
        SharedTeam { database, url, host, name: name.clone(), lost_claim: Arc::default() }
    }
}

impl TeamStore {
    /// Returns the address of the shared store that has the team, and the password if that is not
    /// part of the address.
    pub fn store_address(&self) -> Option<(String, Option<String>)> {
        self.shared.as_ref().map(|shared| shared.url.parts())
    }

    pub(crate) fn read_address(&self) -> Result<Option<StoreAddress>, StoreError> {
        let path = self.layout.store_address();
        // A broken directory is reported by `doctor`, for a team of files.
        let Ok(Some(bytes)) = fs::read(&path, MAX_ADDRESS) else { return Ok(None) };
        let corrupt = |e: serde_json::Error| StoreError::Corrupt {
            path: path.clone(),
            problem: without_text(&e),
            copy: path.clone(),
        };
        let value: Value = serde_json::from_slice(&bytes).map_err(corrupt)?;
        refuse_newer(&value, FORMAT, || path.clone())?;
        serde_json::from_value(value).map(Some).map_err(corrupt)
    }

    /// Makes this host one of the team's: creates the directories of the files that belong to it,
    /// and notes where the team is stored.
    ///
    /// # Errors
    /// [`StoreError::OtherHost`] if this machine has another name in the team;
    /// [`StoreError::HostTaken`] if another machine has this name.
    pub fn join_host(&self) -> Result<(), StoreError> {
        let Some(shared) = &self.shared else { return Ok(()) };
        let known = self.read_address()?;
        if let Some(known) = &known
            && known.host != shared.host
        {
            let (known, given) = (known.host.clone(), shared.host.clone());
            return Err(StoreError::OtherHost { team: self.name.clone(), known, given });
        }
        self.create_local_dirs()?;
        self.claim_host_name()?;
        let (url, _) = shared.url.parts();
        if known.is_some_and(|known| known.url == url) {
            return Ok(());
        }
        let address = StoreAddress { format: FORMAT, url, host: shared.host.clone() };
        let bytes = serde_json::to_vec_pretty(&address).expect("an address has string keys");
        // Several processes can write the same address at the same time.
        let path = self.layout.store_address();
        fs::replace_if(&path, &bytes, fs::Sync::Entry, || true)?;
        Ok(())
    }

    /// Creates the directories of the files that belong to this host.
    fn create_local_dirs(&self) -> Result<(), StoreError> {
        fs::private_dir(&self.root)?;
        fs::private_dir(&TeamLayout::teams(&self.root))?;
        for dir in [self.layout.team_dir()].into_iter().chain(self.layout.our_dirs()) {
            fs::private_dir(&dir)?;
        }
        Ok(())
    }
}
