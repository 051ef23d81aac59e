//! Tasks that are edited and deleted: both sides of every edge, and what is kept of a task that is gone.

use std::collections::BTreeSet;

use super::{add, document, may_touch, transition};
use crate::model::board::{Board, Refusal};
use crate::model::id::{MemberName, TaskId};
use crate::model::limits::Limits;
use crate::model::task::{Task, TaskState};
use crate::store::{StoreError, TeamStore};
use crate::sys::fs;
use crate::sys::lock::{Afterwards, DirLock, LOCK_DEADLINE};
use crate::sys::rand;

/// The list of deleted tasks grows by a few bytes a task.
const MAX_LIST: u64 = 64 * 1024 * 1024;

/// Whose a task shall be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Owner {
    Nobody,
    Member(MemberName),
}

/// What shall be different about a task; what is none or empty stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    pub(crate) subject: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) owner: Option<Owner>,
    /// The new owner is to be told, and is noted as untold until [`TeamStore::owner_is_told`].
    pub(crate) tells: bool,
    /// What the new owner may be given at once; none: it takes it by itself.
    pub(crate) limits: Option<Limits>,
    /// Tasks that must come first from now on.
    pub(crate) blocked_by: Vec<TaskId>,
    /// Tasks that need not come first any more.
    pub(crate) unblock: Vec<TaskId>,
}

impl Changes {
    /// The wire's names of what is to be different.
    pub(crate) fn fields(&self) -> Vec<&'static str> {
        let edges = !self.blocked_by.is_empty() || !self.unblock.is_empty();
        let given = [
            ("subject", self.subject.is_some()),
            ("description", self.description.is_some()),
            ("owner", self.owner.is_some()),
            ("blockedBy", edges),
        ];
        given.into_iter().filter(|(_, given)| *given).map(|(name, _)| name).collect()
    }
}

impl TeamStore {
    /// Edits a task. `who` must own it; the lead may edit any. Work that was begun goes back to pending when the task
    /// gets another owner. Gives the task, and whether it was blocked and is not any more.
    ///
    /// # Errors
    /// [`StoreError::Circle`] where tasks would wait for each other; then nothing is changed.
    pub(crate) fn update_task(
        &self,
        id: TaskId,
        who: &MemberName,
        changes: &Changes,
    ) -> Result<(Task, bool), StoreError> {
        let _list = self.lock_list()?;
        let mut board = self.board()?;
        let found = board.tasks.get(&id).ok_or(Refusal::TaskNotFound(id))?;
        may_touch(found, who)?;
        let before = found.blocked_by.clone();
        let was_blocked = !board.open_blockers(found).is_empty();
        admit(&board, found, who, changes)?;
        link(&mut board, id, changes)?;
        // Its own side first: if we die in between, the task waits too long rather than not at all.
        let task = self.change_task(id, |task| {
            may_touch(task, who)?;
            edit(task, who, changes)?;
            task.goes_on(rand::uuid());
            Ok(())
        })?;
        for other in before.iter().filter(|b| !task.blocked_by.contains(b) && board.tasks.contains_key(b)) {
            self.change_task(*other, |blocker| {
                blocker.blocks.retain(|b| *b != id);
                Ok(())
            })?;
        }
        for other in task.blocked_by.iter().filter(|b| board.tasks.contains_key(b)) {
            self.change_task(*other, |blocker| {
                add(&mut blocker.blocks, id);
                Ok(())
            })?;
        }
        let freed = was_blocked && board.open_blockers(&task).is_empty();
        Ok((task, freed))
    }

    /// The owner of a task was told that it is theirs.
    pub(crate) fn owner_is_told(&self, id: TaskId) -> Result<(), StoreError> {
        self.change_task(id, |task| {
            task.extra.untold = false;
            Ok(())
        })?;
        Ok(())
    }

    /// Takes a task off the board with every edge to it; its id is never given again. `who` must own it; the lead may
    /// delete any. One that is not over only by force. Gives the task and those that it freed.
    pub(crate) fn delete_task(
        &self,
        id: TaskId,
        who: &MemberName,
        force: bool,
    ) -> Result<(Task, Vec<TaskId>), StoreError> {
        let _list = self.lock_list()?;
        let task = self.remove_task(id, who, force)?;
        // After the file: an edge to a task that is gone blocks nobody, a lost edge to one that is there would free.
        let board = self.board()?;
        for other in board.tasks.values().filter(|t| t.blocks.contains(&id) || t.blocked_by.contains(&id)) {
            self.change_task(other.id, |found| {
                found.blocks.retain(|b| *b != id);
                found.blocked_by.retain(|b| *b != id);
                Ok(())
            })?;
        }
        let freed = if task.state.frees_dependants() { Vec::new() } else { board.freed_by(id) };
        Ok((task, freed))
    }

