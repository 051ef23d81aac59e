//! Draws the plan of an agent as a check list.

use acp::{PlanEntry, PlanState};

use crate::line::{Breaks, Look, StyledLine, wrap};

/// Entries in the live region.
const SHOWN: usize = 6;

/// Draws the entries around the current one, one row each.
pub(crate) fn live(plan: &[PlanEntry], room: usize) -> Vec<StyledLine> {
    let current = plan
        .iter()
        .position(|entry| entry.state == PlanState::InProgress)
        .or_else(|| plan.iter().position(|entry| entry.state == PlanState::Pending))
        .unwrap_or(plan.len());
    let last = plan.len().saturating_sub(SHOWN);
    let start = current.saturating_sub(SHOWN / 2).min(last);
    plan.iter().skip(start).take(SHOWN).map(|entry| row(entry).cut(room)).collect()
}

/// Draws the whole plan.
pub(crate) fn whole(plan: &[PlanEntry], room: usize) -> Vec<StyledLine> {
    let rest = StyledLine::new(Look::PLAIN, "    ");
    plan.iter()
        .flat_map(|entry| wrap(&row(entry), &StyledLine::default(), &rest, room, Breaks::Words))
        .collect()
}

fn row(entry: &PlanEntry) -> StyledLine {
    let (mark, look) = match entry.state {
        PlanState::Pending => ("[ ] ", Look::PLAIN),
        PlanState::InProgress => ("[>] ", Look::BOLD),
        PlanState::Completed => ("[x] ", Look::DIM),
    };
    StyledLine::new(look, mark).with(look, &entry.text)
}
