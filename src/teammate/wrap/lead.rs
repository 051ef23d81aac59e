//! The end of the team of an agent lead.

use super::effect::Effect;
use super::state::State;

/// Handles the end of the team: the program belongs to the user and continues, but nothing more is
/// typed.
pub(super) fn detach(state: &mut State) {
    state.waiting.clear();
    if state.turn.take().is_some() {
        state.effects.push(Effect::Release);
    }
    state.teamless = true;
}

#[cfg(test)]
mod tests;
