//! The files of the task board: reading, changing, numbering and locking them.

use std::collections::BTreeSet;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::index::BoardScope;
use crate::error::StoreError;
use crate::files::dirs;
use crate::files::document::{self, FilePlace, Writers};
use crate::team::TeamStore;
use database::{HeldLock, TaskScope};
use model::board::task::Task;
use model::board::{Board, Refusal};
use model::id::TaskId;
use model::wire::Object;
use sys::clock::machine_ms;
use sys::fs;
use sys::lock::{DirLock, Gate, LOCK_DEADLINE};

/// Largest task file that is read, in bytes.
const MAX_TASK: u64 = 64 * 1024 * 1024;
/// Largest list of deleted ids that is read, in bytes; each id takes a few.
const MAX_LIST: u64 = 64 * 1024 * 1024;

/// The name of the lock of the task list in the shared store, and of its gate.
const LIST: &str = "task-list";
/// Interval at which the list lock is renewed during long work.
const RENEWAL: Duration = Duration::from_secs(1);

/// The lock of the task list, held until dropped.
pub(crate) enum ListLock {
    Dir(DirLock),
    Shared(HeldLock),
}

/// A task with the content of its file, if that has the plain form.
pub(super) type TaskAndBytes = (Task, Option<Vec<u8>>);

impl TeamStore {
    /// Reads the board without a lock, so it may already be outdated when it is returned.
    pub fn board(&self) -> Result<Board, StoreError> {
        self.read_board(BoardScope::All)
    }

    /// Like [`TeamStore::board`], without completed and cancelled tasks. That is faster, and enough
    /// to decide on claims: a missing blocker no longer blocks, as a completed one.
    pub fn open_board(&self) -> Result<Board, StoreError> {
        self.read_board(BoardScope::Open)
    }

    fn read_board(&self, scope: BoardScope) -> Result<Board, StoreError> {
        if let Some(shared) = &self.shared {
            return shared.board(match scope {
                BoardScope::All => &TaskScope::All,
                BoardScope::Open => &TaskScope::Open,
            });
        }
        self.finish_abandoned_batch();
        // Taken first, so that files count as changed recently for longer rather than shorter.
        let now_ms = machine_ms();
        let mut board = self.read_tasks(&self.task_ids()?, scope, now_ms)?;
        // Read the deletions after the task files: a deletion is recorded before its file is
        // removed, so each file that was missing above is accounted for.
        board.deleted = self.deleted_tasks()?;
        Ok(board)
    }

    /// Returns one task; `None` if it is not on the board.
    pub fn task(&self, id: TaskId) -> Result<Option<Task>, StoreError> {
        if let Some(shared) = &self.shared {
            return shared.task(id);
        }
        self.finish_abandoned_batch();
        Ok(self.task_and_bytes(id)?.map(|(task, _)| task))
    }

    /// Returns one task, with the content of its file if that has the plain form.
    pub(super) fn task_and_bytes(&self, id: TaskId) -> Result<Option<TaskAndBytes>, StoreError> {
        let Some(bytes) = fs::read(&self.layout.task(id), MAX_TASK)? else { return Ok(None) };
        if let Some(task) = Task::quick(id, &bytes) {
            return Ok(Some((task, Some(bytes))));
        }
        // The file is unusual or being written: read it again with retries.
        let file = document::read(&self.task_place(id))?;
        Ok(file.map(|file| (Task::read(id, &object(file)), None)))
    }

    /// Reads the task and its direct blockers.
    pub fn with_blockers(&self, id: TaskId) -> Result<Board, StoreError> {
        if let Some(shared) = &self.shared {
            return shared.with_blockers(id);
        }
        let mut part = Board::default();
        let mut open = vec![id];
        while let Some(next) = open.pop() {
            match self.task(next) {
                Ok(Some(task)) => {
                    if next == id {
                        open.extend(task.blocked_by.iter().filter(|b| **b != id));
                    }
                    part.tasks.insert(next, task);
                }
                Ok(None) => {}
                Err(e) if e.is_about_content() => drop(part.unreadable.insert(next)),
                Err(e) => return Err(e),
            }
        }
        Ok(part)
    }

    pub(super) fn change_task(
        &self,
        id: TaskId,
        mut edit: impl FnMut(&mut Task) -> Result<(), StoreError>,
    ) -> Result<Task, StoreError> {
        if let Some(shared) = &self.shared {
            return shared.change_task(id, edit);
        }
        document::change(&self.task_place(id), |found| {
            let mut file = object(found.ok_or(StoreError::Refused(Refusal::TaskNotFound(id)))?);
            let mut task = Task::read(id, &file);
            edit(&mut task)?;
            task.write(&mut file);
            Ok((Some(Value::Object(file)), task))
        })
    }

    /// Returns the first of `count` free ids in a row, after the largest id in use. If a foreign
    /// file near the limit leaves no room there, takes the highest gap that is wide enough.
    pub(super) fn next_id(
        &self,
        used: impl IntoIterator<Item = TaskId>,
        count: u64,
    ) -> Result<u64, StoreError> {
        let mark = Some(self.mark()?).filter(|mark| *mark <= TaskId::MAX.0);
        let used: Vec<u64> = used.into_iter().map(|id| id.0).chain(mark).chain([0]).collect();
        let last = used.iter().copied().max().unwrap_or(0);
        let mut end = TaskId::MAX.0 + 1;
        if end.saturating_sub(last + 1) >= count {
            return Ok(last + 1);
        }
        for id in used.into_iter().collect::<BTreeSet<u64>>().into_iter().rev() {
            if end.saturating_sub(id + 1) >= count {
                return Ok(id + 1);
            }
            end = id;
        }
        Err(StoreError::NoFreeIds { wanted: count })
    }

