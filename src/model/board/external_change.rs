//! Changes that other programs made to the task board between two snapshots (TK-07). A foreign
//! change that phalanx overwrote between the snapshots is not detected.

use std::collections::BTreeSet;

use crate::board::Board;
use crate::board::task::{Task, TaskState};
use crate::id::TaskId;

/// A change to one task by another program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExternalChange {
    /// The task file is gone, and phalanx did not delete it.
    Vanished { id: TaskId, subject: String },
    /// The change takes nothing from phalanx: the status or the owner changed, as when another
    /// program claims, completes or releases a task, or phalanx never wrote the task. `status` and
    /// `owner` hold new values, an empty `owner` meaning none; `fields` lists the other changed
    /// fields.
    Changed {
        id: TaskId,
        subject: String,
        status: Option<String>,
        owner: Option<String>,
        fields: Vec<String>,
    },
    /// A field that phalanx had written was replaced. `fields` lists all changed fields.
    Rewritten { id: TaskId, subject: String, fields: Vec<String> },
}

impl ExternalChange {
    /// Returns the id of the task.
    pub fn id(&self) -> TaskId {
        match self {
            ExternalChange::Vanished { id, .. }
            | ExternalChange::Changed { id, .. }
            | ExternalChange::Rewritten { id, .. } => *id,
        }
    }
}

/// Returns the pending tasks that foreign changes unblocked: tasks that were blocked in `before`
/// and either had their own edges cut or lost a blocker to a foreign change. Each task is listed
/// once (TK-04).
pub fn freed(before: &Board, now: &Board, changes: &[ExternalChange]) -> Vec<TaskId> {
    let touched: BTreeSet<TaskId> = changes.iter().map(ExternalChange::id).collect();
    let is_freed = |task: &&Task| {
        let waited = before.open_blockers(before.tasks.get(&task.id).unwrap_or(task));
        let by_others = touched.contains(&task.id) || waited.iter().any(|id| touched.contains(id));
        !waited.is_empty() && by_others && now.open_blockers(task).is_empty()
    };
    if touched.is_empty() {
        return Vec::new();
    }
    let pending = now.tasks.values().filter(|task| task.state == TaskState::Pending);
    pending.filter(is_freed).map(|task| task.id).collect()
}

/// Returns the foreign changes from `before` to `now`. New tasks are ignored, as there is nothing
/// to compare them with.
pub fn between(before: &Board, now: &Board) -> Vec<ExternalChange> {
    let mut found = Vec::new();
    for (id, was) in &before.tasks {
        match now.tasks.get(id) {
            Some(is) => found.extend(changed(was, is)),
            None if now.unreadable.contains(id) || now.deleted.contains(id) => {}
            None => found.push(ExternalChange::Vanished { id: *id, subject: was.subject.clone() }),
        }
    }
    found
}

fn changed(was: &Task, is: &Task) -> Option<ExternalChange> {
    let lost = was.extra.seal.is_some() && is.extra.seal.is_none();
    let fields = touched(was, is, lost);
    if fields.is_empty() || is.seal_holds() == Some(true) {
        return None;
    }
    let (id, subject) = (is.id, was.subject.clone());
    let moves = |field: &String| field == "status" || field == "owner";
    // Phalanx has written nothing to an unsealed task, so no change to it loses phalanx's data.
    if was.extra.seal.is_some() && !fields.iter().all(moves) {
        return Some(ExternalChange::Rewritten { id, subject, fields });
    }
    let status = (was.state.wire() != is.state.wire()).then(|| is.state.wire().to_owned());
    let owner = (was.owner != is.owner).then(|| is.owner.clone().unwrap_or_default());
    let fields = fields.into_iter().filter(|f| !moves(f)).collect();
    Some(ExternalChange::Changed { id, subject, status, owner, fields })
}

