//! The guards of one process, by handle: where the messages of the hub without a request arrive.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::protocol::Push;
use super::rows::{Interest, StoreChange};
use crate::sys::clock;

/// A guard that can be notified.
enum Watcher {
    /// A lock or a lease that was acquired through connection `connection`.
    Holder {
        lost: Arc<AtomicBool>,
        connection: u64,
    },
    Subscriber {
        team: String,
        interest: Interest,
        changes: Sender<StoreChange>,
    },
}

/// All guards of a process.
#[derive(Default)]
pub(super) struct Watchers {
    table: Mutex<WatcherTable>,
}

#[derive(Default)]
struct WatcherTable {
    last: u64,
    watchers: HashMap<u64, Watcher>,
}

impl Watchers {
    fn table(&self) -> MutexGuard<'_, WatcherTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, watcher: Watcher) -> u64 {
        let mut table = self.table();
        table.last += 1;
        let handle = table.last;
        table.watchers.insert(handle, watcher);
        handle
    }

    /// Adds a lock or a lease, which sets `lost` once it is no longer held.
    pub(super) fn add_holder(&self, lost: Arc<AtomicBool>) -> u64 {
        self.add(Watcher::Holder { lost, connection: 0 })
    }

    pub(super) fn add_subscriber(
        &self,
        team: &str,
        interest: &Interest,
        changes: Sender<StoreChange>,
    ) -> u64 {
        let (team, interest) = (team.to_owned(), interest.clone());
        self.add(Watcher::Subscriber { team, interest, changes })
    }

    pub(super) fn remove(&self, handle: u64) {
        self.table().watchers.remove(&handle);
    }

    /// Records the connection through which a handle is requested.
    pub(super) fn request_through(&self, handle: u64, through: u64) {
        if let Some(Watcher::Holder { lost, connection }) = self.table().watchers.get_mut(&handle) {
            lost.store(false, Ordering::Relaxed);
            *connection = through;
        }
    }

    pub(super) fn deliver(&self, push: Push) {
        let mut table = self.table();
        match push {
            Push::Changed { handle, change } => {
                if let Some(Watcher::Subscriber { changes, .. }) = table.watchers.get(&handle) {
                    let _ = changes.send(change);
                }
            }
            // All hosts of a team use the clock of its store, so that their times can be compared.
            Push::Clock { offset_ms } => clock::set_offset_ms(offset_ms),
            Push::Lost(handle) => {
                if let Some(Watcher::Holder { lost, .. }) = table.watchers.get_mut(&handle) {
                    lost.store(true, Ordering::Relaxed);
                }
            }
        }
    }

    /// Marks what was acquired through a connection as lost.
    pub(super) fn lose_all(&self, through: u64) {
        for watcher in self.table().watchers.values() {
            if let Watcher::Holder { lost, connection } = watcher
                && *connection == through
            {
                lost.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Returns handle, team and interest of all subscriptions.
    pub(super) fn subscriptions(&self) -> Vec<(u64, String, Interest)> {
        let table = self.table();
        let subscriptions = table.watchers.iter().filter_map(|(handle, watcher)| match watcher {
            Watcher::Subscriber { team, interest, .. } => {
                Some((*handle, team.clone(), interest.clone()))
            }
            Watcher::Holder { .. } => None,
        });
        subscriptions.collect()
    }
}
