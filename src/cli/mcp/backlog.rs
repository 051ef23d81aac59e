//! Back-pressure: a client that does not read gets no further requests served, so that the server
//! does not collect results without a bound.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::RoleServer;
use rmcp::model::{ClientNotification, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::Notify;

use super::call::MAX_CALLS;

/// Number of requests without a written response, and of other messages on their way to the client,
/// from which on nothing more is read.
pub(super) const MAX_BACKLOG: usize = 2 * MAX_CALLS as usize;

/// A transport that does not receive while its backlog is full.
pub(super) struct BoundedTransport<T> {
    inner: T,
    backlog: Arc<Backlog>,
}

#[derive(Default)]
struct Backlog {
    pending: Mutex<PendingMessages>,
    shrunk: Notify,
}

#[derive(Default)]
struct PendingMessages {
    /// The requests whose responses were not written yet.
    requests: HashSet<RequestId>,
    /// The number of other messages that were not written yet.
    others: usize,
}

impl<T> BoundedTransport<T> {
    pub(super) fn new(inner: T) -> BoundedTransport<T> {
        BoundedTransport { inner, backlog: Arc::default() }
    }
}

impl Backlog {
    fn pending(&self) -> MutexGuard<'_, PendingMessages> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_full(&self) -> bool {
        let pending = self.pending();
        pending.requests.len() + pending.others >= MAX_BACKLOG
    }

    async fn until_not_full(&self) {
        while self.is_full() {
            // `notify_one` stores a permit, so a change before this wait is not missed.
            self.shrunk.notified().await;
        }
    }

    /// Counts a received message.
    fn receive(&self, message: &RxJsonRpcMessage<RoleServer>) {
        match message {
            JsonRpcMessage::Request(request) => {
                self.pending().requests.insert(request.id.clone());
            }
            // A cancelled request gets no response.
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(request) = &cancelled.params.request_id
                {
                    self.pending().requests.remove(request);
                }
            }
            _ => {}
        }
    }
}

/// A message on its way to the client, until dropped.
struct Unwritten {
    backlog: Arc<Backlog>,
    /// The request that it answers.
    request: Option<RequestId>,
}

impl Unwritten {
    fn count(backlog: &Arc<Backlog>, message: &TxJsonRpcMessage<RoleServer>) -> Unwritten {
        let request = match message {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            _ => None,
        };
        if request.is_none() {
            backlog.pending().others += 1;
        }
        Unwritten { backlog: Arc::clone(backlog), request }
    }
}

impl Drop for Unwritten {
    fn drop(&mut self) {
        let mut pending = self.backlog.pending();
        match &self.request {
            Some(request) => drop(pending.requests.remove(request)),
            None => pending.others -= 1,
        }
        drop(pending);
        self.backlog.shrunk.notify_one();
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for BoundedTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        let unwritten = Unwritten::count(&self.backlog, &item);
        let send = self.inner.send(item);
        async move {
            let _unwritten = unwritten;
            send.await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        self.backlog.until_not_full().await;
        let received = self.inner.receive().await;
        received.iter().for_each(|message| self.backlog.receive(message));
        received
    }

    fn close(&mut self) -> impl Future<Output = Result<(), T::Error>> + Send {
        self.inner.close()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use serde_json::{Value, from_value, json};

    use super::*;

    /// A client that sends without end and never reads.
    struct FloodingClient {
        sent: u64,
    }

    impl Transport<RoleServer> for FloodingClient {
        type Error = Infallible;

        fn send(
            &mut self,
            _: TxJsonRpcMessage<RoleServer>,
        ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
            std::future::pending()
        }

        async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
            self.sent += 1;
            from_value(json!({"jsonrpc": "2.0", "id": self.sent, "method": "tools/list"})).ok()
        }

        async fn close(&mut self) -> Result<(), Infallible> {
            Ok(())
        }
    }

    fn poll<F: Future>(future: F) -> Poll<F::Output> {
        pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    fn message<M: serde::de::DeserializeOwned>(value: Value) -> M {
        from_value(value).expect("a message")
    }

    fn receive_until_full(transport: &mut BoundedTransport<FloodingClient>) -> usize {
        let mut count = 0;
        while count <= MAX_BACKLOG && poll(transport.receive()).is_ready() {
            count += 1;
        }
        count
    }

    #[test]
    fn pf_09_requests_are_not_read_while_the_client_reads_no_responses() {
        let mut transport = BoundedTransport::new(FloodingClient { sent: 0 });
        assert_eq!(receive_until_full(&mut transport), MAX_BACKLOG);
        let response: TxJsonRpcMessage<RoleServer> =
            message(json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
        let mut writing = Box::pin(transport.send(response));
        assert!(poll(writing.as_mut()).is_pending() && poll(transport.receive()).is_pending());
        drop(writing);
        assert_eq!(receive_until_full(&mut transport), 1, "one response is no longer on its way");
        let cancelled = message(json!({
            "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2},
        }));
        transport.backlog.receive(&cancelled);
        assert_eq!(receive_until_full(&mut transport), 1, "a cancelled request gets no response");
    }

    #[test]
    fn pf_09_notifications_that_the_client_does_not_read_count_too() {
        let mut transport = BoundedTransport::new(FloodingClient { sent: 0 });
        let notification = || {
            message::<TxJsonRpcMessage<RoleServer>>(json!({
                "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "a:b"},
            }))
        };
        let mut sends = Vec::new();
        for _ in 0..MAX_BACKLOG {
            sends.push(transport.send(notification()));
        }
        assert_eq!(receive_until_full(&mut transport), 0);
        drop(sends);
        assert_eq!(receive_until_full(&mut transport), MAX_BACKLOG);
    }
}
