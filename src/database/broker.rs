//! The broker: one process of a host that owns the connection to the database, and serves the other
//! processes on a Unix socket. What a client holds is released when its connection closes.

use std::io;
use std::os::unix::net::UnixStream as StdStream;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::runtime::Builder;
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::engine::CALL_TIMEOUT;
use super::error::DatabaseError;
use super::hub::Hub;
use super::protocol::{BrokerMessage, ClientMessage, check_length, encode};
use super::url::StoreUrl;
use sys::socket::{self, Listener};
use sys::{clock, fs};

/// Operations of one client at a time; more wait in its socket.
const MAX_OPERATIONS: usize = 128;
/// Messages to one client that it has not read. A client that reads too slowly is disconnected, and
/// reads everything again when it is back.
const MAX_UNREAD: usize = 4096;
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves clients at `socket` until none was connected for `idle`. Returns at once if another
/// broker serves them.
///
/// # Errors
/// [`DatabaseError::Broker`] if the socket cannot be created.
pub fn serve(socket: &Path, url: &StoreUrl, idle: Duration) -> Result<(), DatabaseError> {
    let fail = |reason: &dyn std::fmt::Display| DatabaseError::broker(socket, reason);
    match socket::connect(socket) {
        Ok(_) => return Ok(()),
        Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(socket).map_err(|e| fail(&e))?;
        }
        Err(_) => (),
    }
    let listener = Arc::new(Listener::bind(socket).map_err(|e| fail(&e))?);
    let runtime = Builder::new_current_thread().enable_all().build().map_err(|e| fail(&e))?;
    let (sender, arrivals) = mpsc::channel(64);
    let accepting = Arc::clone(&listener);
    let accept = move || accept(&accepting, &sender);
    thread::Builder::new().name("accept".to_owned()).spawn(accept).map_err(|e| fail(&e))?;
    runtime.block_on(serve_all(url, idle, arrivals));
    listener.close();
    Ok(())
}

fn accept(listener: &Listener, arrivals: &mpsc::Sender<StdStream>) {
    loop {
        match listener.accept() {
            Ok(stream) => {
                if arrivals.blocking_send(stream).is_err() {
                    return;
                }
            }
            Err(e) if e.kind() == io::ErrorKind::InvalidInput => return,
            // Out of descriptors: clients that disconnect give some back.
            Err(_) => clock::sleep(ACCEPT_PAUSE),
        }
    }
}

async fn serve_all(url: &StoreUrl, idle: Duration, mut arrivals: mpsc::Receiver<StdStream>) {
    let hub = Hub::start(url.clone(), CALL_TIMEOUT, true);
    let mut clients = JoinSet::new();
    loop {
        tokio::select! {
            stream = arrivals.recv() => match stream {
                Some(stream) => {
                    clients.spawn(serve_client(Arc::clone(&hub), stream));
                }
                None => return,
            },
            Some(_) = clients.join_next() => (),
            () = sleep(idle), if clients.is_empty() => return,
        }
    }
}

pub(super) async fn serve_client(hub: Arc<Hub>, stream: StdStream) {
    let Ok(()) = stream.set_nonblocking(true) else { return };
    let Ok(stream) = UnixStream::from_std(stream) else { return };
    let (reader, writer) = stream.into_split();
    let (outgoing, messages) = mpsc::channel(MAX_UNREAD);
    let gone = Arc::new(Notify::new());
    let client = hub.open({
        let (outgoing, gone) = (outgoing.clone(), Arc::clone(&gone));
        Box::new(move |push| {
            if outgoing.try_send(BrokerMessage::Push(push)).is_err() {
                gone.notify_one();
            }
        })
    });
    tokio::select! {
        () = read_requests(&hub, client, reader, outgoing) => (),
        () = write_messages(writer, messages) => (),
        () = gone.notified() => (),
    }
    hub.close(client).await;
}

/// Carries out the requests of a client, several at a time, until it disconnects or sends anything
/// else.
async fn read_requests(
    hub: &Arc<Hub>,
    client: u64,
    reader: OwnedReadHalf,
    outgoing: mpsc::Sender<BrokerMessage>,
) {
    let mut reader = BufReader::new(reader);
    let room = Arc::new(Semaphore::new(MAX_OPERATIONS));
    while let Ok((id, request)) = read_request(&mut reader).await {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
        let (hub, outgoing) = (Arc::clone(hub), outgoing.clone());
        // Goes on if the client disconnects: an operation that is half done would leave a lock
        // behind.
        tokio::spawn(async move {
            let reply = hub.handle(client, request).await.map(RawValue::from_string);
            let result = reply.and_then(|r| r.map_err(|e| DatabaseError::bad_reply("call", &e)));
            let _ = outgoing.send(BrokerMessage::Answer { id, result }).await;
            drop(permit);
        });
    }
}

async fn read_request(reader: &mut (impl AsyncRead + Unpin)) -> io::Result<ClientMessage> {
    let length = check_length(reader.read_u32().await?)?;
    // As in `read_message`.
    let mut bytes = Vec::new();
    reader.take(length).read_to_end(&mut bytes).await?;
    Ok(serde_json::from_slice(&bytes)?)
}

async fn write_messages(mut writer: OwnedWriteHalf, mut messages: mpsc::Receiver<BrokerMessage>) {
    while let Some(message) = messages.recv().await {
        let Ok(bytes) = encode(&message) else { return };
        if writer.write_all(&bytes).await.is_err() {
            return;
        }
    }
}
