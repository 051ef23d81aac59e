//! Editing and deleting of tasks. Both sides of every edge are updated, and the ids of deleted
//! tasks stay on record.

use super::rules::{
    TaskStep, act, add_edge, begin, may_act, may_edit, may_touch, must_be_free, set_owner,
};
use crate::error::StoreError;
use crate::files::dirs;
use crate::team::TeamStore;
use model::board::limits::Limits;
use model::board::task::{Progress, Task, TaskAction, TaskFields, TaskState};
use model::board::{Board, Refusal};
use model::id::{MemberName, TaskId};
use model::team::followup::{Escalation, NotificationStep, TaskReminder};
use model::time::Timestamp;
use sys::lock::{DirLock, LOCK_DEADLINE};
use sys::{fs, rand};

/// The owner that an edit sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskOwner {
    Nobody,
    Member(MemberName),
}

/// The status that an edit sets, as named on the wire.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, strum::EnumString, strum::VariantNames,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum TargetStatus {
    Pending,
    InProgress,
    Completed,
}

impl TargetStatus {
    pub fn state(self) -> TaskState {
        match self {
            TargetStatus::Pending => TaskState::Pending,
            TargetStatus::InProgress => TaskState::InProgress,
            TargetStatus::Completed => TaskState::Completed,
        }
    }
}

/// The changes of an edit. `None` or an empty list leaves a field as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskChanges {
    pub subject: Option<String>,
    pub description: Option<String>,
    pub fields: TaskFields,
    pub status: Option<TargetStatus>,
    /// See [`NewTask::named_blockers`](super::work::NewTask::named_blockers).
    pub named_blockers: Option<Vec<String>>,
    pub owner: Option<TaskOwner>,
    /// Marks the new owner as not yet notified, until [`TeamStore::mark_owner_notified`].
    pub notify_owner: bool,
    /// Limits on assignments to the new owner. `None` if the owner takes the task itself.
    pub limits: Option<Limits>,
    /// Blockers to add.
    pub blocked_by: Vec<TaskId>,
    /// Blockers to remove.
    pub unblock: Vec<TaskId>,
    /// Tasks that this one is to block.
    pub blocks: Vec<TaskId>,
}

impl TaskChanges {
    /// Returns the wire names of the fields to change, except the status.
    pub fn fields(&self) -> Vec<&'static str> {
        let given = [
            ("subject", self.subject.is_some()),
            ("description", self.description.is_some()),
            ("owner", self.owner.is_some()),
            ("blockedBy", !self.blocked_by.is_empty() || !self.unblock.is_empty()),
            ("blocks", !self.blocks.is_empty()),
        ];
        let given = given.into_iter().filter(|(_, given)| *given).map(|(name, _)| name);
        given.chain(self.fields.names()).collect()
    }

    /// Checks that `who` may make these changes. Any member may take a free task. Only the owner or
    /// the lead sets a status; a member that takes the task becomes its owner.
    fn may_be_made(&self, task: &Task, who: &MemberName) -> Result<(), StoreError> {
        let takes =
            task.owner_name().is_none() && self.owner == Some(TaskOwner::Member(who.clone()));
        let fields = self.fields();
        let is_edited = if takes { fields != ["owner"] } else { !fields.is_empty() };
        if is_edited {
            may_edit(task, who)?;
        }
        match self.status {
            Some(_) if !takes => may_touch(task, who),
            Some(_) | None => Ok(()),
        }
    }

    /// Returns true if the owner or an edge changes, which only an unfinished task allows.
    fn moves_task(&self) -> bool {
        let edges = [&self.blocked_by, &self.unblock, &self.blocks];
        self.owner.is_some() || edges.iter().any(|edges| !edges.is_empty())
    }
}

/// The result of an edit.
#[derive(Debug)]
pub struct TaskChanged {
    pub before: Task,
    pub task: Task,
    /// The task was blocked before and no longer is.
    pub unblocked: bool,
    /// The tasks that can start because this one was completed.
    pub freed: Vec<TaskId>,
}

