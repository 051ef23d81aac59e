//! Schedules screen checks of native members that have not reported idle; without them such a
//! member would count as working indefinitely. A check is slow, so the first one waits until most
//! have reported.

use crate::lead::effect::Effect;
use crate::lead::state::{State, TrackedMember};
use crate::model::lifecycle::MemberState;
use crate::model::time::Timestamp;

/// Time from the start of the work to the first check, in ms.
const FIRST_MS: u64 = 15_000;
/// Time between two checks, in ms.
const AGAIN_MS: u64 = 20_000;

/// Requests a check of each member for which one is due.
pub(super) fn check_idle(state: &mut State, now: Timestamp, effects: &mut Vec<Effect>) {
    if !state.leads() {
        return;
    }
    for (name, view) in &mut state.members {
        if due(view).is_some_and(|at| at <= now) {
            view.idle_checked_at = Some(now);
            effects.push(Effect::CheckIdle {
                name: name.clone(),
                incarnation: view.incarnation.clone(),
            });
        }
    }
}

/// Returns the time of the member's next check; `None` if it needs none.
fn due(view: &TrackedMember) -> Option<Timestamp> {
    let works =
        view.native && view.watched && view.ending.is_none() && view.state == MemberState::Working;
    works.then(|| match view.idle_checked_at {
        None => view.state_since.plus_ms(FIRST_MS),
        Some(at) => at.plus_ms(AGAIN_MS),
    })
}

/// Returns the time of the earliest check.
pub(super) fn next_idle_check(state: &State) -> Option<Timestamp> {
    state.members.values().filter(|_| state.leads()).filter_map(due).min()
}
