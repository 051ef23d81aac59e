//! The task board's files: ids, claims, edges and ends, each under the locks that Claude Code takes (protocol.md,
//! sections 2 and 6). Lock order: the task list first, then one task at a time; never two tasks at once.

use serde_json::Value;

use super::document::{self, LOCK_DEADLINE, Place, Shared};
use super::error::StoreError;
use super::teams::TeamStore;
use crate::model::board::{Board, Refusal};
use crate::model::id::{MemberName, TaskId};
use crate::model::task::{Extra, Outcome, Task, TaskState};
use crate::model::time::Timestamp;
use crate::model::wire::Object;
use crate::sys::fs;
use crate::sys::lock::DirLock;

/// A task to be made.
#[derive(Debug, Clone, Default)]
pub(crate) struct NewTask {
    pub(crate) subject: String,
    pub(crate) description: String,
    pub(crate) active_form: Option<String>,
    pub(crate) owner: Option<MemberName>,
    /// Tasks on the board that must come first.
    pub(crate) blocked_by: Vec<TaskId>,
    /// Tasks of the same batch that must come first, by their place in it.
    pub(crate) after: Vec<usize>,
    pub(crate) extra: Extra,
    /// Goes under `metadata` beside our own part; a key of ours in it is passed over.
    pub(crate) metadata: Object,
}

/// How work on a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Completed,
    Failed,
}

impl TeamStore {
    /// The board as it stands; without a lock, for looking only.
    pub(crate) fn board(&self) -> Result<Board, StoreError> {
        let mut board = Board::default();
        for id in self.task_ids()? {
            match self.task(id) {
                Ok(Some(task)) => drop(board.tasks.insert(id, task)),
                Ok(None) => {}
                Err(StoreError::Corrupt { .. }) => drop(board.unreadable.insert(id)),
                Err(e) => return Err(e),
            }
        }
        Ok(board)
    }

    /// One task; none if it is not on the board.
    pub(crate) fn task(&self, id: TaskId) -> Result<Option<Task>, StoreError> {
        Ok(document::read(&self.task_place(id))?.map(|file| Task::read(id, &object(file))))
    }

    /// Puts tasks on the board, all or none, with ids in the order given.
    pub(crate) fn create_tasks(
        &self,
        batch: &[NewTask],
        by: &str,
        now: Timestamp,
    ) -> Result<Vec<Task>, StoreError> {
        let _list = self.lock_list()?;
        let board = self.board()?;
        let mut blockers = batch.iter().flat_map(|t| &t.blocked_by);
        if let Some(missing) = blockers.find(|id| !board.tasks.contains_key(id)) {
            return Err(Refusal::TaskNotFound(*missing).into());
        }
        let first = self.next_id(&board)?;
        let tasks = number(batch, first, by, now);
        // The mark goes first: an id that was given out is never given again, even if we die here (TK-07).
        self.raise_mark(first + tasks.len() as u64 - 1)?;
        let written = tasks.iter().try_for_each(|task| self.write_new_task(task));
        let linked = written.and_then(|()| self.link_to_board(&tasks, &board));
        match linked {
            Ok(()) => Ok(tasks),
            Err(e) => {
                for task in &tasks {
                    let _ = fs::remove_file(&self.layout.task(task.id));
                }
                Err(e)
            }
        }
    }

    /// Claims one task for `who`.
    pub(crate) fn claim(&self, id: TaskId, who: &MemberName, now: Timestamp) -> Result<Task, StoreError> {
        let _list = self.lock_list()?;
        self.board()?.may_claim(id, who, false)?;
        self.start(id, who, now)
    }

    /// Claims what `who` should do next, if there is anything.
    pub(crate) fn claim_next(&self, who: &MemberName, now: Timestamp) -> Result<Option<Task>, StoreError> {
        // Looked at without the lock first: most wake-ups find nothing, and should cost nobody a lock.
        if self.board()?.next_for_worker(who).is_none() {
            return Ok(None);
        }
        let _list = self.lock_list()?;
        match self.board()?.next_for_worker(who) {
            Some(id) => self.start(id, who, now).map(Some),
            None => Ok(None),
        }
    }

    /// Ends work on a task. `who` must own it; the lead may end any. Gives the task and those that it freed.
    pub(crate) fn end_task(
        &self,
        id: TaskId,
        who: &MemberName,
        ending: Ending,
        outcome: Option<&Outcome>,
        now: Timestamp,
    ) -> Result<(Task, Vec<TaskId>), StoreError> {
        let _list = self.lock_list()?;
        let task = self.change_task(id, |task| {
            if !who.is_lead() && !task.is_owned_by(who) {
                return Err(StoreError::NotYours { id, owner: task.owner.clone() });
            }
            let next = match ending {
                Ending::Completed => TaskState::Completed,
                Ending::Failed => TaskState::Failed,
            };
            transition(task, next)?;
            task.extra.outcome = outcome.cloned();
            task.extra.ended_at = Some(now);
            task.extra.ended_by = Some(who.to_string());
            Ok(())
        })?;
        Ok((task, self.board()?.freed_by(id)))
    }

    /// Gives back everything that `who` holds and has not brought to an end; gives what was given back.
    pub(crate) fn release_tasks_of(&self, who: &MemberName) -> Result<Vec<Task>, StoreError> {
        let _list = self.lock_list()?;
        let board = self.board()?;
        let held = board.tasks.values().filter(|t| t.is_owned_by(who) && !t.state.is_over());
        held.map(|t| self.change_task(t.id, |task| release(task, who))).collect()
    }

