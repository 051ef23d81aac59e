//! Changes of several tasks as one step: all or none, also if the process is killed.
//!
//! Their files are written to a directory aside and synced. Renaming that directory commits them.
//! They are then published one by one, by this process or, if it is killed, by the next one that
//! acquires the lock of the task list or reads the board.

use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::files::{ListLock, object};
use super::rules::add_edge;
use crate::error::StoreError;
use crate::files::document::{self, Durability, FilePlace};
use crate::team::TeamStore;
use model::board::Refusal;
use model::board::task::Task;
use model::id::TaskId;
use model::wire::Object;
use sys::failpoint;
use sys::fs::{self, LineFile};

/// A change of a task that is on the board.
type TaskEdit<'e> = Box<dyn Fn(&mut Task) -> Result<(), StoreError> + 'e>;

/// New tasks, and changes of tasks that are on the board.
#[derive(Default)]
pub(super) struct TaskBatch<'e> {
    pub(super) create: Vec<Task>,
    pub(super) edits: BTreeMap<TaskId, Vec<TaskEdit<'e>>>,
}

impl<'e> TaskBatch<'e> {
    /// Adds a change of a task that is on the board.
    pub(super) fn edit(
        &mut self,
        id: TaskId,
        edit: impl Fn(&mut Task) -> Result<(), StoreError> + 'e,
    ) {
        self.edits.entry(id).or_default().push(Box::new(edit));
    }

    /// Adds edges on the side of the blockers. `edges` names the blocker first.
    pub(super) fn link(&mut self, edges: impl IntoIterator<Item = (TaskId, TaskId)>) {
        let mut blocked: BTreeMap<TaskId, Vec<TaskId>> = BTreeMap::new();
        for (blocker, task) in edges {
            blocked.entry(blocker).or_default().push(task);
        }
        for task in &mut self.create {
            for next in blocked.remove(&task.id).unwrap_or_default() {
                add_edge(&mut task.blocks, next);
            }
        }
        for (blocker, tasks) in blocked {
            self.edit(blocker, move |found| {
                tasks.iter().for_each(|task| add_edge(&mut found.blocks, *task));
                Ok(())
            });
        }
    }
}

/// Applies the edits of one task.
pub(super) fn apply(edits: &[TaskEdit], task: &mut Task) -> Result<(), StoreError> {
    edits.iter().try_for_each(|edit| edit(task))
}

/// The edited tasks of a batch.
pub(super) type EditedTasks = BTreeMap<TaskId, Task>;

impl TeamStore {
    /// Writes a batch, all or none. Returns the edited tasks. `list` is the lock of the task list.
    ///
    /// # Errors
    /// The error of an edit; [`Refusal::TaskNotFound`] if a task to edit is missing;
    /// [`StoreError::Contended`] if another program has created a task with an id of the batch. The
    /// batch is not written then. [`StoreError::LockLost`], or an error of the file system, may
    /// come after the batch was committed; the next process publishes the rest of it then.
    pub(super) fn write_batch(
        &self,
        list: &ListLock,
        batch: &TaskBatch,
    ) -> Result<EditedTasks, StoreError> {
        if let Some(shared) = &self.shared {
            self.keep_list(list)?;
            return shared.write_batch(batch);
        }
        let (edited, changes) = self.plan_edits(batch)?;
        let new = after_blockers(&batch.create);
        if let ([task], true) = (new.as_slice(), changes.is_empty()) {
            self.keep_list(list)?;
            let path = self.layout.task(task.id);
            let is_new = document::write_new(&path, &task.to_object(), Durability::Permanent)?;
            return if is_new { Ok(edited) } else { Err(StoreError::Contended { path, tries: 1 }) };
        }
        if !(new.is_empty() && changes.is_empty()) {
            self.commit(list, &new, &changes).inspect_err(|_| {
                let _ = fs::remove_dir_all(&self.layout.staged_batch());
            })?;
            self.publish_batch(list)?;
        }
        Ok(edited)
    }

