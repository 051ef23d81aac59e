//! Whose screen is looked at: a native member says by itself that it rests, and one that does not would be at work for
//! ever. Looking is slow, and most have said so long before.

use crate::lead::effect::Effect;
use crate::lead::state::{State, View};
use crate::model::lifecycle::MemberState;
use crate::model::time::Timestamp;

/// From the beginning of its work to the first look.
const FIRST_MS: u64 = 15_000;
/// From one look to the next.
const AGAIN_MS: u64 = 20_000;

/// Has those looked at who are due.
pub(super) fn look(state: &mut State, now: Timestamp, effects: &mut Vec<Effect>) {
    if !state.leads() {
        return;
    }
    for (name, view) in &mut state.members {
        if due(view).is_some_and(|at| at <= now) {
            view.looked_at = Some(now);
            effects
                .push(Effect::Look { name: name.clone(), incarnation: view.incarnation.clone() });
        }
    }
}

fn due(view: &View) -> Option<Timestamp> {
    let works =
        view.native && view.watched && view.ending.is_none() && view.state == MemberState::Working;
    works.then(|| match view.looked_at {
        None => view.state_since.plus_ms(FIRST_MS),
        Some(at) => at.plus_ms(AGAIN_MS),
    })
}

/// When the next one is due.
pub(in crate::lead) fn next_look(state: &State) -> Option<Timestamp> {
    state.members.values().filter(|_| state.leads()).filter_map(due).min()
}
