//! Copies the task board. What both sides had in common is kept for each task, so that changes of
//! both can be merged.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::FileBridge;
use super::copied::CopiedTask;
use crate::board::tasks;
use crate::error::StoreError;
use crate::files::document::{self, Durability};
use crate::team::journal::now;
use database::{StoredTasks, TaskScope};
use model::board::task::Task;
use model::digest;
use model::id::{MemberName, TaskId};
use model::mail::envelope::Envelope;
use model::merge::{MergedTask, merge_task};
use model::wire::Object;
use sys::fs;

/// Largest file of a copied task, in bytes.
const MAX_COPY: u64 = 64 * 1024 * 1024;
/// Attempts to copy a board that changes on both sides.
const TRIES: u32 = 20;

/// A task in the store, with its claim.
struct SharedTask {
    version: i64,
    task: Object,
}

/// A task in the files.
enum LocalTask {
    Task(Object),
    /// It cannot be read; it is left alone.
    Unreadable,
    Missing,
}

/// The state of the store at the start of a copy.
struct SharedBoard {
    tasks: BTreeMap<TaskId, SharedTask>,
    /// Tasks that cannot be parsed; they are left alone.
    unreadable: BTreeSet<TaskId>,
    deleted: BTreeSet<TaskId>,
    mark: u64,
}

impl FileBridge {
    pub(super) fn read_copied_tasks(&mut self) -> Result<(), StoreError> {
        let dir = self.files.layout.bridge();
        for name in fs::list(&dir)? {
            let Some(id) = name.strip_suffix(".json").and_then(|s| TaskId::parse(s).ok()) else {
                continue;
            };
            let bytes = fs::read(&dir.join(&name), MAX_COPY)?.unwrap_or_default();
            // A torn one counts as missing: then the store's task is taken.
            if let Ok(copy) = serde_json::from_slice(&bytes) {
                self.copied.insert(id, copy);
            }
        }
        Ok(())
    }

    /// Copies the board until nothing is left that changed meanwhile.
    pub(super) fn copy_tasks(&mut self) -> Result<(), StoreError> {
        for _ in 0..TRIES {
            let stored = self.shared.database.tasks(self.shared.name(), &TaskScope::All)?;
            let board = self.parse_board(&stored);
            if self.copy_board(board)? {
                return Ok(());
            }
        }
        Err(StoreError::Contended { path: self.files.layout.tasks(), tries: TRIES })
    }

    fn parse_board(&self, stored: &StoredTasks) -> SharedBoard {
        let mut board = SharedBoard {
            tasks: BTreeMap::new(),
            unreadable: BTreeSet::new(),
            deleted: stored.deleted.iter().map(|id| TaskId(*id)).collect(),
            mark: stored.mark,
        };
        for stored in &stored.tasks {
            let id = TaskId(stored.id);
            match self.shared.task_and_object(stored) {
                Ok((_, task)) => {
                    board.tasks.insert(id, SharedTask { version: stored.version, task });
                }
                Err(_) => drop(board.unreadable.insert(id)),
            }
        }
        board
    }

    /// Copies each task. Returns false if one changed meanwhile.
    fn copy_board(&mut self, board: SharedBoard) -> Result<bool, StoreError> {
        let files = self.files.clone();
        let on_disk = files.task_ids()?;
        let is_new = |id: &TaskId| !on_disk.contains(id);
        // Programs number their tasks under this lock.
        let _list = (board.mark > files.mark()? || board.tasks.keys().any(is_new))
            .then(|| files.lock_list())
            .transpose()?;
        files.raise_mark(board.mark)?;
        let mut ids: BTreeSet<TaskId> = on_disk.into_iter().collect();
        ids.extend(board.tasks.keys());
        ids.extend(self.copied.keys());
        let mut is_done = true;
        for id in ids.difference(&board.unreadable) {
            is_done &= self.copy_task(*id, &board)?;
        }
        Ok(is_done)
    }

    /// Copies one task. Returns false if it changed meanwhile.
    fn copy_task(&mut self, id: TaskId, board: &SharedBoard) -> Result<bool, StoreError> {
        let local = self.local_task(id)?;
        match (self.copied.get(&id).cloned(), local, board.tasks.get(&id)) {
            (_, LocalTask::Unreadable, _) => Ok(true),
            (None, LocalTask::Missing, None) => Ok(true),
            (None, LocalTask::Missing, Some(stored)) => self.write_file(id, None, stored),
            (None, LocalTask::Task(local), None) => {
                // An id that was used before could still be meant by others.
                let is_used = board.deleted.contains(&id);
                if is_used { self.renumber(id, &local, board) } else { self.create(id, local) }
            }
            // The same task, which an earlier bridge could not note as copied.
            (None, LocalTask::Task(local), Some(stored))
                if local.get("subject") == stored.task.get("subject") =>
            {
                self.write_file(id, Some(&local), stored)
            }
            (None, LocalTask::Task(local), Some(stored)) => {
                if !self.renumber(id, &local, board)? {
                    return Ok(false);
                }
                self.write_file(id, Some(&local), stored)
            }
            (Some(base), LocalTask::Missing, Some(stored)) if base.version == stored.version => {
                let database = &self.shared.database;
                let removed = database.delete_task(self.shared.name(), id.0, stored.version)?;
                if removed {
                    self.forget(id)?;
                }
                Ok(removed)
            }
            (Some(_), LocalTask::Missing, Some(stored)) => self.write_file(id, None, stored),
            (Some(_), LocalTask::Task(_), None) => {
                self.files.remove_task(id, &MemberName::lead(), true)?;
                self.forget(id).map(|()| true)
            }
            (Some(_), LocalTask::Missing, None) => self.forget(id).map(|()| true),
            (Some(base), LocalTask::Task(local), Some(stored)) => {
                self.merge(id, &base, &local, stored)
            }
        }
    }

