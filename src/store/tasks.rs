//! Files of the task board: ids, claims, edges and ends, each under the locks that Claude Code
//! takes. Lock order: the task list first, then one task at a time; never two tasks at once.

use std::collections::BTreeSet;

use serde_json::Value;

use super::document::{self, Durability, Place, Writers};
use super::error::StoreError;
use super::teams::TeamStore;
use crate::model::board::{Board, Refusal};
use crate::model::id::{MemberName, TaskId};
use crate::model::limits::Limits;
use crate::model::task::{Extra, Outcome, Task, TaskState};
use crate::model::time::Timestamp;
use crate::model::wire::Object;
use crate::sys::fs;
use crate::sys::lock::{DirLock, Gate, LOCK_DEADLINE};
use crate::sys::parallel;
use crate::sys::rand;

mod edit;
#[cfg(test)]
mod tests;

pub(crate) use edit::{Changed, Changes, Owner, Status};

/// Largest task file that is read, in bytes.
const MAX_TASK: u64 = 64 * 1024 * 1024;
/// Number of tasks from which reading them on several threads is faster.
const WORTH_A_THREAD: usize = 512;

/// A task to create.
#[derive(Debug, Clone, Default)]
pub(crate) struct NewTask {
    pub(crate) subject: String,
    pub(crate) description: String,
    pub(crate) active_form: Option<String>,
    pub(crate) owner: Option<MemberName>,
    /// Limits on assignments to the owner. `None` for a planned task, which is not checked.
    pub(crate) limits: Option<Limits>,
    /// Blockers that are on the board already.
    pub(crate) blocked_by: Vec<TaskId>,
    /// Blockers in the same batch, by their index.
    pub(crate) after: Vec<usize>,
    pub(crate) extra: Extra,
    /// Written to `metadata` beside phalanx's own key, which is ignored in here.
    pub(crate) metadata: Object,
}

/// The result of work on a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Completed,
    Failed,
}

impl Ending {
    fn state(self) -> TaskState {
        match self {
            Ending::Completed => TaskState::Completed,
            Ending::Failed => TaskState::Failed,
        }
    }
}

impl TeamStore {
    /// Reads the board without a lock, so it may already be outdated when it is returned.
    pub(crate) fn board(&self) -> Result<Board, StoreError> {
        let mut board = Board::default();
        for (id, found) in self.read_tasks(&self.task_ids()?) {
            match found {
                Ok(Some(task)) => drop(board.tasks.insert(id, task)),
                Ok(None) => {}
                Err(e) if e.is_about_content() => drop(board.unreadable.insert(id)),
                Err(e) => return Err(e),
            }
        }
        // Read the deletions after the task files: a deletion is recorded before its file is
        // removed, so each file that was missing above is accounted for.
        board.deleted = self.deleted_tasks()?;
        Ok(board)
    }

    /// Reads tasks by id; many of them on several threads.
    fn read_tasks(&self, ids: &[TaskId]) -> Vec<(TaskId, Result<Option<Task>, StoreError>)> {
        let threads = if ids.len() < WORTH_A_THREAD { 1 } else { parallel::cores() };
        parallel::parallel_map(ids, threads, |id| (*id, self.task(*id)))
    }

    /// Returns one task; `None` if it is not on the board.
    pub(crate) fn task(&self, id: TaskId) -> Result<Option<Task>, StoreError> {
        let Some(bytes) = fs::read(&self.layout.task(id), MAX_TASK)? else { return Ok(None) };
        if let Some(task) = Task::quick(id, &bytes) {
            return Ok(Some(task));
        }
        // The file is unusual or being written: read it again with retries.
        Ok(document::read(&self.task_place(id))?.map(|file| Task::read(id, &object(file))))
    }

