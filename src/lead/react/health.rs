//! Detection of members that do not start their assigned task. A silent member is reported once
//! each time and never stopped for it: only exited members are acted upon (CR-02).

use crate::effect::Effect;
use crate::state::{State, TrackedMember};
use model::id::{MemberName, TaskId};
use model::members::lifecycle::MemberState;
use model::time::Timestamp;
use ops::effects::health::Silence;

/// Reports members whose answer is overdue, and those that answer again.
pub(super) fn watch(state: &mut State, now: Timestamp, effects: &mut Vec<Effect>) {
    if !state.leads() {
        return;
    }
    if state.seen.is_none() {
        return;
    }
    for (name, view) in
        state.members.iter_mut().filter(|(_, view)| view.watched && view.ending.is_none())
    {
        let Some(task) = owed(view) else {
            view.owes_since = None;
            if std::mem::take(&mut view.unresponsive) {
                effects.push(health_effect(name, view, None));
            }
            continue;
        };
        let for_ms = now.since(*view.owes_since.get_or_insert(now));
        if !view.unresponsive && for_ms >= state.unresponsive_after_ms {
            view.unresponsive = true;
            effects.push(health_effect(name, view, Some(Silence::NotStarted { task, for_ms })));
        }
    }
}

/// Returns the assigned task that a member could start but has not. A requested shutdown has a
/// deadline of its own, and a member that waits for a plan or permission is owed an answer itself.
/// One at its usage limit cannot start anything.
fn owed(view: &TrackedMember) -> Option<TaskId> {
    let can_start =
        view.reads_mail && matches!(view.state, MemberState::Idle | MemberState::Working);
    view.given.filter(|_| can_start && view.limit.is_none())
}

fn health_effect(name: &MemberName, view: &TrackedMember, silence: Option<Silence>) -> Effect {
    Effect::Health { name: name.clone(), incarnation: view.incarnation.clone(), silence }
}

/// Returns the time at which the next answer becomes overdue.
pub(super) fn next_silence(state: &State) -> Option<Timestamp> {
    let waits = state.members.values().filter(|view| !view.unresponsive && view.ending.is_none());
    waits.filter_map(|view| Some(view.owes_since?.plus_ms(state.unresponsive_after_ms))).min()
}
