//! The task board in the shared store. A claim is one statement there, which journals it and only
//! notes it beside the task; readers apply it with the rules that also apply to files.

use std::collections::BTreeMap;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;

use super::batch::{self, EditedTasks, TaskBatch};
use super::rules::begin;
use super::work::ClaimKind;
use crate::error::StoreError;
use crate::shared::{LostClaim, SharedTeam, until_written};
use crate::team::journal;
use database::{
    ClaimCall, ClaimReply, ClaimScope, StoredClaim, StoredTask, StoredTasks, TaskScope, TaskWrite,
};
use model::board::task::{Task, TaskState};
use model::board::{Board, Refusal};
use model::id::{MemberName, TaskId};
use model::time::Timestamp;
use model::wire::Object;
use sys::clock::{self, Deadline};
use sys::lock::LOCK_DEADLINE;
use sys::rand;

/// Pause before a claim is repeated that met the lock of the task list.
const LOCKED_PAUSE: Duration = Duration::from_millis(5);

/// A task with the content of its row and the version of both.
struct VersionedTask {
    task: Task,
    file: Object,
    version: i64,
}

impl SharedTeam {
    pub(super) fn board(&self, scope: &TaskScope) -> Result<Board, StoreError> {
        let stored = self.database.tasks(self.name(), scope)?;
        Ok(self.board_of(&stored))
    }

    /// Returns the task and its direct blockers.
    pub(super) fn with_blockers(&self, id: TaskId) -> Result<Board, StoreError> {
        self.board(&TaskScope::WithBlockers(vec![id.0]))
    }

    fn board_of(&self, stored: &StoredTasks) -> Board {
        let mut board = Board::default();
        for stored in &stored.tasks {
            let id = TaskId(stored.id);
            match self.task_of(stored) {
                Ok(task) => drop(board.tasks.insert(id, task)),
                Err(_) => drop(board.unreadable.insert(id)),
            }
        }
        board.deleted = stored.deleted.iter().map(|id| TaskId(*id)).collect();
        board
    }

    pub(super) fn task(&self, id: TaskId) -> Result<Option<Task>, StoreError> {
        self.stored_task(id)?.map(|stored| self.task_of(&stored)).transpose()
    }

    pub(super) fn stored_task(&self, id: TaskId) -> Result<Option<StoredTask>, StoreError> {
        let found = self.database.tasks(self.name(), &TaskScope::WithBlockers(vec![id.0]))?;
        Ok(found.tasks.into_iter().find(|task| task.id == id.0))
    }

    /// Returns the largest id that was ever assigned.
    pub(super) fn task_mark(&self) -> Result<u64, StoreError> {
        Ok(self.database.tasks(self.name(), &TaskScope::WithBlockers(Vec::new()))?.mark)
    }

    pub(super) fn change_task(
        &self,
        id: TaskId,
        mut edit: impl FnMut(&mut Task) -> Result<(), StoreError>,
    ) -> Result<Task, StoreError> {
        let changed = until_written(|| {
            let stored = self.stored_task(id)?.ok_or(Refusal::TaskNotFound(id))?;
            let VersionedTask { mut task, mut file, version } = self.versioned(&stored)?;
            edit(&mut task)?;
            let before = file.clone();
            task.write(&mut file);
            if file == before && stored.claim.is_none() {
                return Ok(Some(task));
            }
            let write = row(&task, file, Some(version));
            Ok(self.database.put_tasks(self.name(), &[write], 0)?.map(|_| task))
        })?;
        changed.ok_or_else(|| self.task_contended(id))
    }

