//! Schedules screen checks of native members: of those that have not reported idle, which would
//! count as working indefinitely; of those that asked for a permission, which do not report that
//! they no longer wait; and of all in their first minutes, when a program may ask a person
//! something before it reads its mail. In its first seconds such a question has to be seen soon;
//! later a check is slow for what it finds, so it waits until most have reported.

use crate::effect::Effect;
use crate::state::{State, TrackedMember};
use model::members::lifecycle::MemberState;
use model::time::Timestamp;

/// Time from the start of the work to the first check whether it is over, in ms.
const FIRST_MS: u64 = 15_000;
/// Time between two checks, in ms.
const AGAIN_MS: u64 = 20_000;
/// Time from the start of a member's work to the first check for questions, in ms.
const QUESTIONS_MS: u64 = 5_000;
/// Time from the start of a member for which the questions of a first start are looked for, in ms.
const STARTING_MS: u64 = 30_000;
/// Time between two checks of a starting member, and from its start to the first one, and between
/// two checks of one that asked for a permission, in ms.
const STARTING_AGAIN_MS: u64 = 1_000;
/// Time between two checks of a member that waits for a person, in ms.
const BLOCKED_AGAIN_MS: u64 = 5_000;
/// Time from the start of an idle member to the last check, in ms, unless it waits for a person.
const UNTIL_MS: u64 = 120_000;

/// Requests a check of each member for which one is due.
pub(super) fn check_idle(state: &mut State, now: Timestamp, effects: &mut Vec<Effect>) {
    if !state.leads() {
        return;
    }
    for (name, view) in &mut state.members {
        if due(view).is_some_and(|at| at <= now) {
            view.idle_checked_at = Some(now);
            let (name, incarnation) = (name.clone(), view.incarnation.clone());
            effects.push(Effect::CheckIdle { name, incarnation });
        }
    }
}

/// Returns the time of the member's next check; `None` if it needs none.
fn due(view: &TrackedMember) -> Option<Timestamp> {
    if !view.native || !view.watched || view.ending.is_some() {
        return None;
    }
    let starting = view.since.plus_ms(STARTING_MS);
    let looks_often = |at: Timestamp| at < starting && !view.is_elsewhere;
    let next = |first: Timestamp| match view.idle_checked_at {
        None if looks_often(first) => view.since.plus_ms(STARTING_AGAIN_MS),
        None => first,
        Some(at) if looks_often(at) => at.plus_ms(STARTING_AGAIN_MS),
        Some(at) if view.is_blocked => at.plus_ms(BLOCKED_AGAIN_MS),
        Some(at) => at.plus_ms(AGAIN_MS),
    };
    match view.state {
        MemberState::Working => {
            let first = view.state_since.plus_ms(FIRST_MS);
            match view.idle_checked_at {
                Some(at) if at < first && !looks_often(at) && !view.is_blocked => Some(first),
                Some(_) | None => Some(next(view.state_since.plus_ms(QUESTIONS_MS))),
            }
        }
        MemberState::Idle => {
            let at = next(view.since.plus_ms(QUESTIONS_MS));
            (view.is_blocked || at <= view.since.plus_ms(UNTIL_MS)).then_some(at)
        }
        // A person may answer its question on its screen, or press Escape there.
        MemberState::AwaitingPermission => {
            let at = view.idle_checked_at.unwrap_or(view.state_since);
            let pause = if view.is_elsewhere { BLOCKED_AGAIN_MS } else { STARTING_AGAIN_MS };
            Some(at.plus_ms(pause))
        }
        MemberState::Pending
        | MemberState::Starting
        | MemberState::AwaitingPlan
        | MemberState::ShutdownRequested
        | MemberState::Completed
        | MemberState::Failed
        | MemberState::Killed
        | MemberState::Disappeared => None,
    }
}

/// Returns the time of the earliest check.
pub(super) fn next_idle_check(state: &State) -> Option<Timestamp> {
    state.members.values().filter(|_| state.leads()).filter_map(due).min()
}