/// Returns the wire names of the fields that differ.
fn touched(was: &Task, is: &Task, lost: bool) -> Vec<String> {
    let differs = [
        ("subject", was.subject != is.subject),
        ("description", was.description != is.description),
        ("activeForm", was.active_form != is.active_form),
        ("status", was.state.wire() != is.state.wire()),
        ("blocks", was.blocks != is.blocks),
        ("blockedBy", was.blocked_by != is.blocked_by),
        ("owner", was.owner != is.owner),
        ("metadata.phalanx", lost),
    ];
    differs.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::task::TaskState;

    /// The task as read back after phalanx wrote it.
    fn sealed(task: &Task) -> Task {
        Task::read(task.id, &task.to_object())
    }

    fn board(tasks: &[Task]) -> Board {
        Board { tasks: tasks.iter().map(|t| (t.id, t.clone())).collect(), ..Board::default() }
    }

    fn one(was: &Task, is: &Task) -> Vec<ExternalChange> {
        between(&board(std::slice::from_ref(was)), &board(std::slice::from_ref(is)))
    }

    #[test]
    fn tk_07_vanished_task_is_reported_but_not_deleted_or_unreadable_one() {
        let before = board(&[Task::new(TaskId(3), "s", "d")]);
        let gone = ExternalChange::Vanished { id: TaskId(3), subject: "s".to_owned() };
        assert_eq!(between(&before, &Board::default()), [gone]);
        assert_eq!(between(&Board::default(), &Board::default()), []);
        let deleted = Board { deleted: [TaskId(3)].into(), ..Board::default() };
        let unreadable = Board { unreadable: [TaskId(3)].into(), ..Board::default() };
        assert_eq!(between(&before, &deleted), []);
        assert_eq!(between(&before, &unreadable), []);
    }

    /// TK-04: a task counts as freed however many foreign changes coincide, but only if it was
    /// blocked before.
    #[test]
    fn tk_04_task_freed_by_foreign_changes_is_found_once() {
        let (mut one, two) = (Task::new(TaskId(1), "s", "d"), Task::new(TaskId(2), "s", "d"));
        let mut behind = Task::new(TaskId(3), "s", "d");
        behind.blocked_by = vec![one.id, two.id];
        let before = board(&[one.clone(), two.clone(), behind.clone()]);
        let freed_by = |now: &Board| freed(&before, now, &between(&before, now));
        assert_eq!(
            freed_by(&board(&[two.clone(), behind.clone()])),
            [],
            "the other one still blocks it"
        );
        assert_eq!(
            freed_by(&board(std::slice::from_ref(&behind))),
            [TaskId(3)],
            "both vanish in one look"
        );
        one.state = TaskState::Completed;
        assert_eq!(
            freed_by(&board(&[one.clone(), behind.clone()])),
            [TaskId(3)],
            "one ends, one vanishes"
        );
        let done = board(&[one.clone(), behind.clone()]);
        let gone = board(std::slice::from_ref(&behind));
        assert_eq!(
            freed(&done, &gone, &between(&done, &gone)),
            [],
            "what vanishes had been completed before"
        );
        let mut cut = behind.clone();
        cut.blocked_by.clear();
        assert_eq!(freed_by(&board(&[one, two, cut])), [TaskId(3)], "its edges are cut");
    }

    #[test]
    fn own_changes_are_ignored_and_foreign_ones_reported_once() {
        let was = sealed(&Task::new(TaskId(1), "s", "d"));
        let mut ours = was.clone();
        (ours.state, ours.owner) = (TaskState::InProgress, Some("ann".to_owned()));
        assert_eq!(one(&was, &sealed(&ours)), []);
        // The change with the old seal: another program made it.
        let moved = ExternalChange::Changed {
            id: TaskId(1),
            subject: "s".to_owned(),
            status: Some("in_progress".to_owned()),
            owner: Some("ann".to_owned()),
            fields: Vec::new(),
        };
        assert_eq!(one(&was, &ours), [moved]);
        assert_eq!(one(&ours, &ours), []);
    }

    #[test]
    fn edits_to_unsealed_task_are_changes_and_to_sealed_task_rewrites() {
        let native = Task::new(TaskId(1), "s", "d");
        let mut other = native.clone();
        other.description = "e".to_owned();
        let fields = vec!["description".to_owned()];
        let (id, subject) = (TaskId(1), "s".to_owned());
        let told = ExternalChange::Changed {
            id,
            subject,
            status: None,
            owner: None,
            fields: fields.clone(),
        };
        assert_eq!(one(&native, &other), [told]);
        let was = sealed(&native);
        other.extra = was.extra.clone();
        let told = ExternalChange::Rewritten { id, subject: "s".to_owned(), fields };
        assert_eq!(one(&was, &other), [told]);
        let lost = ExternalChange::Rewritten {
            id,
            subject: "s".to_owned(),
            fields: vec!["metadata.phalanx".to_owned()],
        };
        assert_eq!(one(&was, &native), [lost]);
    }
}
