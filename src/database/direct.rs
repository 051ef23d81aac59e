//! A connection for tests, without a process for the broker.

use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use tokio::runtime::Builder;

use super::broker::serve_client;
use super::calls::Database;
use super::client::BrokerLink;
use super::engine;
use super::hub::Hub;
use super::url::StoreUrl;

impl Database {
    /// Connects through a broker of its own that keeps no replies, on a thread of this process.
    pub(super) fn direct(url: &StoreUrl) -> Database {
        Database::direct_for(url, engine::CALL_TIMEOUT)
    }

    /// As [`Database::direct`]; a call fails after `patience`.
    pub(super) fn direct_for(url: &StoreUrl, patience: Duration) -> Database {
        let (ours, theirs) = UnixStream::pair().expect("a process can have sockets");
        let url = url.clone();
        thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                serve_client(Hub::start(url, patience, false), theirs).await;
            });
        });
        Database::new(BrokerLink::through(ours))
    }
}
