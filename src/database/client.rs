//! The connection of a process to the broker of its host. Starts the broker if none listens.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{self, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use super::error::DatabaseError;
use super::protocol::{
    BrokerMessage, ClientMessage, HubAnswer, Push, Request, encode, read_message,
};
use super::rows::StoreChange;
use super::watchers::Watchers;
use crate::sys::clock::{self, Deadline};
use crate::sys::exec;
use crate::sys::fs;
use crate::sys::lock::Gate;
use crate::sys::socket;

/// Time for a broker to start and accept.
const STARTING: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(5);
/// Lost brokers in a row after which an operation fails.
const MOST_LOSSES: u32 = 5;
const PAUSE_AFTER_LOSS: Duration = Duration::from_millis(50);

/// Where the broker listens, and how it is started.
#[derive(Debug, Clone)]
pub(super) struct BrokerPlace {
    pub(super) socket: PathBuf,
    pub(super) program: PathBuf,
    /// Arguments before the path of the socket.
    pub(super) args: Vec<OsString>,
    /// The broker's whole environment, with the address of the store.
    pub(super) env: Vec<(OsString, OsString)>,
}

impl BrokerPlace {
    fn log(&self) -> PathBuf {
        self.socket.with_extension("log")
    }

    fn error(&self, reason: &dyn std::fmt::Display) -> DatabaseError {
        DatabaseError::Broker {
            socket: self.socket.display().to_string(),
            reason: reason.to_string(),
            log: self.log().display().to_string(),
        }
    }

    /// Connects to the broker, and starts one if none listens. One process at a time starts it.
    fn connect(&self) -> Result<UnixStream, DatabaseError> {
        if let Ok(stream) = socket::connect(&self.socket) {
            return Ok(stream);
        }
        if let Some(dir) = self.socket.parent() {
            fs::private_dir(dir).map_err(|e| self.error(&e))?;
        }
        let gate = self.socket.with_extension("gate");
        let _alone = Gate::open(&gate, STARTING).map_err(|e| self.error(&e))?;
        match socket::connect(&self.socket) {
            Ok(stream) => return Ok(stream),
            Err(e) if e.kind() == io::ErrorKind::NotFound => (),
            Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => {
                fs::remove_file(&self.socket).map_err(|e| self.error(&e))?;
            }
            Err(e) => return Err(self.error(&e)),
        }
        self.start()
    }

    fn start(&self) -> Result<UnixStream, DatabaseError> {
        let mut args = self.args.clone();
        args.push(self.socket.clone().into());
        let root = PathBuf::from("/");
        let log = self.log();
        let program = self.program.as_os_str();
        exec::spawn_detached(program, &args, Some(&self.env), &root, Some(&log))
            .map_err(|e| self.error(&e))?;
        let deadline = Deadline::after(STARTING);
        loop {
            match socket::connect(&self.socket) {
                Ok(stream) => return Ok(stream),
                Err(e) if deadline.expired() => {
                    let reason = format!("it did not accept within {} s ({e})", STARTING.as_secs());
                    return Err(self.error(&reason));
                }
                Err(_) => clock::sleep(POLL),
            }
        }
    }
}

type AnswerSender = SyncSender<Result<HubAnswer, DatabaseError>>;

/// One connection to a broker. Dropping it ends its reader.
struct Pipe {
    number: u64,
    stream: UnixStream,
    writer: Mutex<UnixStream>,
    /// The requests without an answer; `None` once the connection is lost.
    waiting: Mutex<Option<HashMap<u64, AnswerSender>>>,
    last_id: AtomicU64,
}

/// The broker is gone, and the operation may have been carried out.
struct BrokerGone;

