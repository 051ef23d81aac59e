//! Watching a team for changes.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use super::error::StoreError;
use super::team::TeamStore;
use crate::database::Subscription;
use crate::model::id::MemberName;
use crate::model::topic::Topic;
use crate::sys::fs;
use crate::sys::watch::Watch;

/// A watch on a team, which calls back until dropped.
#[derive(Debug)]
pub(crate) enum TeamWatch {
    Files(Watch),
    Shared(#[expect(dead_code, reason = "held until dropped")] Subscription),
}

impl TeamWatch {
    /// Returns true if directories are compared every two seconds, because the system does not
    /// report changes by other machines.
    pub(crate) fn is_polling(&self) -> bool {
        match self {
            TeamWatch::Files(watch) => watch.is_polling(),
            TeamWatch::Shared(_) => false,
        }
    }
}

/// Reports whether a team has changed since the last call.
#[derive(Debug)]
pub(crate) struct TeamChanges {
    // Dropping it ends the subscription.
    watch: TeamWatch,
    pending: Receiver<()>,
}

impl TeamChanges {
    /// See [`TeamWatch::is_polling`].
    pub(crate) fn is_polling(&self) -> bool {
        self.watch.is_polling()
    }

    /// Returns true if something has changed since the last call, or changes within `limit`.
    pub(crate) fn wait(&self, limit: Duration) -> bool {
        self.pending.recv_timeout(limit).is_ok()
    }
}

/// Adapts a callback to which every change is relevant.
fn all(on_change: impl Fn(Topic) + Send + 'static) -> impl Fn(Topic) -> bool + Send + 'static {
    move |topic| {
        on_change(topic);
        true
    }
}

impl TeamStore {
    /// Calls `on_change` on a separate thread for every change of the team's files, until the watch
    /// is dropped.
    pub(crate) fn watch(
        &self,
        on_change: impl Fn(Topic) + Send + 'static,
    ) -> Result<TeamWatch, StoreError> {
        self.watch_dirs(&self.layout.watched(), all(on_change))
    }

    /// Like [`TeamStore::watch`], but only for changes that may concern this teammate. Many
    /// teammates watch one team, and a change reported to all of them wakes as many processes.
    pub(crate) fn watch_as(
        &self,
        name: &MemberName,
        on_change: impl Fn(Topic) + Send + 'static,
    ) -> Result<TeamWatch, StoreError> {
        let own = name.file_stem();
        self.watch_dirs(&self.layout.watched_by_members(), move |topic| match &topic {
            Topic::Mail(stem) | Topic::Member(stem) if *stem != own => false,
            Topic::Journal | Topic::Settings => false,
            Topic::Roster
            | Topic::Mail(_)
            | Topic::Member(_)
            | Topic::Members
            | Topic::Requests
            | Topic::Tasks
            | Topic::Everything => {
                on_change(topic);
                true
            }
        })
    }

    /// Like [`TeamStore::watch`], but only for the members' records.
    pub(crate) fn watch_records(
        &self,
        on_change: impl Fn(Topic) + Send + 'static,
    ) -> Result<TeamWatch, StoreError> {
        self.watch_dirs(&[self.layout.members()], move |topic| {
            let is_record = matches!(topic, Topic::Member(_) | Topic::Members | Topic::Everything);
            if is_record {
                on_change(topic);
            }
            is_record
        })
    }

    /// `on_change` returns true if the change was relevant to the caller.
    fn watch_dirs(
        &self,
        dirs: &[PathBuf],
        on_change: impl Fn(Topic) -> bool + Send + 'static,
    ) -> Result<TeamWatch, StoreError> {
        if let Some(shared) = &self.shared {
            let report = move |topic| {
                on_change(topic);
            };
            return shared.watch(report).map(TeamWatch::Shared);
        }
        self.create_missing_dirs()?;
        let topics = self.layout.topics();
        let watch = Watch::new(dirs, move |path| topics.topic(path).is_some_and(&on_change))?;
        Ok(TeamWatch::Files(watch))
    }

    /// Returns a subscription to changes of the team after this call.
    pub(crate) fn changes(&self) -> Result<TeamChanges, StoreError> {
        // Capacity 1: a full channel already means that something changed, so a burst coalesces.
        let (sender, pending) = sync_channel(1);
        let watch = self.watch(move |_| {
            let _ = sender.try_send(());
        })?;
        Ok(TeamChanges { watch, pending })
    }

    /// Creates the directories that phalanx needs in a team that another program created. Never
    /// creates the team's own, which would bring a deleted team back.
    fn create_missing_dirs(&self) -> Result<(), StoreError> {
        for dir in self.layout.our_dirs().into_iter().filter(|dir| !fs::exists(dir)) {
            fs::create_dir_exclusive(&dir)?;
        }
        Ok(())
    }
}
