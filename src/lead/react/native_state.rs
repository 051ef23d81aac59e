//! Follows what native programs say about themselves in the team file: `isActive` is true during a
//! turn. The record of a member that says otherwise is corrected.

use crate::effect::Effect;
use crate::state::{State, TrackedMember};
use model::members::lifecycle::{Cause, MemberState};
use model::time::Timestamp;

/// Time for which team file and record must disagree, in ms. Claude Code 2.1.34 sends its idle
/// notification 0.1 s before it changes the team file.
const DISAGREEMENT_MS: u64 = 1_000;

/// Moves native members whose program says otherwise than their record.
pub(super) fn follow_team_file(state: &mut State, now: Timestamp, effects: &mut Vec<Effect>) {
    if !state.leads() {
        return;
    }
    for (name, view) in &mut state.members {
        let Some((cause, at)) = disagreement(view) else { continue };
        if at > now {
            continue;
        }
        view.state = match cause {
            Cause::Work => MemberState::Working,
            _ => MemberState::Idle,
        };
        view.state_since = now;
        effects.push(view.move_on(name, cause, None));
    }
}

/// Returns the time of the next correction.
pub(super) fn next_correction(state: &State) -> Option<Timestamp> {
    let members = state.members.values().filter(|_| state.leads());
    members.filter_map(|view| Some(disagreement(view)?.1)).min()
}

/// Returns the cause of the change that the team file asks for, and the time from which on it
/// counts.
fn disagreement(view: &TrackedMember) -> Option<(Cause, Timestamp)> {
    if !view.native || !view.watched || view.ending.is_some() {
        return None;
    }
    let (is_active, changed_at) = view.says_active?;
    let cause = match (view.state, is_active) {
        (MemberState::Idle, true) => Cause::Work,
        (MemberState::Working, false) => Cause::Rest,
        _ => return None,
    };
    let since = changed_at.max(view.state_since);
    Some((cause, since.plus_ms(DISAGREEMENT_MS)))
}