impl Pipe {
    fn waiting(&self) -> MutexGuard<'_, Option<HashMap<u64, AnswerSender>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_lost(&self) -> bool {
        self.waiting().is_none()
    }

    /// Sends a message. Ends the connection after a failure: a part may have been sent, so that
    /// nothing can follow.
    fn send(&self, bytes: &[u8]) -> Result<(), BrokerGone> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.write_all(bytes).map_err(|_| {
            let _ = self.stream.shutdown(Shutdown::Both);
            BrokerGone
        })
    }

    /// Sends a request whose answer is dropped. Requests are carried out in the order in which they
    /// were sent, as far as they reach the database.
    fn post(&self, request: Request) {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed);
        if let Ok(bytes) = encode(&ClientMessage { id, request }) {
            // After a failure, the next request notices that the broker is gone.
            let _ = self.send(&bytes);
        }
    }

    fn request(&self, request: Request) -> Result<Result<HubAnswer, DatabaseError>, BrokerGone> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = sync_channel(1);
        self.waiting().as_mut().ok_or(BrokerGone)?.insert(id, sender);
        match encode(&ClientMessage { id, request }) {
            Ok(bytes) => {
                self.send(&bytes)?;
                answer.recv().map_err(|_| BrokerGone)
            }
            Err(e) => {
                self.waiting().as_mut().map(|waiting| waiting.remove(&id));
                Ok(Err(DatabaseError::bad_reply("request", &e)))
            }
        }
    }

    /// Passes messages on until the connection ends.
    fn read(&self, watchers: &Watchers) {
        let mut stream = BufReader::new(&self.stream);
        while let Ok(Some(message)) = read_message(&mut stream) {
            match message {
                BrokerMessage::Answer { id, result } => {
                    let sender = self.waiting().as_mut().and_then(|waiting| waiting.remove(&id));
                    if let Some(sender) = sender {
                        let _ = sender.send(result);
                    }
                }
                BrokerMessage::Push(push) => watchers.deliver(push),
            }
        }
        let _ = self.stream.shutdown(Shutdown::Both);
        // Before the requests fail: what they acquire on the next connection is not lost.
        watchers.lose_all(self.number);
        drop(self.waiting().take());
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// The broker as seen by one process.
pub(super) struct BrokerLink {
    place: BrokerPlace,
    pipe: Mutex<Option<Arc<Pipe>>>,
    last_pipe: AtomicU64,
    pub(super) watchers: Arc<Watchers>,
    me: Weak<BrokerLink>,
}

impl BrokerLink {
    pub(super) fn new(place: BrokerPlace) -> Arc<BrokerLink> {
        Arc::new_cyclic(|me: &Weak<BrokerLink>| BrokerLink {
            place,
            pipe: Mutex::default(),
            last_pipe: AtomicU64::new(0),
            watchers: Arc::default(),
            me: me.clone(),
        })
    }

    /// Carries out an operation, again through another broker if this one is lost.
    pub(super) fn request(
        &self,
        request: impl Fn() -> Request,
    ) -> Result<HubAnswer, DatabaseError> {
        for losses in 0..MOST_LOSSES {
            if losses > 0 {
                clock::sleep(PAUSE_AFTER_LOSS * losses);
            }
            let request = request();
            let is_release = matches!(request, Request::Release(_));
            let pipe = self.connected()?;
            if let Some(handle) = request.handle() {
                self.watchers.request_through(handle, pipe.number);
            }
            match pipe.request(request) {
                Ok(result) => return result,
                // The broker releases what its clients hold when it ends.
                Err(BrokerGone) if is_release => return Ok(HubAnswer::Done),
                Err(BrokerGone) => (),
            }
        }
        Err(self.place.error(&"it ended several times during the operation"))
    }

    /// Carries out an operation without waiting for its result, which is unknown: it is not
    /// repeated if the broker is lost.
    pub(super) fn post(&self, request: Request) {
        if let Ok(pipe) = self.connected() {
            pipe.post(request);
        }
    }

    /// Returns the connection to the broker. Makes a new one if it is lost, with all subscriptions.
    fn connected(&self) -> Result<Arc<Pipe>, DatabaseError> {
        let mut current = self.pipe.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pipe) = current.as_ref().filter(|pipe| !pipe.is_lost()) {
            return Ok(Arc::clone(pipe));
        }
        let stream = self.place.connect()?;
        let fail = |e: io::Error| self.place.error(&e);
        let pipe = Arc::new(Pipe {
            number: self.last_pipe.fetch_add(1, Ordering::Relaxed) + 1,
            writer: Mutex::new(stream.try_clone().map_err(fail)?),
            stream,
            waiting: Mutex::new(Some(HashMap::new())),
            last_id: AtomicU64::new(1),
        });
        let (reader, watchers, link) =
            (Arc::clone(&pipe), Arc::clone(&self.watchers), self.me.clone());
        let read = move || {
            reader.read(&watchers);
            drop(reader);
            resubscribe(&link);
        };
        thread::Builder::new().name("store broker".to_owned()).spawn(read).map_err(fail)?;
        for (handle, team, interest) in self.watchers.subscriptions() {
            let subscribed = pipe.request(Request::Subscribe { handle, team, interest });
            if matches!(subscribed, Ok(Ok(_))) {
                self.watchers.deliver(Push::Changed { handle, change: StoreChange::Everything });
            }
        }
        *current = Some(Arc::clone(&pipe));
        Ok(pipe)
    }
}

impl Drop for BrokerLink {
    fn drop(&mut self) {
        let pipe = self.pipe.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(pipe) = pipe {
            let _ = pipe.stream.shutdown(Shutdown::Both);
        }
    }
}

/// Connects again while there are subscriptions, after the broker was lost.
fn resubscribe(link: &Weak<BrokerLink>) {
    let mut pause = PAUSE_AFTER_LOSS;
    while let Some(link) = link.upgrade() {
        if link.watchers.subscriptions().is_empty() || link.connected().is_ok() {
            return;
        }
        drop(link);
        clock::sleep(pause);
        pause = (pause * 2).min(Duration::from_secs(1));
    }
}