    /// Applies the edits to the tasks as they are now. Returns the edited tasks, and the changes to
    /// write.
    fn plan_edits(
        &self,
        batch: &TaskBatch,
    ) -> Result<(EditedTasks, Vec<StagedChange>), StoreError> {
        let (mut edited, mut changes) = (EditedTasks::new(), Vec::new());
        for (id, edits) in &batch.edits {
            let found = document::read(&self.task_place(*id))?;
            let before = object(found.ok_or(StoreError::Refused(Refusal::TaskNotFound(*id)))?);
            let mut task = Task::read(*id, &before);
            apply(edits, &mut task)?;
            let mut after = before.clone();
            task.write(&mut after);
            let patch = difference(&before, &after);
            if !patch.is_empty() {
                changes.push(StagedChange { id: *id, patch });
            }
            edited.insert(*id, task);
        }
        Ok((edited, changes))
    }

    /// Writes and syncs the files of a batch aside, and commits them.
    fn commit(
        &self,
        list: &ListLock,
        new: &[&Task],
        changes: &[StagedChange],
    ) -> Result<(), StoreError> {
        let (aside, committed) = (self.layout.staged_batch(), self.layout.committed_batch());
        if let Some(task) = new.iter().find(|task| fs::exists(&self.layout.task(task.id))) {
            return Err(StoreError::Contended { path: self.layout.task(task.id), tries: 1 });
        }
        fs::private_dir(&aside)?;
        let mut files: Vec<(PathBuf, Vec<u8>)> = Vec::with_capacity(new.len() + 1);
        for (place, task) in new.iter().enumerate() {
            let bytes = document::to_bytes(&Value::Object(task.to_object()));
            files.push((aside.join(name_of_new(place, task.id)), bytes));
        }
        let mut lines = Vec::new();
        for change in changes {
            serde_json::to_writer(&mut lines, change).expect("a change has string keys only");
            lines.push(b'\n');
        }
        files.push((aside.join(CHANGES), lines));
        self.keep_list_during(list, || fs::create_all(&files))??;
        fs::rename(&aside, &committed)?;
        fs::sync_dir_of(&committed);
        failpoint::hit("batch.committed");
        Ok(())
    }

    /// Publishes the batch that a killed process has committed, and removes one that it has not.
    pub(super) fn finish_batch(&self, list: &ListLock) -> Result<(), StoreError> {
        if fs::exists(&self.layout.committed_batch()) {
            self.publish_batch(list)?;
        }
        if fs::exists(&self.layout.staged_batch()) {
            fs::remove_dir_all(&self.layout.staged_batch())?;
        }
        Ok(())
    }

    /// Finishes the committed batch of a killed process for a reader, who does not wait: a batch
    /// that a living process publishes, and one that cannot be published, stay.
    pub(super) fn finish_abandoned_batch(&self) {
        if fs::exists(&self.layout.committed_batch())
            && let Ok(Some(list)) = self.try_lock_list()
        {
            let _ = self.finish_batch(&list);
        }
    }

    /// Publishes a committed batch: new tasks first, since a change may add one as a blocker.
    fn publish_batch(&self, list: &ListLock) -> Result<(), StoreError> {
        let committed = self.layout.committed_batch();
        for name in fs::list(&committed)? {
            let Some(id) = id_of_new(&name) else { continue };
            self.keep_list(list)?;
            self.publish_new(id, &committed.join(name))?;
            failpoint::hit("batch.published");
        }
        let mut changed = Vec::new();
        for change in changes_in(&committed)? {
            self.keep_list(list)?;
            if self.publish_change(&change)? {
                changed.push(self.layout.task(change.id));
            }
            failpoint::hit("batch.published");
        }
        self.keep_list_during(list, || fs::persist(&changed))??;
        fs::sync_dir_of(&committed);
        Ok(fs::remove_dir_all(&committed).map(drop)?)
    }

    fn publish_new(&self, id: TaskId, staged: &Path) -> Result<(), StoreError> {
        let path = self.layout.task(id);
        if fs::move_new(staged, &path)? {
            return Ok(());
        }
        // Two names of one file, if a process was killed while it moved the file by a hard link.
        if fs::version(staged)? != fs::version(&path)? {
            let place = FilePlace { path: staged.to_owned(), ..self.task_place(id) };
            let problem = format!("another program has created a task {id}");
            drop(document::quarantine(&place, problem));
        }
        Ok(fs::remove_file(staged).map(drop)?)
    }