impl TeamStore {
    /// Edits a task, as far as `who` may. A task in progress becomes pending again if its owner
    /// changes. A refusal changes nothing.
    ///
    /// # Errors
    /// [`StoreError::Circle`] if tasks would wait for each other; [`StoreError::NotYours`] if `who`
    /// may not make the changes; [`StoreError::Over`] if the owner or an edge of a finished task
    /// would change; [`StoreError::AtCapacity`] if the new owner has reached its limits;
    /// [`StoreError::Refused`] if a task does not exist or is blocked.
    pub fn update_task(
        &self,
        id: TaskId,
        who: &MemberName,
        changes: &TaskChanges,
        now: Timestamp,
    ) -> Result<TaskChanged, StoreError> {
        let _list = self.lock_list()?;
        // A refusal comes before the first write.
        let (board, before, _) = self.plan_update(id, who, changes, now)?;
        // Write the task's own side first: after a crash in between, it waits too long rather than
        // not at all.
        let mut task = self.change_task(id, |task| {
            changes.may_be_made(task, who)?;
            edit(task, who, changes, now)?;
            task.goes_on(rand::uuid());
            Ok(())
        })?;
        for other in before.blocked_by.iter().filter(|b| !task.blocked_by.contains(b)) {
            if board.tasks.contains_key(other) {
                self.change_task(*other, |blocker| {
                    blocker.blocks.retain(|b| *b != id);
                    Ok(())
                })?;
            }
        }
        for other in task.blocked_by.iter().filter(|b| board.tasks.contains_key(b)) {
            self.change_task(*other, |blocker| {
                add_edge(&mut blocker.blocks, id);
                Ok(())
            })?;
        }
        for other in &changes.blocks {
            self.change_task(*other, |blocked| {
                add_edge(&mut blocked.blocked_by, id);
                Ok(())
            })?;
        }
        if !changes.blocks.is_empty() {
            task = self.change_task(id, |task| {
                changes.blocks.iter().for_each(|other| add_edge(&mut task.blocks, *other));
                Ok(())
            })?;
        }
        let was_blocked = !board.open_blockers(&before).is_empty();
        let unblocked = was_blocked && board.open_blockers(&task).is_empty();
        let completed = task.state == TaskState::Completed && before.state != TaskState::Completed;
        let freed = if completed { self.freed_by(&task)? } else { Vec::new() };
        Ok(TaskChanged { before, task, unblocked, freed })
    }

    /// Returns the task as an edit would leave it.
    ///
    /// # Errors
    /// As [`TeamStore::update_task`].
    pub fn task_after(
        &self,
        id: TaskId,
        who: &MemberName,
        changes: &TaskChanges,
        now: Timestamp,
    ) -> Result<Task, StoreError> {
        let _list = self.lock_list()?;
        self.plan_update(id, who, changes, now).map(|(_, _, planned)| planned)
    }

    /// Returns the board with the new edges, and the task before and after the edit. The caller
    /// holds the list lock.
    fn plan_update(
        &self,
        id: TaskId,
        who: &MemberName,
        changes: &TaskChanges,
        now: Timestamp,
    ) -> Result<(Board, Task, Task), StoreError> {
        let mut board = self.board()?;
        let before = board.tasks.get(&id).ok_or(Refusal::TaskNotFound(id))?.clone();
        changes.may_be_made(&before, who)?;
        admit(&board, &before, who, changes)?;
        link(&mut board, id, who, changes)?;
        let mut planned = before.clone();
        edit(&mut planned, who, changes, now)?;
        match planned.state {
            state if state == before.state => {}
            TaskState::InProgress => may_begin(&mut board, &planned)?,
            TaskState::Completed => must_be_free(&board, &planned)?,
            TaskState::Pending
            | TaskState::Blocked
            | TaskState::Stopping
            | TaskState::InReview
            | TaskState::Failed
            | TaskState::Cancelled
            | TaskState::Stale => {}
        }
        Ok((board, before, planned))
    }

    /// Makes a failed or stale task pending again: for its owner if `keep_owner` is set, else for
    /// any member. Returns the task before and after.
    ///
    /// # Errors
    /// [`StoreError::NotYours`] if `who` is not the owner or the lead; [`StoreError::Transition`]
    /// if the task is neither failed nor stale.
    pub fn retry_task(
        &self,
        id: TaskId,
        who: &MemberName,
        keep_owner: bool,
        notify_owner: bool,
        now: Timestamp,
    ) -> Result<(Task, Task), StoreError> {
        let _list = self.lock_list()?;
        let before = self.task(id)?.ok_or(Refusal::TaskNotFound(id))?;
        may_act(&before, TaskAction::Retry, who)?;
        let task = self.change_task(id, |task| {
            act(task, who, &TaskStep::of(TaskAction::Retry), now)?;
            if !keep_owner {
                (task.owner, task.extra.assigned_by) = (None, None);
            }
            task.extra.untold = notify_owner;
            task.goes_on(rand::uuid());
            Ok(())
        })?;
        Ok((before, task))
    }