    pub fn mark(&self) -> Result<u64, StoreError> {
        if let Some(shared) = &self.shared {
            return shared.task_mark();
        }
        let bytes = fs::read(&self.layout.high_water_mark(), 64)?.unwrap_or_default();
        Ok(String::from_utf8_lossy(&bytes).trim().parse().unwrap_or(0))
    }

    /// Raises the largest id that was ever assigned. The shared store does that with the write of
    /// the tasks.
    pub(crate) fn raise_mark(&self, to: u64) -> Result<(), StoreError> {
        if self.shared.is_some() {
            return Ok(());
        }
        if to > self.mark()? {
            fs::write_atomic(&self.layout.high_water_mark(), to.to_string().as_bytes())?;
        }
        Ok(())
    }

    pub fn task_ids(&self) -> Result<Vec<TaskId>, StoreError> {
        let files = fs::names(&self.layout.tasks())?;
        let mut ids: Vec<TaskId> = files
            .iter()
            .filter_map(|f| f.strip_suffix(".json"))
            .filter_map(|s| TaskId::parse(s).ok())
            .collect();
        ids.sort_unstable();
        Ok(ids)
    }

    pub(crate) fn lock_list(&self) -> Result<ListLock, StoreError> {
        if let Some(shared) = &self.shared {
            let lock = shared.database.lock(shared.name(), LIST, LOCK_DEADLINE)?;
            let timeout = || StoreError::Contended { path: shared.list_label().into(), tries: 1 };
            return lock.map(ListLock::Shared).ok_or_else(timeout);
        }
        let gate = self.layout.gate(LIST);
        dirs::make_dirs_of(&gate)?;
        // Other programs can only lock an existing file, and a team that they created may lack this
        // one.
        fs::private_dir(&self.layout.tasks())?;
        fs::create_new(&self.layout.task_list_lock(), b"")?;
        let lock = DirLock::acquire(&self.layout.task_list_lock(), &gate, LOCK_DEADLINE)?;
        let list = ListLock::Dir(lock);
        self.finish_batch(&list)?;
        Ok(list)
    }

    /// Acquires the lock of a task list in files if it is free.
    pub(super) fn try_lock_list(&self) -> Result<Option<ListLock>, StoreError> {
        let gate = self.layout.gate(LIST);
        let lock = DirLock::try_acquire(&self.layout.task_list_lock(), &gate)?;
        Ok(lock.map(ListLock::Dir))
    }

    /// Returns true if a phalanx process holds the lock of a task list in files.
    pub(crate) fn is_list_locked(&self) -> Result<bool, StoreError> {
        Ok(Gate::try_open(&self.layout.gate(LIST))?.is_none())
    }

    /// Runs `work` on another thread, and renews the list lock meanwhile: on a busy machine a sync
    /// can take longer than a lock lasts.
    pub(super) fn keep_list_during<T: Send>(
        &self,
        list: &ListLock,
        work: impl FnOnce() -> T + Send,
    ) -> Result<T, StoreError> {
        thread::scope(|scope| {
            let (sender, done) = mpsc::sync_channel(1);
            scope.spawn(move || sender.send(work()));
            loop {
                match done.recv_timeout(RENEWAL) {
                    Ok(result) => return Ok(result),
                    Err(RecvTimeoutError::Timeout) => self.keep_list(list)?,
                    Err(RecvTimeoutError::Disconnected) => panic!("the work has panicked"),
                }
            }
        })
    }

    /// Checks that the list lock is still held, and renews it. Called between the changes of a
    /// batch, which can take longer than a lock lasts.
    pub(super) fn keep_list(&self, list: &ListLock) -> Result<(), StoreError> {
        let is_ours = match list {
            ListLock::Dir(lock) => lock.still_ours(),
            ListLock::Shared(lock) => !lock.is_lost(),
        };
        if is_ours {
            return Ok(());
        }
        Err(StoreError::LockLost { path: self.layout.task_list_lock() })
    }

    pub(crate) fn task_place(&self, id: TaskId) -> FilePlace {
        self.place(&format!("task-{id}"), self.layout.task(id), Writers::AnyProgram)
    }

    /// Records that phalanx deleted this task, so that the deletion is not attributed to another
    /// program (TK-07).
    pub(crate) fn record_deletion(&self, id: TaskId) -> Result<(), StoreError> {
        Ok(fs::append_line(&self.layout.deleted_tasks(), id.to_string().as_bytes())?)
    }

    pub(crate) fn deleted_tasks(&self) -> Result<BTreeSet<TaskId>, StoreError> {
        let bytes = fs::read(&self.layout.deleted_tasks(), MAX_LIST)?.unwrap_or_default();
        Ok(String::from_utf8_lossy(&bytes)
            .lines()
            .filter_map(|line| TaskId::parse(line).ok())
            .collect())
    }
}

pub(super) fn object(file: Value) -> Object {
    match file {
        Value::Object(object) => object,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Object::new()
        }
    }
}