    /// Returns false if the task was deleted meanwhile, or cannot be read.
    fn publish_change(&self, change: &StagedChange) -> Result<bool, StoreError> {
        let place = FilePlace { durability: Durability::Deferred, ..self.task_place(change.id) };
        let changed = document::change(&place, |found| {
            let Some(file) = found else { return Ok((None, false)) };
            let mut file = object(file);
            // The killed process has published it, and another program may have changed it since.
            if seal(&change.patch).is_some_and(|seal| Some(seal) == self::seal(&file)) {
                return Ok((None, true));
            }
            merge(&mut file, change.patch.clone());
            Task::read(change.id, &file).write(&mut file);
            Ok((Some(Value::Object(file)), true))
        });
        match changed {
            Err(e) if e.is_about_content() => Ok(false),
            changed => changed,
        }
    }

    /// Returns the number of tasks of which a batch in this directory is not published.
    pub(crate) fn tasks_of_batch(&self, dir: &Path) -> Result<usize, StoreError> {
        let new = fs::list(dir)?.iter().filter(|name| id_of_new(name).is_some()).count();
        Ok(new + changes_in(dir)?.len())
    }
}

/// The file of the changes of a batch, one on each line.
const CHANGES: &str = "changes.jsonl";

/// A change of a task that is on the board.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct StagedChange {
    id: TaskId,
    /// The difference as a JSON merge patch (RFC 7396). Other fields keep what another program has
    /// written meanwhile.
    patch: Object,
}

/// Returns the changes of the batch in a directory.
fn changes_in(dir: &Path) -> Result<Vec<StagedChange>, StoreError> {
    let mut changes = Vec::new();
    if let Some(file) = LineFile::open(&dir.join(CHANGES))? {
        file.read_lines(0, |line| {
            changes.extend(serde_json::from_slice::<StagedChange>(line));
            ControlFlow::Continue(())
        })?;
    }
    Ok(changes)
}

/// Returns the name of the file of a new task, which is published as number `place`.
fn name_of_new(place: usize, id: TaskId) -> String {
    format!("{place:07}-{id}.json")
}

fn id_of_new(name: &str) -> Option<TaskId> {
    let (_place, id) = name.strip_suffix(".json")?.split_once('-')?;
    TaskId::parse(id).ok()
}

/// Returns phalanx's digest of the fields that other programs change.
fn seal(task: &Object) -> Option<&str> {
    task.get("metadata")?.get("phalanx")?.get("seal")?.as_str()
}

/// Returns the merge patch that makes `before` into `after`.
fn difference(before: &Object, after: &Object) -> Object {
    let removed = before.keys().filter(|key| !after.contains_key(*key));
    let mut patch: Object = removed.map(|key| (key.clone(), Value::Null)).collect();
    for (key, new) in after {
        let value = match (before.get(key), new) {
            (Some(old), new) if old == new => continue,
            (Some(Value::Object(old)), Value::Object(new)) => Value::Object(difference(old, new)),
            (Some(_) | None, new) => new.clone(),
        };
        patch.insert(key.clone(), value);
    }
    patch
}

/// Applies a merge patch.
fn merge(object: &mut Object, patch: Object) {
    for (key, value) in patch {
        match (object.get_mut(&key), value) {
            (_, Value::Null) => drop(object.shift_remove(&key)),
            (Some(Value::Object(old)), Value::Object(patch)) => merge(old, patch),
            (Some(_) | None, value) => drop(object.insert(key, value)),
        }
    }
}

/// Orders new tasks so that each follows its blockers; tasks in a cycle are at the end.
fn after_blockers(tasks: &[Task]) -> Vec<&Task> {
    let index: BTreeMap<TaskId, usize> =
        tasks.iter().enumerate().map(|(place, task)| (task.id, place)).collect();
    let inner = |ids: &[TaskId]| ids.iter().filter_map(|id| index.get(id).copied()).collect();
    let mut open: Vec<usize> = Vec::with_capacity(tasks.len());
    for task in tasks {
        let blockers: Vec<usize> = inner(&task.blocked_by);
        open.push(blockers.len());
    }
    let mut free: VecDeque<usize> = (0..tasks.len()).filter(|place| open[*place] == 0).collect();
    let mut ordered = Vec::with_capacity(tasks.len());
    while let Some(place) = free.pop_front() {
        ordered.push(&tasks[place]);
        let dependants: Vec<usize> = inner(&tasks[place].blocks);
        for next in dependants {
            open[next] -= 1;
            if open[next] == 0 {
                free.push_back(next);
            }
        }
    }
    ordered.extend(tasks.iter().zip(&open).filter(|(_, open)| **open > 0).map(|(task, _)| task));
    ordered
}

#[cfg(test)]
mod tests;
