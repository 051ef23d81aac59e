//! Messages in results of tools. They are marked as read after the result was written to the
//! client, so that none is lost if the client or the server dies before.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::RoleServer;
use rmcp::model::{JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio_util::sync::CancellationToken;

use model::id::MemberName;
use model::mail::envelope::Envelope;
use ops::decisions::mark_read::{Afterwards, mark_or_remove};
use ops::{Context, TeamStore};

/// Messages of a mailbox that a reply contains.
#[derive(Debug, Clone)]
pub(super) struct ShownMessages {
    pub(super) ctx: Context,
    pub(super) team: TeamStore,
    pub(super) owner: MemberName,
    pub(super) envelopes: Vec<Envelope>,
}

/// The messages in results that were not written yet, by request.
#[derive(Default)]
pub(super) struct Deliveries {
    pending: Mutex<HashMap<RequestId, ShownMessages>>,
}

impl Deliveries {
    fn pending(&self) -> MutexGuard<'_, HashMap<RequestId, ShownMessages>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers the messages in the result of a request. A cancelled request is left out, because
    /// its result is not sent.
    pub(super) fn register(
        &self,
        request: &RequestId,
        cancel: &CancellationToken,
        messages: ShownMessages,
    ) {
        let mut pending = self.pending();
        if !cancel.is_cancelled() {
            pending.insert(request.clone(), messages);
        }
    }

    /// Forgets a cancelled request; its messages stay unread.
    pub(super) fn cancel(&self, request: &RequestId) {
        self.pending().remove(request);
    }

    /// The ids of all registered messages.
    pub(super) fn ids(&self) -> BTreeSet<String> {
        let pending = self.pending();
        pending.values().flat_map(|shown| &shown.envelopes).map(|m| m.msg_id.clone()).collect()
    }

    /// Marks the messages of a request as read.
    fn confirm(&self, request: &RequestId) {
        let Some(shown) = self.pending().get(request).cloned() else { return };
        // Unmarked messages are delivered again.
        let ShownMessages { ctx, team, owner, envelopes } = shown;
        let _ = mark_or_remove(&ctx, &team, &owner, envelopes, Afterwards::Mark);
        self.pending().remove(request);
    }
}

/// A transport that confirms deliveries.
pub(super) struct ConfirmingTransport<T> {
    pub(super) inner: T,
    pub(super) deliveries: Arc<Deliveries>,
    /// Cancelled when the client has closed its end. The service waits some seconds for the calls
    /// that run then.
    pub(super) ending: CancellationToken,
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for ConfirmingTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        let request = match &item {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            _ => None,
        };
        let deliveries = Arc::clone(&self.deliveries);
        let send = self.inner.send(item);
        async move {
            send.await?;
            if let Some(request) =
                request.filter(|request| deliveries.pending().contains_key(request))
            {
                let confirm = move || deliveries.confirm(&request);
                let _ = tokio::task::spawn_blocking(confirm).await;
            }
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let received = self.inner.receive().await;
        if received.is_none() {
            self.ending.cancel();
        }
        received
    }

    fn close(&mut self) -> impl Future<Output = Result<(), T::Error>> + Send {
        self.inner.close()
    }
}
