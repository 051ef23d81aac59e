//! A connection to `phalanx host serve` on one host, for one team. It stays open for the calls of
//! this process.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::wire::{HostCall, HostHello, HostReply, HostRequest, RELEASE};
use crate::error::RemoteFailure;
use crate::{Context, OpsError, hosts};
use model::id::{HostName, TeamName};
use model::team::host::HostConfig;
use remote::{HostChild, HostConnection, HostError, facts};
use store::TeamStore;
use sys::exec::CancelToken;
use worktree::LARGEST_BUNDLE;

/// Time limit of a request that does not start or end programs.
pub(crate) const QUICK: Duration = Duration::from_secs(20);
/// Time limit of a request for which the host runs git, or prepares one worktree: checking it out
/// takes up to five minutes, and its setup command ten.
pub(crate) const GIT: Duration = Duration::from_secs(900);
/// Time limit for the connection and the greeting.
const CONNECT: Duration = Duration::from_secs(30);

/// Time limit to copy a file over a slow line.
const TRANSFER: Duration = Duration::from_secs(600);
/// Interval at which a call looks whether it is cancelled.
const LOOK: Duration = Duration::from_millis(100);

/// The connection to one host, if it is open. Locked while it is being opened, so that two callers
/// do not open two; a host that does not answer delays no other one.
type LinkSlot = Arc<Mutex<Option<Arc<HostLink>>>>;

/// The open connections of this process.
static LINKS: Mutex<BTreeMap<(TeamName, HostName), LinkSlot>> = Mutex::new(BTreeMap::new());

type PendingCalls = Arc<Mutex<Option<HashMap<u64, Sender<HostReply>>>>>;

/// Returns the command line that runs a verb of phalanx on a host, on this process's terminal.
///
/// # Errors
/// [`OpsError::NoSuchHost`] for a host that is not configured here; [`OpsError::Host`] if it cannot
/// be reached or has no phalanx.
pub(crate) fn interactive(
    ctx: &Context,
    team: &TeamStore,
    host: &HostName,
    verb: &[&str],
) -> Result<Vec<OsString>, OpsError> {
    let (connection, program) = connect(ctx, &config_of(ctx, team, host)?)?;
    let words = [program.as_str()].into_iter().chain(verb.iter().copied());
    let argv: Vec<OsString> = words.map(OsString::from).collect();
    Ok(connection.interactive_argv(&argv)?)
}

/// Checks that phalanx on a host can open the team in the shared store.
///
/// # Errors
/// As [`interactive`]; [`OpsError::OnHost`] if the store cannot be reached from there.
pub fn reach_store(ctx: &Context, team: &TeamStore, host: &HostName) -> Result<(), OpsError> {
    HostLink::to(ctx, team, host).map(drop)
}

fn config_of(ctx: &Context, team: &TeamStore, host: &HostName) -> Result<HostConfig, OpsError> {
    let settings = team.settings()?.map(|settings| settings.hosts).unwrap_or_default();
    let known = hosts::configured(ctx, &settings)?;
    Ok(hosts::find(&known, host)?.config.clone())
}

/// Connects to a host, and finds phalanx there.
fn connect(ctx: &Context, config: &HostConfig) -> Result<(HostConnection, String), OpsError> {
    let connection = HostConnection::open(config, &hosts::control_dir(ctx))?;
    let program = facts(&connection)?.phalanx.ok_or_else(|| HostError::NoProgram {
        host: config.name.clone(),
        program: config.installed_program(),
    })?;
    Ok((connection, program))
}

/// An open connection.
pub(crate) struct HostLink {
    host: HostName,
    connection: HostConnection,
    stdin: Mutex<(u64, ChildStdin)>,
    /// The calls that wait for a reply; `None` once the connection has ended.
    pending: PendingCalls,
    child: HostChild,
}

impl HostLink {
    /// Returns the connection to a host, and opens it if there is none.
    ///
    /// # Errors
    /// [`OpsError::NoSuchHost`] for a host that is not configured here; [`OpsError::Host`] if it
    /// cannot be reached; [`OpsError::OnHost`] if the server there refuses.
    pub(crate) fn to(
        ctx: &Context,
        team: &TeamStore,
        host: &HostName,
    ) -> Result<Arc<HostLink>, OpsError> {
        let key = (team.name().clone(), host.clone());
        let slot = Arc::clone(lock(&LINKS).entry(key).or_default());
        let mut open = lock(&slot);
        if let Some(link) = open.as_ref().filter(|link| lock(&link.pending).is_some()) {
            return Ok(Arc::clone(link));
        }
        let link = Arc::new(HostLink::open(ctx, team, &config_of(ctx, team, host)?)?);
        *open = Some(Arc::clone(&link));
        Ok(link)
    }

    fn open(ctx: &Context, team: &TeamStore, config: &HostConfig) -> Result<HostLink, OpsError> {
        let (connection, program) = connect(ctx, config)?;
        let argv = [program.into(), "host".into(), "serve".into()];
        let (child, mut stdin, stdout) = connection.start(&argv, CONNECT)?;
        let lost = |child: &HostChild| HostError::Lost {
            host: config.name.clone(),
            said: child.messages(),
        };
        let (store, password) = team.store_address().unwrap_or_default();
        let hello = HostHello {
            release: RELEASE.to_owned(),
            team: team.name().clone(),
            store,
            password,
            host: config.name.clone(),
            dir: config.dir.clone(),
        };
        let line = serde_json::to_string(&hello).expect("a greeting has string keys");
        let said = writeln!(stdin, "{line}").and_then(|()| stdin.flush());
        said.map_err(|_| lost(&child))?;
        let pending: PendingCalls = Arc::new(Mutex::new(Some(HashMap::new())));
        let (greeted, greeting) = channel();
        let waiting = Arc::clone(&pending);
        thread::spawn(move || deliver(stdout, &waiting, &greeted));
        let reply = greeting.recv_timeout(CONNECT).map_err(|_| lost(&child))?;
        let (host, stdin) = (config.name.clone(), Mutex::new((0, stdin)));
        let link = HostLink { host, connection, stdin, pending, child };
        reply.result.map_err(|failure| link.failed(failure))?;
        Ok(link)
    }

