//! Carries out the operations of several clients on one connection to the database, and holds their
//! locks, leases and subscriptions until they release them or disconnect.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use super::cache::{DocumentCache, DocumentCall};
use super::engine::{Engine, EngineEvent};
use super::error::DatabaseError;
use super::protocol::{Push, Request};
use super::rows::{Actor, DocumentKind, Interest, StoreChange};
use super::url::StoreUrl;
use sys::clock::Deadline;
use sys::rand;

/// Pauses of a client that waits for a lock.
const MIN_LOCK_PAUSE: Duration = Duration::from_millis(2);
const MAX_LOCK_PAUSE: Duration = Duration::from_millis(50);
/// The schema gives a lock for this time.
const LOCK_TERM: Duration = Duration::from_secs(30);
const RENEWAL_INTERVAL: Duration = Duration::from_secs(10);
/// Pause while another client acquires or releases the same lease.
const LEASE_PAUSE: Duration = Duration::from_millis(5);
/// Pause between two attempts to acquire a lease again after a lost connection.
const RETAKE_PAUSE: Duration = Duration::from_millis(300);

/// Receives the messages to a client that are no answers. Must not block.
pub(super) type PushHandler = Box<dyn Fn(Push) + Send + Sync>;

/// Identifies what a client holds: its number and its own handle.
type HoldKey = (u64, u64);

/// What a client holds.
#[derive(Debug, Clone)]
enum Hold {
    Lock { team: String, name: String, holder: String },
    Lease { team: String, number: i64 },
    Subscription { team: String, interest: Interest },
}

/// The clients, and the connection that they share.
pub(super) struct Hub {
    engine: Arc<Engine>,
    caches: bool,
    state: Mutex<HubState>,
}

#[derive(Default)]
struct HubState {
    clients: HashMap<u64, PushHandler>,
    last_client: u64,
    /// The clock of the server minus the clock of this machine, once a connection was made.
    clock_offset_ms: Option<i64>,
    holds: HashMap<HoldKey, Hold>,
    /// The teams whose lease a client holds or is about to acquire. The lock in the database does
    /// not exclude other clients of the same connection.
    leased: BTreeSet<String>,
    cache: DocumentCache,
}

impl HubState {
    fn is_leased(&self, team: &str) -> bool {
        self.holds.values().any(|hold| matches!(hold, Hold::Lease { team: of, .. } if of == team))
    }
}

impl Hub {
    /// Starts connecting, on the runtime of the caller. `caches`: keep replies that show documents.
    pub(super) fn start(url: StoreUrl, patience: Duration, caches: bool) -> Arc<Hub> {
        Arc::new_cyclic(|hub: &Weak<Hub>| {
            let hub = hub.clone();
            let handler = move |event| {
                if let Some(hub) = hub.upgrade() {
                    hub.on_event(event);
                }
            };
            let engine = Engine::start(url, patience, Box::new(handler));
            Hub { engine, caches, state: Mutex::default() }
        })
    }

    fn state(&self) -> MutexGuard<'_, HubState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a client and returns its number.
    pub(super) fn open(&self, outbox: PushHandler) -> u64 {
        let mut state = self.state();
        state.last_client += 1;
        let client = state.last_client;
        if let Some(offset_ms) = state.clock_offset_ms {
            outbox(Push::Clock { offset_ms });
        }
        state.clients.insert(client, outbox);
        client
    }

    /// Removes a client, and releases what it holds.
    pub(super) async fn close(&self, client: u64) {
        let keys: Vec<HoldKey> = {
            let mut state = self.state();
            state.clients.remove(&client);
            state.holds.keys().filter(|key| key.0 == client).copied().collect()
        };
        for key in keys {
            self.release(key).await;
        }
    }

    /// Carries out an operation. Returns the reply as JSON text.
    pub(super) async fn handle(
        self: &Arc<Self>,
        client: u64,
        request: Request,
    ) -> Result<String, DatabaseError> {
        match request {
            Request::Call { function, arguments } => self.call(&function, arguments.get()).await,
            Request::Lock { handle, actor, team, name, deadline_ms } => {
                let deadline = Deadline::after(Duration::from_millis(deadline_ms));
                let locked = self.lock((client, handle), &actor, team, name, deadline).await?;
                Ok(locked.to_string())
            }
            Request::TakeLease { handle, actor, team } => {
                self.take_lease((client, handle), &actor, team).await
            }
            Request::Subscribe { handle, team, interest } => {
                self.subscribe((client, handle), team, interest).await?;
                Ok("null".to_owned())
            }
            Request::Release(handle) => {
                self.release((client, handle)).await;
                Ok("null".to_owned())
            }
        }
    }

