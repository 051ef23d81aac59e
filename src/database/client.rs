//! The connection of a process to the broker of its host. Starts the broker if none listens.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fmt;
use std::io::{self, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use serde_json::value::RawValue;

use super::error::DatabaseError;
use super::protocol::{BrokerMessage, Push, Request, encode, read_message};
use super::rows::StoreChange;
use sys::clock::{self, Deadline};
use sys::lock::Gate;
use sys::{exec, fs, socket};

/// Time for a broker to start and accept.
const START_DEADLINE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(5);
/// Lost brokers in a row after which an operation fails.
const MAX_LOSSES: u32 = 5;
const PAUSE_AFTER_LOSS: Duration = Duration::from_millis(50);

/// The command line that starts the broker of a host: `PROGRAM ARGS… SOCKET`.
#[derive(Debug, Clone)]
pub struct BrokerCommand {
    pub program: PathBuf,
    /// Arguments before the path of the socket.
    pub args: Vec<OsString>,
    /// Its environment, without the address of the store.
    pub env: Vec<(OsString, OsString)>,
}

impl BrokerCommand {
    /// Connects to the broker, and starts one if none listens. One process at a time starts it.
    fn connect(&self, path: &Path) -> Result<UnixStream, DatabaseError> {
        if let Ok(stream) = socket::connect(path) {
            return Ok(stream);
        }
        let fail = |reason: &dyn fmt::Display| DatabaseError::broker(path, reason);
        if let Some(dir) = path.parent() {
            fs::private_dir(dir).map_err(|e| fail(&e))?;
        }
        let gate = path.with_extension("gate");
        let _alone = Gate::open(&gate, START_DEADLINE).map_err(|e| fail(&e))?;
        match socket::connect(path) {
            Ok(stream) => return Ok(stream),
            Err(e) if e.kind() == io::ErrorKind::NotFound => (),
            Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => (),
            Err(e) => return Err(fail(&e)),
        }
        let args = [self.args.as_slice(), &[path.into()]].concat();
        let (root, log) = (Path::new("/"), path.with_extension("log"));
        exec::spawn_detached(self.program.as_os_str(), &args, Some(&self.env), root, Some(&log))
            .map_err(|e| fail(&e))?;
        let deadline = Deadline::after(START_DEADLINE);
        loop {
            match socket::connect(path) {
                Ok(stream) => return Ok(stream),
                Err(e) if deadline.expired() => {
                    let seconds = START_DEADLINE.as_secs();
                    return Err(fail(&format_args!("it did not accept within {seconds} s ({e})")));
                }
                Err(_) => clock::sleep(POLL),
            }
        }
    }
}

type BrokerAnswer = Result<Box<RawValue>, DatabaseError>;

/// One connection to a broker, which releases what was acquired through it when it ends.
#[derive(Debug)]
pub(super) struct Pipe {
    stream: UnixStream,
    /// Held while a message is written.
    writing: Mutex<()>,
    /// The requests without an answer; `None` once the connection is lost.
    waiting: Mutex<Option<HashMap<u64, SyncSender<BrokerAnswer>>>>,
    last_id: AtomicU64,
    /// The handles of locks and leases that the broker has lost.
    lost: Mutex<HashSet<u64>>,
}

/// The broker is gone, and the operation may have been carried out.
pub(super) struct BrokerGone;

impl Pipe {
    fn new(stream: UnixStream) -> Pipe {
        Pipe {
            stream,
            writing: Mutex::default(),
            waiting: Mutex::new(Some(HashMap::new())),
            last_id: AtomicU64::new(1),
            lost: Mutex::default(),
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Option<HashMap<u64, SyncSender<BrokerAnswer>>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lost(&self) -> MutexGuard<'_, HashSet<u64>> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if the lock or lease that was acquired through this connection is not held.
    pub(super) fn has_lost(&self, handle: u64) -> bool {
        self.waiting().is_none() || self.lost().contains(&handle)
    }

    /// Sends a message. Ends the connection after a failure: a part may have been sent, so that
    /// nothing can follow.
    fn send(&self, bytes: &[u8]) -> Result<(), BrokerGone> {
        let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        (&self.stream).write_all(bytes).map_err(|_| {
            let _ = self.stream.shutdown(Shutdown::Both);
            BrokerGone
        })
    }

    /// Sends a request whose answer is dropped. Requests are carried out in the order in which they
    /// were sent, as far as they reach the database.
    fn post(&self, request: &Request) {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed);
        if let Ok(bytes) = encode(&(id, request)) {
            // After a failure, the next request notices that the broker is gone.
            let _ = self.send(&bytes);
        }
    }

    pub(super) fn request(&self, request: &Request) -> Result<BrokerAnswer, BrokerGone> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed);
        let bytes = match encode(&(id, request)) {
            Ok(bytes) => bytes,
            Err(e) => return Ok(Err(DatabaseError::bad_reply("request", &e))),
        };
        let (sender, answer) = sync_channel(1);
        self.waiting().as_mut().ok_or(BrokerGone)?.insert(id, sender);
        self.send(&bytes)?;
        answer.recv().map_err(|_| BrokerGone)
    }

    /// Passes messages on until the connection ends.
    fn read(&self, link: &Weak<BrokerLink>) {
        let mut stream = BufReader::new(&self.stream);
        while let Ok(message) = read_message(&mut stream) {
            match message {
                BrokerMessage::Answer { id, result } => {
                    let sender = self.waiting().as_mut().and_then(|waiting| waiting.remove(&id));
                    if let Some(sender) = sender {
                        let _ = sender.send(result);
                    }
                }
                BrokerMessage::Push(Push::Changed { handle, change }) => {
                    let Some(link) = link.upgrade() else { break };
                    if let Some(subscriber) = link.subscribers().get(&handle) {
                        let _ = subscriber.changes.send(change);
                    }
                }
                BrokerMessage::Push(Push::Lost(handle)) => drop(self.lost().insert(handle)),
                // All hosts of a team use the clock of its store, so that their times can be
                // compared.
                BrokerMessage::Push(Push::Clock { offset_ms }) => clock::set_offset_ms(offset_ms),
            }
        }
        let _ = self.stream.shutdown(Shutdown::Both);
        drop(self.waiting().take());
    }
}