    fn merge(
        &mut self,
        id: TaskId,
        base: &CopiedTask,
        local: &Object,
        stored: &SharedTask,
    ) -> Result<bool, StoreError> {
        if base.version == stored.version && base.task == *local {
            return Ok(true);
        }
        let MergedTask { task, lost_work } = merge_task(&base.task, &stored.task, local);
        let mut version = stored.version;
        if task != stored.task {
            let write = tasks::row(&Task::read(id, &task), task.clone(), Some(version));
            let written = self.shared.database.put_tasks(self.shared.name(), &[write], 0)?;
            let Some(new) = written.and_then(|versions| versions.first().copied()) else {
                return Ok(false);
            };
            version = new;
        }
        if lost_work {
            self.tell_owner(id, local, stored)?;
        }
        self.write_file(id, Some(local), &SharedTask { version, task })
    }

    /// Tells a member on this host that its change of a task did not count.
    fn tell_owner(
        &self,
        id: TaskId,
        local: &Object,
        stored: &SharedTask,
    ) -> Result<(), StoreError> {
        let Some(owner) = Task::read(id, local).owner_name().map(str::to_owned) else {
            return Ok(());
        };
        let Some(reader) = self.readers.iter().find(|name| name.clashes_with(&owner)) else {
            return Ok(());
        };
        let task = Task::read(id, &stored.task);
        let holder = task.owner_name().unwrap_or("nobody");
        let text = format!(
            "Your change of task {id} did not count: at the same time it became {} and belongs to \
             {holder}. Read the task again before you work on it.",
            task.state.as_str(),
        );
        let version = stored.version.to_string();
        let msg_id =
            format!("task-{}", digest::hash(&[id.to_string().as_bytes(), version.as_bytes()]));
        let lead = MemberName::lead();
        self.team.mailbox(reader).append(&Envelope::new(lead.as_str(), &text, msg_id, now()))
    }

    /// Creates a task of the files in the store.
    fn create(&mut self, id: TaskId, local: Object) -> Result<bool, StoreError> {
        let write = tasks::row(&Task::read(id, &local), local.clone(), None);
        let written = self.shared.database.put_tasks(self.shared.name(), &[write], id.0)?;
        match written.and_then(|versions| versions.first().copied()) {
            Some(version) => self.keep(id, version, local),
            None => Ok(false),
        }
    }

    /// Creates a task of the files in the store under the next free id, because its own id belongs
    /// to another task there.
    fn renumber(
        &mut self,
        id: TaskId,
        local: &Object,
        board: &SharedBoard,
    ) -> Result<bool, StoreError> {
        let on_disk = self.files.task_ids()?.last().map_or(0, |id| id.0);
        let free = TaskId(board.mark.max(on_disk).max(self.files.mark()?) + 1);
        let mut task = Task::read(id, local);
        task.id = free;
        let mut file = local.clone();
        task.write(&mut file);
        file.insert("id".to_owned(), free.to_string().into());
        if !self.create(free, file.clone())? {
            return Ok(false);
        }
        self.files.raise_mark(free.0)?;
        document::write_new(&self.files.layout.task(free), &file, Durability::Permanent)?;
        if board.deleted.contains(&id) {
            self.files.remove_task(id, &MemberName::lead(), true)?;
        }
        self.report(format!("task {id} of a program on this host is now task {free}"))?;
        Ok(true)
    }

    /// Writes a task to its file if that is still as it was read. Returns false if not.
    fn write_file(
        &mut self,
        id: TaskId,
        before: Option<&Object>,
        stored: &SharedTask,
    ) -> Result<bool, StoreError> {
        let wanted = Value::Object(stored.task.clone());
        let written = document::change(&self.files.task_place(id), |found| {
            let is_same = found.as_ref().and_then(Value::as_object) == before;
            Ok((is_same.then(|| wanted.clone()), is_same))
        })?;
        if written { self.keep(id, stored.version, stored.task.clone()) } else { Ok(false) }
    }

    /// Notes that both sides are equal.
    fn keep(&mut self, id: TaskId, version: i64, task: Object) -> Result<bool, StoreError> {
        let copy = CopiedTask { version, task, file: None };
        let bytes = serde_json::to_vec(&copy).expect("a copy has string keys");
        let path = self.files.layout.bridge().join(format!("{id}.json"));
        fs::replace_if(&path, &bytes, fs::Sync::Nothing, || true)?;
        self.copied.insert(id, copy);
        Ok(true)
    }

    fn forget(&mut self, id: TaskId) -> Result<(), StoreError> {
        fs::remove_file(&self.files.layout.bridge().join(format!("{id}.json")))?;
        self.copied.remove(&id);
        Ok(())
    }

    fn local_task(&mut self, id: TaskId) -> Result<LocalTask, StoreError> {
        let version = fs::version(&self.files.layout.task(id))?;
        let Some(version) = version else { return Ok(LocalTask::Missing) };
        let copy = self.copied.get_mut(&id);
        if let Some(copy) = &copy
            && copy.file == Some(version)
        {
            return Ok(LocalTask::Task(copy.task.clone()));
        }
        match document::read(&self.files.task_place(id)) {
            Ok(Some(Value::Object(task))) => {
                if let Some(copy) = copy
                    && copy.task == task
                    && !document::is_fresh(&version)
                {
                    copy.file = Some(version);
                }
                Ok(LocalTask::Task(task))
            }
            Ok(None) => Ok(LocalTask::Missing),
            Ok(Some(_)) => Ok(LocalTask::Unreadable),
            Err(e) if e.is_about_content() => Ok(LocalTask::Unreadable),
            Err(e) => Err(e),
        }
    }
}
