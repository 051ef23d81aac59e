//! The locks, leases and subscriptions that this process holds in the shared store.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use super::calls::{Database, parse_reply};
use super::client::{BrokerLink, Pipe, Subscriber};
use super::error::DatabaseError;
use super::protocol::Request;
use super::rows::{Interest, StoreChange};

/// A lock, released on drop.
#[derive(Debug)]
pub struct HeldLock {
    /// The connection through which it was acquired.
    pipe: Arc<Pipe>,
    handle: u64,
    /// Ends the connection on drop.
    _link: Arc<BrokerLink>,
}

impl HeldLock {
    /// Returns true if the lock was lost, because the database or the broker was out of reach for
    /// too long. Another process may hold it.
    pub fn is_lost(&self) -> bool {
        self.pipe.has_lost(self.handle)
    }
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        if !self.is_lost() {
            // Waits for the reply, so that it is free when the drop returns.
            let _ = self.pipe.request(&Request::Release(self.handle));
        }
    }
}

/// The lease of a team's lead, released on drop.
#[derive(Debug)]
pub struct HeldLease {
    lock: HeldLock,
    number: i64,
}

impl HeldLease {
    /// Returns the number for [`Actor::fence`](super::Actor::fence), which grows with each
    /// acquisition.
    pub fn number(&self) -> i64 {
        self.number
    }

    /// Returns true if the lease was lost. The database refuses calls with its number once another
    /// process has acquired it.
    pub fn is_lost(&self) -> bool {
        self.lock.is_lost()
    }
}

/// A subscription to the changes of a team, ended on drop.
#[derive(Debug)]
pub struct Subscription {
    link: Arc<BrokerLink>,
    handle: u64,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.link.unsubscribe(self.handle);
    }
}

impl Database {
    /// Acquires the lock `name` of a team, which excludes other holders on every host until the
    /// guard is dropped or its process ends. `None` if it was not free within `deadline`.
    pub fn lock(
        &self,
        team: &str,
        name: &str,
        deadline: Duration,
    ) -> Result<Option<HeldLock>, DatabaseError> {
        let handle = self.link.next_handle();
        let (reply, pipe) = self.link.request(&Request::Lock {
            handle,
            actor: self.actor.clone(),
            team: team.to_owned(),
            name: name.to_owned(),
            deadline_ms: u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX),
        })?;
        let is_held: bool = parse_reply("lock", &reply)?;
        Ok(is_held.then(|| HeldLock { pipe, handle, _link: Arc::clone(&self.link) }))
    }

    /// Acquires the lease of a team's lead; `None` if another process holds it.
    pub fn take_lease(&self, team: &str) -> Result<Option<HeldLease>, DatabaseError> {
        let (handle, actor, team) = (self.link.next_handle(), self.actor.clone(), team.to_owned());
        let (reply, pipe) = self.link.request(&Request::TakeLease { handle, actor, team })?;
        let number: Option<i64> = parse_reply("take_lease", &reply)?;
        Ok(number.map(|number| {
            let lock = HeldLock { pipe, handle, _link: Arc::clone(&self.link) };
            HeldLease { lock, number }
        }))
    }

    /// Calls `on_change` on a separate thread for every later change of a team that `interest`
    /// covers, until the subscription is dropped.
    pub fn subscribe(
        &self,
        team: &str,
        interest: &Interest,
        on_change: impl Fn(StoreChange) + Send + 'static,
    ) -> Result<Subscription, DatabaseError> {
        let (sender, changes) = channel();
        let deliver = move || changes.iter().for_each(on_change);
        thread::Builder::new().name("store changes".to_owned()).spawn(deliver).map_err(|e| {
            DatabaseError::bad_reply("subscribe", &format_args!("cannot start a thread: {e}"))
        })?;
        let handle = self.link.next_handle();
        let (team, interest) = (team.to_owned(), interest.clone());
        let request = Request::Subscribe { handle, team, interest };
        let subscriber = Subscriber { request: request.clone(), changes: sender };
        self.link.subscribers().insert(handle, subscriber);
        let subscription = Subscription { link: Arc::clone(&self.link), handle };
        self.link.request(&request)?;
        Ok(subscription)
    }
}
