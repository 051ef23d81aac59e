//! Rules over several tasks: who may claim what, what is blocked, and which edges would close a
//! cycle. The store applies the answers under its locks.

pub mod cycle;
pub mod external_change;
pub mod limits;
pub mod policy;
pub mod results;
pub mod search;
pub mod task;
pub mod task_definition;
pub mod task_ref;
pub mod waiting;
pub mod workspace;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::board::task::{Task, TaskState};
use crate::id::{MemberName, TaskId};

/// All readable tasks of a team, and the ids of the unreadable ones.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Board {
    pub tasks: BTreeMap<TaskId, Task>,
    /// Tasks whose files exist but could not be read. They block their dependants: fail closed
    /// (TK-03).
    pub unreadable: BTreeSet<TaskId>,
    /// Tasks that phalanx deleted.
    pub deleted: BTreeSet<TaskId>,
}

/// The reason for refusing a claim. Variants are in the order of the checks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Refusal {
    #[error("task {0} does not exist")]
    TaskNotFound(TaskId),
    /// `known` are the keys of the board.
    #[error("no task has the id or the key {key:?}")]
    KeyNotFound { key: String, known: Vec<String> },
    #[error("tasks {} have the same key {key:?}", list(.ids))]
    AmbiguousKey { key: String, ids: Vec<TaskId> },
    #[error("task {id} is claimed by {owner}")]
    AlreadyClaimed { id: TaskId, owner: String },
    #[error("task {id} is already {}", .state.as_str())]
    AlreadyResolved { id: TaskId, state: TaskState },
    #[error("task {id} is blocked by {}", list(.by))]
    Blocked { id: TaskId, by: Vec<TaskId> },
    #[error("{who} is busy with task {with}")]
    AgentBusy { who: String, with: TaskId },
    #[error("task {id} overlaps with files of task {with}, which is in progress")]
    FileOverlap { id: TaskId, with: TaskId },
}

impl Refusal {
    /// The refusal's code on the wire.
    pub fn code(&self) -> &'static str {
        self.into()
    }
}

fn list(ids: &[TaskId]) -> String {
    ids.iter().map(TaskId::to_string).collect::<Vec<_>>().join(", ")
}

impl Board {
    /// Returns the tasks that members work on: all except those internal to another program.
    pub fn work(&self) -> impl Iterator<Item = &Task> {
        self.tasks.values().filter(|task| !task.is_internal())
    }

    /// Returns the id of the task with this key.
    ///
    /// # Errors
    /// [`Refusal::KeyNotFound`]; [`Refusal::AmbiguousKey`] if several tasks have it.
    pub fn find(&self, key: &str) -> Result<TaskId, Refusal> {
        let keyed =
            || self.tasks.values().filter_map(|task| Some((task, task.extra.key.as_deref()?)));
        let ids: Vec<TaskId> =
            keyed().filter(|(_, found)| *found == key).map(|(task, _)| task.id).collect();
        match ids.as_slice() {
            [id] => Ok(*id),
            [] => {
                let known = keyed().map(|(_, known)| known.to_owned()).collect();
                Err(Refusal::KeyNotFound { key: key.to_owned(), known })
            }
            _ => Err(Refusal::AmbiguousKey { key: key.to_owned(), ids }),
        }
    }

    /// Returns the pending tasks to work on in claim order: higher priority first, then lower id.
    pub fn pending(&self) -> Vec<&Task> {
        let is_pending =
            |task: &&Task| task.state == TaskState::Pending && task.awaited_member().is_none();
        let mut pending: Vec<&Task> = self.work().filter(is_pending).collect();
        // The sort is stable and tasks are iterated by id.
        pending.sort_by_key(|task| Reverse(task.extra.priority.unwrap_or(0)));
        pending
    }

    /// Returns the state of a task, which is blocked if it is pending with open blockers, and
    /// stopping if its command is being ended.
    pub fn state(&self, task: &Task) -> TaskState {
        match task.state {
            TaskState::Pending if !self.open_blockers(task).is_empty() => TaskState::Blocked,
            state if state.is_running() && task.extra.stopping.is_some() => TaskState::Stopping,
            state => state,
        }
    }

