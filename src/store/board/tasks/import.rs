//! Creating and editing the tasks of imported files, as one step under the lock of the task list.

use std::collections::BTreeSet;

use super::batch::TaskBatch;
use super::edit::{TaskChanges, edit};
use super::rules::may_edit;
use super::work::NewTask;
use crate::error::StoreError;
use crate::team::TeamStore;
use model::board::task::Task;
use model::board::{Board, Refusal};
use model::id::{MemberName, TaskId};
use model::time::Timestamp;
use sys::rand;

/// The tasks that an import creates and edits.
#[derive(Debug, Default)]
pub struct TaskImport {
    pub create: Vec<NewTask>,
    pub revise: Vec<TaskRevision>,
}

/// An edit of a task that is on the board already.
#[derive(Debug, PartialEq)]
pub struct TaskRevision {
    pub id: TaskId,
    pub changes: TaskChanges,
    /// Blockers that the same import creates, by their index.
    pub after: Vec<usize>,
}

impl TaskRevision {
    /// Returns the wire names of the fields that change.
    pub fn fields(&self) -> Vec<&'static str> {
        let mut fields = self.changes.fields();
        if !self.after.is_empty() && !fields.contains(&"blockedBy") {
            fields.push("blockedBy");
        }
        fields
    }
}

/// The result of an import.
#[derive(Debug)]
pub struct TasksImported {
    pub created: Vec<Task>,
    pub revised: Vec<Task>,
    /// Revised tasks that were blocked before and no longer are.
    pub unblocked: Vec<TaskId>,
}

impl TeamStore {
    /// Creates and edits the tasks that `decide` returns for the board. No other phalanx process
    /// changes the board meanwhile, so that two imports at once create no task twice.
    ///
    /// All tasks are created and edited or none, also if this process is killed.
    ///
    /// # Errors
    /// The error of `decide`; [`StoreError::NotYours`] if `who` may not edit one of the tasks;
    /// otherwise as [`TeamStore::create_tasks`].
    pub fn import_tasks<E: From<StoreError>>(
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
        let mut batch = self.new_tasks(&board, &import.create, who.as_str(), now)?;
        revise(&mut batch, &board, &import.revise, who, now);
        let mut edited = self.write_batch(&list, &batch)?;
        let revised: Vec<Task> =
            import.revise.iter().filter_map(|revision| edited.remove(&revision.id)).collect();
        let waits_for_new: BTreeSet<TaskId> =
            import.revise.iter().filter(|r| !r.after.is_empty()).map(|r| r.id).collect();
        let is_unblocked = |task: &&Task| {
            let was_blocked = (board.tasks.get(&task.id))
                .is_some_and(|before| !board.open_blockers(before).is_empty());
            let is_free = !waits_for_new.contains(&task.id) && board.open_blockers(task).is_empty();
            was_blocked && is_free
        };
        let unblocked = revised.iter().filter(is_unblocked).map(|task| task.id).collect();
        Ok(TasksImported { created: batch.create, revised, unblocked })
    }
}

/// Adds the edits to the batch, with both sides of all edges.
fn revise<'e>(
    batch: &mut TaskBatch<'e>,
    board: &Board,
    revisions: &[TaskRevision],
    who: &'e MemberName,
    now: Timestamp,
) {
    let mut edges = Vec::new();
    for revision in revisions {
        let id = revision.id;
        let mut changes = revision.changes.clone();
        changes.blocked_by.extend(revision.after.iter().map(|place| batch.create[*place].id));
        edges.extend(changes.blocked_by.iter().map(|blocker| (*blocker, id)));
        for blocker in changes.unblock.iter().filter(|id| board.tasks.contains_key(id)) {
            batch.edit(*blocker, move |found| {
                found.blocks.retain(|blocked| *blocked != id);
                Ok(())
            });
        }
        batch.edit(id, move |task| {
            may_edit(task, who)?;
            edit(task, who, &changes, now)?;
            task.goes_on(rand::uuid());
            Ok(())
        });
    }
    batch.link(edges);
}
