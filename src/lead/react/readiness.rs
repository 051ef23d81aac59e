//! Ends the tasks that stand for the readiness of members: with success when the member is ready,
//! without when it can no longer become so.

use super::staff;
use crate::effect::Effect;
use crate::state::State;
use model::board::Board;
use model::id::{MemberName, TaskId};

/// Returns the open readiness tasks, each with its member.
pub(super) fn awaited(board: &Board) -> Vec<(TaskId, MemberName)> {
    let open = board.work().filter(|task| !task.state.is_over());
    let named = |name: &str| MemberName::existing(name).ok();
    open.filter_map(|task| Some((task.id, task.awaited_member().and_then(named)?))).collect()
}

/// Requests the end of each open readiness task whose member is ready, or neither runs nor will be
/// started.
pub(super) fn settle(state: &mut State, effects: &mut Vec<Effect>) {
    if !state.is_leading() || !state.members_seen {
        return;
    }
    let Some(seen) = &state.seen else { return };
    let is_settled = |name: &MemberName| match state.members.get(name) {
        Some(view) => view.is_ready,
        None => !staff::will_start(state, name),
    };
    let open = seen.awaited.iter().filter(|(task, _)| !state.settled.contains(task));
    let ended: Vec<_> = open.filter(|(_, name)| is_settled(name)).cloned().collect();
    for (task, member) in ended {
        state.settled.insert(task);
        effects.push(Effect::SettleReadiness { task, member });
    }
}