    /// Returns the open blockers of a task. A blocker without a file was deleted and no longer
    /// blocks.
    pub fn open_blockers(&self, task: &Task) -> Vec<TaskId> {
        let open = |id: &TaskId| match self.tasks.get(id) {
            Some(blocker) => !blocker.state.frees_dependants(),
            None => self.unreadable.contains(id),
        };
        task.blocked_by.iter().copied().filter(open).collect()
    }

    /// Checks whether `who` may start task `id` now. A pending task that `who` already owns may be
    /// claimed. `busy_check` refuses members that have another task in progress.
    ///
    /// # Errors
    /// The first applicable [`Refusal`], in the order of its variants.
    pub fn may_claim(&self, id: TaskId, who: &MemberName, busy_check: bool) -> Result<(), Refusal> {
        let task = self.tasks.get(&id).ok_or(Refusal::TaskNotFound(id))?;
        if let Some(owner) =
            task.owner.as_ref().filter(|_| !task.is_owned_by(who) && !task.state.is_over())
        {
            return Err(Refusal::AlreadyClaimed { id, owner: owner.clone() });
        }
        if task.state != TaskState::Pending {
            let (owner, state) = (who.to_string(), task.state);
            return match state.is_over() {
                true => Err(Refusal::AlreadyResolved { id, state }),
                false => Err(Refusal::AlreadyClaimed { id, owner }),
            };
        }
        let by = self.open_blockers(task);
        if !by.is_empty() {
            return Err(Refusal::Blocked { id, by });
        }
        if let Some(with) = self.work_of(who).filter(|_| busy_check) {
            return Err(Refusal::AgentBusy { who: who.to_string(), with });
        }
        match self.overlap(task) {
            Some(with) => Err(Refusal::FileOverlap { id, with }),
            None => Ok(()),
        }
    }

    /// Returns the task that `who` has in progress.
    pub fn work_of(&self, who: &MemberName) -> Option<TaskId> {
        self.work().find(|t| t.state.is_running() && t.is_owned_by(who)).map(|t| t.id)
    }

    /// Returns the task in progress of each owner, by the owner's name in lower case.
    pub fn working(&self) -> BTreeMap<String, TaskId> {
        let mut working = BTreeMap::new();
        for task in self.work().filter(|task| task.state.is_running()) {
            if let Some(owner) = task.owner_member() {
                working.entry(owner.folded()).or_insert(task.id);
            }
        }
        working
    }

    /// Returns, by owner name in lower case, the first assigned task that the owner could begin
    /// now.
    pub fn given(&self) -> BTreeMap<String, TaskId> {
        let mut given = BTreeMap::new();
        for task in self.pending() {
            let owner = task.owner_member();
            let fresh = owner.filter(|owner| !given.contains_key(&owner.folded()));
            if let Some(owner) = fresh.filter(|owner| self.may_claim(task.id, owner, true).is_ok())
            {
                given.insert(owner.folded(), task.id);
            }
        }
        given
    }

    /// Returns, by name in lower case, the first task that each of these idle workers, given with
    /// its role, is about to claim. Two workers of one role may race for the same task.
    pub fn next_for_workers(
        &self,
        idle: &[(&MemberName, Option<&str>)],
    ) -> BTreeMap<String, TaskId> {
        let mut next = BTreeMap::new();
        if idle.is_empty() {
            return next;
        }
        let pending = self.pending();
        let free = pending.iter().filter(|task| !task.extra.run.is_empty() && self.is_free(task));
        for task in free {
            let takes = |name: &MemberName, role| match &task.owner {
                Some(_) => task.is_owned_by(name),
                None => task.fits(role),
            };
            for (name, _) in idle.iter().filter(|(name, role)| takes(name, *role)) {
                next.entry(name.folded()).or_insert(task.id);
            }
            if next.len() == idle.len() {
                break;
            }
        }
        next
    }

