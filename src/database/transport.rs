//! Carries calls to the database, through the broker of this host or directly, and guards what this
//! process holds.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use serde_json::value::RawValue;

use super::client::BrokerLink;
#[cfg(test)]
use super::direct::DirectLink;
use super::error::DatabaseError;
use super::protocol::{HubAnswer, Request};
use super::rows::{Actor, Interest, StoreChange};
use super::watchers::Watchers;

/// The way to the database. Clones share it.
#[derive(Clone)]
pub(super) struct Transport {
    route: Arc<TransportRoute>,
}

/// Who owns the connection.
enum TransportRoute {
    /// This process.
    #[cfg(test)]
    Direct(DirectLink),
    /// The broker of this host.
    Broker(Arc<BrokerLink>),
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self.route {
            #[cfg(test)]
            TransportRoute::Direct(_) => "Transport(direct)",
            TransportRoute::Broker(_) => "Transport(broker)",
        })
    }
}

impl Transport {
    #[cfg(test)]
    pub(super) fn direct(link: DirectLink) -> Transport {
        Transport { route: Arc::new(TransportRoute::Direct(link)) }
    }

    pub(super) fn broker(link: Arc<BrokerLink>) -> Transport {
        Transport { route: Arc::new(TransportRoute::Broker(link)) }
    }

    fn watchers(&self) -> &Watchers {
        match &*self.route {
            #[cfg(test)]
            TransportRoute::Direct(link) => &link.watchers,
            TransportRoute::Broker(link) => &link.watchers,
        }
    }

    fn request(&self, request: impl Fn() -> Request) -> Result<HubAnswer, DatabaseError> {
        match &*self.route {
            #[cfg(test)]
            TransportRoute::Direct(link) => link.request(request()),
            TransportRoute::Broker(link) => link.request(request),
        }
    }

    /// Calls a function of the schema. Arguments and reply are JSON text.
    pub(super) fn call(&self, function: &str, arguments: &str) -> Result<String, DatabaseError> {
        let bad = |e: &dyn fmt::Display| DatabaseError::bad_reply(function, e);
        let arguments = RawValue::from_string(arguments.to_owned()).map_err(|e| bad(&e))?;
        let request =
            || Request::Call { function: function.to_owned(), arguments: arguments.clone() };
        match self.request(request)? {
            HubAnswer::Reply(reply) => Ok(Box::<str>::from(reply).into()),
            _ => Err(bad(&"it belongs to another request")),
        }
    }

    /// Calls a function without waiting for its reply. The call is lost if the broker ends
    /// meanwhile.
    pub(super) fn post(&self, function: &str, arguments: &str) {
        let Ok(arguments) = RawValue::from_string(arguments.to_owned()) else { return };
        let request = Request::Call { function: function.to_owned(), arguments };
        match &*self.route {
            #[cfg(test)]
            TransportRoute::Direct(link) => drop(link.request(request)),
            TransportRoute::Broker(link) => link.post(request),
        }
    }

    pub(super) fn lock(
        &self,
        actor: &Actor,
        team: &str,
        name: &str,
        deadline: Duration,
    ) -> Result<Option<HeldLock>, DatabaseError> {
        let held = self.holder();
        let deadline_ms = u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX);
        let answer = self.request(|| Request::Lock {
            handle: held.handle,
            actor: actor.clone(),
            team: team.to_owned(),
            name: name.to_owned(),
            deadline_ms,
        });
        match answer {
            Ok(HubAnswer::Locked(true)) => Ok(Some(HeldLock { held })),
            other => {
                held.discard();
                other.map(|_| None)
            }
        }
    }

    pub(super) fn take_lease(
        &self,
        actor: &Actor,
        team: &str,
    ) -> Result<Option<HeldLease>, DatabaseError> {
        let held = self.holder();
        let answer = self.request(|| Request::TakeLease {
            handle: held.handle,
            actor: actor.clone(),
            team: team.to_owned(),
        });
        match answer {
            Ok(HubAnswer::Lease(Some(number))) => Ok(Some(HeldLease { held, number })),
            other => {
                held.discard();
                other.map(|_| None)
            }
        }
    }

    fn holder(&self) -> Holding {
        let lost = Arc::new(AtomicBool::new(false));
        let handle = self.watchers().add_holder(Arc::clone(&lost));
        Holding { transport: self.clone(), handle, lost, is_held: true }
    }

    pub(super) fn subscribe(
        &self,
        team: &str,
        interest: &Interest,
        on_change: Box<dyn Fn(StoreChange) + Send>,
    ) -> Result<Subscription, DatabaseError> {
        let (sender, changes) = channel();
        let handle = self.watchers().add_subscriber(team, interest, sender);
        let subscription = Subscription { transport: self.clone(), handle };
        let deliver = move || changes.iter().for_each(on_change);
        thread::Builder::new().name("store changes".to_owned()).spawn(deliver).map_err(|e| {
            DatabaseError::bad_reply("subscribe", &format_args!("cannot start a thread: {e}"))
        })?;
        self.request(|| Request::Subscribe {
            handle,
            team: team.to_owned(),
            interest: interest.clone(),
        })?;
        Ok(subscription)
    }
}

/// What a lock and a lease have in common. Released on drop.
#[derive(Debug)]
struct Holding {
    transport: Transport,
    handle: u64,
    lost: Arc<AtomicBool>,
    is_held: bool,
}

impl Holding {
    /// Ends without a release: it was not acquired.
    fn discard(mut self) {
        self.is_held = false;
    }

    fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        self.transport.watchers().remove(self.handle);
        if self.is_held && !self.is_lost() {
            // Waits for the reply, so that it is free when the drop returns.
            let _ = self.transport.request(|| Request::Release(self.handle));
        }
    }
}

/// A lock, released on drop.
#[derive(Debug)]
pub(crate) struct HeldLock {
    held: Holding,
}

impl HeldLock {
    /// Returns true if the lock was lost, because the database or the broker was out of reach for
    /// too long. Another process may hold it.
    pub(crate) fn is_lost(&self) -> bool {
        self.held.is_lost()
    }
}

/// The lease of a team's lead, released on drop.
#[derive(Debug)]
pub(crate) struct HeldLease {
    held: Holding,
    number: i64,
}

impl HeldLease {
    /// Returns the number for [`Actor::fence`], which grows with each acquisition.
    pub(crate) fn number(&self) -> i64 {
        self.number
    }

    /// Returns true if the lease was lost. The database refuses calls with its number once another
    /// process has acquired it.
    pub(crate) fn is_lost(&self) -> bool {
        self.held.is_lost()
    }
}

/// A subscription to the changes of a team, ended on drop.
#[derive(Debug)]
pub(crate) struct Subscription {
    transport: Transport,
    handle: u64,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.transport.watchers().remove(self.handle);
        let _ = self.transport.request(|| Request::Release(self.handle));
    }
}