    pub(crate) fn host(&self) -> &HostName {
        &self.host
    }

    pub(crate) fn config(&self) -> &HostConfig {
        self.connection.host()
    }

    /// Returns the directory on the host for the files of an operation.
    pub(crate) fn transfer_dir(&self, token: &str) -> String {
        format!("{}/transfers/{token}", self.config().dir.trim_end_matches('/'))
    }

    /// Copies a file to the host, for the operation `token`, and returns its path there.
    ///
    /// # Errors
    /// As [`HostConnection::copy_to`].
    pub(crate) fn upload(&self, bytes: &[u8], token: &str, name: &str) -> Result<String, OpsError> {
        let path = format!("{}/{name}", self.transfer_dir(token));
        self.connection.copy_to(bytes, &path, 0o600, TRANSFER)?;
        Ok(path)
    }

    /// Reads a file of this length on the host.
    ///
    /// # Errors
    /// As [`HostConnection::copy_from`].
    pub(crate) fn download(&self, path: &str, length: u64) -> Result<Vec<u8>, OpsError> {
        Ok(self.connection.copy_from(path, length.min(LARGEST_BUNDLE), TRANSFER)?)
    }

    /// Removes the files of an operation. Files that are left have names that are never used again.
    pub(crate) fn discard(&self, token: &str) {
        let argv = ["rm", "-rf", "--", &self.transfer_dir(token)].map(OsString::from);
        let _ = self.connection.run(&argv, &[], QUICK);
    }

    /// Sends a request and waits for its reply.
    ///
    /// # Errors
    /// [`OpsError::OnHost`] for a request that failed there; [`OpsError::Host`] if the connection
    /// ends first or the deadline has passed: the request may then have been carried out.
    pub(crate) fn call<T: DeserializeOwned>(
        &self,
        request: HostRequest,
        deadline: Duration,
    ) -> Result<T, OpsError> {
        let (_, reply) = self.send(request)?;
        self.read(reply.recv_timeout(deadline).map_err(|_| self.lost())?)
    }

    /// As [`HostLink::call`] for a check, which `cancel` ends: its reply is still waited for.
    ///
    /// # Errors
    /// As [`HostLink::call`].
    pub(crate) fn call_until<T: DeserializeOwned>(
        &self,
        request: HostRequest,
        deadline: Duration,
        cancel: &CancelToken,
    ) -> Result<T, OpsError> {
        let (id, reply) = self.send(request)?;
        let (mut left, mut is_told) = (deadline, false);
        loop {
            match reply.recv_timeout(LOOK) {
                Ok(reply) => return self.read(reply),
                Err(RecvTimeoutError::Timeout) if !left.is_zero() => {
                    left = left.saturating_sub(LOOK);
                }
                Err(_) => return Err(self.lost()),
            }
            if cancel.is_cancelled() && !is_told {
                (left, is_told) = (QUICK, true);
                self.send(HostRequest::Cancel(id))?;
            }
        }
    }

    fn read<T: DeserializeOwned>(&self, reply: HostReply) -> Result<T, OpsError> {
        let value: Value = reply.result.map_err(|failure| self.failed(failure))?;
        serde_json::from_value(value).map_err(|e| OpsError::Failed {
            problem: format!("the reply of host `{}` could not be read: {e}", self.host),
        })
    }

    /// Returns the number of the call, and where its reply arrives.
    fn send(&self, request: HostRequest) -> Result<(u64, Receiver<HostReply>), OpsError> {
        let (sender, reply) = channel();
        let mut stdin = lock(&self.stdin);
        stdin.0 += 1;
        let id = stdin.0;
        match &mut *lock(&self.pending) {
            Some(pending) => drop(pending.insert(id, sender)),
            None => return Err(self.lost()),
        }
        let line = serde_json::to_string(&HostCall { id, request })
            .map_err(|e| OpsError::Failed { problem: e.to_string() })?;
        let written = writeln!(stdin.1, "{line}").and_then(|()| stdin.1.flush());
        written.map_err(|_| self.lost())?;
        Ok((id, reply))
    }

    fn lost(&self) -> OpsError {
        HostError::Lost { host: self.host.clone(), said: self.child.messages() }.into()
    }

    fn failed(&self, failure: RemoteFailure) -> OpsError {
        OpsError::OnHost { host: self.host.clone(), failure }
    }
}

/// Passes the replies to their callers until the connection ends.
fn deliver(
    mut stdout: BufReader<ChildStdout>,
    pending: &PendingCalls,
    greeted: &Sender<HostReply>,
) {
    let mut line = String::new();
    while stdout.read_line(&mut line).is_ok_and(|count| count > 0) {
        if let Ok(reply) = serde_json::from_str::<HostReply>(&line) {
            match reply.id {
                Some(id) => {
                    let caller = lock(pending).as_mut().and_then(|pending| pending.remove(&id));
                    // A caller that no longer waits has given up at its deadline.
                    caller.map(|caller| caller.send(reply));
                }
                None => drop(greeted.send(reply)),
            }
        }
        line.clear();
    }
    // Dropping the senders wakes the callers.
    *lock(pending) = None;
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