    /// Sets the progress of a task in progress.
    ///
    /// # Errors
    /// [`StoreError::NotYours`] unless `who` is the owner or the lead; [`StoreError::NotRunning`]
    /// unless the task is in progress.
    pub fn set_progress(
        &self,
        id: TaskId,
        who: &MemberName,
        progress: &Progress,
    ) -> Result<Task, StoreError> {
        self.change_task(id, |task| {
            may_touch(task, who)?;
            if task.state != TaskState::InProgress {
                return Err(StoreError::NotRunning { id, state: task.state });
            }
            task.extra.progress = Some(progress.clone());
            Ok(())
        })
    }

    /// Sets the reminder of an open task, or removes it.
    ///
    /// # Errors
    /// [`StoreError::NotYours`] unless `who` is the owner, the creator or the lead. A creator that
    /// does not own the task cannot let a reminder fail it. [`Refusal::AlreadyResolved`] for a
    /// reminder on a task that has ended.
    pub fn set_reminder(
        &self,
        id: TaskId,
        who: &MemberName,
        reminder: Option<&TaskReminder>,
    ) -> Result<Task, StoreError> {
        let fails = reminder.is_some_and(|reminder| reminder.escalation == Escalation::FailTask);
        self.change_task(id, |task| {
            if fails || !task.is_created_by(who) {
                may_touch(task, who)?;
            }
            if task.state.is_over() && reminder.is_some() {
                return Err(Refusal::AlreadyResolved { id, state: task.state }.into());
            }
            task.extra.reminder = reminder.cloned();
            task.goes_on(rand::uuid());
            Ok(())
        })
    }

    /// Records the step of the task's reminder that is due as sent, and returns it.
    pub fn count_reminder(
        &self,
        id: TaskId,
        now: Timestamp,
    ) -> Result<Option<NotificationStep>, StoreError> {
        let mut due = None;
        self.change_task(id, |task| {
            let is_open = !task.state.is_over();
            let reminder = task.extra.reminder.as_mut().filter(|_| is_open);
            due = reminder.as_ref().and_then(|reminder| reminder.due(now));
            if let (Some(reminder), Some(step)) = (reminder, due) {
                (reminder.sent, reminder.last) = (step.times(), now);
            }
            Ok(())
        })?;
        Ok(due)
    }

    /// Records that the owner was notified of the assignment.
    pub fn mark_owner_notified(&self, id: TaskId) -> Result<(), StoreError> {
        self.change_task(id, |task| {
            task.extra.untold = false;
            Ok(())
        })?;
        Ok(())
    }

    /// Deletes a task and every edge to it; its id is never reused. Returns the task and those that
    /// can start because of this.
    ///
    /// # Errors
    /// [`StoreError::NotOver`] if the task is not finished, unless `force` is set;
    /// [`StoreError::NotYours`] if `who` is not the owner, the creator or the lead.
    pub fn delete_task(
        &self,
        id: TaskId,
        who: &MemberName,
        force: bool,
    ) -> Result<(Task, Vec<TaskId>), StoreError> {
        let _list = self.lock_list()?;
        let task = self.remove_task(id, who, force)?;
        // Remove the edges after the file: an edge to a missing task blocks nothing, whereas a lost
        // edge to an existing one would free a task too early.
        let board = self.board()?;
        for other in
            board.tasks.values().filter(|t| t.blocks.contains(&id) || t.blocked_by.contains(&id))
        {
            self.change_task(other.id, |found| {
                found.blocks.retain(|b| *b != id);
                found.blocked_by.retain(|b| *b != id);
                Ok(())
            })?;
        }
        let freed = if task.state.frees_dependants() { Vec::new() } else { board.freed_by(id) };
        Ok((task, freed))
    }

    /// Removes a task without its edges.
    pub(crate) fn remove_task(
        &self,
        id: TaskId,
        who: &MemberName,
        force: bool,
    ) -> Result<Task, StoreError> {
        let check = |task: &Task| {
            may_edit(task, who)?;
            if !task.state.is_over() && !force {
                return Err(StoreError::NotOver { id, state: task.state });
            }
            Ok(())
        };
        if let Some(shared) = &self.shared {
            return shared.remove_task(id, check);
        }
        let place = self.task_place(id);
        dirs::make_dirs_of(&place.gate)?;
        let lock = DirLock::acquire(&place.path, &place.gate, LOCK_DEADLINE)?;
        let task = self.task(id)?.ok_or(Refusal::TaskNotFound(id))?;
        check(&task)?;
        self.raise_mark(id.0)?;
        self.record_deletion(id)?;
        if !lock.still_ours() {
            return Err(StoreError::LockLost { path: place.path });
        }
        fs::remove_file(&place.path)?;
        Ok(task)
    }
}