    /// Writes a batch in one transaction. Returns the edited tasks.
    pub(super) fn write_batch(&self, batch: &TaskBatch) -> Result<EditedTasks, StoreError> {
        let mark = batch.create.iter().map(|task| task.id.0).max().unwrap_or_default();
        let ids: Vec<u64> = batch.edits.keys().map(|id| id.0).collect();
        let written = until_written(|| {
            let stored = if ids.is_empty() {
                Vec::new()
            } else {
                let scope = TaskScope::WithBlockers(ids.clone());
                self.database.tasks(self.name(), &scope)?.tasks
            };
            let stored: BTreeMap<u64, StoredTask> =
                stored.into_iter().map(|task| (task.id, task)).collect();
            let mut writes: Vec<TaskWrite> =
                batch.create.iter().map(|task| row(task, task.to_object(), None)).collect();
            let mut edited = EditedTasks::new();
            for (id, edits) in &batch.edits {
                let stored = stored.get(&id.0).ok_or(Refusal::TaskNotFound(*id))?;
                let VersionedTask { mut task, mut file, version } = self.versioned(stored)?;
                batch::apply(edits, &mut task)?;
                task.write(&mut file);
                writes.push(row(&task, file, Some(version)));
                edited.insert(*id, task);
            }
            if writes.is_empty() {
                return Ok(Some(edited));
            }
            Ok(self.database.put_tasks(self.name(), &writes, mark)?.map(|_| edited))
        })?;
        written.ok_or_else(|| self.task_contended(TaskId(mark)))
    }

    /// Removes a task if `check` permits it. Returns the task.
    pub(super) fn remove_task(
        &self,
        id: TaskId,
        check: impl Fn(&Task) -> Result<(), StoreError>,
    ) -> Result<Task, StoreError> {
        let removed = until_written(|| {
            let stored = self.stored_task(id)?.ok_or(Refusal::TaskNotFound(id))?;
            let task = self.task_of(&stored)?;
            check(&task)?;
            let removed = self.database.delete_task(self.name(), id.0, stored.version)?;
            Ok(removed.then_some(task))
        })?;
        removed.ok_or_else(|| self.task_contended(id))
    }

    /// Claims this task.
    pub(super) fn claim(
        &self,
        id: TaskId,
        who: &MemberName,
        busy_check: bool,
        now: Timestamp,
    ) -> Result<Task, StoreError> {
        let deadline = Deadline::after(LOCK_DEADLINE);
        let event = rand::uuid();
        loop {
            let scope = ClaimScope::Task(id.0);
            let reply = self.try_claim(scope, who, None, busy_check, now, &event)?;
            match reply {
                ClaimReply::Claimed(stored) => return self.task_of(&stored),
                ClaimReply::Busy(_) | ClaimReply::Nothing => {
                    self.board(&TaskScope::All)?.may_claim(id, who, busy_check)?;
                }
                ClaimReply::Locked => {}
            }
            // The task became free after the refusal, or the lock is held.
            if deadline.expired() {
                return Err(self.task_contended(id));
            }
            clock::sleep(LOCKED_PAUSE);
        }
    }

    /// Claims the next task of this kind; `None` if there is none.
    pub(super) fn claim_next(
        &self,
        who: &MemberName,
        role: Option<&str>,
        kind: ClaimKind,
        now: Timestamp,
    ) -> Result<Option<Task>, StoreError> {
        let (scope, busy_check) = match kind {
            ClaimKind::Command => (ClaimScope::Command, false),
            ClaimKind::Prompt { busy_check } => (ClaimScope::Prompt, busy_check),
        };
        let deadline = Deadline::after(LOCK_DEADLINE);
        // A claim whose reply was lost is repeated under its id. Its task counts only if nobody has
        // changed it meanwhile.
        let lost = self.lost_claim().clone().filter(|lost| lost.who == *who && lost.scope == scope);
        let mut is_repeated = lost.is_some();
        let mut event = lost.map_or_else(rand::uuid, |lost| lost.event);
        loop {
            *self.lost_claim() =
                Some(LostClaim { who: who.clone(), scope: scope.clone(), event: event.clone() });
            let reply = self.try_claim(scope.clone(), who, role, busy_check, now, &event)?;
            if is_repeated && reply != ClaimReply::Locked {
                let found = self.claimed_with(who, &event)?;
                self.lost_claim().take();
                if found.is_some() {
                    return Ok(found);
                }
                (is_repeated, event) = (false, rand::uuid());
                continue;
            }
            self.lost_claim().take_if(|_| reply != ClaimReply::Locked);
            match reply {
                ClaimReply::Claimed(stored) => return self.task_of(&stored).map(Some),
                ClaimReply::Nothing => return Ok(None),
                ClaimReply::Busy(with) => {
                    let (who, with) = (who.to_string(), TaskId(with));
                    return Err(Refusal::AgentBusy { who, with }.into());
                }
                ClaimReply::Locked if deadline.expired() => {
                    return Err(StoreError::Contended { path: self.list_label().into(), tries: 1 });
                }
                ClaimReply::Locked => clock::sleep(LOCKED_PAUSE),
            }
        }
    }

