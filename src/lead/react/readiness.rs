//! Ends the tasks that stand for the readiness of members: with success when the member is ready,
//! without when it can no longer become so. A failed one is open again while its member is started
//! once more.

use super::staff;
use crate::effect::Effect;
use crate::state::State;
use model::board::Board;
use model::board::task::{Task, TaskState};
use model::id::{MemberName, TaskId};

/// Returns the open and the failed readiness tasks, each with its member.
pub(super) fn awaited(board: &Board) -> Vec<(TaskId, MemberName)> {
    let can_change = |task: &&Task| !task.state.is_over() || task.state == TaskState::Failed;
    let named = |name: &str| MemberName::existing(name).ok();
    let found = board.work().filter(can_change);
    found.filter_map(|task| Some((task.id, task.awaited_member().and_then(named)?))).collect()
}

/// Requests the end of each open readiness task whose member is ready, or neither runs nor will be
/// started, and the reopening of each failed one whose member was started since.
pub(super) fn settle(state: &mut State, effects: &mut Vec<Effect>) {
    if !state.is_leading() || !state.members_seen {
        return;
    }
    let Some(seen) = &state.seen else { return };
    let is_due = |(task, name): &(TaskId, MemberName)| {
        let failed = seen.board.tasks.get(task).filter(|task| task.state == TaskState::Failed);
        match (failed, state.members.get(name)) {
            (Some(task), view) => view.is_some_and(|view| task.extra.ended_at < Some(view.since)),
            (None, Some(view)) => view.is_ready,
            (None, None) => !state.returning.contains_key(name) && !staff::will_start(state, name),
        }
    };
    let known = seen.awaited.iter().filter(|(task, _)| !state.settled.contains(task));
    let due: Vec<_> = known.filter(|entry| is_due(entry)).cloned().collect();
    for (task, member) in due {
        state.settled.insert(task);
        effects.push(Effect::SettleReadiness { task, member });
    }
}