    /// Returns the tasks for a worker with this role: assigned tasks first, then unowned tasks for
    /// its role or for any role, each part in claim order. Only tasks with a command count, and
    /// none is available to a worker that has one in progress.
    pub fn all_for_worker<'a>(
        &'a self,
        who: &'a MemberName,
        role: Option<&'a str>,
    ) -> impl Iterator<Item = &'a Task> {
        let pending = if self.work_of(who).is_none() { self.pending() } else { Vec::new() };
        let carry_commands = pending.into_iter().filter(|t| !t.extra.run.is_empty());
        self.available(who, role, carry_commands)
    }

    /// Returns all tasks without a command that a member may claim: its own first, each part in
    /// claim order. A task with a command is for workers.
    pub fn all_for_agent<'a>(
        &'a self,
        who: &'a MemberName,
        role: Option<&'a str>,
    ) -> impl Iterator<Item = &'a Task> {
        let plain = self.pending().into_iter().filter(|t| t.extra.run.is_empty());
        self.available(who, role, plain)
    }

    /// Returns the tasks without a command that any agent whose role fits may claim, in claim
    /// order.
    pub fn free_for_agents(&self) -> impl Iterator<Item = &Task> {
        let plain = self.pending().into_iter().filter(|t| t.extra.run.is_empty());
        plain.filter(|t| t.owner.is_none() && self.is_free(t))
    }

    fn available<'a>(
        &'a self,
        who: &'a MemberName,
        role: Option<&'a str>,
        tasks: impl Iterator<Item = &'a Task>,
    ) -> impl Iterator<Item = &'a Task> {
        let (mine, others): (Vec<&Task>, Vec<&Task>) = tasks.partition(|t| t.is_owned_by(who));
        let free = others.into_iter().filter(move |t| t.owner.is_none() && t.fits(role));
        mine.into_iter().chain(free).filter(|t| self.is_free(t))
    }

    /// Returns true if no open blocker and no file overlap prevents the task from starting.
    pub fn is_free(&self, task: &Task) -> bool {
        self.open_blockers(task).is_empty() && self.overlap(task).is_none()
    }

    /// Returns the cycle that making `blocker` a blocker of `task` would close. It starts with
    /// `task`; each element blocks the next.
    pub fn circle(&self, task: TaskId, blocker: TaskId) -> Option<Vec<TaskId>> {
        // Breadth-first search from the blocker against the edges. `before` maps each task to the
        // one it blocks.
        let mut before = BTreeMap::from([(blocker, task)]);
        let mut open = VecDeque::from([blocker]);
        while let Some(at) = open.pop_front() {
            if at == task {
                let mut circle = vec![task];
                let mut next = before.get(&task).copied();
                while let Some(id) = next.filter(|id| *id != task) {
                    circle.push(id);
                    next = before.get(&id).copied();
                }
                return Some(circle);
            }
            for above in self.tasks.get(&at).into_iter().flat_map(|t| &t.blocked_by) {
                if !before.contains_key(above) {
                    before.insert(*above, at);
                    open.push_back(*above);
                }
            }
        }
        None
    }

    /// Returns true if a task is running, waits for approval or can be started. If not, waiting is
    /// pointless: all pending tasks depend on a failed task, an unreadable file, or a cycle.
    pub fn can_move(&self) -> bool {
        self.work().any(|t| match self.state(t) {
            TaskState::Pending
            | TaskState::InProgress
            | TaskState::Stopping
            | TaskState::InReview
            | TaskState::Stale => true,
            TaskState::Blocked
            | TaskState::Completed
            | TaskState::Failed
            | TaskState::Cancelled => false,
        })
    }

    /// Returns the tasks that became unblocked when `id` was resolved.
    pub fn freed_by(&self, id: TaskId) -> Vec<TaskId> {
        let waits = |t: &&Task| t.state == TaskState::Pending && t.blocked_by.contains(&id);
        self.tasks
            .values()
            .filter(waits)
            .filter(|t| self.open_blockers(t).is_empty())
            .map(|t| t.id)
            .collect()
    }

    /// Returns the task whose files may be the same and are in use: it is running or in review.
    pub(crate) fn overlap(&self, task: &Task) -> Option<TaskId> {
        if task.extra.files.is_empty() {
            return None;
        }
        let in_use = |t: &&Task| t.state.is_running() || t.state == TaskState::InReview;
        let others = self.tasks.values().filter(|t| t.id != task.id);
        others.filter(in_use).find(|t| share_files(t, task)).map(|t| t.id)
    }
}