    /// Creates all tasks of the batch or none, with ids in the order given.
    ///
    /// # Errors
    /// [`Refusal::TaskNotFound`] if a blocker is not on the board; [`StoreError::AtCapacity`] if an
    /// owner has reached its limits; [`StoreError::NoFreeIds`] if there is no room for the batch.
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
        let first = self.next_id(&board, batch.len() as u64)?;
        let tasks = number(batch, first, by, now);
        admit(&board, batch, &tasks)?;
        // Raise the mark first, so that an id is never assigned twice, even after a crash here
        // (TK-07).
        self.raise_mark(first + tasks.len() as u64 - 1)?;
        let written = tasks.iter().try_for_each(|task| self.write_new_task(task));
        let linked = written.and_then(|()| self.link_to_board(&tasks, &board));
        match linked {
            Ok(()) => Ok(tasks),
            Err(e) => {
                for task in &tasks {
                    let _ = self.note_deletion(task.id);
                    let _ = fs::remove_file(&self.layout.task(task.id));
                }
                Err(e)
            }
        }
    }

    /// Claims one task for `who`.
    ///
    /// # Errors
    /// [`StoreError::Refused`] if `who` may not claim it.
    pub(crate) fn claim(
        &self,
        id: TaskId,
        who: &MemberName,
        now: Timestamp,
    ) -> Result<Task, StoreError> {
        let _list = self.lock_list()?;
        let mut around = self.with_blockers(id)?;
        if around.tasks.get(&id).is_some_and(|t| !t.extra.files.is_empty()) {
            // Conflicts over files can only be found on the whole board.
            around = self.board()?;
        }
        around.may_claim(id, who, false)?;
        self.start(id, who, now)
    }

    /// Claims the next task that suits `who` in its role; `None` if there is none.
    ///
    /// Reads the whole board without the lock, since that is slow and most wake-ups find nothing.
    /// Under the lock it reads only what may have changed: the task and its blockers. `who` is
    /// still free, because the gate excludes other claims for `who`. A task with file patterns may
    /// conflict with any other, so for one of these the whole board is read again.
    pub(crate) fn claim_next(
        &self,
        who: &MemberName,
        role: Option<&str>,
        now: Timestamp,
    ) -> Result<Option<Task>, StoreError> {
        let gate = self.layout.gate(&format!("claims-{}", who.file_stem()));
        document::ready_gate(&gate)?;
        let _alone = Gate::open(&gate, LOCK_DEADLINE)?;
        let seen = self.board()?;
        let mut wanted = seen.all_for_worker(who, role).peekable();
        if wanted.peek().is_none() {
            return Ok(None);
        }
        let _list = self.lock_list()?;
        for task in wanted.take_while(|t| t.extra.files.is_empty()) {
            if self.is_still_free(task.id, who)? {
                return self.start(task.id, who, now).map(Some);
            }
        }
        match self.board()?.next_for_worker(who, role) {
            Some(id) => self.start(id, who, now).map(Some),
            None => Ok(None),
        }
    }

    fn is_still_free(&self, id: TaskId, who: &MemberName) -> Result<bool, StoreError> {
        let around = self.with_blockers(id)?;
        let Some(task) = around.tasks.get(&id) else { return Ok(false) };
        let is_plain = !task.extra.run.is_empty() && task.extra.files.is_empty();
        Ok(is_plain && around.may_claim(id, who, false).is_ok())
    }

    /// Reads the task and its direct blockers.
    fn with_blockers(&self, id: TaskId) -> Result<Board, StoreError> {
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

    /// Ends work on a task, for its owner or the lead. Returns the task and those that can start
    /// now.
    ///
    /// # Errors
    /// [`Refusal::Blocked`] for a completion without an outcome while blockers are open; a command
    /// that has run is recorded in any case. [`StoreError::NotYours`] if `who` is not the owner or
    /// the lead; [`StoreError::Transition`] if the task's state does not allow it.
    pub(crate) fn end_task(
        &self,
        id: TaskId,
        who: &MemberName,
        ending: Ending,
        outcome: Option<&Outcome>,
        now: Timestamp,
    ) -> Result<(Task, Vec<TaskId>), StoreError> {
        let list = self.lock_list()?;
        if outcome.is_none() {
            self.must_be_endable(id, ending)?;
        }
        let task = self.change_task(id, |task| {
            may_end(task, who, ending)?;
            finish(task, who, ending, outcome, now);
            task.goes_on(rand::uuid());
            Ok(())
        })?;
        // Still under the list lock: if two last blockers end at the same time, exactly one of the
        // calls returns the freed task (TK-04).
        let freed = self.freed_by(&task)?;
        drop(list);
        Ok((task, freed))
    }

    /// Returns the task if `who` could end it this way now.
    ///
    /// # Errors
    /// As [`TeamStore::end_task`]; [`Refusal::TaskNotFound`] if there is no such task.
    pub(crate) fn endable(
        &self,
        id: TaskId,
        who: &MemberName,
        ending: Ending,
        outcome: Option<&Outcome>,
    ) -> Result<Task, StoreError> {
        let task = self.task(id)?.ok_or(StoreError::Refused(Refusal::TaskNotFound(id)))?;
        may_end(&task, who, ending)?;
        if outcome.is_none() {
            self.must_be_endable(id, ending)?;
        }
        Ok(task)
    }

    fn must_be_endable(&self, id: TaskId, ending: Ending) -> Result<(), StoreError> {
        let board = self.with_blockers(id)?;
        match (ending, board.tasks.get(&id)) {
            (Ending::Completed, Some(task)) => must_be_free(&board, task),
            _ => Ok(()),
        }
    }

    /// Returns the tasks blocked by this one that can start now. Edges are stored on both sides, so
    /// no other tasks need be read.
    pub(crate) fn freed_by(&self, task: &Task) -> Result<Vec<TaskId>, StoreError> {
        let mut freed = Vec::new();
        for next in &task.blocks {
            freed.extend(
                self.with_blockers(*next)?.freed_by(task.id).into_iter().filter(|id| id == next),
            );
        }
        Ok(freed)
    }

    /// Releases all unfinished tasks of `who`. Returns them, and the board as it was before.
    pub(crate) fn release_tasks_of(
        &self,
        who: &MemberName,
    ) -> Result<(Vec<Task>, Board), StoreError> {
        let _list = self.lock_list()?;
        let board = self.board()?;
        let held = board.tasks.values().filter(|t| t.is_owned_by(who) && !t.state.is_over());
        let released = held.map(|t| self.change_task(t.id, |task| release(task, who)));
        Ok((released.collect::<Result<_, _>>()?, board))
    }

    /// Starts the task for `who`. The caller holds the list lock; the task is read again under its
    /// own.
    fn start(&self, id: TaskId, who: &MemberName, now: Timestamp) -> Result<Task, StoreError> {
        self.change_task(id, |task| {
            begin(task, who, now)?;
            task.goes_on(rand::uuid());
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
        match document::write_new(
            &self.layout.task(task.id),
            &task.to_object(),
            Durability::Permanent,
        )? {
            true => Ok(()),
            false => Err(StoreError::Contended { path: self.layout.task(task.id), tries: 1 }),
        }
    }

    /// Adds the new tasks to their blockers that were on the board before.
    fn link_to_board(&self, tasks: &[Task], board: &Board) -> Result<(), StoreError> {
        for task in tasks {
            for blocker in task.blocked_by.iter().filter(|b| board.tasks.contains_key(b)) {
                self.change_task(*blocker, |found| {
                    add(&mut found.blocks, task.id);
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    /// Returns the first of `count` free ids in a row, after the largest id in use. If a foreign
    /// file near the limit leaves no room there, takes the highest gap that is wide enough.
    fn next_id(&self, board: &Board, count: u64) -> Result<u64, StoreError> {
        let mark = Some(self.mark()?).filter(|mark| *mark <= TaskId::MAX.0);
        let on_disk =
            board.tasks.keys().chain(&board.unreadable).chain(&board.deleted).map(|id| id.0);
        let used: BTreeSet<u64> = on_disk.chain(mark).chain([0]).collect();
        let mut end = TaskId::MAX.0 + 1;
        for id in used.into_iter().rev() {
            if end.saturating_sub(id + 1) >= count {
                return Ok(id + 1);
            }
            end = id;
        }
        Err(StoreError::NoFreeIds { wanted: count })
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
        // Other programs can only lock an existing file, and a team that they created may lack this
        // one.
        fs::private_dir(&self.layout.tasks())?;
        fs::create_new(&self.layout.task_list_lock(), b"")?;
        Ok(DirLock::acquire(&self.layout.task_list_lock(), &gate, LOCK_DEADLINE)?)
    }

    fn task_place(&self, id: TaskId) -> Place {
        self.place(&format!("task-{id}"), self.layout.task(id), Writers::AnyProgram)
    }
}

/// Checks that `who` is the owner or the lead (TK-06).
fn may_touch(task: &Task, who: &MemberName) -> Result<(), StoreError> {
    if who.is_lead() || task.is_owned_by(who) {
        return Ok(());
    }
    Err(StoreError::NotYours { id: task.id, owner: task.owner.clone() })
}

/// Checks that `who` may edit or delete the task. Besides the owner and the lead, its creator may,
/// unless the task is in progress.
fn may_edit(task: &Task, who: &MemberName) -> Result<(), StoreError> {
    let is_creator = task.extra.created_by.as_deref().is_some_and(|by| who.clashes_with(by));
    match is_creator && task.state != TaskState::InProgress {
        true => Ok(()),
        false => may_touch(task, who),
    }
}

fn object(file: Value) -> Object {
    match file {
        Value::Object(object) => object,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Object::new()
        }
    }
}

fn may_end(task: &Task, who: &MemberName, ending: Ending) -> Result<(), StoreError> {
    may_touch(task, who)?;
    may_become(task, ending.state())
}

fn must_be_free(board: &Board, task: &Task) -> Result<(), StoreError> {
    match board.open_blockers(task) {
        by if by.is_empty() => Ok(()),
        by => Err(Refusal::Blocked { id: task.id, by }.into()),
    }
}

fn may_become(task: &Task, next: TaskState) -> Result<(), StoreError> {
    match task.state.may_become(next) {
        true => Ok(()),
        false => Err(StoreError::Transition {
            id: task.id,
            from: task.state.as_str(),
            to: next.as_str(),
        }),
    }
}

fn transition(task: &mut Task, next: TaskState) -> Result<(), StoreError> {
    may_become(task, next)?;
    task.state = next;
    Ok(())
}

fn begin(task: &mut Task, who: &MemberName, now: Timestamp) -> Result<(), StoreError> {
    if let Some(owner) = task.owner.as_ref().filter(|_| !task.is_owned_by(who)) {
        return Err(Refusal::AlreadyClaimed { id: task.id, owner: owner.clone() }.into());
    }
    transition(task, TaskState::InProgress)?;
    task.owner = Some(who.to_string());
    task.extra.claimed_at = Some(now);
    Ok(())
}

/// Records the end of a task. The caller has checked that its state allows it.
fn finish(
    task: &mut Task,
    who: &MemberName,
    ending: Ending,
    outcome: Option<&Outcome>,
    now: Timestamp,
) {
    task.state = ending.state();
    task.extra.outcome = outcome.cloned();
    task.extra.ended_at = Some(now);
    task.extra.ended_by = Some(who.to_string());
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
    task.extra.assigned_by = None;
    task.extra.untold = false;
    task.extra.claimed_at = None;
    task.goes_on(rand::uuid());
    Ok(())
}

/// Checks the owners' limits; earlier tasks of the batch count.
fn admit(board: &Board, batch: &[NewTask], tasks: &[Task]) -> Result<(), StoreError> {
    for (place, (new, task)) in batch.iter().zip(tasks).enumerate() {
        let (Some(owner), Some(limits), Some(by)) =
            (&new.owner, new.limits, &task.extra.assigned_by)
        else {
            continue;
        };
        let there = board.work().chain(&tasks[..place]);
        limits.admit(there, owner, &MemberName::existing(by)?)?;
    }
    Ok(())
}

fn add(edges: &mut Vec<TaskId>, id: TaskId) {
    if !edges.contains(&id) {
        edges.push(id);
    }
}

/// Builds the tasks of a batch, with ids and with both sides of the edges within it.
fn number(batch: &[NewTask], first: u64, by: &str, now: Timestamp) -> Vec<Task> {
    let id_of = |place: usize| TaskId(first + place as u64);
    let mut tasks: Vec<Task> = Vec::with_capacity(batch.len());
    for (place, new) in batch.iter().enumerate() {
        let mut task = Task::new(id_of(place), &new.subject, &new.description);
        task.active_form.clone_from(&new.active_form);
        task.owner = new.owner.as_ref().map(MemberName::to_string);
        task.blocked_by =
            new.blocked_by.iter().copied().chain(new.after.iter().map(|p| id_of(*p))).collect();
        task.metadata.clone_from(&new.metadata);
        task.metadata.shift_remove("phalanx");
        let assigned_by =
            new.owner.as_ref().filter(|owner| owner.as_str() != by).map(|_| by.to_owned());
        let created_by = Some(by.to_owned());
        task.extra = Extra { created_by, created_at: Some(now), assigned_by, ..new.extra.clone() };
        task.goes_on(rand::uuid());
        tasks.push(task);
    }
    for (place, new) in batch.iter().enumerate() {
        for blocker in &new.after {
            tasks[*blocker].blocks.push(id_of(place));
        }
    }
    tasks
}
