//! Detection of members that rest and do not take the assignment of a task. A silent member is
//! reported once each time and never stopped for it: only exited members are acted upon (CR-02).

use crate::effect::Effect;
use crate::state::{State, TrackedMember};
use model::id::{MemberName, TaskId};
use model::members::lifecycle::MemberState;
use model::time::Timestamp;
use ops::effects::health::Silence;

/// Reports members whose answer is overdue, and those that answer again.
pub(super) fn watch(state: &mut State, now: Timestamp, effects: &mut Vec<Effect>) {
    if !state.leads() || state.seen.is_none() {
        return;
    }
    for (name, view) in
        state.members.iter_mut().filter(|(_, view)| view.watched && view.ending.is_none())
    {
        let Some(task) = owed(view) else {
            view.owes_since = None;
            if std::mem::take(&mut view.answer_checks) > 0 {
                effects.push(health_effect(name, view, None));
            }
            continue;
        };
        let since = *view.owes_since.get_or_insert(now);
        if now >= next_check(since, view.answer_checks, state.unresponsive_after_ms) {
            view.answer_checks += 1;
            let silence = Silence::NotTaken { task, for_ms: now.since(since) };
            effects.push(health_effect(name, view, Some(silence)));
        }
    }
}

/// Returns the assigned task that a member could start but has not. A working member takes its mail
/// after its turn. A requested shutdown has a deadline of its own, and a member that waits for a
/// plan or permission is owed an answer itself. One at its usage limit cannot start anything.
fn owed(view: &TrackedMember) -> Option<TaskId> {
    let can_start = view.reads_mail && view.state == MemberState::Idle;
    view.given.filter(|_| can_start && view.limit.is_none())
}

/// Returns the time of the next check, after so many. A member that takes its mail late is well
/// again at the next one.
fn next_check(owes_since: Timestamp, checks: u64, after_ms: u64) -> Timestamp {
    owes_since.plus_ms(after_ms.saturating_mul(checks + 1))
}

fn health_effect(name: &MemberName, view: &TrackedMember, silence: Option<Silence>) -> Effect {
    Effect::Health { name: name.clone(), incarnation: view.incarnation.clone(), silence }
}

/// Returns the time at which the next answer becomes overdue.
pub(super) fn next_silence(state: &State) -> Option<Timestamp> {
    let after = state.unresponsive_after_ms;
    let waits = state.members.values().filter(|view| view.ending.is_none());
    waits.filter_map(|view| Some(next_check(view.owes_since?, view.answer_checks, after))).min()
}