/// Adds the new edges to the board in memory one by one, so that they are checked against each
/// other.
fn link(
    board: &mut Board,
    id: TaskId,
    who: &MemberName,
    changes: &TaskChanges,
) -> Result<(), StoreError> {
    if let Some(task) = board.tasks.get_mut(&id) {
        task.blocked_by.retain(|b| !changes.unblock.contains(b));
    }
    let before = changes.blocked_by.iter().map(|blocker| (id, *blocker));
    let after = changes.blocks.iter().map(|blocked| (*blocked, id));
    for (task, blocker) in before.chain(after) {
        let other = if task == id { blocker } else { task };
        let found = board.tasks.get(&other).ok_or(Refusal::TaskNotFound(other))?;
        if task != id {
            may_edit(found, who)?;
            if found.state.is_over() {
                return Err(StoreError::Over { id: task, state: found.state });
            }
        }
        if let Some(path) = board.circle(task, blocker) {
            return Err(StoreError::Circle { task, blocker, path });
        }
        if let Some(task) = board.tasks.get_mut(&task) {
            add_edge(&mut task.blocked_by, blocker);
        }
    }
    Ok(())
}

/// Checks that the new owner could claim the task as planned.
fn may_begin(board: &mut Board, planned: &Task) -> Result<(), StoreError> {
    let owner = MemberName::existing(planned.owner.as_deref().unwrap_or_default())?;
    board.tasks.insert(planned.id, Task { state: TaskState::Pending, ..planned.clone() });
    Ok(board.may_claim(planned.id, &owner, false)?)
}

/// Checks the limits of a new owner.
fn admit(
    board: &Board,
    task: &Task,
    by: &MemberName,
    changes: &TaskChanges,
) -> Result<(), StoreError> {
    match (&changes.owner, changes.limits) {
        (Some(TaskOwner::Member(owner)), Some(limits))
            if !task.is_owned_by(owner) && !task.state.is_over() =>
        {
            Ok(limits.admit(board.work(), owner, by)?)
        }
        (Some(_) | None, _) => Ok(()),
    }
}

pub(super) fn edit(
    task: &mut Task,
    who: &MemberName,
    changes: &TaskChanges,
    now: Timestamp,
) -> Result<(), StoreError> {
    if changes.status == Some(TargetStatus::Pending) && task.state == TaskState::Failed {
        act(task, who, &TaskStep::of(TaskAction::Retry), now)?;
    }
    if changes.moves_task() && task.state.is_over() {
        return Err(StoreError::Over { id: task.id, state: task.state });
    }
    changes.subject.iter().for_each(|subject| task.subject.clone_from(subject));
    changes.description.iter().for_each(|text| task.description.clone_from(text));
    changes.fields.apply(task);
    changes.named_blockers.iter().for_each(|names| task.extra.after.clone_from(names));
    task.blocked_by.retain(|b| !changes.unblock.contains(b));
    changes.blocked_by.iter().for_each(|b| add_edge(&mut task.blocked_by, *b));
    match &changes.owner {
        Some(TaskOwner::Member(name)) if !task.is_owned_by(name) => {
            set_owner(task, Some(name), changes.notify_owner);
            task.extra.assigned_by = (name != who).then(|| who.to_string());
        }
        Some(TaskOwner::Nobody) => set_owner(task, None, false),
        Some(TaskOwner::Member(_)) | None => {}
    }
    match changes.status.filter(|status| status.state() != task.state) {
        Some(TargetStatus::InProgress) if task.state == TaskState::Stale => {
            act(task, who, &TaskStep::of(TaskAction::Recover), now)
        }
        Some(TargetStatus::InProgress) => {
            let owner = task.owner_name().map(MemberName::existing).transpose()?;
            begin(task, owner.as_ref().unwrap_or(who), now)
        }
        Some(TargetStatus::Completed) if task.state == TaskState::InReview => {
            act(task, who, &TaskStep::of(TaskAction::Approve), now)
        }
        Some(TargetStatus::Completed) => act(task, who, &TaskStep::of(TaskAction::Complete), now),
        Some(TargetStatus::Pending) => {
            let owner = task.owner.clone();
            act(task, who, &TaskStep::of(TaskAction::Release), now)?;
            task.owner = owner;
            Ok(())
        }
        None => Ok(()),
    }
}
