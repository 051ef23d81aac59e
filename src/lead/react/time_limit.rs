//! Time limits: of tasks that agents do, since a worker limits its own commands, and of the team.

use std::collections::BTreeMap;

use super::shutdown;
use crate::effect::Effect;
use crate::state::{Goal, LeadEnd, State};
use model::board::Board;
use model::board::task::TaskState;
use model::id::TaskId;
use model::team::settings::Finish;
use model::time::Timestamp;

/// Returns the time limits of the tasks in progress.
pub(super) fn limits(board: &Board) -> BTreeMap<TaskId, Timestamp> {
    let running = board.work().filter(|task| task.state == TaskState::InProgress);
    let limits = running.filter_map(|task| {
        let seconds = task.extra.timeout_s?;
        Some((task.id, task.extra.claimed_at?.plus_ms(seconds.saturating_mul(1000))))
    });
    limits.collect()
}

/// Returns the time of the next limit.
pub(super) fn next_limit(state: &State) -> Option<Timestamp> {
    let of_tasks = state.seen.iter().flat_map(|seen| of_agents(state, &seen.limits));
    of_tasks.map(|(_, at)| at).chain(of_team(state)).min()
}

/// Fails the tasks whose limit has passed, and ends the team at its own limit or at a failure.
pub(super) fn check(state: &mut State, now: Timestamp, effects: &mut Vec<Effect>) {
    state.began_at.get_or_insert(now);
    if of_team(state).is_some_and(|limit| limit <= now) {
        shutdown::stop(state, LeadEnd::TimedOut, false, now, effects);
    }
    let Some(seen) = &state.seen else { return };
    let late = of_agents(state, &seen.limits).filter(|(_, at)| *at <= now);
    let late: Vec<TaskId> = late.map(|(id, _)| id).collect();
    let has_failed = || seen.board.work().any(|task| task.state == TaskState::Failed);
    let is_due = state.is_leading() && state.goal == Goal::Lead(Finish::TasksDone);
    let fails_fast = state.settings.as_ref().is_some_and(|settings| settings.fail_fast);
    if fails_fast && is_due && has_failed() {
        shutdown::stop(state, LeadEnd::Stopped, false, now, effects);
    }
    if let Some(seen) = &mut state.seen {
        seen.limits.retain(|id, _| !late.contains(id));
    }
    effects.extend(late.into_iter().map(Effect::FailLate));
}

/// Returns the limits of the tasks whose owners are agents.
fn of_agents<'s>(
    state: &'s State,
    limits: &'s BTreeMap<TaskId, Timestamp>,
) -> impl Iterator<Item = (TaskId, Timestamp)> + 's {
    let is_of_worker = |id: &TaskId| {
        let seen = state.seen.as_ref().and_then(|seen| seen.board.tasks.get(id)?.owner_member());
        seen.and_then(|owner| state.members.get(&owner)).is_some_and(|view| view.runs_commands)
    };
    let limits = limits.iter().filter(move |(id, _)| state.leads() && !is_of_worker(id));
    limits.map(|(id, at)| (*id, *at))
}

/// Returns the time at which the team ends.
fn of_team(state: &State) -> Option<Timestamp> {
    let limit = state.settings.as_ref()?.timeout_s.filter(|_| state.is_leading())?;
    Some(state.began_at?.plus_ms(limit.saturating_mul(1000)))
}
