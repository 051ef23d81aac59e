//! Budgets: reports each share once, and ends the members of a budget that is used up.

use crate::effect::Effect;
use crate::state::{Phase, State};
use model::id::MemberName;
use model::members::budget::{self, BudgetUse};
use model::members::lifecycle::MemberState;
use model::members::record::MemberRecord;

/// Checks the budgets against what the records contain.
pub(super) fn handle_members(
    state: &mut State,
    records: &[MemberRecord],
    effects: &mut Vec<Effect>,
) {
    if !state.leads() {
        return;
    }
    let watch = &mut state.budget;
    let uses = budget::uses(&watch.budgets, &watch.prices, records);
    watch.stops_starts = uses.iter().any(|of| of.member.is_none() && of.stops_spawns());
    for of in &uses {
        if of.mark().is_some_and(|mark| watch.reported.insert(mark)) {
            effects.push(Effect::ReportBudget(of.clone()));
        }
    }
    for of in uses.iter().filter(|of| of.ends_members()) {
        end_members(state, of, effects);
    }
}

/// Asks the members to shut down; one that rejects it is asked again when its state changes.
fn end_members(state: &mut State, of: &BudgetUse, effects: &mut Vec<Effect>) {
    if state.phase != Phase::Leading {
        return;
    }
    let open: Vec<MemberName> = state.open.values().map(|request| request.member.clone()).collect();
    let mut names = Vec::new();
    for (name, view) in &mut state.members {
        let is_covered = of.member.as_ref().is_none_or(|member| member == name);
        let can_end = view.watched && view.ending.is_none() && !open.contains(name);
        let is_new = view.ended_for_budget != Some(view.state_since);
        if is_covered && can_end && is_new && view.state != MemberState::ShutdownRequested {
            view.ended_for_budget = Some(view.state_since);
            names.push(name.clone());
        }
    }
    effects.extend(Effect::ask(names, &of.describe(), false));
}