    /// Marks the task as begun by `who`; the list lock is held by the caller, the task is read again under its own.
    fn start(&self, id: TaskId, who: &MemberName, now: Timestamp) -> Result<Task, StoreError> {
        self.change_task(id, |task| {
            if let Some(owner) = task.owner.as_ref().filter(|_| !task.is_owned_by(who)) {
                return Err(Refusal::AlreadyClaimed { id, owner: owner.clone() }.into());
            }
            transition(task, TaskState::InProgress)?;
            task.owner = Some(who.to_string());
            task.extra.claimed_at = Some(now);
            Ok(())
        })
    }

    fn change_task(
        &self,
        id: TaskId,
        mut edit: impl FnMut(&mut Task) -> Result<(), StoreError>,
    ) -> Result<Task, StoreError> {
        document::change(&self.task_place(id), |found| {
            let mut file = object(found.ok_or(StoreError::Refused(Refusal::TaskNotFound(id)))?);
            let mut task = Task::read(id, &file);
            edit(&mut task)?;
            task.write(&mut file);
            Ok((Some(Value::Object(file)), task))
        })
    }

    fn write_new_task(&self, task: &Task) -> Result<(), StoreError> {
        match document::write_new(&self.layout.task(task.id), &task.to_object())? {
            true => Ok(()),
            false => Err(StoreError::Contended { path: self.layout.task(task.id), tries: 1 }),
        }
    }

    /// Writes the other side of the edges from tasks that were on the board before.
    fn link_to_board(&self, tasks: &[Task], board: &Board) -> Result<(), StoreError> {
        for task in tasks {
            for blocker in task.blocked_by.iter().filter(|b| board.tasks.contains_key(b)) {
                self.change_task(*blocker, |found| {
                    if !found.blocks.contains(&task.id) {
                        found.blocks.push(task.id);
                    }
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    fn next_id(&self, board: &Board) -> Result<u64, StoreError> {
        let on_disk = board.tasks.keys().chain(&board.unreadable).max().map_or(0, |id| id.0);
        Ok(on_disk.max(self.mark()?) + 1)
    }

    fn mark(&self) -> Result<u64, StoreError> {
        let bytes = fs::read(&self.layout.high_water_mark(), 64)?.unwrap_or_default();
        Ok(String::from_utf8_lossy(&bytes).trim().parse().unwrap_or(0))
    }

    fn raise_mark(&self, to: u64) -> Result<(), StoreError> {
        if to > self.mark()? {
            fs::write_atomic(&self.layout.high_water_mark(), to.to_string().as_bytes())?;
        }
        Ok(())
    }

    fn task_ids(&self) -> Result<Vec<TaskId>, StoreError> {
        let files = fs::list(&self.layout.tasks())?;
        let mut ids: Vec<TaskId> = files
            .iter()
            .filter_map(|f| f.strip_suffix(".json"))
            .filter_map(|s| TaskId::parse(s).ok())
            .collect();
        ids.sort_unstable();
        Ok(ids)
    }

    fn lock_list(&self) -> Result<DirLock, StoreError> {
        let gate = self.layout.gate("task-list");
        document::ready_gate(&gate)?;
        // Other programs need the lock's target to exist; a team made by them may not have it yet.
        fs::private_dir(&self.layout.tasks())?;
        fs::create_new(&self.layout.task_list_lock(), b"")?;
        Ok(DirLock::acquire(&self.layout.task_list_lock(), &gate, LOCK_DEADLINE)?)
    }

    fn task_place(&self, id: TaskId) -> Place {
        self.place(&format!("task-{id}"), self.layout.task(id), Shared::WithOthers)
    }
}

fn object(file: Value) -> Object {
    match file {
        Value::Object(object) => object,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Object::new(),
    }
}

fn transition(task: &mut Task, next: TaskState) -> Result<(), StoreError> {
    if !task.state.may_become(next) {
        return Err(StoreError::Transition { id: task.id, from: task.state.as_str(), to: next.as_str() });
    }
    task.state = next;
    Ok(())
}

fn release(task: &mut Task, who: &MemberName) -> Result<(), StoreError> {
    if !task.is_owned_by(who) || task.state.is_over() {
        return Ok(());
    }
    if task.state != TaskState::Pending {
        transition(task, TaskState::Pending)?;
        task.extra.released += 1;
    }
    task.owner = None;
    task.extra.claimed_at = None;
    Ok(())
}

/// Gives the batch its ids and both sides of its own edges.
fn number(batch: &[NewTask], first: u64, by: &str, now: Timestamp) -> Vec<Task> {
    let id_of = |place: usize| TaskId(first + place as u64);
    let mut tasks: Vec<Task> = Vec::with_capacity(batch.len());
    for (place, new) in batch.iter().enumerate() {
        let mut task = Task::new(id_of(place), &new.subject, &new.description);
        task.active_form.clone_from(&new.active_form);
        task.owner = new.owner.as_ref().map(MemberName::to_string);
        task.blocked_by = new.blocked_by.iter().copied().chain(new.after.iter().map(|p| id_of(*p))).collect();
        task.metadata.clone_from(&new.metadata);
        task.metadata.shift_remove("phalanx");
        task.extra = Extra { created_by: Some(by.to_owned()), created_at: Some(now), ..new.extra.clone() };
        tasks.push(task);
    }
    for (place, new) in batch.iter().enumerate() {
        for blocker in &new.after {
            tasks[*blocker].blocks.push(id_of(place));
        }
    }
    tasks
}
