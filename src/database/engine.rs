//! Keeps one connection to the database open, and carries out calls on it, many at a time.
//!
//! A call whose connection is lost is sent again on the next one. That is safe: the functions of
//! the schema have no further effect when a call is repeated.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::json;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_postgres::{AsyncMessage, Client};

use super::error::{DatabaseError, with_causes};
use super::session::{self, CallFailure, Link};
use super::url::StoreUrl;
use sys::clock::Deadline;

/// Time for which a call is tried before it fails.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(30);

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
const CONFLICT_PAUSE: Duration = Duration::from_millis(5);

/// An occurrence on the connection. The handler is called on the thread of the runtime and must not
/// block.
#[derive(Debug)]
pub(super) enum EngineEvent {
    /// A new connection is in use. It is subscribed to the same teams as the one before.
    Up { clock_offset_ms: i64 },
    /// The connection is lost, and notifications with it.
    Down,
    /// A change of a team.
    Notified { team: String, change: String },
}

type EngineEventHandler = Box<dyn Fn(EngineEvent) + Send + Sync>;

/// A connection that is set up.
struct Live {
    client: Client,
    /// Counts the connections.
    number: u64,
    /// Makes the engine open another connection.
    give_up: Notify,
}

#[derive(Clone)]
enum ConnectionStatus {
    Connecting(String),
    Live(Arc<Live>),
    /// Connecting failed for good at this attempt.
    Refused(u64, DatabaseError),
}

/// The connection and its calls.
pub(super) struct Engine {
    url: StoreUrl,
    patience: Duration,
    status: watch::Sender<ConnectionStatus>,
    /// Wakes the engine that waits after a refused attempt.
    retry: Notify,
    /// The subscribed teams, by channel.
    channels: Mutex<HashMap<String, String>>,
    on_event: EngineEventHandler,
}

impl Engine {
    /// Starts connecting, on the runtime of the caller.
    pub(super) fn start(
        url: StoreUrl,
        patience: Duration,
        on_event: EngineEventHandler,
    ) -> Arc<Engine> {
        let connecting = ConnectionStatus::Connecting("not connected yet".to_owned());
        let (retry, channels) = (Notify::new(), Mutex::default());
        let status = watch::Sender::new(connecting);
        let engine = Arc::new(Engine { url, patience, status, retry, channels, on_event });
        tokio::spawn(Arc::clone(&engine).run());
        engine
    }

