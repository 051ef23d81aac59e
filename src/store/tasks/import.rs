//! Creating and editing the tasks of imported files, as one step under the lock of the task list.

use std::collections::{BTreeMap, BTreeSet};

use super::edit::{TaskChanges, edit};
use super::files::ListLock;
use super::rules::{add_edge, may_edit};
use super::work::NewTask;
use crate::model::board::{Board, Refusal};
use crate::model::id::{MemberName, TaskId};
use crate::model::task::Task;
use crate::model::time::Timestamp;
use crate::store::error::StoreError;
use crate::store::team::TeamStore;
use crate::sys::rand;

/// The tasks that an import creates and edits.
#[derive(Debug, Default)]
pub(crate) struct TaskImport {
    pub(crate) create: Vec<NewTask>,
    pub(crate) revise: Vec<TaskRevision>,
}

/// An edit of a task that is on the board already.
#[derive(Debug, PartialEq)]
pub(crate) struct TaskRevision {
    pub(crate) id: TaskId,
    pub(crate) changes: TaskChanges,
    /// Blockers that the same import creates, by their index.
    pub(crate) after: Vec<usize>,
}

impl TaskRevision {
    /// Returns the wire names of the fields that change.
    pub(crate) fn fields(&self) -> Vec<&'static str> {
        let mut fields = self.changes.fields();
        if !self.after.is_empty() && !fields.contains(&"blockedBy") {
            fields.push("blockedBy");
        }
        fields
    }
}

/// The result of an import.
#[derive(Debug)]
pub(crate) struct TasksImported {
    pub(crate) created: Vec<Task>,
    pub(crate) revised: Vec<Task>,
    /// Revised tasks that were blocked before and no longer are.
    pub(crate) unblocked: Vec<TaskId>,
}

impl TeamStore {
    /// Creates and edits the tasks that `decide` returns for the board. No other phalanx process
    /// changes the board meanwhile, so that two imports at once create no task twice.
    ///
    /// All refusals come before the first write, and all new tasks are created or none. A crash, or
    /// an error of the file system, between the creation and the edits leaves tasks that the next
    /// import of the same files completes.
    ///
    /// # Errors
    /// The error of `decide`; [`StoreError::NotYours`] if `who` may not edit one of the tasks;
    /// otherwise as [`TeamStore::create_tasks`].
    pub(crate) fn import_tasks<E: From<StoreError>>(
        &self,
        who: &MemberName,
        now: Timestamp,
        decide: impl FnOnce(&Board) -> Result<TaskImport, E>,
    ) -> Result<TasksImported, E> {
        let list = self.lock_list()?;
        let board = self.board()?;
        let import = decide(&board)?;
        for revision in &import.revise {
            let task = board.tasks.get(&revision.id);
            let task = task.ok_or(StoreError::Refused(Refusal::TaskNotFound(revision.id)))?;
            may_edit(task, who)?;
        }
        let created = self.create_on(&list, &board, &import.create, who.as_str(), now)?;
        let revised = self.revise(&list, &board, &import.revise, &created, who, now)?;
        let waits_for_new: BTreeSet<TaskId> =
            import.revise.iter().filter(|r| !r.after.is_empty()).map(|r| r.id).collect();
        let is_unblocked = |task: &&Task| {
            let was_blocked = (board.tasks.get(&task.id))
                .is_some_and(|before| !board.open_blockers(before).is_empty());
            let is_free = !waits_for_new.contains(&task.id) && board.open_blockers(task).is_empty();
            was_blocked && is_free
        };
        let unblocked = revised.iter().filter(is_unblocked).map(|task| task.id).collect();
        Ok(TasksImported { created, revised, unblocked })
    }

    /// Edits tasks, first their own sides of all edges: after a crash in between, a task waits too
    /// long rather than not at all.
    fn revise(
        &self,
        list: &ListLock,
        board: &Board,
        revisions: &[TaskRevision],
        created: &[Task],
        who: &MemberName,
        now: Timestamp,
    ) -> Result<Vec<Task>, StoreError> {
        let mut revised = Vec::with_capacity(revisions.len());
        let mut dependants: BTreeMap<TaskId, Vec<(TaskId, bool)>> = BTreeMap::new();
        for revision in revisions {
            self.keep_list(list)?;
            let mut changes = revision.changes.clone();
            changes.blocked_by.extend(revision.after.iter().map(|place| created[*place].id));
            revised.push(self.change_task(revision.id, |task| {
                may_edit(task, who)?;
                edit(task, who, &changes, now)?;
                task.goes_on(rand::uuid());
                Ok(())
            })?);
            for blocker in &changes.blocked_by {
                dependants.entry(*blocker).or_default().push((revision.id, true));
            }
            for blocker in changes.unblock.iter().filter(|id| board.tasks.contains_key(id)) {
                dependants.entry(*blocker).or_default().push((revision.id, false));
            }
        }
        for (blocker, tasks) in dependants {
            self.keep_list(list)?;
            self.change_task(blocker, |found| {
                for (task, is_blocked) in &tasks {
                    if *is_blocked {
                        add_edge(&mut found.blocks, *task);
                    } else {
                        found.blocks.retain(|blocked| blocked != task);
                    }
                }
                Ok(())
            })?;
        }
        Ok(revised)
    }
}