/// Returns true if two tasks may touch the same file.
pub(crate) fn share_files(a: &Task, b: &Task) -> bool {
    a.extra.files.iter().any(|x| b.extra.files.iter().any(|y| meet(x, y)))
}

/// Returns true if two path patterns may match the same file. Compares only the parts before the
/// first wildcard, so false positives are possible, false negatives are not.
fn meet(a: &str, b: &str) -> bool {
    let literal = |p: &str| {
        p.find(['*', '?', '[', '{']).map_or((p.to_owned(), false), |at| (p[..at].to_owned(), true))
    };
    let ((a, a_open), (b, b_open)) = (literal(a), literal(b));
    match (a_open, b_open) {
        (false, false) => a == b,
        (true, false) => b.starts_with(&a),
        (false, true) => a.starts_with(&b),
        (true, true) => a.starts_with(&b) || b.starts_with(&a),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(name: &str) -> MemberName {
        MemberName::new(name).expect("name")
    }

    /// A board of tasks 1..=n with edges (blocker, task). Each task has a command.
    fn board(n: u64, edges: &[(u64, u64)]) -> Board {
        let mut board = Board::default();
        for id in 1..=n {
            let mut task = Task::new(TaskId(id), "s", "d");
            task.extra.run = vec!["true".to_owned()];
            board.tasks.insert(TaskId(id), task);
        }
        for &(blocker, task) in edges {
            board.tasks.get_mut(&TaskId(blocker)).expect("task").blocks.push(TaskId(task));
            board.tasks.get_mut(&TaskId(task)).expect("task").blocked_by.push(TaskId(blocker));
        }
        board
    }

    fn next_for_worker(board: &Board, who: &MemberName) -> Option<TaskId> {
        board.all_for_worker(who, None).next().map(|task| task.id)
    }

    fn set(board: &mut Board, id: u64, state: TaskState, owner: Option<&str>) {
        let task = board.tasks.get_mut(&TaskId(id)).expect("task");
        task.state = state;
        task.owner = owner.map(str::to_owned);
    }

    #[test]
    fn claim_refusals_follow_the_documented_order() {
        let mut b = board(4, &[(1, 2)]);
        let code = |b: &Board, id: u64, busy| {
            b.may_claim(TaskId(id), &who("ann"), busy).err().map(|r| r.code())
        };
        assert_eq!(code(&b, 9, false), Some("task_not_found"));
        set(&mut b, 1, TaskState::InProgress, Some("bob"));
        assert_eq!(code(&b, 1, false), Some("already_claimed"));
        assert_eq!(code(&b, 2, false), Some("blocked"));
        set(&mut b, 1, TaskState::Completed, Some("bob"));
        assert_eq!(code(&b, 1, false), Some("already_resolved"));
        assert_eq!(code(&b, 2, false), None);
        set(&mut b, 3, TaskState::InProgress, Some("ann"));
        assert_eq!(code(&b, 2, true), Some("agent_busy"));
        assert_eq!(code(&b, 2, false), None);
        for id in [3, 4] {
            b.tasks.get_mut(&TaskId(id)).expect("task").extra.files =
                vec![format!("src/{}", if id == 3 { "**" } else { "a.rs" })];
        }
        assert_eq!(code(&b, 4, false), Some("file_overlap"));
    }

    #[test]
    fn tk_02_owners_are_not_compared_by_prefix() {
        let mut b = board(1, &[]);
        set(&mut b, 1, TaskState::Pending, Some("Writer-2"));
        assert!(b.may_claim(TaskId(1), &who("Writer"), false).is_err());
        assert!(b.may_claim(TaskId(1), &who("writer-2"), false).is_ok());
    }

    #[test]
    fn tk_03_failed_and_unreadable_blockers_block_deleted_do_not() {
        let mut b = board(2, &[(1, 2)]);
        set(&mut b, 1, TaskState::Failed, None);
        assert_eq!(next_for_worker(&b, &who("ann")), None);
        assert!(!b.can_move());
        b.tasks.remove(&TaskId(1));
        assert_eq!(next_for_worker(&b, &who("ann")), Some(TaskId(2)));
        b.unreadable.insert(TaskId(1));
        assert_eq!(next_for_worker(&b, &who("ann")), None);
    }

    #[test]
    fn worker_claims_assigned_tasks_first_then_the_lowest_id() {
        let mut b = board(3, &[]);
        set(&mut b, 3, TaskState::Pending, Some("ann"));
        assert_eq!(next_for_worker(&b, &who("ann")), Some(TaskId(3)));
        assert_eq!(next_for_worker(&b, &who("bob")), Some(TaskId(1)));
        b.tasks.get_mut(&TaskId(1)).expect("task").extra.run.clear();
        assert_eq!(next_for_worker(&b, &who("bob")), Some(TaskId(2)));
    }

    #[test]
    fn higher_priority_is_claimed_first_then_the_lower_id() {
        let mut b = board(5, &[]);
        for (id, priority) in [(1, -1), (3, 7), (4, 7)] {
            b.tasks.get_mut(&TaskId(id)).expect("task").extra.priority = Some(priority);
        }
        let order = |b: &Board, name| -> Vec<u64> {
            b.all_for_worker(&who(name), None).map(|t| t.id.0).collect()
        };
        assert_eq!(order(&b, "bob"), [3, 4, 2, 5, 1]);
        set(&mut b, 5, TaskState::Pending, Some("ann"));
        set(&mut b, 1, TaskState::Pending, Some("ann"));
        assert_eq!(order(&b, "ann"), [5, 1, 3, 4, 2], "its own first, each part by priority");
        assert_eq!(b.given().get("ann"), Some(&TaskId(5)));
    }

    #[test]
    fn internal_tasks_are_ignored() {
        let mut b = board(2, &[]);
        set(&mut b, 1, TaskState::InProgress, Some("ann"));
        set(&mut b, 2, TaskState::Pending, Some("ann"));
        for task in b.tasks.values_mut() {
            task.metadata.insert("_internal".to_owned(), true.into());
        }
        assert_eq!(b.work_of(&who("ann")), None);
        assert_eq!(next_for_worker(&b, &who("ann")), None);
        assert!(b.given().is_empty() && !b.can_move());
    }

    #[test]
    fn completion_unblocks_direct_dependants() {
        let mut b = board(3, &[(1, 2), (2, 3)]);
        set(&mut b, 1, TaskState::Completed, None);
        assert_eq!(b.freed_by(TaskId(1)), vec![TaskId(2)]);
    }

    #[test]
    fn foreign_cycle_does_not_hang() {
        let b = board(2, &[(1, 2), (2, 1)]);
        assert!(!b.can_move());
    }

    #[test]
    fn tk_03_edge_that_would_close_a_cycle_names_the_cycle() {
        let b = board(6, &[(1, 2), (2, 3), (1, 3), (4, 3), (3, 6)]);
        let circle = |task, blocker| b.circle(TaskId(task), TaskId(blocker));
        assert_eq!(circle(1, 3), Some(vec![TaskId(1), TaskId(3)]));
        assert_eq!(circle(2, 6), Some(vec![TaskId(2), TaskId(3), TaskId(6)]));
        assert_eq!(circle(1, 2), Some(vec![TaskId(1), TaskId(2)]));
        assert_eq!(circle(5, 5), Some(vec![TaskId(5)]));
        assert_eq!(circle(3, 5), None);
        assert_eq!(circle(4, 1), None);
        assert_eq!(
            board(2, &[(1, 2), (2, 1)]).circle(TaskId(3), TaskId(1)),
            None,
            "a foreign circle ends too"
        );
    }

    #[test]
    fn pattern_overlap_has_no_false_negatives() {
        assert!(meet("src/**", "src/a.rs"));
        assert!(meet("src/a.rs", "src/a.rs"));
        assert!(!meet("src/a.rs", "src/b.rs"));
        assert!(meet("src/*/x", "src/y/*"));
        assert!(!meet("docs/**", "src/**"));
    }
}