    fn lost_claim(&self) -> MutexGuard<'_, Option<LostClaim>> {
        self.lost_claim.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the task in progress that a claim with this id has started.
    fn claimed_with(&self, who: &MemberName, event: &str) -> Result<Option<Task>, StoreError> {
        let mut tasks = self.board(&TaskScope::Open)?.tasks.into_values();
        Ok(tasks.find(|task| {
            task.state == TaskState::InProgress
                && task.owner_name() == Some(who.as_str())
                && task.extra.event.as_deref() == Some(event)
        }))
    }

    fn try_claim(
        &self,
        scope: ClaimScope,
        who: &MemberName,
        role: Option<&str>,
        busy_check: bool,
        now: Timestamp,
        event: &str,
    ) -> Result<ClaimReply, StoreError> {
        let claim = StoredClaim { by: who.to_string(), at: now.0, event: event.to_owned() };
        let line = journal::claim_line_of_member(&self.name, &claim);
        let call = ClaimCall {
            scope,
            claim: &claim,
            who: who.folded(),
            role: role.map(str::to_ascii_lowercase),
            busy_check,
            line,
        };
        Ok(self.database.claim(self.name(), &call)?)
    }

    pub(super) fn list_label(&self) -> String {
        format!("the task list of team {}", self.name)
    }

    fn task_contended(&self, id: TaskId) -> StoreError {
        StoreError::Contended { path: format!("task {id} of team {}", self.name).into(), tries: 1 }
    }

    fn task_of(&self, stored: &StoredTask) -> Result<Task, StoreError> {
        let quick =
            stored.claim.is_none().then(|| Task::quick(TaskId(stored.id), stored.body.as_bytes()));
        quick.flatten().map_or_else(|| Ok(self.versioned(stored)?.task), Ok)
    }

    /// Returns a task with its content, to which its claim was applied.
    pub(crate) fn task_and_object(
        &self,
        stored: &StoredTask,
    ) -> Result<(Task, Object), StoreError> {
        let VersionedTask { task, file, .. } = self.versioned(stored)?;
        Ok((task, file))
    }

    /// Parses a row, and applies its claim.
    fn versioned(&self, stored: &StoredTask) -> Result<VersionedTask, StoreError> {
        let id = TaskId(stored.id);
        let bad = |problem: String| StoreError::BadDocument {
            what: format!("task {id} of team {}", self.name),
            problem,
        };
        let mut file: Object =
            serde_json::from_str(&stored.body).map_err(|e| bad(e.to_string()))?;
        let mut task = Task::read(id, &file);
        if let Some(StoredClaim { by, at, event }) = &stored.claim {
            begin(&mut task, &MemberName::existing(by)?, Timestamp(*at))?;
            task.goes_on(event.clone());
            task.write(&mut file);
            task = Task::read(id, &file);
        }
        Ok(VersionedTask { task, file, version: stored.version })
    }
}

/// Returns the row of a task, with the columns by which claims select it.
pub(crate) fn row(task: &Task, file: Object, expected: Option<i64>) -> TaskWrite {
    TaskWrite {
        id: task.id.0,
        expected,
        body: Value::Object(file).to_string(),
        state: task.state.as_str(),
        owner: task.owner_name().map(str::to_ascii_lowercase),
        priority: task.extra.priority.unwrap_or(0),
        role: task.extra.role.as_deref().map(str::to_ascii_lowercase),
        internal: task.is_internal(),
        has_command: !task.extra.run.is_empty(),
        files: task.extra.files.clone(),
        blocked_by: task.blocked_by.iter().map(|id| id.0).collect(),
        claim_line: journal::claim_line_of_task(task),
    }
}
