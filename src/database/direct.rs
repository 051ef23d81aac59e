//! A connection to the database inside this process, for commands that set the store up, and tests.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::error::DatabaseError;
use super::hub::Hub;
use super::protocol::{HubAnswer, Request};
use super::url::StoreUrl;
use super::watchers::Watchers;

/// Time for releasing locks at the end.
const FAREWELL: Duration = Duration::from_secs(2);

/// A hub with one client, on a thread of its own.
pub(super) struct DirectLink {
    hub: Arc<Hub>,
    client: u64,
    runtime: Handle,
    pub(super) watchers: Arc<Watchers>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl DirectLink {
    pub(super) fn start(url: &StoreUrl, patience: Duration) -> Result<DirectLink, DatabaseError> {
        let fail = |e: std::io::Error| DatabaseError::Unreachable {
            place: url.place(),
            seconds: 0,
            last: format!("cannot start a thread: {e}"),
        };
        let runtime = Builder::new_current_thread().enable_all().build().map_err(fail)?;
        let watchers = Arc::new(Watchers::default());
        let inbox = Arc::clone(&watchers);
        let (hub, client) = {
            let _inside = runtime.enter();
            let hub = Hub::start(url.clone(), patience, false);
            let client = hub.open(Box::new(move |push| inbox.deliver(push)));
            (hub, client)
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let handle = runtime.handle().clone();
        let run = move || {
            runtime.block_on(async {
                let _ = stopped.await;
            });
        };
        let thread = thread::Builder::new().name("database".to_owned()).spawn(run).map_err(fail)?;
        let (stop, thread) = (Some(stop), Some(thread));
        Ok(DirectLink { hub, client, runtime: handle, watchers, stop, thread })
    }

    /// Carries out an operation on the hub's thread, and blocks this one.
    pub(super) fn request(&self, request: Request) -> Result<HubAnswer, DatabaseError> {
        let (sender, answer) = sync_channel(1);
        let (hub, client) = (Arc::clone(&self.hub), self.client);
        self.runtime.spawn(async move {
            let _ = sender.send(hub.handle(client, request).await);
        });
        answer.recv().map_err(|_| DatabaseError::bad_reply("request", &"the thread has ended"))?
    }
}

impl Drop for DirectLink {
    fn drop(&mut self) {
        let (hub, client) = (Arc::clone(&self.hub), self.client);
        let (sender, closed) = sync_channel(1);
        self.runtime.spawn(async move {
            let _ = timeout(FAREWELL, hub.close(client)).await;
            let _ = sender.send(());
        });
        let _ = closed.recv();
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
