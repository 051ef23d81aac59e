//! Hang detection: a member hangs if it has a task in progress, and its screen, its mail and the
//! task have not changed for the configured time.

use super::shutdown::{begin, ending};
use crate::effect::Effect;
use crate::state::{ActivityCheck, BoardView, HangRule, State, TrackedMember};
use model::id::{Incarnation, MemberName, TaskId};
use model::members::lifecycle::{Cause, MemberState};
use model::team::settings::OnHang;
use model::time::{Timestamp, human};
use ops::effects::health::Silence;
use ops::hosts::stop_mode::StopMode;

/// Number of checks in the configured time.
const CHECKS: u64 = 4;
/// Maximum time between two checks.
const INTERVAL_MS: u64 = 60_000;

pub(super) fn check(state: &mut State, now: Timestamp, effects: &mut Vec<Effect>) {
    let (true, Some(rule), Some(seen)) = (state.leads(), state.hang, &state.seen) else { return };
    for (name, view) in &mut state.members {
        if task_of(seen, name, view).is_none() {
            view.activity = None;
            continue;
        }
        let activity = view.activity.get_or_insert(ActivityCheck::new(now));
        if now.since(activity.checked_at) >= interval(rule) {
            activity.checked_at = now;
            let (name, incarnation) = (name.clone(), view.incarnation.clone());
            effects.push(Effect::CheckActivity { name, incarnation });
        }
    }
}

fn interval(rule: HangRule) -> u64 {
    (rule.after_ms / CHECKS).clamp(1, INTERVAL_MS)
}

/// Returns the task that the member works on. A member that waits for an answer, for the end of its
/// usage limit or for its next try does not hang.
fn task_of(seen: &BoardView, name: &MemberName, view: &TrackedMember) -> Option<TaskId> {
    let waits = view.limit.is_some() || view.is_retrying;
    let works = matches!(view.state, MemberState::Idle | MemberState::Working) && !waits;
    seen.work_of(name).filter(|_| works && view.watched && view.ending.is_none())
}

/// Handles the result of a check: equal fingerprints mean no activity.
pub(super) fn handle_activity(
    state: &mut State,
    name: &MemberName,
    incarnation: &Incarnation,
    fingerprint: u64,
    now: Timestamp,
    effects: &mut Vec<Effect>,
) {
    let (Some(rule), Some(seen)) = (state.hang, &state.seen) else { return };
    let Some(view) = state.members.get_mut(name).filter(|view| view.incarnation == *incarnation)
    else {
        return;
    };
    let Some(task) = task_of(seen, name, view) else { return };
    let Some(activity) = &mut view.activity else { return };
    if activity.fingerprint.replace(fingerprint) != Some(fingerprint) {
        activity.since = now;
        if std::mem::take(&mut activity.is_reported) {
            effects.push(health(name, incarnation, None));
        }
        return;
    }
    let for_ms = now.since(activity.since);
    if activity.is_reported || for_ms < rule.after_ms {
        return;
    }
    activity.is_reported = true;
    let on_hang = rule.action;
    let silence = Silence::Hang { task, for_ms, on_hang };
    effects.push(health(name, incarnation, Some(silence)));
    match on_hang {
        OnHang::Report => {}
        OnHang::Release => effects.push(Effect::Release(name.clone())),
        OnHang::Restart => {
            view.restarts = true;
            let reason = format!("it showed no activity for {} with task #{task}", human(for_ms));
            let ending = ending(Cause::Ended { code: None }, &reason, None);
            begin(state, name, StopMode::Immediate, ending, effects);
        }
    }
}

fn health(name: &MemberName, incarnation: &Incarnation, silence: Option<Silence>) -> Effect {
    Effect::Health { name: name.clone(), incarnation: incarnation.clone(), silence }
}

pub(super) fn next_check(state: &State) -> Option<Timestamp> {
    let checked =
        state.members.values().filter_map(|view| Some(view.activity.as_ref()?.checked_at));
    Some(checked.min()?.plus_ms(interval(state.hang?)))
}