    fn remove_task(&self, id: TaskId, who: &MemberName, force: bool) -> Result<Task, StoreError> {
        let place = self.task_place(id);
        document::ready_gate(&place.gate)?;
        let lock = DirLock::acquire(&place.path, &place.gate, Afterwards::Removed, LOCK_DEADLINE)?;
        let task = self.task(id)?.ok_or(Refusal::TaskNotFound(id))?;
        may_touch(&task, who)?;
        if !task.state.is_over() && !force {
            return Err(StoreError::NotOver { id, state: task.state });
        }
        self.raise_mark(id.0)?;
        self.note_deletion(id)?;
        if !lock.still_ours() {
            return Err(StoreError::LockLost { path: place.path });
        }
        fs::remove_file(&place.path)?;
        Ok(task)
    }

    /// Notes that phalanx takes this task away, so that nobody takes it for the work of a stranger (TK-07).
    pub(super) fn note_deletion(&self, id: TaskId) -> Result<(), StoreError> {
        Ok(fs::append_line(&self.layout.deleted_tasks(), id.to_string().as_bytes())?)
    }

    pub(super) fn deleted_tasks(&self) -> Result<BTreeSet<TaskId>, StoreError> {
        let bytes = fs::read(&self.layout.deleted_tasks(), MAX_LIST)?.unwrap_or_default();
        Ok(String::from_utf8_lossy(&bytes).lines().filter_map(|line| TaskId::parse(line).ok()).collect())
    }
}

/// Draws the new edges on the board that we hold, one after the other, so that they are checked against each other.
fn link(board: &mut Board, id: TaskId, changes: &Changes) -> Result<(), StoreError> {
    if let Some(task) = board.tasks.get_mut(&id) {
        task.blocked_by.retain(|b| !changes.unblock.contains(b));
    }
    for blocker in &changes.blocked_by {
        if !board.tasks.contains_key(blocker) {
            return Err(Refusal::TaskNotFound(*blocker).into());
        }
        if let Some(path) = board.circle(id, *blocker) {
            return Err(StoreError::Circle { task: id, blocker: *blocker, path });
        }
        if let Some(task) = board.tasks.get_mut(&id) {
            add(&mut task.blocked_by, *blocker);
        }
    }
    Ok(())
}

/// Whether a new owner may be given one more.
fn admit(board: &Board, task: &Task, by: &MemberName, changes: &Changes) -> Result<(), StoreError> {
    match (&changes.owner, changes.limits) {
        (Some(Owner::Member(owner)), Some(limits)) if !task.is_owned_by(owner) && !task.state.is_over() => {
            Ok(limits.admit(board.tasks.values(), owner, by)?)
        }
        (Some(_) | None, _) => Ok(()),
    }
}

fn edit(task: &mut Task, who: &MemberName, changes: &Changes) -> Result<(), StoreError> {
    let moves = changes.owner.is_some() || !changes.blocked_by.is_empty() || !changes.unblock.is_empty();
    if moves && task.state.is_over() {
        return Err(StoreError::Over { id: task.id, state: task.state });
    }
    if let Some(subject) = &changes.subject {
        task.subject.clone_from(subject);
    }
    if let Some(description) = &changes.description {
        task.description.clone_from(description);
    }
    task.blocked_by.retain(|b| !changes.unblock.contains(b));
    changes.blocked_by.iter().for_each(|b| add(&mut task.blocked_by, *b));
    match &changes.owner {
        Some(Owner::Member(name)) if task.is_owned_by(name) => Ok(()),
        Some(Owner::Member(name)) => {
            give(task, Some(name), changes.tells)?;
            task.extra.assigned_by = (name != who).then(|| who.to_string());
            Ok(())
        }
        Some(Owner::Nobody) => give(task, None, false),
        None => Ok(()),
    }
}

/// Another owner begins anew: what the last one had begun is not this one's work (TK-08).
fn give(task: &mut Task, owner: Option<&MemberName>, tells: bool) -> Result<(), StoreError> {
    if task.state == TaskState::InProgress {
        transition(task, TaskState::Pending)?;
        task.extra.released += 1;
        task.extra.claimed_at = None;
    }
    task.owner = owner.map(MemberName::to_string);
    task.extra.assigned_by = None;
    task.extra.untold = tells;
    Ok(())
}
