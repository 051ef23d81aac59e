//! Usage limits of members: asks a member to continue once its limit has ended, a limited number of
//! times, and then reports it to the lead.

use crate::effect::Effect;
use crate::state::{State, TrackedMember};
use model::members::rate_limit::ResumePolicy;
use model::time::Timestamp;

/// The next step for a member at its limit, once it is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LimitStep {
    /// Ask the member to continue.
    Resume,
    /// Report that it is not asked again.
    Report,
}

/// Requests the steps that are due.
pub(super) fn resume(state: &mut State, now: Timestamp, effects: &mut Vec<Effect>) {
    if !state.is_leading() {
        return;
    }
    for (name, view) in &mut state.members {
        let due = next_step(view, state.resume_limited).filter(|(_, at)| *at <= now);
        let (Some((step, _)), Some(limit)) = (due, &mut view.limit) else { continue };
        let (name, incarnation) = (name.clone(), view.incarnation.clone());
        // The record has the same once the effect was carried out.
        match step {
            LimitStep::Resume => {
                limit.attempts += 1;
                limit.resumed_at = Some(now);
                effects.push(Effect::ResumeLimited { name, incarnation });
            }
            LimitStep::Report => {
                limit.is_reported = true;
                effects.push(Effect::ReportLimit { name, incarnation });
            }
        }
    }
}

/// Returns the next step and its time.
fn next_step(view: &TrackedMember, policy: ResumePolicy) -> Option<(LimitStep, Timestamp)> {
    let limit = view.limit.as_ref()?;
    if !view.watched || view.ending.is_some() || !view.reads_mail || limit.is_reported {
        return None;
    }
    if limit.attempts < policy.attempts {
        return Some((LimitStep::Resume, limit.next_attempt()));
    }
    // After the last attempt the member has some time to answer; another refusal is final.
    let at = limit.resumed_at.map_or(limit.since, |_| limit.next_attempt());
    Some((LimitStep::Report, at))
}

/// Returns the time of the next step.
pub(super) fn next_limit_step(state: &State) -> Option<Timestamp> {
    let members = state.members.values().filter(|_| state.is_leading());
    members.filter_map(|view| next_step(view, state.resume_limited)).map(|(_, at)| at).min()
}
