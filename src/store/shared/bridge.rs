//! Copies a team of the shared store to the files of this host and back, for programs that use the
//! files, such as Claude Code. One process of the host does it at a time, and keeps what it has
//! copied on disk, so that the next one goes on where it ended.

mod copied;
mod mail;
mod roster;
mod tasks;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use crate::error::StoreError;
use crate::files::dirs;
use crate::files::watch::TeamWatch;
use crate::shared::SharedTeam;
use crate::team::TeamStore;
use copied::CopiedTask;
use model::id::{MemberName, TaskId};
use model::team::event::{EventKind, Note};
use model::topic::Topic;
use sys::fs;
use sys::lock::Gate;

/// The right to copy a team on this host, held until dropped.
pub struct FileBridge {
    team: TeamStore,
    shared: SharedTeam,
    /// The same team, as its files on this host.
    files: TeamStore,
    /// The members on this host whose programs read the files of their mailboxes.
    readers: BTreeSet<MemberName>,
    /// The tasks as they were when both sides were equal.
    copied: BTreeMap<TaskId, CopiedTask>,
    /// The problems that were journaled.
    reported: BTreeSet<String>,
    _gate: Gate,
}

impl TeamStore {
    /// Returns the bridge of this host; `None` if another process holds it, or the team is one of
    /// files.
    pub fn take_bridge(&self) -> Result<Option<FileBridge>, StoreError> {
        let (Some(shared), Some(files)) = (&self.shared, self.local_files()) else {
            return Ok(None);
        };
        let gate = files.layout.gate("bridge");
        dirs::make_dirs_of(&gate)?;
        let Some(gate) = Gate::try_open(&gate)? else { return Ok(None) };
        let mut bridge = FileBridge {
            team: self.clone(),
            shared: shared.clone(),
            files,
            readers: BTreeSet::new(),
            copied: BTreeMap::new(),
            reported: BTreeSet::new(),
            _gate: gate,
        };
        bridge.begin()?;
        Ok(Some(bridge))
    }

    /// Calls `on_change` on a separate thread for every change of the files of a bridged team.
    pub fn watch_files(
        &self,
        on_change: impl Fn(Topic) + Send + 'static,
    ) -> Result<Option<TeamWatch>, StoreError> {
        let Some(files) = self.local_files() else { return Ok(None) };
        for dir in files.layout.all_dirs() {
            fs::private_dir(&dir)?;
        }
        files.watch(on_change).map(Some)
    }

    /// Returns true if the files of a bridged team contain this member and its mailbox.
    pub fn is_in_files(&self, name: &MemberName) -> bool {
        let Some(files) = self.local_files() else { return true };
        let is_member = files.team().is_ok_and(|team| team.member(name).is_some());
        is_member && fs::exists(&files.layout.inbox(name))
    }

    /// Returns the files on this host of a team in the shared store.
    fn local_files(&self) -> Option<TeamStore> {
        self.shared.as_ref().map(|_| TeamStore { shared: None, ..self.clone() })
    }
}

impl FileBridge {
    /// Prepares the files, and reads what an earlier bridge has copied.
    fn begin(&mut self) -> Result<(), StoreError> {
        for dir in self.files.layout.all_dirs() {
            fs::private_dir(&dir)?;
        }
        fs::private_dir(&self.files.layout.bridge())?;
        fs::create_new(&self.files.layout.task_list_lock(), b"")?;
        self.clear_former_team()?;
        self.read_copied_tasks()
    }

    /// Removes the files of an earlier team of this name.
    fn clear_former_team(&self) -> Result<(), StoreError> {
        let Some(last) = self.files.last_file() else { return Ok(()) };
        let stored = self.stored_roster()?;
        let layout = &self.files.layout;
        if last.get("createdAt") == stored.get("createdAt") {
            return Ok(());
        }
        let dirs = [layout.inboxes(), layout.tasks(), layout.bridge(), layout.all_deliveries()];
        for dir in dirs {
            fs::remove_dir_all(&dir)?;
        }
        for file in [layout.team_file(), layout.last_team_file(), layout.deleted_tasks()] {
            fs::remove_file(&file)?;
        }
        for dir in layout.all_dirs().into_iter().chain([layout.bridge()]) {
            fs::private_dir(&dir)?;
        }
        fs::create_new(&layout.task_list_lock(), b"")?;
        Ok(())
    }

    /// Copies the changed parts in both directions.
    ///
    /// # Errors
    /// [`StoreError::Database`] if the shared store cannot be reached or refuses the calls of this
    /// run. The parts may then be copied in part; the next call completes them.
    pub fn copy(&mut self, changed: &BTreeSet<Topic>) -> Result<(), StoreError> {
        let all = changed.contains(&Topic::Everything);
        let is_member = |topic: &Topic| matches!(topic, Topic::Member(_) | Topic::Members);
        let mut owners = BTreeSet::new();
        if all || changed.contains(&Topic::Roster) || changed.iter().any(is_member) {
            self.copy_roster()?;
            // A member that joined may have mail, and one that is new on this host reads it.
            owners = self.owners()?;
        }
        owners.extend(changed.iter().filter_map(|topic| match topic {
            Topic::Mail(stem) => Some(stem.clone()),
            _ => None,
        }));
        for stem in owners {
            self.copy_mailbox(&stem)?;
        }
        if all || changed.contains(&Topic::Tasks) {
            self.copy_tasks()?;
        }
        Ok(())
    }

    /// Journals a problem, once.
    pub fn report(&mut self, problem: String) -> Result<(), StoreError> {
        if self.reported.insert(problem.clone()) {
            self.team.record(Note::of(EventKind::Warning).with("text", problem))?;
        }
        Ok(())
    }
}
