//! Creating, claiming, stopping, ending and releasing tasks.

use super::batch::TaskBatch;
use super::rules::{TaskStep, act, begin, may_act, must_be_free, release};
use crate::error::StoreError;
use crate::files::dirs;
use crate::team::TeamStore;
use model::board::limits::Limits;
use model::board::task::{Extra, Stopping, Task, TaskAction, TaskFields, TaskState};
use model::board::{Board, Refusal};
use model::id::{MemberName, TaskId};
use model::mail::scope::Scope;
use model::team::event::{EventKind, Note};
use model::time::Timestamp;
use sys::lock::{Gate, LOCK_DEADLINE};
use sys::rand;

/// A task to create.
#[derive(Debug, Clone, Default)]
pub struct NewTask {
    /// Its key in the file that defines it.
    pub key: Option<String>,
    pub subject: String,
    pub description: String,
    pub fields: TaskFields,
    /// The origin of the request for it.
    pub scope: Scope,
    pub owner: Option<MemberName>,
    /// Marks the owner as not yet notified.
    pub notify_owner: bool,
    /// Limits on assignments to the owner. `None` for a planned task, which is not checked.
    pub limits: Option<Limits>,
    /// Blockers that are on the board already.
    pub blocked_by: Vec<TaskId>,
    /// Blockers in the same batch, by their index.
    pub after: Vec<usize>,
    /// The blockers as the file that defines it names them.
    pub named_blockers: Vec<String>,
}

/// The tasks that each member held, and the board before they were released.
pub type ReleasedTasks = (Vec<Result<Vec<Task>, StoreError>>, Board);

/// The tasks that [`TeamStore::claim_next`] looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimKind {
    /// Tasks with a command, for a worker that has nothing else to do.
    Command,
    /// Tasks without a command. With `busy_check`, the member must have no task in progress.
    Prompt { busy_check: bool },
}

impl ClaimKind {
    fn candidates<'a>(
        self,
        board: &'a Board,
        who: &'a MemberName,
        role: Option<&'a str>,
    ) -> Box<dyn Iterator<Item = &'a Task> + 'a> {
        match self {
            ClaimKind::Command => Box::new(board.all_for_worker(who, role)),
            ClaimKind::Prompt { .. } => Box::new(board.all_for_agent(who, role)),
        }
    }
}

impl TeamStore {
    /// Creates all tasks of the batch or none, with ids in the order given.
    ///
    /// # Errors
    /// [`Refusal::TaskNotFound`] if a blocker is not on the board; [`StoreError::AtCapacity`] if an
    /// owner has reached its limits; [`StoreError::NoFreeIds`] if there is no room for the batch.
    pub fn create_tasks(
        &self,
        batch: &[NewTask],
        by: &str,
        now: Timestamp,
    ) -> Result<Vec<Task>, StoreError> {
        let list = self.lock_list()?;
        let has_limits = batch.iter().any(|new| new.owner.is_some() && new.limits.is_some());
        let batch = if has_limits || self.shared.is_some() {
            self.new_tasks(&self.board()?, batch, by, now)?
        } else {
            // The names of the files tell which ids are free, without reading the tasks.
            let used = self.task_ids()?.into_iter().chain(self.deleted_tasks()?);
            self.number_tasks(&self.blockers_of(batch)?, used, batch, by, now)?
        };
        self.write_batch(&list, &batch)?;
        Ok(batch.create)
    }

    /// Returns the readable tasks of the board that block new ones.
    fn blockers_of(&self, batch: &[NewTask]) -> Result<Board, StoreError> {
        let mut board = Board::default();
        for id in batch.iter().flat_map(|new| &new.blocked_by) {
            match self.task(*id) {
                Ok(task) => board.tasks.extend(task.map(|task| (*id, task))),
                Err(e) if e.is_about_content() => {}
                Err(e) => return Err(e),
            }
        }
        Ok(board)
    }