    fn channels(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls a function of the schema, again if necessary. Returns its reply as JSON text, and the
    /// number of the connection that it came on.
    pub(super) async fn call(
        &self,
        function: &str,
        arguments: &str,
    ) -> Result<(String, u64), DatabaseError> {
        if !function.bytes().all(|b| b.is_ascii_lowercase() || b == b'_') {
            return Err(DatabaseError::bad_reply(function, &"it is not the name of a function"));
        }
        let begun = Deadline::after(self.patience);
        let mut last = String::new();
        let mut used = None;
        let attempts = self.attempt(function, arguments, &mut last, &mut used);
        match timeout(self.patience, attempts).await {
            Ok(result) => result,
            Err(_) => {
                if let Some(live) = used {
                    live.give_up.notify_one();
                }
                Err(DatabaseError::Unreachable {
                    place: self.url.place(),
                    seconds: begun.elapsed().as_secs(),
                    last: if last.is_empty() { "no reply".to_owned() } else { last },
                })
            }
        }
    }

    async fn attempt(
        &self,
        function: &str,
        arguments: &str,
        last: &mut String,
        used: &mut Option<Arc<Live>>,
    ) -> Result<(String, u64), DatabaseError> {
        let mut status = self.status.subscribe();
        loop {
            let live = self.live(&mut status, last).await?;
            *used = Some(Arc::clone(&live));
            let is_other = |s: &ConnectionStatus| !matches!(s, ConnectionStatus::Live(l) if l.number == live.number);
            let reply = tokio::select! {
                reply = session::call(&live.client, &self.url, function, arguments) => reply,
                _ = status.wait_for(is_other) => Err(CallFailure::Lost("the connection was lost".into())),
            };
            match reply {
                Ok(reply) => return Ok((reply, live.number)),
                Err(CallFailure::Final(error)) => return Err(error),
                Err(CallFailure::Conflict) => {
                    "the transaction conflicts with others".clone_into(last);
                    sleep(CONFLICT_PAUSE).await;
                }
                Err(CallFailure::Lost(reason)) => {
                    *last = reason;
                    *used = None;
                    live.give_up.notify_one();
                    let _ = status.wait_for(is_other).await;
                }
            }
        }
    }

    /// Waits for a connection. Fails if an attempt that begins after this call is refused.
    async fn live(
        &self,
        status: &mut watch::Receiver<ConnectionStatus>,
        last: &mut String,
    ) -> Result<Arc<Live>, DatabaseError> {
        let mut refused_before = None;
        loop {
            let now = status.borrow_and_update().clone();
            match now {
                ConnectionStatus::Live(live) => return Ok(live),
                ConnectionStatus::Connecting(reason) => *last = reason,
                ConnectionStatus::Refused(attempt, error) => match refused_before {
                    Some(before) if before != attempt => return Err(error),
                    Some(_) => (),
                    None => {
                        refused_before = Some(attempt);
                        self.retry.notify_one();
                    }
                },
            }
            let _ = status.changed().await;
        }
    }

    /// Returns the number of the current connection; 0 if there is none.
    pub(super) fn connection(&self) -> u64 {
        match &*self.status.borrow() {
            ConnectionStatus::Live(live) => live.number,
            ConnectionStatus::Connecting(_) | ConnectionStatus::Refused(..) => 0,
        }
    }

    /// Subscribes to the changes of a team, on this connection and all later ones. Returns the
    /// number of the connection.
    pub(super) async fn listen(&self, team: &str) -> Result<u64, DatabaseError> {
        let arguments = json!({ "team": team }).to_string();
        loop {
            let (reply, number) = self.call("listen", &arguments).await?;
            self.channels().insert(channel_of(&reply), team.to_owned());
            // A connection that was opened before may have been set up without this team.
            if self.connection() == number {
                return Ok(number);
            }
        }
    }

    /// Returns the teams that each connection is subscribed to.
    pub(super) fn teams(&self) -> Vec<String> {
        self.channels().values().cloned().collect()
    }

    /// Opens one connection after the other.
    async fn run(self: Arc<Self>) {
        let mut pause = FIRST_PAUSE;
        for number in 1_u64.. {
            match self.connect(number).await {
                Ok((live, clock_offset_ms, reading)) => {
                    self.status.send_replace(ConnectionStatus::Live(Arc::clone(&live)));
                    (self.on_event)(EngineEvent::Up { clock_offset_ms });
                    let reason = tokio::select! {
                        reason = reading => reason.unwrap_or_default(),
                        () = live.give_up.notified() => "the server does not accept calls".to_owned(),
                    };
                    self.status.send_replace(ConnectionStatus::Connecting(reason));
                    (self.on_event)(EngineEvent::Down);
                    pause = FIRST_PAUSE;
                }
                Err(CallFailure::Final(error)) => {
                    self.status.send_replace(ConnectionStatus::Refused(number, error));
                    self.retry.notified().await;
                }
                Err(CallFailure::Lost(reason)) => {
                    self.status.send_replace(ConnectionStatus::Connecting(reason));
                }
                Err(CallFailure::Conflict) => (),
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Opens a connection, sets it up and subscribes it to the same teams as the one before.
    /// Returns it with the clock offset, and the task that reads from it.
    async fn connect(
        self: &Arc<Self>,
        number: u64,
    ) -> Result<(Arc<Live>, i64, JoinHandle<String>), CallFailure> {
        let (client, link) = session::open(&self.url).await?;
        let reading = tokio::spawn(Arc::clone(self).read(link));
        let clock_offset_ms = session::set_up(&client, &self.url).await?;
        for team in self.teams() {
            let arguments = json!({ "team": team }).to_string();
            match session::call(&client, &self.url, "listen", &arguments).await {
                Ok(_) => (),
                Err(CallFailure::Final(DatabaseError::NoSuchTeam { .. })) => {
                    self.channels().retain(|_, subscribed| *subscribed != team);
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok((Arc::new(Live { client, number, give_up: Notify::new() }), clock_offset_ms, reading))
    }

    /// Reads from a connection until it ends or its client is dropped. Returns the reason.
    async fn read(self: Arc<Self>, mut link: Link) -> String {
        loop {
            match poll_fn(|cx| link.poll_message(cx)).await {
                Some(Ok(AsyncMessage::Notification(note))) => {
                    let team = self.channels().get(note.channel()).cloned();
                    if let Some(team) = team {
                        let change = note.payload().to_owned();
                        (self.on_event)(EngineEvent::Notified { team, change });
                    }
                }
                Some(Ok(_)) => (),
                Some(Err(e)) => return with_causes(&e),
                None => return "the connection was closed".to_owned(),
            }
        }
    }
}

fn channel_of(reply: &str) -> String {
    serde_json::from_str(reply).unwrap_or_default()
}