    async fn call(&self, function: &str, arguments: &str) -> Result<String, DatabaseError> {
        let (reads, writes) = match function {
            "document" | "documents" => (self.caches, false),
            "put_document" | "delete_document" | "create_team" | "delete_team" => (false, true),
            _ => (false, false),
        };
        let documents = (reads || writes).then(|| serde_json::from_str(arguments).ok()).flatten();
        match documents {
            Some(documents) if reads => self.read_documents(function, arguments, documents).await,
            documents => {
                let result = self.engine.call(function, arguments).await;
                // Before the reply is sent, so that a client reads its own writes. Also after an
                // error, since the change may have been made.
                if let Some(documents) = documents {
                    self.state().cache.remove(&documents);
                }
                result.map(|(reply, _)| reply)
            }
        }
    }

    async fn read_documents(
        &self,
        function: &str,
        arguments: &str,
        documents: DocumentCall,
    ) -> Result<String, DatabaseError> {
        let change = {
            let state = self.state();
            if let Some(reply) = state.cache.get(&documents) {
                return Ok(reply);
            }
            state.cache.latest_change(&documents.team)
        };
        let listening = async {
            // At the same time as the call, so that it costs no round trip of its own.
            if change.is_none() {
                let _ = self.listen(&documents.team).await;
            }
        };
        let (result, ()) = tokio::join!(self.engine.call(function, arguments), listening);
        let (reply, _) = result?;
        if let Some(change) = change {
            self.state().cache.put(documents, change, &reply);
        }
        Ok(reply)
    }

    /// Subscribes the connection to a team.
    async fn listen(&self, team: &str) -> Result<(), DatabaseError> {
        if self.state().cache.covers(team) {
            return Ok(());
        }
        let number = self.engine.listen(team).await?;
        let mut state = self.state();
        // Otherwise the connection was lost meanwhile, and the next one covers the team.
        if self.engine.connection() == number {
            state.cache.cover(team);
        }
        Ok(())
    }

    async fn subscribe(
        &self,
        key: HoldKey,
        team: String,
        interest: Interest,
    ) -> Result<(), DatabaseError> {
        // First, so that no change between the two is missed.
        self.hold(key, Hold::Subscription { team: team.clone(), interest }).await;
        let listening = self.listen(&team).await;
        if listening.is_err() {
            self.state().holds.remove(&key);
        }
        listening
    }

    async fn lock(
        self: &Arc<Self>,
        key: HoldKey,
        actor: &Actor,
        team: String,
        name: String,
        deadline: Deadline,
    ) -> Result<bool, DatabaseError> {
        let holder = rand::uuid();
        let arguments = json!({ "actor": actor, "team": team, "name": name, "holder": holder });
        let arguments = arguments.to_string();
        let mut pause = MIN_LOCK_PAUSE;
        while self.engine.call("acquire_lock", &arguments).await?.0 != "true" {
            if deadline.expired() || !self.state().clients.contains_key(&key.0) {
                return Ok(false);
            }
            sleep(pause.min(deadline.remaining())).await;
            pause = (pause * 2).min(MAX_LOCK_PAUSE);
        }
        self.hold(key, Hold::Lock { team, name, holder }).await;
        let hub = Arc::clone(self);
        tokio::spawn(async move { hub.renew(key, &arguments).await });
        Ok(true)
    }

    /// Renews a lock until it is released or lost.
    async fn renew(&self, key: HoldKey, arguments: &str) {
        let mut renewed = Deadline::after(LOCK_TERM);
        loop {
            sleep(RENEWAL_INTERVAL).await;
            if !self.state().holds.contains_key(&key) {
                return;
            }
            match self.engine.call("renew_lock", arguments).await {
                Ok((reply, _)) if reply == "true" => renewed = Deadline::after(LOCK_TERM),
                Err(DatabaseError::Unreachable { .. }) if !renewed.expired() => (),
                _ => return self.lose(key),
            }
        }
    }

    async fn take_lease(
        self: &Arc<Self>,
        key: HoldKey,
        actor: &Actor,
        team: String,
    ) -> Result<String, DatabaseError> {
        while !self.state().leased.insert(team.clone()) {
            if self.state().is_leased(&team) {
                return Ok("null".to_owned());
            }
            sleep(LEASE_PAUSE).await;
        }
        let arguments = json!({ "actor": actor, "team": team }).to_string();
        let result = self.engine.call("take_lease", &arguments).await;
        if result.is_err() {
            // The lock outlives a failed transaction.
            let _ = self.engine.call("release_lease", &arguments).await;
        }
        let number = result.as_ref().ok().and_then(|(reply, _)| reply.parse().ok());
        let Some(number) = number else {
            self.state().leased.remove(&team);
            return result.map(|(reply, _)| reply);
        };
        self.hold(key, Hold::Lease { team: team.clone(), number }).await;
        let (reply, connection) = result?;
        if self.engine.connection() != connection {
            self.spawn_retake(key, team, number);
        }
        Ok(reply)
    }

    fn spawn_retake(self: &Arc<Self>, key: HoldKey, team: String, number: i64) {
        let hub = Arc::clone(self);
        tokio::spawn(async move { hub.retake(key, &team, number).await });
    }