    /// Returns the new tasks, with ids, and their edges to the board. The caller holds the list
    /// lock and has read the board under it.
    pub(super) fn new_tasks<'e>(
        &self,
        board: &Board,
        batch: &[NewTask],
        by: &str,
        now: Timestamp,
    ) -> Result<TaskBatch<'e>, StoreError> {
        let used = board.tasks.keys().chain(&board.unreadable).chain(&board.deleted).copied();
        self.number_tasks(board, used, batch, by, now)
    }

    /// As [`TeamStore::new_tasks`], for a board of which only the blockers need be known, and the
    /// ids in `used`.
    fn number_tasks<'e>(
        &self,
        board: &Board,
        used: impl IntoIterator<Item = TaskId>,
        batch: &[NewTask],
        by: &str,
        now: Timestamp,
    ) -> Result<TaskBatch<'e>, StoreError> {
        if batch.is_empty() {
            return Ok(TaskBatch::default());
        }
        let mut blockers = batch.iter().flat_map(|t| &t.blocked_by);
        if let Some(missing) = blockers.find(|id| !board.tasks.contains_key(id)) {
            return Err(Refusal::TaskNotFound(*missing).into());
        }
        let first = self.next_id(used, batch.len() as u64)?;
        let tasks = number(batch, first, by, now);
        admit(board, batch, &tasks)?;
        // Raise the mark first, so that an id is never assigned twice, even after a crash here
        // (TK-07).
        self.raise_mark(first + tasks.len() as u64 - 1)?;
        let edges = tasks.iter().flat_map(|task| {
            let on_board = task.blocked_by.iter().filter(|id| board.tasks.contains_key(id));
            on_board.map(|blocker| (*blocker, task.id))
        });
        let edges: Vec<(TaskId, TaskId)> = edges.collect();
        let mut batch = TaskBatch { create: tasks, ..TaskBatch::default() };
        batch.link(edges);
        Ok(batch)
    }

    /// Claims one task for `who`. With `busy_check`, `who` must have no other task in progress.
    ///
    /// # Errors
    /// [`StoreError::Refused`] if `who` may not claim it.
    pub fn claim(
        &self,
        id: TaskId,
        who: &MemberName,
        busy_check: bool,
        now: Timestamp,
    ) -> Result<Task, StoreError> {
        if let Some(shared) = &self.shared {
            return shared.claim(id, who, busy_check, now);
        }
        let _list = self.lock_list()?;
        let mut around = self.with_blockers(id)?;
        if busy_check || around.tasks.get(&id).is_some_and(|t| !t.extra.files.is_empty()) {
            // Conflicts with other tasks can only be found on the whole board.
            around = self.board()?;
        }
        around.may_claim(id, who, busy_check)?;
        self.start(id, who, now)
    }

    /// Claims the next task of this kind that suits `who` in its role; `None` if there is none.
    ///
    /// Reads the open tasks without the lock, since that is slow and most wake-ups find nothing.
    /// Under the lock it reads only what may have changed: the task and its blockers. `who` is
    /// still free, because the gate excludes other claims for `who`. A task with file patterns may
    /// conflict with any other, so for one of these the whole board is read again.
    pub fn claim_next(
        &self,
        who: &MemberName,
        role: Option<&str>,
        kind: ClaimKind,
        now: Timestamp,
    ) -> Result<Option<Task>, StoreError> {
        if let Some(shared) = &self.shared {
            return shared.claim_next(who, role, kind, now);
        }
        let gate = self.layout.gate(&format!("claims-{}", who.file_stem()));
        dirs::make_dirs_of(&gate)?;
        let _alone = Gate::open(&gate, LOCK_DEADLINE)?;
        let seen = self.open_board()?;
        if let (ClaimKind::Prompt { busy_check: true }, Some(with)) = (kind, seen.work_of(who)) {
            return Err(Refusal::AgentBusy { who: who.to_string(), with }.into());
        }
        let mut wanted = kind.candidates(&seen, who, role).peekable();
        if wanted.peek().is_none() {
            return Ok(None);
        }
        let _list = self.lock_list()?;
        for task in wanted.take_while(|t| t.extra.files.is_empty()) {
            if self.is_still_free(task, who)? {
                return self.start(task.id, who, now).map(Some);
            }
        }
        let next = kind.candidates(&self.board()?, who, role).next().map(|task| task.id);
        next.map(|id| self.start(id, who, now)).transpose()
    }

    /// Journals a claim. In the shared store, the claim has done that itself.
    pub fn record_claim(&self, task: &Task, who: &MemberName) -> Result<(), StoreError> {
        if self.shared.is_none() {
            self.record(Note::of_task(EventKind::TaskClaimed, task).member(who))?;
        }
        Ok(())
    }

    /// Returns true if `who` can still claim the task, which is of the kind that it was.
    fn is_still_free(&self, seen: &Task, who: &MemberName) -> Result<bool, StoreError> {
        let around = self.with_blockers(seen.id)?;
        let Some(task) = around.tasks.get(&seen.id) else { return Ok(false) };
        let is_same = task.extra.run.is_empty() == seen.extra.run.is_empty();
        let is_plain = is_same && task.extra.files.is_empty();
        Ok(is_plain && around.may_claim(seen.id, who, false).is_ok())
    }

    /// Performs an action on a task. Returns the task and those that can start now.
    ///
    /// # Errors
    /// [`Refusal::Blocked`] for a completion without an outcome while blockers are open; a command
    /// that has run is recorded in any case. [`StoreError::NotYours`] or [`StoreError::LeadOnly`]
    /// if `who` may not perform it; [`StoreError::Transition`] if the task's state does not allow
    /// it.
    pub fn step_task(
        &self,
        id: TaskId,
        who: &MemberName,
        step: &TaskStep,
        now: Timestamp,
    ) -> Result<(Task, Vec<TaskId>), StoreError> {
        let list = self.lock_list()?;
        if step.outcome.is_none() {
            self.must_be_free_for(id, step.action)?;
        }
        let task = self.change_task(id, |task| {
            act(task, who, step, now)?;
            task.goes_on(rand::uuid());
            Ok(())
        })?;
        // Still under the list lock: if two last blockers end at the same time, exactly one of the
        // calls returns the freed task (TK-04).
        let freed = self.freed_by(&task)?;
        drop(list);
        Ok((task, freed))
    }

    /// Returns the task if `who` could perform the action on it now.
    ///
    /// # Errors
    /// As [`TeamStore::step_task`]; [`Refusal::TaskNotFound`] if there is no such task.
    pub fn task_before(
        &self,
        id: TaskId,
        who: &MemberName,
        step: &TaskStep,
    ) -> Result<Task, StoreError> {
        let task = self.task(id)?.ok_or(StoreError::Refused(Refusal::TaskNotFound(id)))?;
        may_act(&task, step.action, who)?;
        if step.outcome.is_none() {
            self.must_be_free_for(id, step.action)?;
        }
        Ok(task)
    }

    /// A task with open blockers is neither completed, submitted nor approved.
    fn must_be_free_for(&self, id: TaskId, action: TaskAction) -> Result<(), StoreError> {
        let needs = matches!(
            action,
            TaskAction::Claim | TaskAction::Complete | TaskAction::Review | TaskAction::Approve
        );
        let board = self.with_blockers(id)?;
        board.tasks.get(&id).filter(|_| needs).map_or(Ok(()), |task| must_be_free(&board, task))
    }

    /// Returns the tasks blocked by this one that can start now. Edges are stored on both sides, so
    /// no other tasks need be read.
    pub fn freed_by(&self, task: &Task) -> Result<Vec<TaskId>, StoreError> {
        let mut freed = Vec::new();
        for next in &task.blocks {
            freed.extend(
                self.with_blockers(*next)?.freed_by(task.id).into_iter().filter(|id| id == next),
            );
        }
        Ok(freed)
    }

    /// Releases all unfinished tasks of each of `members`, except the one that is completed when it
    /// is ready. Returns those of each, and the board as it was before.
    pub fn release_tasks_of(&self, members: &[&MemberName]) -> Result<ReleasedTasks, StoreError> {
        let _list = self.lock_list()?;
        let board = self.board()?;
        let is_open = |t: &&Task| !t.state.is_over() && t.state != TaskState::InReview;
        let release_of = |who: &&MemberName| {
            let owned = board.tasks.values().filter(|t| t.is_owned_by(who));
            let held = owned.filter(is_open).filter(|t| t.awaited_member().is_none());
            let released = held.map(|t| {
                self.change_task(t.id, |task| {
                    release(task, who);
                    Ok(())
                })
            });
            released.collect()
        };
        Ok((members.iter().map(release_of).collect(), board))
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

    /// Asks the owner of a running task to end its command, before another member takes the task
    /// from it: the owner confirms, and only then the task changes hands. A command that has ended
    /// for an earlier taker stays ended.
    pub fn ask_to_stop(
        &self,
        id: TaskId,
        by: &MemberName,
        until: Timestamp,
    ) -> Result<Task, StoreError> {
        self.change_task(id, |task| {
            if task.state.is_running() {
                let earlier = task.extra.stopping.take();
                let stopped = earlier.is_some_and(|earlier| earlier.stopped);
                task.extra.stopping = Some(Stopping { by: by.to_string(), until, stopped });
            }
            Ok(())
        })
    }

    /// Records that nothing of the command runs any longer, if `who` still has the task and was
    /// asked to stop.
    pub fn confirm_stopped(&self, id: TaskId, who: &MemberName) -> Result<(), StoreError> {
        self.change_task(id, |task| {
            let is_mine = task.state.is_running() && task.is_owned_by(who);
            if let Some(stopping) = task.extra.stopping.as_mut().filter(|_| is_mine) {
                stopping.stopped = true;
            }
            Ok(())
        })
        .map(drop)
    }
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

/// Builds the tasks of a batch, with ids and with both sides of the edges within it.
fn number(batch: &[NewTask], first: u64, by: &str, now: Timestamp) -> Vec<Task> {
    let id_of = |place: usize| TaskId(first + place as u64);
    let mut tasks: Vec<Task> = Vec::with_capacity(batch.len());
    for (place, new) in batch.iter().enumerate() {
        let mut task = Task::new(id_of(place), &new.subject, &new.description);
        task.owner = new.owner.as_ref().map(MemberName::to_string);
        task.blocked_by =
            new.blocked_by.iter().copied().chain(new.after.iter().map(|p| id_of(*p))).collect();
        task.extra = Extra {
            key: new.key.clone(),
            untold: new.notify_owner,
            after: new.named_blockers.clone(),
            scope: new.scope.clone(),
            created_by: Some(by.to_owned()),
            created_at: Some(now),
            assigned_by: task.owner.as_deref().filter(|owner| *owner != by).map(|_| by.to_owned()),
            ..Extra::default()
        };
        new.fields.apply(&mut task);
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