/// A subscription of this process.
#[derive(Clone)]
pub(super) struct Subscriber {
    pub(super) request: Request,
    pub(super) changes: Sender<StoreChange>,
}

/// The broker as seen by one process.
pub(super) struct BrokerLink {
    socket: PathBuf,
    command: BrokerCommand,
    pipe: Mutex<Option<Arc<Pipe>>>,
    last_handle: AtomicU64,
    subscribers: Mutex<HashMap<u64, Subscriber>>,
}

/// Does not show the environment of the broker, which holds the password.
impl fmt::Debug for BrokerLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BrokerLink").field(&self.socket).finish()
    }
}

impl BrokerLink {
    /// `command` has the address of the store in its environment.
    pub(super) fn new(socket: PathBuf, command: BrokerCommand) -> Arc<BrokerLink> {
        Arc::new(BrokerLink {
            socket,
            command,
            pipe: Mutex::default(),
            last_handle: AtomicU64::new(0),
            subscribers: Mutex::default(),
        })
    }

    /// Uses a broker that is connected already.
    #[cfg(test)]
    pub(super) fn through(stream: UnixStream) -> Arc<BrokerLink> {
        let command = BrokerCommand { program: PathBuf::new(), args: Vec::new(), env: Vec::new() };
        let link = BrokerLink::new(PathBuf::new(), command);
        let pipe = link.attach(stream).expect("a thread can start");
        *link.pipe() = Some(pipe);
        link
    }

    fn pipe(&self) -> MutexGuard<'_, Option<Arc<Pipe>>> {
        self.pipe.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn subscribers(&self) -> MutexGuard<'_, HashMap<u64, Subscriber>> {
        self.subscribers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a handle that no other lock, lease or subscription of this process has.
    pub(super) fn next_handle(&self) -> u64 {
        self.last_handle.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Carries out an operation, again through another broker if this one is lost. Returns the
    /// reply and the connection on which it came.
    pub(super) fn request(
        self: &Arc<Self>,
        request: &Request,
    ) -> Result<(Box<RawValue>, Arc<Pipe>), DatabaseError> {
        for losses in 0..MAX_LOSSES {
            if losses > 0 {
                clock::sleep(PAUSE_AFTER_LOSS * losses);
            }
            let pipe = self.connected()?;
            if let Ok(answer) = pipe.request(request) {
                return Ok((answer?, pipe));
            }
        }
        Err(self.error(&"it ended several times during the operation"))
    }

    /// Carries out an operation without waiting for its result, which is unknown: it is not
    /// repeated if the broker is lost.
    pub(super) fn post(self: &Arc<Self>, request: &Request) {
        if let Ok(pipe) = self.connected() {
            pipe.post(request);
        }
    }

    /// Ends a subscription. If the broker is lost, it has ended.
    pub(super) fn unsubscribe(&self, handle: u64) {
        self.subscribers().remove(&handle);
        let pipe = self.pipe().clone();
        if let Some(pipe) = pipe {
            let _ = pipe.request(&Request::Release(handle));
        }
    }

    fn error(&self, reason: &dyn fmt::Display) -> DatabaseError {
        DatabaseError::broker(&self.socket, reason)
    }

    /// Returns the connection to the broker. Makes a new one if it is lost, with all subscriptions.
    fn connected(self: &Arc<Self>) -> Result<Arc<Pipe>, DatabaseError> {
        let mut current = self.pipe();
        if let Some(pipe) = current.as_ref().filter(|pipe| pipe.waiting().is_some()) {
            return Ok(Arc::clone(pipe));
        }
        let pipe = self.attach(self.command.connect(&self.socket)?)?;
        let subscribers: Vec<Subscriber> = self.subscribers().values().cloned().collect();
        for Subscriber { request, changes } in subscribers {
            if matches!(pipe.request(&request), Ok(Ok(_))) {
                let _ = changes.send(StoreChange::Everything);
            }
        }
        *current = Some(Arc::clone(&pipe));
        Ok(pipe)
    }

    fn attach(self: &Arc<Self>, stream: UnixStream) -> Result<Arc<Pipe>, DatabaseError> {
        let pipe = Arc::new(Pipe::new(stream));
        let (reader, link) = (Arc::clone(&pipe), Arc::downgrade(self));
        let read = move || {
            reader.read(&link);
            drop(reader);
            resubscribe(&link);
        };
        let thread = thread::Builder::new().name("store broker".to_owned());
        thread.spawn(read).map_err(|e| self.error(&e))?;
        Ok(pipe)
    }
}

impl Drop for BrokerLink {
    fn drop(&mut self) {
        // Ends the reader.
        if let Some(pipe) = self.pipe().take() {
            let _ = pipe.stream.shutdown(Shutdown::Both);
        }
    }
}

/// Connects again while there are subscriptions, after the broker was lost.
fn resubscribe(link: &Weak<BrokerLink>) {
    let mut pause = PAUSE_AFTER_LOSS;
    while let Some(link) = link.upgrade() {
        if link.subscribers().is_empty() || link.connected().is_ok() {
            return;
        }
        drop(link);
        clock::sleep(pause);
        pause = (pause * 2).min(Duration::from_secs(1));
    }
}