    /// Acquires a lease again after the connection was lost, with the same number.
    async fn retake(&self, key: HoldKey, team: &str, number: i64) {
        let arguments = json!({ "team": team, "number": number }).to_string();
        while self.state().holds.contains_key(&key) {
            match self.engine.call("retake_lease", &arguments).await {
                Ok((reply, _)) if reply == "\"held\"" => return,
                Ok((reply, _)) if reply == "\"lost\"" => return self.lose(key),
                Err(DatabaseError::NoSuchTeam { .. }) => return self.lose(key),
                // The server has not noticed yet that the former connection is gone.
                _ => sleep(RETAKE_PAUSE).await,
            }
        }
    }

    /// Records what a client holds. Releases it if the client is gone.
    async fn hold(&self, key: HoldKey, hold: Hold) {
        let is_open = {
            let mut state = self.state();
            state.holds.insert(key, hold);
            state.clients.contains_key(&key.0)
        };
        if !is_open {
            self.release(key).await;
        }
    }

    async fn release(&self, key: HoldKey) {
        let hold = self.state().holds.remove(&key);
        match hold {
            Some(Hold::Lock { team, name, holder }) => {
                let arguments = json!({ "team": team, "name": name, "holder": holder });
                let _ = self.engine.call("release_lock", &arguments.to_string()).await;
            }
            Some(Hold::Lease { team, .. }) => {
                let arguments = json!({ "team": team }).to_string();
                let _ = self.engine.call("release_lease", &arguments).await;
                self.state().leased.remove(&team);
            }
            Some(Hold::Subscription { .. }) | None => (),
        }
    }

    /// Notifies a client that it no longer holds a lock or a lease.
    fn lose(&self, key: HoldKey) {
        let mut state = self.state();
        if let Some(Hold::Lease { team, .. }) = state.holds.remove(&key) {
            state.leased.remove(&team);
        }
        if let Some(outbox) = state.clients.get(&key.0) {
            outbox(Push::Lost(key.1));
        }
    }

    fn on_event(self: &Arc<Self>, event: EngineEvent) {
        match event {
            EngineEvent::Down => self.state().cache.clear(),
            EngineEvent::Up { clock_offset_ms } => {
                let mut state = self.state();
                state.clock_offset_ms = Some(clock_offset_ms);
                // Before the replies that come on this connection.
                for outbox in state.clients.values() {
                    outbox(Push::Clock { offset_ms: clock_offset_ms });
                }
                for team in self.engine.teams() {
                    state.cache.cover(&team);
                    publish(&state, &team, &StoreChange::Everything);
                }
                let leases = state.holds.iter().filter_map(|(key, hold)| match hold {
                    Hold::Lease { team, number } => Some((*key, team.clone(), *number)),
                    Hold::Lock { .. } | Hold::Subscription { .. } => None,
                });
                let leases: Vec<_> = leases.collect();
                drop(state);
                for (key, team, number) in leases {
                    self.spawn_retake(key, team, number);
                }
            }
            EngineEvent::Notified { team, change } => {
                let change = change_of(&change);
                let mut state = self.state();
                let documents = match &change {
                    StoreChange::Document { kind, key } => {
                        Some((Some(<&str>::from(*kind).to_owned()), Some(key.clone())))
                    }
                    StoreChange::Everything => Some((None, None)),
                    StoreChange::Mail(_)
                    | StoreChange::Claim
                    | StoreChange::Tasks
                    | StoreChange::Journal => None,
                };
                if let Some((kind, key)) = documents {
                    state.cache.remove(&DocumentCall { team: team.clone(), kind, key });
                }
                publish(&state, &team, &change);
            }
        }
    }
}

fn publish(state: &HubState, team: &str, change: &StoreChange) {
    for ((client, handle), hold) in &state.holds {
        if let Hold::Subscription { team: subscribed, interest } = hold
            && subscribed == team
            && interest.covers(change)
            && let Some(outbox) = state.clients.get(client)
        {
            outbox(Push::Changed { handle: *handle, change: change.clone() });
        }
    }
}

/// Parses the payload of a notification. One from a newer release is a change of everything.
fn change_of(payload: &str) -> StoreChange {
    let (what, rest) = payload.split_once(':').unwrap_or((payload, ""));
    match what {
        "d" => {
            let (kind, key) = rest.split_once(':').unwrap_or((rest, ""));
            match serde_json::from_value::<DocumentKind>(kind.into()) {
                Ok(kind) => StoreChange::Document { kind, key: key.to_owned() },
                Err(_) => StoreChange::Everything,
            }
        }
        "m" => StoreChange::Mail(rest.to_owned()),
        "c" => StoreChange::Claim,
        "t" => StoreChange::Tasks,
        "j" => StoreChange::Journal,
        _ => StoreChange::Everything,
    }
}
