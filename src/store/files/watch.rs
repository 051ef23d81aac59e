//! Watching a team for changes.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::error::StoreError;
use crate::files::layout::TeamLayout;
use crate::team::TeamStore;
use database::{Interest, Subscription};
use model::id::MemberName;
use model::topic::Topic;
use sys::fs;
use sys::watch::{PollingReason, Watch};

/// A watch on a team, which calls back until dropped.
#[derive(Debug)]
pub enum TeamWatch {
    Files(Watch),
    /// Held until dropped.
    Shared(Subscription),
}

impl TeamWatch {
    /// See [`Watch::polling`].
    pub fn polling(&self) -> Option<PollingReason> {
        match self {
            TeamWatch::Files(watch) => watch.polling(),
            TeamWatch::Shared(_) => None,
        }
    }
}

/// Reports what has changed in a team since the last call.
#[derive(Debug)]
pub struct TeamChanges {
    // Dropping it ends the subscription.
    watch: TeamWatch,
    changed: Receiver<Topic>,
}

impl TeamChanges {
    /// See [`Watch::polling`].
    pub fn polling(&self) -> Option<PollingReason> {
        self.watch.polling()
    }

    /// Returns what has changed since the last call, or changes first within `limit`; nothing if
    /// nothing does.
    pub fn wait(&self, limit: Duration) -> BTreeSet<Topic> {
        self.changed.recv_timeout(limit).into_iter().chain(self.changed.try_iter()).collect()
    }
}

/// Returns true if a change of the team's files is one that `interest` covers. Changes in the
/// shared store are selected before they are reported.
fn concerns(interest: &Interest, topic: &Topic) -> bool {
    match (interest, topic) {
        (Interest::All, _) | (_, Topic::Everything) => true,
        (Interest::Member(own), Topic::Mail(stem) | Topic::Member(stem)) => stem == own,
        (Interest::Member(_), topic) => !matches!(topic, Topic::Journal | Topic::Settings),
        (Interest::Records, topic) => matches!(topic, Topic::Member(_) | Topic::Members),
    }
}

impl TeamStore {
    /// Calls `on_change` on a separate thread for every change of the team, until the watch is
    /// dropped.
    pub fn watch(
        &self,
        on_change: impl Fn(Topic) + Send + 'static,
    ) -> Result<TeamWatch, StoreError> {
        self.watch_for(Interest::All, on_change)
    }

    /// Like [`TeamStore::watch`], but only for changes that may concern this teammate. Many
    /// teammates watch one team, and a change reported to all of them wakes as many processes.
    pub fn watch_as(
        &self,
        name: &MemberName,
        on_change: impl Fn(Topic) + Send + 'static,
    ) -> Result<TeamWatch, StoreError> {
        self.watch_for(Interest::Member(name.file_stem()), on_change)
    }

    /// Like [`TeamStore::watch`], but only for the members' records.
    pub fn watch_records(
        &self,
        on_change: impl Fn(Topic) + Send + 'static,
    ) -> Result<TeamWatch, StoreError> {
        self.watch_for(Interest::Records, on_change)
    }

    fn watch_for(
        &self,
        interest: Interest,
        on_change: impl Fn(Topic) + Send + 'static,
    ) -> Result<TeamWatch, StoreError> {
        if let Some(shared) = &self.shared {
            return shared.watch(&interest, on_change).map(TeamWatch::Shared);
        }
        self.create_missing_dirs()?;
        let dirs = match interest {
            Interest::All => self.layout.watched(),
            Interest::Member(_) => self.layout.watched_by_members(),
            Interest::Records => vec![self.layout.members()],
        };
        let topics = self.layout.topics();
        let report = move |path: &Path| {
            let topic = topics.topic(path).filter(|topic| concerns(&interest, topic));
            topic.map(&on_change).is_some()
        };
        Ok(TeamWatch::Files(Watch::new(&dirs, report)?))
    }

    /// Returns a subscription to changes of the team after this call.
    pub fn changes(&self) -> Result<TeamChanges, StoreError> {
        let (sender, changed) = channel();
        // Fails only after the receiver has been dropped.
        let watch = self.watch(move |topic| drop(sender.send(topic)))?;
        Ok(TeamChanges { watch, changed })
    }

    /// Creates the directories that phalanx needs in a team that another program created, which may
    /// have no messages and no tasks yet. Never creates the team's own, which would bring a deleted
    /// team back: without it, the first of the others cannot be created.
    fn create_missing_dirs(&self) -> Result<(), StoreError> {
        for dir in self.layout.all_dirs().into_iter().skip(1).filter(|dir| !fs::exists(dir)) {
            if dir == self.layout.tasks() {
                fs::private_dir(&TeamLayout::all_tasks(self.root()))?;
            }
            fs::create_dir_exclusive(&dir)?;
        }
        Ok(())
    }
}
